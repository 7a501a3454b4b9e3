"""Defenses ranked by what they cost and what they let out: PU scores.

Kang et al. (2022), Eq. 21 and 22.
"""
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from vfljax import attacks, evaluation
from vfljax.report import reading
from vfljax.report.reading import Cell, Results, Summary


class Trade(NamedTuple):
  """What a defense at one strength costs and what it lets out.

  Attributes:
    cell: Which.
    loss: Utility loss in percentage points.
    leakage: Attack -> leakage in percentage points; attacks measured only.
    worst: The attack that learns most.
    score: PU score, Eq. 21, against that attack.
  """

  cell: Cell
  loss: Summary
  leakage: dict[str, Summary]
  worst: str
  score: int


class Ranked(NamedTuple):
  """A defense by its best strength.

  Attributes:
    defense: Its name.
    optimal: Optimal PU score, Eq. 22, against all attacks.
    best: The strength that has it; of several, the one that leaks and costs
      least in sum.
    groups: Optimal PU score by what is attacked: 'gradients', 'trained model'.
  """

  defense: str
  optimal: int
  best: Trade
  groups: dict[str, int]


def trades(results: Results) -> list[Trade]:
  """Every cell of which both leakage and utility loss are known."""
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
      score = evaluation.pu_score(leaks[worst].mean, loss.mean)
      found.append(Trade(cell, loss, leaks, worst, int(score)))
  return found


def rank(results: Results) -> list[Ranked]:
  """The defenses, the best first; the undefended federation among them."""
  ranked = []
  known = trades(results)
  for defense in results.defenses:
    mine = [t for t in known if t.cell[0] == defense]
    if mine:
      sum_of = lambda t: t.leakage[t.worst].mean + t.loss.mean
      best = min(mine, key=lambda t: (-t.score, sum_of(t)))
      groups = {
          name: _optimal(mine, attacks)
          for name, attacks in attack_groups(results).items()
          if any(a in t.leakage for t in mine for a in attacks)
      }
      optimal = _optimal(mine, results.attacks)
      ranked.append(Ranked(defense, optimal, best, groups))
  cost = lambda r: r.best.leakage[r.best.worst].mean + r.best.loss.mean
  return sorted(ranked, key=lambda r: (-r.optimal, cost(r)))


def attack_groups(results: Results) -> dict[str, list[str]]:
  """Attacks by what they attack, as Kang et al. score them apart."""
  groups = {'gradients': [], 'trained model': []}
  for attack in results.attacks:
    paired = attacks.score(attack).over
    groups['trained model' if paired else 'gradients'].append(attack)
  return {name: attacks for name, attacks in groups.items() if attacks}


def preference(ranked: Sequence[Ranked]) -> str:
  """'iso ≈ marvell > max norm': defenses by optimal PU score."""
  text = ''
  for before, here in zip([None, *ranked], ranked):
    if before:
      text += ' ≈ ' if before.optimal == here.optimal else ' > '
    text += reading.pretty(here.defense)
  return text


def _optimal(mine: list[Trade], attacks: Iterable[str]) -> int:
  """Eq. 22 over a defense's strengths, against some of the attacks.

  Strength by strength, as an interrupted run may not have all attacks of each.
  """
  scores = []
  for t in mine:
    leaks = np.array([[t.leakage[a].mean for a in attacks if a in t.leakage]])
    if leaks.size:
      loss = np.array([t.loss.mean])
      scores.append(int(evaluation.optimal_pu_score(leaks, loss)))
  return max(scores)
