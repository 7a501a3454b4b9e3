"""Ranks defenses by PU scores, from utility loss and leakage.

The scores are Eq. 21 and 22 of Kang et al. (2022). They are computed from the
shown values, percentage points with one decimal, just as nearly all scores in
the paper's tables follow from the numbers printed there.
"""
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from vfljax import evaluation
from vfljax.report import lost, reading
from vfljax.report.lost import Lost
from vfljax.report.reading import Cell, PerSeed, Results, Summary


class Trade(NamedTuple):
  """What a defense at one strength costs and leaks.

  Attributes:
    cell: The defense and its strength.
    loss: Utility loss in percentage points.
    leakage: Attack -> leakage in percentage points, of measured attacks.
    worst: The attack with the largest mean leakage.
    score: PU score, Eq. 21, against that attack; 0 if anything is `lost`.
    lost: How many seeds lack a utility, a result or an attack.
  """

  cell: Cell
  loss: Summary
  leakage: dict[str, Summary]
  worst: str
  score: int
  lost: Lost = Lost(0, 0, 0)

  @property
  def order(self) -> tuple:
    """A sort key, best first: whole, PU score, leakage, loss.

    Leakage and loss are rounded as shown, so that hidden digits decide nothing.
    Who leaks less than nothing leaks nothing, as for the score.
    """
    leak = max(shown(self.leakage[self.worst].mean), 0.0)
    return bool(self.lost.any), -self.score, leak, shown(self.loss.mean)


class Ranked(NamedTuple):
  """A defense at its best strength.

  Attributes:
    defense: Its name.
    optimal: Optimal PU score, Eq. 22, against all attacks.
    best: The trade at the strength with that score; of several, the one that
      leaks least, then costs least. Strengths with all seeds come first.
    groups: Optimal PU scores by what is attacked: 'gradients', 'trained model'.
  """

  defense: str
  optimal: int
  best: Trade
  groups: dict[str, int]


def shown(points: float) -> float:
  """Percentage points rounded to one decimal, as shown; never -0.0."""
  return round(points, 1) + 0.0


def trades(results: Results) -> list[Trade]:
  """The trade of every cell whose leakage and utility loss are known."""
  found = []
  for cell in results.cells:
    loss = reading.summarize(reading.utility_loss(results, cell).values())
    leaks = {
        a: reading.summarize(reading.leakage(results, cell, a).values())
        for a in results.attacks
    }
    leaks = {a: s for a, s in leaks.items() if s.count}
    if loss.count and leaks:
      worst = max(leaks, key=lambda a: leaks[a].mean)
      gone = lost.of_cell(results, cell)
      score = evaluation.pu_score(shown(leaks[worst].mean), shown(loss.mean))
      score = 0 if gone.any else int(score)
      found.append(Trade(cell, loss, leaks, worst, score, gone))
  return found


def rank(results: Results) -> list[Ranked]:
  """The defenses, best first, with the undefended federation among them.

  Defenses without a number in any seed are left out; `unranked` has them.
  """
  ranked = []
  known = trades(results)
  for defense in results.defenses:
    mine = [t for t in known if t.cell[0] == defense]
    if mine:
      best = min(mine, key=lambda t: t.order)
      whole = [t for t in mine if not t.lost.any]
      groups = {
          name: _optimal(whole, attacks)
          for name, attacks in attack_groups(results).items()
          if any(a in t.leakage for t in mine for a in attacks)
      }
      optimal = _optimal(whole, results.attacks)
      ranked.append(Ranked(defense, optimal, best, groups))
  return sorted(ranked, key=lambda r: r.best.order)


def places(ranked: Sequence[Ranked]) -> list[int]:
  """Each defense's place, 1 for the best; ties share a place."""
  orders = [r.best.order for r in ranked]
  return [orders.index(order) + 1 for order in orders]


def less(results: Results, one: Trade, other: Trade) -> Summary:
  """How many points less `one` leaks than `other`, each to its worst attack.

  The differences are taken seed by seed, over seeds of both, so that variation
  between seeds that affects both alike cancels. Who leaks less than nothing in
  the mean leaks nothing, in every seed.
  """
  mine, theirs = (
      clipped(reading.leakage(results, t.cell, t.worst)) for t in (one, other)
  )
  return more(mine, theirs)


def dearer(results: Results, one: Trade, other: Trade) -> Summary:
  """How many points of utility more `other` costs than `one`, seed by seed."""
  mine = reading.utility_loss(results, one.cell)
  theirs = reading.utility_loss(results, other.cell)
  return more(mine, theirs)


def clipped(leakage: PerSeed) -> PerSeed:
  """A leakage whose mean is below nothing as nothing, in every seed that has
  a number."""
  below = reading.summarize(leakage.values()).mean < 0
  return {s: 0 * x for s, x in leakage.items()} if below else leakage


def more(mine: PerSeed, theirs: PerSeed) -> Summary:
  """theirs - mine, seed by seed, over the seeds of both."""
  return reading.summarize(theirs[s] - mine[s] for s in theirs if s in mine)


def unranked(results: Results) -> list[tuple[str, Lost]]:
  """(defense, what is missing) of rows of defenses that cannot be ranked."""
  known = {t.cell[0] for t in trades(results)}
  return [
      (cell[0], gone) for cell in results.cells if cell[0] not in known
      for gone in [lost.of_cell(results, cell)] if gone.any
  ]


def attack_groups(results: Results) -> dict[str, list[str]]:
  """Attacks by what they attack: Kang et al. score the two groups apart."""
  groups = {'gradients': [], 'trained model': []}
  for attack in results.attacks:
    trained = results.about(attack).trained
    groups['trained model' if trained else 'gradients'].append(attack)
  return {name: attacks for name, attacks in groups.items() if attacks}


def preference(ranked: Sequence[Ranked]) -> str:
  """'iso ≈ marvell > max norm': defenses by optimal PU score."""
  text = ''
  for before, here in zip([None, *ranked], ranked):
    if before:
      same = before.optimal == here.optimal and not here.best.lost.any
      text += ' ≈ ' if same else ' > '
    gone = here.best.lost
    text += reading.pretty(here.defense) + (f' ({gone})' if gone.any else '')
  return text


def _optimal(mine: list[Trade], attacks: Iterable[str]) -> int:
  """Eq. 22 over a defense's strengths, against some of the attacks.

  Computed strength by strength, because an interrupted run may have different
  attacks at each.
  """
  scores = []
  for t in mine:
    leaks = np.array([[
        shown(t.leakage[a].mean) for a in attacks if a in t.leakage
    ]])
    if leaks.size:
      loss = np.array([shown(t.loss.mean)])
      scores.append(int(evaluation.optimal_pu_score(leaks, loss)))
  return max(scores, default=0)
