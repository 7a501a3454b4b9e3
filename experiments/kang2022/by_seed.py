"""Model inversion seed by seed: what ten seeds can decide.

Seeds differ more than defenses, so means alone say too little. A seed's split,
attacked images and attacker's draws are the same with and without a defense, so
SSIM is compared within each seed.
"""
from collections.abc import Callable, Iterable
import functools

from experiments import evidence
from experiments.kang2022 import paper
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed

PAPER = 'kang2022'
ALGORITHMS = ('vhnn', 'vsnn')
MIXED = (2.0, 3.0, 4.0)
NONE: Cell = ('none', None)
SHADOWS: dict[str, str] = dict(zip(('same', 'conv', 'fc'), paper.SHADOWS))


def ssim(
    record: str, cell: Cell = NONE, attack: str = 'model_inversion',
    metric: str = 'ssim',
) -> PerSeed:
  results = evidence.load(PAPER, record).results
  return reading.find(results, cell, attack, metric)


def guessed(attack: str) -> str:
  """SSIM of a guess without any embedding; the same for VHNN and VSNN."""
  return evidence.mean(ssim('table16_vhnn', NONE, attack).values(), 3)


def lower(
    *defenses: str, than: str = 'model_inversion', metric: str = 'ssim'
) -> str:
  """'17 of 18': how often a defense leaves less SSIM than there is without.

  Args:
    than: An attack on the undefended federation, or a guess.
    metric: 'ssim' or 'psnr'.
  """
  pairs = []
  for algorithm in ALGORITHMS:
    record = f'table16_{algorithm}'
    free = ssim(record, attack=than, metric=metric)
    for cell in evidence.load(PAPER, record).results.cells:
      if cell[0] in defenses:
        pairs += _paired(ssim(record, cell, metric=metric), free)
  return _share(pairs)


def costlier() -> str:
  """'20 of 20': how often more mixed samples cost more, 2 to 3 to 4."""
  ordered = []
  for algorithm in ALGORITHMS:
    steps = list(costs(algorithm).values())
    ordered += [all(s[seed] > 0 for s in steps) for seed in steps[0]]
  return _share(ordered)


def costs(algorithm: str) -> dict[str, PerSeed]:
  """What one more mixed sample costs, in points, from 2 to 3 and from 3 to 4.
  """
  results = evidence.load(PAPER, f'table16_{algorithm}').results
  lost = {n: reading.utility_loss(results, ('mixup', n)) for n in MIXED}
  return {
      f'MixUp ({b:g}) less MixUp ({a:g})': difference(lost[b], lost[a])
      for a, b in zip(MIXED, MIXED[1:])
  }


def mean(algorithm: str, shadow: str) -> float:
  """SSIM of an attacker with that shadow, over seeds."""
  found = ssim(f'table17_{algorithm}', attack=SHADOWS[shadow])
  return reading.summarize(found.values()).mean


def widest(algorithm: str) -> str:
  """'0.04 to 0.34': SSIM by seed, of the MixUp in which seeds differ most."""
  record = f'table16_{algorithm}'
  found = [
      list(ssim(record, cell).values())
      for cell in evidence.load(PAPER, record).results.cells
      if cell[0] == 'mixup'
  ]
  most = max(found, key=lambda x: max(x) - min(x))
  return f'{min(most):.2f} to {max(most):.2f}'


def difference(mine: PerSeed, other: PerSeed) -> PerSeed:
  return {seed: mine[seed] - other[seed] for seed in mine}


def interval(changes: PerSeed) -> str:
  """'-0.141 (-0.274 to -0.008)': the mean and its 95 % Student-t interval."""
  s = reading.summarize(changes.values())
  return f'{s.mean:.3f} ({s.mean - s.half:.3f} to {s.mean + s.half:.3f})'


def below(changes: PerSeed) -> str:
  """'8 of 10': in how many seeds a difference is below zero."""
  return _share(change < 0 for change in changes.values())


def above(changes: PerSeed) -> str:
  """'10 of 10': in how many seeds a difference is above zero."""
  return _share(change > 0 for change in changes.values())


def less(changes: PerSeed) -> bool | None:
  """Whether the whole interval is below zero; `None` if zero is in it.

  Also `None` if a seed diverged, because the others do not speak for it.
  """
  s = reading.summarize(changes.values())
  told = not s.missing and abs(s.mean) > s.half
  return s.mean < 0 if told else None


def greater(changes: PerSeed) -> bool | None:
  """Whether the whole interval is above zero; `None` as in `less`."""
  return less({seed: -change for seed, change in changes.items()})


def every(found: Iterable[bool | None]) -> bool | None:
  """Whether all hold; `None` if none is refuted but one is not decided."""
  known = set(found)
  return False if False in known else None if None in known else True


def mixed(defense: str, number: float | None, algorithm: str) -> PerSeed:
  """SSIM against so many mixed samples; `None`: the mean over the numbers."""
  found = [
      ssim(f'table16_{algorithm}', (defense, n))
      for n in (MIXED if number is None else (number,))
  ]
  return {
      seed: sum(one[seed] for one in found) / len(found) for seed in found[0]
  }


def lowered(defense: str, number: float | None, algorithm: str) -> PerSeed:
  """By how much mixing changes SSIM."""
  free = ssim(f'table16_{algorithm}')
  return difference(mixed(defense, number, algorithm), free)


def more(algorithm: str) -> PerSeed:
  """What four mixed samples change beside two."""
  two, four = (mixed('mixup', n, algorithm) for n in (2.0, 4.0))
  return difference(four, two)


def milder(algorithm: str) -> PerSeed:
  """What milder weights change beside uniform ones."""
  return difference(
      mixed('mixup_mild', None, algorithm), mixed('mixup', None, algorithm)
  )


def blocked(algorithm: str) -> PerSeed:
  """PRECODE's SSIM over the mean image's."""
  record = f'table16_{algorithm}'
  return difference(
      ssim(record, ('precode', None)), ssim(record, attack='mean_image')
  )


def misled(shadow: str, other: str, algorithm: str) -> PerSeed:
  """What an attacker with one shadow has over one with another, or a guess."""
  record = f'table17_{algorithm}'
  mine, theirs = (
      ssim(record, attack=SHADOWS.get(s, s)) for s in (shadow, other)
  )
  return difference(mine, theirs)


Compared = Callable[[str], PerSeed]  # Of an algorithm.
COMPARED: dict[str, Compared] = {
    **{
        f'MixUp ({n:g}) less none': functools.partial(lowered, 'mixup', n)
        for n in MIXED
    },
    'MixUp, mean of the three, less none': functools.partial(
        lowered, 'mixup', None
    ),
    'milder MixUp, mean of the three, less none': functools.partial(
        lowered, 'mixup_mild', None
    ),
    'MixUp (4) less MixUp (2)': more,
    'milder MixUp less MixUp': milder,
    'PRECODE less the mean image': blocked,
    'other convolutions less the same structure': functools.partial(
        misled, 'conv', 'same'
    ),
    'fully connected less other convolutions': functools.partial(
        misled, 'fc', 'conv'
    ),
    'fully connected less the mean image': functools.partial(
        misled, 'fc', 'mean_image'
    ),
}


def _paired(mine: PerSeed, free: PerSeed) -> list[bool]:
  return [mine[seed] < free[seed] for seed in mine]


def _share(pairs: Iterable[bool]) -> str:
  found = list(pairs)
  return f'{sum(found)} of {len(found)}'
