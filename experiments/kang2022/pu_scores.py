"""Kang's evaluation settings (Table 6) and defenses' scores in them.

A setting is a kind of federation and the attacks on it. A defense's optimal PU
score (Eq. 22) is the best over its strengths, and the scores give the order of
preference. If a seed diverged, the score is 0, as in the report
(`vfljax.report.ranks`). As there, points are rounded to one decimal before they
are scored.
"""
from collections.abc import Iterable, Sequence

import numpy as np

from experiments import redrawn
from vfljax import evaluation
from vfljax.report import ranks, reading
from vfljax.report.reading import Cell, Results

SCORING = ('norm_scoring', 'direction_scoring')
SETTINGS = {
    1: ('vlr', (*SCORING, 'direct_label')),
    2: ('vlr', ('residue_reconstruction', 'gradient_inversion')),
    3: ('vlr', ('model_completion',)),
    4: ('vnn', SCORING),
    5: ('vnn', ('model_completion',)),
}
KINDS = dict(vlr=('vlr',), vnn=('vhnn', 'vsnn'))
THWARTED = 4  # The score from which the paper calls an attack thwarted.


def optimal(results: Results, attacks: Iterable[str]) -> dict[str, int]:
  """Optimal PU score by defense, against some of the attacks."""
  known = [
      (trade, [
          ranks.shown(trade.leakage[a].mean)
          for a in attacks if a in trade.leakage
      ])
      for trade in ranks.trades(results)
  ]
  found = {}
  for defense in results.defenses:
    mine = [(t, leaks) for t, leaks in known if t.cell[0] == defense and leaks]
    if mine:
      whole = [
          (ranks.shown(t.loss.mean), leaks)
          for t, leaks in mine if not t.lost.diverged
      ]
      found[defense] = evaluation.optimal_pu_score(
          [leaks for _, leaks in whole], [lost for lost, _ in whole]
      ) if whole else 0
  return found


def drawn(
    results: Results, attacks: Iterable[str], which: int = 0
) -> dict[str, np.ndarray]:
  """`optimal` of every draw of the seeds: {defense: [draws]}.

  Args:
    which: Results of the same trainings have the same number, see `redrawn`.
  """
  found: dict[str, np.ndarray] = {}
  for (defense, _), score in drawn_cells(results, attacks, which).items():
    found[defense] = np.maximum(found.get(defense, 0), score)
  return found


def drawn_cells(
    results: Results, attacks: Iterable[str], which: int = 0
) -> dict[Cell, np.ndarray]:
  """PU scores of every draw of the seeds, see `drawn`: {cell: [draws]}."""
  wanted = tuple(attacks)
  found = {}
  for trade in ranks.trades(results):
    leaks = [
        reading.leakage(results, trade.cell, a) for a in wanted
        if a in trade.leakage
    ]
    loss = reading.utility_loss(results, trade.cell)
    if not leaks:
      continue
    shares = redrawn.weights(len(loss), which)
    mean = lambda x, w=shares: np.round(w @ np.array([*x.values()]), 1)
    found[trade.cell] = evaluation.pu_score(
        np.max([mean(leak) for leak in leaks], axis=0), mean(loss)
    )
  return found


def as_often(so: Sequence, own: tuple[int, int]) -> np.ndarray:
  """Whether that is so at least as often as in the paper, `own` of how many.

  Args:
    so: [scores] or [scores, draws] of booleans, at least one score.
  """
  return np.sum(so, axis=0) * own[1] >= own[0] * len(so)


def thwarting(
    everything: Sequence[Results], numbers: Sequence[int],
    defenses: Sequence[str], own: tuple[int, int],
) -> float:
  """In which share of the draws the defenses thwart as often as in the paper.

  Args:
    numbers: Numbers of the evaluation settings.
    own: Of how many of the paper's scores that is so, see `as_often`.

  Returns:
    NaN if none of them was measured.
  """
  all_of = []
  for which, results in enumerate(everything):
    for number in numbers:
      kind, attacks = SETTINGS[number]
      if results.title[2] in KINDS[kind]:
        scores = drawn(results, attacks, which)
        all_of += [scores[d] >= THWARTED for d in defenses if d in scores]
  return float(as_often(all_of, own).mean()) if all_of else float('nan')


def moved(
    everything: Sequence[Results], defense: str, attacks: Sequence[str]
) -> tuple[dict[str, list[int]], np.ndarray | None]:
  """A defense's PU scores by data set, one a strength; and how far they move.

  The second is, for every draw of the seeds, the largest difference between two
  strengths on one data set. Data with one strength, or not all of the attacks,
  are left out; `None` if none are left.
  """
  found, ranges = {}, []
  for which, (name, results) in enumerate(named(everything)):
    mine = [
        t for t in against(results, defense, attacks)
        if {*attacks} <= {*t.leakage}
    ]
    if len(mine) > 1:
      found[name] = [t.score for t in mine]
      scores = drawn_cells(results, attacks, which)
      ranges.append(np.ptp([scores[t.cell] for t in mine], axis=0))
  return found, np.max(ranges, axis=0) if ranges else None


def best(
    results: Results, defense: str, attacks: Iterable[str]
) -> ranks.Trade | None:
  """A defense's strength with the best PU score; of equals the tightest."""
  mine = against(results, defense, attacks)
  return min(mine, key=lambda t: t.order, default=None)


def against(
    results: Results, defense: str, attacks: Iterable[str]
) -> list[ranks.Trade]:
  """A defense's trades at its strengths, against some of the attacks."""
  wanted = set(attacks)
  mine = []
  for trade in ranks.trades(results):
    leaks = {a: s for a, s in trade.leakage.items() if a in wanted}
    if trade.cell[0] == defense and leaks:
      worst = max(leaks, key=lambda a: leaks[a].mean)
      score = int(evaluation.pu_score(
          ranks.shown(leaks[worst].mean), ranks.shown(trade.loss.mean)
      ))
      mine.append(trade._replace(
          leakage=leaks, worst=worst, score=0 if trade.lost.diverged else score
      ))
  return mine


def of_setting(
    everything: Sequence[Results], number: int, algorithm: str = ''
) -> dict[str, dict[str, int]]:
  """Scores by 'data set, algorithm' and defense, in an evaluation setting."""
  kind, attacks = SETTINGS[number]
  found = {}
  for name, results in named(everything):
    ours = results.title[2]
    if ours in KINDS[kind] and algorithm in ('', ours):
      scores = optimal(results, attacks)
      if scores:
        found[name] = scores
  return found


def named(everything: Sequence[Results]) -> list[tuple[str, Results]]:
  """Each of the results with its name, 'data set, algorithm'.

  Where two would have one name, as two readings of VSNN, the experiment stands
  behind it, and a number if that is the same, too: none takes another's place.
  """
  short = [f'{r.title[1]}, {r.title[2].upper()}' for r in everything]
  names: list[str] = []
  for name, results in zip(short, everything):
    if short.count(name) > 1:
      name += f' ({results.title[0]})'
    same = sum(n.partition(' #')[0] == name for n in names)
    names.append(name + f' #{same + 1}' * (same > 0))
  return list(zip(names, everything))


def order(tables: dict[str, dict[str, int]]) -> str:
  """Defenses by their mean score: 'iso > marvell ≈ max norm'."""
  names = {n for table in tables.values() for n in table if n != 'none'}
  scores = {n: [t[n] for t in tables.values() if n in t] for n in names}
  groups = evaluation.preference(scores)
  return ' > '.join(' ≈ '.join(map(reading.pretty, group)) for group in groups)
