"""Verdicts on MID's claims on CAFE (section 5.7, Tables 1 and 2).

An attacker chooses the start or the end of training, seed by seed. Differences
within the spread (see claims.py) decide nothing. An attack whose PSNR is no
better than guessing the pool's mean image has failed, however far below it is.
The attack has 1500 steps here, far fewer than in the paper, and may therefore
be weaker; every claim says so.
"""
from collections.abc import Callable

from experiments import evidence
from experiments.claims import Claim, Verdict
from experiments.mid import cafe, curves
from experiments.mid.curves import Curves, Point
from vfljax.report import reading

PAPER = 'mid'
DATA = dict(
    mnist='--config.data.path=mnist.npz',
    cifar10='--config.data.name=cifar10 --config.data.path=cifar10.npz',
)
# By the library's weights of the attack, and by those of its authors.
RUNS = {f'cafe_{name}': f'cafe.py {data}' for name, data in DATA.items()} | {
    f'cafe_{name}_published': f'cafe.py {data} '
    '--config.attack.cafe.published=True --config.seeds=3'
    for name, data in DATA.items()
}
PAPER_STEPS = {'MNIST': 10_000, 'CIFAR-10': 20_000}  # Section 5.2.
CHEAP = 3.0  # Points of accuracy that the highest lambda costs less than.
STAGES = dict(untrained='psnr_start', trained='psnr_end')
Judge = Callable[[str], Verdict]  # of a record's name


def found(record: str, *metrics: str) -> Curves:
  """PSNR, by default of the better of the start and the end of training."""
  results = evidence.load(PAPER, record).results
  return curves.curves(results, 'cafe', *(metrics or STAGES.values()))


def untrained(record: str) -> str:
  """PSNR before training and without a defense."""
  return f'{found(record, STAGES["untrained"]).undefended.success:.1f}'


def mean_image(record: str) -> float:
  """PSNR of a guess that needs no gradient."""
  results = evidence.load(PAPER, record).results
  values = reading.find(
      results, ('none', None), 'cafe', 'mean_image_psnr_start'
  )
  return reading.summarize(values.values()).mean


def _rebuilds(record: str) -> Verdict:
  floor, free = mean_image(record), found(record).undefended
  said = ', '.join(
      f'{found(record, metric).undefended.success:.1f} {stage}'
      for stage, metric in STAGES.items()
  )
  return Verdict(
      curves.above(free.success - floor, free.spread),
      f'PSNR {said}; mean image {floor:.1f}',
  )


def _fails(record: str) -> Verdict:
  now, floor = found(record), mean_image(record)
  strong, noise = now.by_defense['MID'][-1], now.by_defense['DP-G'][0]
  lost, theirs = (_lost(record, p) for p in (strong, noise))
  parts = [
      curves.above(floor - strong.success, strong.spread),
      curves.above(
          noise.success - strong.success, noise.spread + strong.spread
      ),
      curves.above(CHEAP - lost.mean, lost.std),
      curves.above(theirs.mean - lost.mean, theirs.std + lost.std),
  ]
  return Verdict(
      False if False in parts else None if None in parts else True,
      f'PSNR {now.undefended.success:.1f} without, {_named(strong)}, '
      f'{_named(noise)}, mean image {floor:.1f}; points lost, seed by seed: '
      f'{lost.mean:.1f} +- {lost.std:.1f} ({strong.name}), {theirs.mean:.1f} '
      f'+- {theirs.std:.1f} ({noise.name}); MID is on one passive party, DP-G '
      'on all',
  )


def _lost(record: str, point: Point) -> reading.Summary:
  """Points of accuracy that a defense costs, seed by seed."""
  results = evidence.load(PAPER, record).results
  where = point.defense, point.strength
  return reading.summarize(reading.utility_loss(results, where).values())


def _falls(record: str) -> Verdict:
  points = found(record).by_defense['MID']
  zero, strong = points[0], points[-1]
  return Verdict(
      curves.above(
          zero.success - strong.success, zero.spread + strong.spread
      ), 'PSNR ' + ', '.join(_named(p) for p in points),
  )


def _survives(record: str) -> Verdict:
  zero, floor = found(record).by_defense['MID'][0], mean_image(record)
  return Verdict(
      curves.above(zero.success - floor, zero.spread),
      f'PSNR {_named(zero)}, mean image {floor:.1f}',
  )


def _named(point: Point) -> str:
  return f'{point.success:.1f} +- {point.spread:.1f} ({point.name})'


JUDGES: tuple[tuple[str, str, Judge], ...] = (
    ('Section 5.7', 'CAFE rebuilds more than the mean image where nothing '
     'defends', _rebuilds),
    ('Section 5.7', 'CAFE fails at the highest lambda, which costs under 3 '
     'points, and MID is below DP-G in PSNR and in cost', _fails),
    ('Section 5.7', 'the highest lambda leaves less than lambda 0', _falls),
    ('Table 2', 'at lambda 0 CAFE still rebuilds more than the mean image',
     _survives),
)


def claims(record: str, data: str, weights: str = '') -> list[Claim]:
  """What the paper says of CAFE, judged by a record.

  Args:
    record: Its name.
    data: The data set, 'MNIST' or 'CIFAR-10'.
    weights: Which weights of the attack it has, if not the library's.
  """
  how = f'{data}, {weights}' if weights else data
  how += f'; {cafe.STEPS} steps, the paper has {PAPER_STEPS[data]}'
  return [
      Claim(where, f'{text} ({how})',
            lambda judge=judge: judge(record), (record,))
      for where, text, judge in JUDGES
  ]


NUMBERS = {
    f'psnr_{record}': lambda record=record: untrained(record)
    for record in RUNS
}
