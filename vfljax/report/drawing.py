"""Makes figures of results: chooses curves, a common frame and labels."""
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vfljax.report import plots, ranks, reading, svg, usual, verdict
from vfljax.report.plots import PAGE, PRINT, Curve, Drawn, Theme
from vfljax.report.ranks import Ranked, Trade
from vfljax.report.reading import Cell, Results
from vfljax.report.text import printable


class Figure(NamedTuple):
  """A figure with its texts.

  Attributes:
    name: Name of its file, without the ending.
    caption: The text above it.
    description: What it shows, for readers who cannot see it.
    drawn: The drawn figure.
  """

  name: str
  caption: str
  description: str
  drawn: Drawn


@usual.settings()
def trade_offs(results: Results, theme: Theme = PAGE) -> list[Figure]:
  """Utility loss against leakage: for the worst attack, then for each attack.

  All figures have the same axes, so that they can be compared.
  """
  known = ranks.trades(results)
  best = {r.defense: r.best.cell for r in ranks.rank(results)}
  chosen = {'': [(t, t.worst) for t in known]} | {
      attack: [(t, attack) for t in known if attack in t.leakage]
      for attack in results.attacks
  }
  curves = {
      attack: _curves(results, some, best)
      for attack, some in chosen.items() if some
  }
  frame = plots.framed([c for some in curves.values() for c in some])
  return [
      Figure(
          f'trade-off-{attack or "worst"}', _caption(attack),
          'Utility loss against the leakage of '
          f'{reading.pretty(attack) or "the worst attack"}. '
          + _in_words(some, best),
          plots.trade_off(some, frame, theme),
      ) for attack, some in curves.items()
  ]


@usual.settings()
def over_epochs(
    results: Results, ranked: Sequence[Ranked], theme: Theme = PAGE
) -> list[Figure]:
  """Leak AUC over the epochs, each defense at its best strength."""
  cells, drawn = shown(results, ranked), []
  for attack in results.attacks:
    curves = [
        _over_epochs(style, results.curves[cell, f'{attack}/leak_auc'])
        for style, cell in enumerate(cells)
        if (cell, f'{attack}/leak_auc') in results.curves
    ]
    curves = [c for c in curves if len(c.x)]
    if curves:
      name = reading.pretty(attack)
      drawn.append(Figure(
          f'epochs-{attack}', name.capitalize(),
          f'Leak AUC of {name} over the epochs.',
          plots.over_epochs(curves, 'leak AUC', theme),
      ))
  return drawn


def shown(results: Results, ranked: Sequence[Ranked]) -> list[Cell]:
  """Each defense at its best strength; an unranked one at its first."""
  best = {r.defense: r.best.cell for r in ranked}
  first = {d: c for c in reversed(results.cells) for d in [c[0]]}
  return [best.get(d, first[d]) for d in results.defenses]


def files(results: Results, kind: str) -> Iterator[tuple[str, bytes]]:
  """(name, content) of every figure as 'svg' or 'png'."""
  ranked = ranks.rank(results)
  for figure in [
      *trade_offs(results, PRINT), *over_epochs(results, ranked, PRINT)
  ]:
    yield figure.name, svg.saved(figure.drawn, figure.name, kind)


def _caption(attack: str) -> str:
  return reading.pretty(attack).capitalize() or 'The worst attack on each'


def _curves(
    results: Results, points: Iterable[tuple[Trade, str]],
    best: dict[str, Cell],
) -> list[Curve]:
  """One curve a defense, in the order of its strengths."""
  points, curves = list(points), []
  for style, defense in enumerate(results.defenses):
    mine = [(t, a) for t, a in points if t.cell[0] == defense]
    if not mine:
      continue
    cells = [t.cell for t, _ in mine]
    label = printable(reading.pretty(defense))
    chosen = best.get(defense)
    at = cells.index(chosen) if chosen in cells else -1
    value = reading.strength(cells[at])
    curves.append(Curve(
        style, [t.loss.mean for t, _ in mine],
        [t.leakage[a].mean for t, a in mine],
        [_title(t, a) for t, a in mine],
        (at, f'{label} {value}'.strip()) if at >= 0 else (-1, ''),
        [t.leakage[a].half for t, a in mine], [t.loss.half for t, _ in mine],
        [not t.lost.any for t, _ in mine],
    ))
  return curves


def _title(trade: Trade, attack: str) -> str:
  """The text that a point shows under a pointer."""
  return (
      f'{verdict.name(trade)}: {reading.pretty(attack)} leaks '
      f'{verdict.points(trade.leakage[attack])}, loss '
      f'{verdict.points(trade.loss)}, PU score {trade.score}'
  )


def _in_words(curves: Sequence[Curve], best: dict[str, Cell]) -> str:
  """The labelled points in words, for readers who cannot see them."""
  said = [
      f'{c.best[1]}: leaks {c.y[c.best[0]]:.1f}, costs {c.x[c.best[0]]:.1f}'
      for c in curves if c.best[1]
  ]
  return '; '.join(said) + '.' if said and best else ''


def _over_epochs(style: int, curve: np.ndarray) -> Curve:
  """Means over seeds of an array [seeds, epochs], at the measured epochs."""
  measured = np.flatnonzero(np.isfinite(curve).any(0))
  summaries = [reading.summarize(curve[:, i].tolist()) for i in measured]
  return Curve(
      style, [int(i) + 1 for i in measured], [s.mean for s in summaries],
      band=[s.half for s in summaries],
  )
