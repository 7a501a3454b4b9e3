"""What sections 8.4.1 and 8.5.1 say besides the takeaways."""
from collections.abc import Sequence

import numpy as np

from experiments.claims import Verdict
from experiments.kang2022 import alike, by_seed, pu_scores
from experiments.redrawn import decided
from vfljax.evaluation import LEAKAGE_RANGES
from vfljax.report import reading

LIMIT = LEAKAGE_RANGES[5 - pu_scores.THWARTED]  # Points.
NS, DS, DL = pu_scores.SETTINGS[1][1]


def max_norm(runs: Sequence[alike.Run]) -> Verdict:
  """Whether MN thwarts NS, and DS and DL less, in the only run.

  Not decided where NS leaks too little without MN for anything to thwart it.
  """
  (run,) = runs
  left, free = (
      {a: reading.leakage(run.results, (defense, None), a)
       for a in (NS, DS, DL)} for defense in ('max_norm', 'none')
  )
  more = {
      name: by_seed.difference(left[attack], left[NS])
      for name, attack in (('DS', DS), ('DL', DL))
  }
  after, before = (
      {seed: points - LIMIT for seed, points in which[NS].items()}
      for which in (left, free)
  )
  thwarts = bool(by_seed.greater(before))
  held = None if not thwarts else by_seed.every([
      by_seed.less(after), *map(by_seed.greater, more.values()),
  ])
  points = ', '.join(
      f'{name} {by_seed.interval(left[a])} of {by_seed.interval(free[a])}'
      for name, a in (('NS', NS), ('DS', DS), ('DL', DL))
  )
  changes = {f'{name} less NS': change for name, change in more.items()}
  return Verdict(held, '; '.join([
      f'points with MN, of those without: {points}',
      *(f'{name}: {by_seed.interval(x)}' for name, x in changes.items()),
      *([] if thwarts else [
          f'seeds do not show NS above {LIMIT:g} without MN: nothing to thwart'
      ]),
  ]))


def degraded(runs: Sequence[alike.Run]) -> Verdict:
  """Whether each protection's score is lower in VSNN, like with like.

  A higher one refutes it, if the seeds drawn anew bear it out. An equal one
  refutes nothing, as the paper parts equal scores by its curves.
  """
  pairs, left_out = alike.pairs(runs)
  changes, drawn, shown = [], [], []
  for i, pair in enumerate(pairs):
    whole, split = (pu_scores.optimal(r, pu_scores.SCORING) for r in pair)
    many = [
        pu_scores.drawn(r, pu_scores.SCORING, 2 * i + j)
        for j, r in enumerate(pair)
    ]
    mine = [d for d in whole if d != 'none' and d in split]
    changes += [split[d] - whole[d] for d in mine]
    drawn += [many[1][d] - many[0][d] for d in mine]
    shown.append(f'{pair[0].title[1]}: ' + ', '.join(
        f'{reading.pretty(d)} {whole[d]} to {split[d]}' for d in mine
    ))
  because = '; '.join([*shown, *left_out])
  if not changes or 0 in changes and max(changes) == 0:
    return Verdict(None, because)
  held = max(changes) < 0
  bearing = np.all(np.array(drawn) < (0 if held else 1), axis=0)
  share = float(bearing.mean())
  if decided(held, share) is None:
    word = 'lower' if held else 'not higher'
    because += f'; with the seeds drawn anew all are {word} in {share:.0%}'
  return Verdict(decided(held, share), because)
