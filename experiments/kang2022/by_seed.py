"""Model inversion seed by seed: what three seeds can tell, and what not.

Seeds differ more than defenses do, so that a mean alone says too little. A
seed's split, attacked images and attacker's draws are the same with and without
a defense, so SSIM is compared within it.
"""
from collections.abc import Iterable

from experiments import evidence
from experiments.kang2022 import paper
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed

PAPER = 'kang2022'
ALGORITHMS = ('vhnn', 'vsnn')
NONE: Cell = ('none', None)
SHADOWS: dict[str, str] = dict(zip(('same', 'conv', 'fc'), paper.SHADOWS))


def ssim(
    record: str, cell: Cell = NONE, attack: str = 'model_inversion'
) -> PerSeed:
  results = evidence.load(PAPER, record).results
  return reading.find(results, cell, attack, 'ssim')


def guessed(attack: str) -> str:
  """SSIM without any embedding; VHNN's party B has what VSNN's has."""
  return evidence.mean(ssim('table16_vhnn', NONE, attack).values(), 3)


def lower(*defenses: str, than: str = 'model_inversion') -> str:
  """'17 of 18': how often a defense leaves less SSIM than there is without.

  Args:
    than: An attack on the undefended federation, or a guess.
  """
  pairs = []
  for algorithm in ALGORITHMS:
    record = f'table16_{algorithm}'
    free = ssim(record, attack=than)
    for cell in evidence.load(PAPER, record).results.cells:
      if cell[0] in defenses:
        pairs += _paired(ssim(record, cell), free)
  return _share(pairs)


def worse(algorithm: str, one: str, other: str) -> str:
  """'3 of 3': in how many seeds the other shadow serves an attacker worse."""
  first, second = (
      ssim(f'table17_{algorithm}', attack=SHADOWS[s]) for s in (one, other)
  )
  return _share(_paired(second, first))


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


def _paired(mine: PerSeed, free: PerSeed) -> list[bool]:
  return [mine[seed] < free[seed] for seed in mine]


def _share(pairs: Iterable[bool]) -> str:
  found = list(pairs)
  return f'{sum(found)} of {len(found)}'
