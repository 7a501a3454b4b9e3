"""Compares defenses at equal accuracy.

A defense's curve has a point for each strength: (utility of the model, success
of an attack), means over seeds. "At equal accuracy" compares the least success
of the attack that each defense reaches within a given loss of utility. If MID
only ignores the passive party, its utility is that of the active party alone.
So the share of the passive party's worth that remains is shown beside it.
"""
from collections.abc import Iterable, Sequence
import math
from typing import NamedTuple

from experiments import evidence
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed, Results

DROPPED = {0.5: '50', 0.1: '90', 0.01: '99', 0.001: '99.9'}  # GS, %
LOSSES = (0.5, 1.0, 2.0, 5.0, 10.0)  # points of the model's utility


class Point(NamedTuple):
  """A defense at one strength: means over seeds, in percent."""

  defense: str
  strength: float | None
  utility: float
  success: float
  spread: float  # sample deviation of `success` over seeds, 0 of one seed
  left: float  # of what the passive party adds to the best model of all
  unsure: float = 0.0  # sample deviation of `utility`, 0 of one seed

  @property
  def name(self) -> str:
    return named((self.defense, self.strength))


class Curves(NamedTuple):
  """One attack of a run: every defense's curve."""

  undefended: Point
  alone: float  # the active party's utility without the others
  by_defense: dict[str, list[Point]]

  @property
  def points(self) -> list[Point]:
    return [p for points in self.by_defense.values() for p in points]


class Compared(NamedTuple):
  """One defense and its best rival at one loss of utility."""

  loss: float
  mine: Point
  rival: Point

  @property
  def won(self) -> bool:
    return self.mine.success < self.rival.success

  @property
  def near(self) -> bool:
    """Within the spread."""
    apart = abs(self.mine.success - self.rival.success)
    return apart < self.mine.spread + self.rival.spread

  @property
  def lost(self) -> bool:
    """Whether it is above by more than the spread, or has no number."""
    return not self.won and not self.near

  def __str__(self) -> str:
    sign = '~' if self.near else '<' if self.won else '>'
    return (
        f'{self.mine.name}: {self.mine.success:.1f} {sign} '
        f'{self.rival.success:.1f}: {self.rival.name}'
    )


def above(apart: float, spread: float) -> bool | None:
  """Whether a difference is above zero; `None` within the spread.

  `False` too where it is no number.
  """
  return None if abs(apart) <= spread else apart > 0


def every(parts: Sequence[bool | None]) -> bool | None:
  """Whether all hold; one that does not refutes, and else `None` decides."""
  return False if False in parts else None if None in parts else True


def named(cell: Cell) -> str:
  """'DP-L 0.001', 'GS, drop 90 %'."""
  name, strength = cell
  if name.startswith('GS') and strength in DROPPED:
    return f'{name}, drop {DROPPED[strength]} %'
  value = reading.strength(cell)
  label = 'no defense' if name == 'none' else name
  return label + (f' {value}' if value else '')


def worth(point: Point) -> str:
  """What is left of the passive party's worth, where that is under half."""
  if point.left >= 0.5:
    return ''
  return f' ({100 * point.left:z.0f} % of the worth left)'


def success(
    results: Results, cell: Cell, attack: str | Sequence[str],
    metrics: Sequence[str],
) -> PerSeed:
  """An attack's success by seed, in percent: the largest of its metrics.

  Of several attackers the best one counts.
  """
  attacks = [attack] if isinstance(attack, str) else attack
  found = [
      reading.find(results, cell, a, m) for a in attacks for m in metrics
  ]
  seeds = dict.fromkeys(seed for values in found for seed in values)
  scale = 1 if metrics[0].startswith('psnr') else 100
  return {s: scale * max(v[s] for v in found if s in v) for s in seeds}


def curves(
    results: Results, attack: str | Sequence[str], *metrics: str
) -> Curves:
  """The curves of an attack.

  Of several metrics or attackers, the largest success counts in each seed. A
  strength at which a seed diverged has no point: it has no accuracy.
  """
  alone = 100 * _mean(evidence.alone(results))
  utilities = {
      cell: 100 * _mean(reading.utility(results, cell))
      for cell in results.cells
  }
  most = max(utilities.values()) - alone
  by_defense: dict[str, list[Point]] = {}
  for cell in results.cells:
    found = success(results, cell, attack, metrics)
    utility = reading.utility(results, cell).values()
    if not found or not all(map(math.isfinite, utility)):
      continue
    s = reading.summarize(found.values())
    u = reading.summarize(utility)
    std, unsure = (x.std if x.count > 1 else 0.0 for x in (s, u))
    left = (utilities[cell] - alone) / most
    by_defense.setdefault(cell[0], []).append(
        Point(*cell, utilities[cell], s.mean, std, left, 100 * unsure)
    )
  (undefended,) = by_defense.pop('none')
  return Curves(undefended, alone, by_defense)


def _mean(found: PerSeed) -> float:
  return reading.summarize(found.values()).mean


def lowest(points: Iterable[Point], least: float) -> Point | None:
  """The point of the least success among those of `least` utility or more."""
  possible = [p for p in points if p.utility >= least]
  return min(possible, key=lambda p: p.success) if possible else None


def most(found: Curves, of_best: bool) -> float:
  """The utility that losses are counted from, see `compared`."""
  points = (found.undefended, *found.points) if of_best else (found.undefended,)
  return max(p.utility for p in points)


def rivals(
    found: Curves, one: str, others: Sequence[str] = ()
) -> list[Point]:
  """The points of the others; of all other defenses by default."""
  return [
      p for p in found.points
      if p.defense != one and (not others or p.defense in others)
  ]


def compared(
    found: Curves, one: str = 'MID', others: Sequence[str] = (),
    of_best: bool = False,
) -> list[Compared]:
  """`one` and its best rival for each loss that both can keep to.

  Args:
    others: The rivals; all other defenses by default.
    of_best: Whether losses are against the best model of all instead of the
      undefended one, which some attacks spoil.
  """
  top, against = most(found, of_best), rivals(found, one, others)
  lines = []
  for loss in LOSSES:
    mine = lowest(found.by_defense.get(one, ()), top - loss)
    rival = lowest(against, top - loss)
    if mine and rival:
      lines.append(Compared(loss, mine, rival))
  return lines
