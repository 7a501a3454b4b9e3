"""The report's figures: utility loss against leakage, leakage over epochs.

Matplotlib draws them without pyplot, so no figure is global. `svg` turns them
into SVG elements and files. Curves differ by marker and dash, not only by
colour.
"""
import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
import numpy as np

from vfljax.evaluation import LEAKAGE_RANGES, LOSS_RANGES
from vfljax.report import placing


class Theme(NamedTuple):
  """Colours.

  Attributes:
    ink: Of text and axes.
    faint: Of the grid.
    zone: Of the regions of PU scores.
    series: Of the curves.
  """

  ink: str
  faint: str
  zone: str
  series: tuple[str, ...]


# Placeholder colours; `svg.inline` replaces them by CSS variables.
PAGE = Theme(
    '#010101', '#020202', '#030303', tuple(f'#0{i}0{i}0a' for i in range(8))
)
# Eight colours that colour-blind readers can tell apart (after Okabe and Ito),
# the same as in report.css on white.
PRINT = Theme(
    '#16202a', '#d5dbe1', '#0b7d5f',
    ('#50565c', '#0b63b0', '#c4500a', '#00805f', '#97429a', '#87690a',
     '#2487bd', '#b0203f'),
)
MARKERS = 'osD^vPX*<>'
DASHES = ('-', '--', '-.', ':')
_SIZE = (4.6, 3.5)  # Inches at 72 dpi: readable on a phone when shrunk.
# Left, bottom, width, height of the axes, as shares of the figure. They are
# fixed because finding a layout for each figure took a quarter of the time.
_INSIDE = (0.135, 0.14, 0.845, 0.835)
_WIDE = 9.0  # Points of loss above which the axis has a square-root scale.
_LITTLE_LOSS, _LITTLE_LEAK = 1.0, 5.0  # Points that an interval may always go.


class Curve(NamedTuple):
  """One defense in a figure.

  Attributes:
    style: The defense's number, which decides colour, marker and dash.
    x, y: Coordinates of the points, in order.
    titles: The text that each point shows under a pointer; () for none.
    best: (index of the labelled point, its label); (-1, '') for none.
    band: Half-width of y's interval at each point, NaN if unknown; () for none.
    x_band: The same for x.
    whole: Whether points lost no seed, as those of the frontier; () for all.
  """

  style: int
  x: Sequence[float]
  y: Sequence[float]
  titles: Sequence[str] = ()
  best: tuple[int, str] = (-1, '')
  band: Sequence[float] = ()
  x_band: Sequence[float] = ()
  whole: Sequence[bool] = ()


class Drawn(NamedTuple):
  """A figure and its texts under a pointer.

  Attributes:
    figure: Matplotlib's figure.
    spots: Where each text appears, in points (1/72 inch) from the lower left.
    titles: The texts.
  """

  figure: Figure
  spots: Sequence[tuple[float, float]] = ()
  titles: Sequence[str] = ()


class Frame(NamedTuple):
  """The ends of both axes. Figures to be compared share one frame."""

  left: float
  right: float
  low: float
  high: float


def framed(curves: Sequence[Curve]) -> Frame:
  """The smallest frame with a margin around all points and their intervals.

  But intervals are cut where they go further beyond the points than these lie
  apart: with two seeds they are so wide that all points would be one spot.
  """
  left, right = _reach([(c.x, c.x_band) for c in curves], _LITTLE_LOSS)
  low, top = _reach([(c.y, c.band) for c in curves], _LITTLE_LEAK)
  # At least 0.2 by 1 points, so that tiny differences do not fill the figure.
  wide, high = max(right - left, 0.2), max(top - low, 1.0)
  # A square-root scale stretches small values, so it needs less room.
  left -= 0.1 if right > _WIDE else 0.05 * wide
  return Frame(left, right + 0.07 * wide, low - 0.04 * high, top + 0.07 * high)


def _reach(
    curves: Sequence[tuple[Sequence[float], Sequence[float]]], least: float
) -> tuple[float, float]:
  """(low, high) of zero, points and intervals along an axis, see `framed`.

  An interval may always go `least` points beyond.
  """
  points = [0.0, *(v for values, _ in curves for v in values)]
  low, high = min(points), max(points)
  more = max(high - low, least)
  ends = [
      end for curve in curves for v, half in zip(*curve) if math.isfinite(half)
      for end in (v - half, v + half)
  ] or points
  return (
      min(low, max(min(ends), low - more)),
      max(high, min(max(ends), high + more)),
  )


def trade_off(
    curves: Sequence[Curve], frame: Frame, theme: Theme = PAGE
) -> Drawn:
  """Utility loss against privacy leakage, drawn like Kang et al.'s Fig. 4.

  The shaded steps are the regions of PU scores 5 (in the corner) to 1. The
  dotted step line is the frontier: of what is whole, nothing has both less loss
  and less leakage.
  """
  figure, axes = _figure(theme)
  wide = frame.right > _WIDE
  if wide:
    axes.set_xscale('function', functions=(_root, _square))
    axes.set_xticks([
        t for t in (0, 1, 4, 10, 20, 30, 50, 75) if t < frame.right
    ])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f'{x:g}'))
  axes.set_xlim(frame.left, frame.right)
  axes.set_ylim(frame.low, frame.high)
  _zones(axes, frame, theme)
  _frontier(axes, curves, frame, theme)
  for c in curves:
    _draw(axes, c, theme)
  axes.set_xlabel('utility loss (points)' + (', root scale' if wide else ''))
  axes.set_ylabel('privacy leakage (points)')
  placing.place(axes, [np.column_stack([c.x, c.y]) for c in curves], [
      (c.best[1], (c.x[c.best[0]], c.y[c.best[0]]),
       theme.series[hue(c.style)])
      for c in curves if c.best[1]
  ], [bar for c in curves for bar in _bars(c)])
  points = [point for c in curves if c.titles for point in zip(c.x, c.y)]
  spots = axes.transData.transform(points) if points else []
  return Drawn(
      figure, [(float(x), float(y)) for x, y in spots],
      [t for c in curves for t in c.titles],
  )


def over_epochs(
    curves: Sequence[Curve], y_label: str, theme: Theme = PAGE
) -> Drawn:
  """A metric against the epoch, mean and 95 % interval over seeds."""
  figure, axes = _figure(theme)
  for c in curves:
    y, band = np.asarray(c.y), np.nan_to_num(np.asarray(c.band))
    if len(band):
      axes.fill_between(
          c.x, y - band, y + band, color=theme.series[hue(c.style)], alpha=0.15,
          lw=0,
      )
    plain = c._replace(band=(), x_band=())
    _draw(axes, plain, theme, every=max(1, math.ceil(len(c.x) / 8)))
  axes.set_xlabel('epoch')
  # Of few epochs, ticks would else lie between them.
  whole = MaxNLocator('auto', integer=True, min_n_ticks=1)
  axes.xaxis.set_major_locator(whole)
  axes.set_ylabel(y_label)
  axes.axhline(0.5, color=theme.ink, lw=0.8, ls=':', alpha=0.7, zorder=1)
  axes.annotate(
      'guessing', (1, 0.5), (-2, 2), xycoords=('axes fraction', 'data'),
      textcoords='offset points', ha='right', fontsize=7, color=theme.ink,
  )
  axes.set_ylim(0.45, 1.02)
  return Drawn(figure)


def hue(style: int) -> int:
  """A defense's colour, its place in `Theme.series`.

  Grey is for the first alone, no defense, with which all are compared. The rest
  share seven colours: the eighth has another dash than the first of its colour.
  """
  return style and 1 + (style - 1) % (len(PRINT.series) - 1)


def frontier(points: Sequence[tuple[float, float]]) -> list:
  """The (cost, leak) pairs that no other pair beats in both, by cost."""
  found: list[tuple[float, float]] = []
  for x, y in sorted(points):
    if not found or y < found[-1][1]:
      found.append((x, y))
  return found


def _zones(axes: Axes, frame: Frame, theme: Theme) -> None:
  """Shades the regions of the PU scores, each with its score in a corner."""
  far = 10 * (abs(frame.left) + abs(frame.low)) + 100
  for score, x, y in zip((5, 4, 3, 2, 1), LOSS_RANGES, LEAKAGE_RANGES):
    axes.add_patch(Rectangle(
        (-far, -far), far + x, far + y, color=theme.zone, alpha=0.13, lw=0,
        zorder=0,
    ))
    if y < frame.high:
      axes.annotate(
          'PU 5' if score == 5 else f'{score}', (min(x, frame.right), y),
          (-2, -2), textcoords='offset points', fontsize=7, ha='right',
          va='top', color=theme.ink, alpha=0.75, zorder=1,
      )


def _frontier(
    axes: Axes, curves: Sequence[Curve], frame: Frame, theme: Theme
) -> None:
  best = frontier([
      (x, y) for c in curves
      for x, y, whole in zip(c.x, c.y, c.whole or [True] * len(c.x)) if whole
  ])
  if len(best) > 1:
    xs, ys = zip(*best)
    axes.step(
        [*xs, frame.right], [*ys, ys[-1]], where='post', color=theme.ink,
        lw=0.9, ls=(0, (1, 2)), alpha=0.8, zorder=2,
    )


_root = lambda x: np.sign(x) * np.sqrt(np.abs(x))
_square = lambda x: np.sign(x) * np.square(x)


def _figure(theme: Theme) -> tuple[Figure, Axes]:
  figure = Figure(figsize=_SIZE, dpi=72)
  axes = figure.add_axes(_INSIDE)
  if theme is PAGE:
    figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
  axes.grid(color=theme.faint, lw=0.5)
  axes.set_axisbelow(True)
  for side, spine in axes.spines.items():
    spine.set_visible(side in ('left', 'bottom'))
    spine.set_color(theme.ink)
    spine.set_linewidth(0.6)
  axes.tick_params(colors=theme.ink, labelsize=8.5, width=0.6)
  for axis in (axes.xaxis, axes.yaxis):
    axis.label.set_color(theme.ink)
    axis.label.set_fontsize(9.5)
  return figure, axes


def _bars(c: Curve) -> list[np.ndarray]:
  """A curve's intervals as lines, each an array of its two ends [2, 2]."""
  found = []
  for band, (right, up) in ((c.x_band, (1, 0)), (c.band, (0, 1))):
    halves = np.nan_to_num(np.asarray(band))
    for x, y, half in zip(c.x, c.y, halves):
      ends = [(x + s * half * right, y + s * half * up) for s in (-1, 1)]
      found.append(np.array(ends))
  return found


def _draw(axes: Axes, c: Curve, theme: Theme, every: int = 1) -> None:
  color = theme.series[hue(c.style)]
  if len(c.band) or len(c.x_band):
    given = lambda band: np.nan_to_num(np.asarray(band)) if len(band) else None
    axes.errorbar(
        c.x, c.y, given(c.band), given(c.x_band), fmt='none', ecolor=color,
        elinewidth=0.8, alpha=0.55, zorder=3,
    )
  axes.plot(
      c.x, c.y, color=color, lw=1.4, ls=DASHES[c.style % len(DASHES)],
      marker=MARKERS[c.style % len(MARKERS)], ms=5.5, mew=0, markevery=every,
      zorder=4,
  )
