"""The report's figures, as SVG to be put inside a page.

Drawn by Matplotlib without pyplot, so without global figures. Text stays text,
and colours become CSS variables, so that a page decides between light and dark;
curves differ by marker and dash as well as by colour.
"""
import io
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter
import numpy as np

from vfljax.evaluation import LEAKAGE_RANGES, LOSS_RANGES
from vfljax.report.text import markup

# What stands for a CSS variable while Matplotlib draws; eight series that
# colour-blind people tell apart (after Okabe and Ito), then round again.
INK, FAINT, ZONE = '#010101', '#020202', '#030303'
SERIES = tuple(f'#0{i}0{i}0a' for i in range(8))
MARKERS = 'osD^vPX*<>'
DASHES = ('-', '--', '-.', ':')
_VARIABLES = {INK: '--ink', FAINT: '--line', ZONE: '--zone'} | {
    color: f'--s{i}' for i, color in enumerate(SERIES)
}
_SIZE = (4.6, 3.5)  # Inches at 72 a inch: readable on a phone when shrunk.


class Curve(NamedTuple):
  """One defense in a figure.

  Attributes:
    style: Its number among the defenses, which decides how it looks.
    x, y: Points in order.
    labels: A word beside each point; () for none.
    band: Half-width around y at each point; () for none.
  """

  style: int
  x: Sequence[float]
  y: Sequence[float]
  labels: Sequence[str] = ()
  band: Sequence[float] = ()


def trade_off(curves: Sequence[Curve], name: str, description: str) -> str:
  """Utility loss against privacy leakage (form of Kang et al., Fig. 4).

  The shaded steps are the regions of PU scores 5 (in the corner) to 1.

  Args:
    name: Of the file that it would be: letters, digits, '-'.
    description: For who cannot see it.
  """
  figure, axes = _figure()
  xs = [x for c in curves for x in c.x]
  ys = [y for c in curves for y in c.y]
  right = max([7.0, *xs]) * 1.04
  wide = right > 9  # Then the square root makes room for the good corner.
  if wide:
    axes.set_xscale('function', functions=(_root, _square))
    axes.set_xticks([t for t in (0, 1, 4, 10, 20, 30, 50, 75) if t < right])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f'{x:g}'))
  left = min([*xs, -0.03 if wide else -0.3])
  axes.set_xlim(left * 1.1 - (0.02 if wide else 0.1), right)
  low, high = min([0.0, *ys]), max([12.0, *ys])
  axes.set_ylim(low - 0.08 * high, high * 1.06)
  for score, x, y in zip((5, 4, 3, 2, 1), LOSS_RANGES, LEAKAGE_RANGES):
    axes.add_patch(Rectangle(
        (-100, -100), 100 + x, 100 + y, color=ZONE, alpha=0.13, lw=0, zorder=0
    ))
    axes.annotate(
        'PU 5' if score == 5 else f'{score}', (x, 0), (-1, 3),
        xycoords=('data', 'axes fraction'), textcoords='offset points',
        fontsize=6, ha='right', color=INK, alpha=0.75, zorder=1,
    )
  for c in curves:
    _draw(axes, c)
  axes.set_xlabel('utility loss (points)' + (', root scale' if wide else ''))
  axes.set_ylabel('privacy leakage (points)')
  _place_labels(figure, axes, curves)
  return _svg(figure, name, description)


def over_epochs(
    curves: Sequence[Curve], name: str, description: str, y_label: str
) -> str:
  """A metric against the epoch, mean and 95 % interval over seeds."""
  figure, axes = _figure()
  for c in curves:
    y, band = np.asarray(c.y), np.nan_to_num(np.asarray(c.band))
    color = SERIES[c.style % len(SERIES)]
    if len(band):
      axes.fill_between(
          c.x, y - band, y + band, color=color, alpha=0.15, lw=0
      )
    _draw(axes, c, every=max(1, math.ceil(len(c.x) / 8)))
  axes.set_xlabel('epoch')
  axes.set_ylabel(y_label)
  axes.axhline(0.5, color=INK, lw=0.8, ls=':', alpha=0.7, zorder=1)
  axes.annotate(
      'guessing', (1, 0.5), (-2, 2), xycoords=('axes fraction', 'data'),
      textcoords='offset points', ha='right', fontsize=7, color=INK,
  )
  axes.set_ylim(0.45, 1.02)
  return _svg(figure, name, description)


def swatch(style: int) -> str:
  """A defense's line and marker for a legend, as a small SVG."""
  path = MarkerStyle(MARKERS[style % len(MARKERS)])
  outline = path.get_path().transformed(path.get_transform())
  points = ' '.join(
      'M' + ' '.join(f'{15 + 9 * x:.1f},{6 - 9 * y:.1f}' for x, y in polygon)
      for polygon in map(np.asarray, outline.to_polygons())
  )
  dash = {'-': '', '--': '6 3', '-.': '6 3 2 3', ':': '2 3'}[_dash(style)]
  color = f'var(--s{style % len(SERIES)})'
  return (
      '<svg class="swatch" viewBox="0 0 30 12" aria-hidden="true">'
      f'<path d="M0 6H30" stroke="{color}" stroke-width="1.6"'
      f' stroke-dasharray="{dash}"/><path d="{points}" fill="{color}"/></svg>'
  )


def _dash(style: int) -> str:
  return DASHES[style % len(DASHES)]


def _root(x):
  return np.sign(x) * np.sqrt(np.abs(x))


def _square(x):
  return np.sign(x) * np.square(x)


def _figure() -> tuple[Figure, Axes]:
  figure = Figure(figsize=_SIZE, dpi=72, layout='constrained')
  figure.patch.set_alpha(0)
  axes = figure.add_subplot()
  axes.patch.set_alpha(0)
  axes.grid(color=FAINT, lw=0.5)
  axes.set_axisbelow(True)
  for side, spine in axes.spines.items():
    spine.set_visible(side in ('left', 'bottom'))
    spine.set_color(INK)
    spine.set_linewidth(0.6)
  axes.tick_params(colors=INK, labelsize=8.5, width=0.6)
  for axis in (axes.xaxis, axes.yaxis):
    axis.label.set_color(INK)
    axis.label.set_fontsize(9.5)
  return figure, axes


def _draw(axes: Axes, c: Curve, every: int = 1) -> None:
  color = SERIES[c.style % len(SERIES)]
  axes.plot(
      c.x, c.y, color=color, lw=1.4, ls=_dash(c.style),
      marker=MARKERS[c.style % len(MARKERS)], ms=5.5, mew=0, markevery=every,
      zorder=3,
  )


def _place_labels(
    figure: Figure, axes: Axes, curves: Sequence[Curve]
) -> None:
  """Writes each point's word where it covers least of what is there.

  A word that would cover another one is left out: the tables have it.
  """
  figure.draw_without_rendering()  # Settles the layout.
  inside = np.array([axes.get_window_extent().extents])
  paths = [
      axes.transData.transform(np.column_stack([c.x, c.y])) for c in curves
  ]
  along = [box for path in paths for box in _boxes_along(path)]
  lines = np.array(along).reshape(-1, 4)
  taken = [_around(point, 3.5) for path in paths for point in path]
  for c, path in zip(curves, paths):
    for word, here, point in zip(c.labels, zip(c.x, c.y), path):
      spots = []
      for offset in _OFFSETS:
        box = _word_box(word, point, offset)
        words = _overlap(box, np.array(taken))
        cost = 3 * words + _overlap(box, lines)
        cost += 1e4 * (_overlap(box, inside) < _area(box) - 0.1)
        spots.append((round(cost, 3), len(spots), words, box))
      _, i, words, box = min(spots)
      if words > 0.25 * _area(box):
        continue
      taken.append(box)
      dx, dy = _OFFSETS[i]
      label = axes.annotate(
          word, here, (dx, dy), textcoords='offset points', fontsize=7,
          va='center', color=SERIES[c.style % len(SERIES)], zorder=4,
          ha='center' if dx == 0 else ('right' if dx < 0 else 'left'),
      )
      label.set_in_layout(False)


_OFFSETS = ((5, 5), (5, -5), (-5, 5), (-5, -5), (0, 9), (0, -9), (7, 0),
            (-7, 0), (11, 11), (-11, 11), (11, -11), (-11, -11))


def _word_box(word: str, point: np.ndarray, offset: tuple) -> tuple:
  """Where a word at an offset from a point would be, in points."""
  width, (dx, dy) = 4.1 * len(word) + 1, offset
  left = point[0] + dx - (width if dx < 0 else width / 2 if dx == 0 else 0)
  return left, point[1] + dy - 3.5, left + width, point[1] + dy + 3.5


def _around(point: np.ndarray, r: float) -> tuple:
  return point[0] - r, point[1] - r, point[0] + r, point[1] + r


def _boxes_along(path: np.ndarray) -> list[tuple]:
  """Small boxes along a polyline, a few points apart."""
  boxes = []
  for start, end in zip(path, path[1:]):
    steps = max(int(np.hypot(*(end - start)) / 3), 1)
    shares = np.linspace(0, 1, steps, endpoint=False)
    boxes += [_around(start + t * (end - start), 1.0) for t in shares]
  return boxes


def _area(a: tuple) -> float:
  return (a[2] - a[0]) * (a[3] - a[1])


def _overlap(box: tuple, others: np.ndarray) -> float:
  """The area that a box has in common with others, [boxes, 4], summed."""
  a = np.asarray(box)
  low = np.maximum(others[:, :2], a[:2])
  high = np.minimum(others[:, 2:], a[2:])
  return float(np.maximum(high - low, 0).prod(1).sum())


def _svg(figure: Figure, name: str, description: str) -> str:
  """The figure as an <svg> element, the same bytes each time."""
  buffer = io.StringIO()
  with matplotlib.rc_context(
      {'svg.hashsalt': name, 'svg.fonttype': 'none'}
  ):
    FigureCanvasSVG(figure).print_svg(buffer, metadata={
        'Date': None, 'Creator': None, 'Format': None, 'Type': None,
    })
  text = buffer.getvalue()
  text = text[text.index('<svg'):]
  text = re.sub(r'<metadata>.*?</metadata>', '', text, flags=re.DOTALL)
  text = re.sub(r'<style.*?</style>', '', text, flags=re.DOTALL)
  text = re.sub(r' id="[\w.]+_\d+"', '', text)  # Not unique on a page.
  text = re.sub(r'<!--.*?-->', '', text, flags=re.DOTALL)
  text = re.sub(r'font-family: [^;"]*; ', '', text)  # The page's own.
  for color, variable in _VARIABLES.items():
    text = text.replace(color, f'var({variable})')
  box = re.search(r'viewBox="[^"]*"', text)
  assert box
  start = f'<svg {box[0]} role="img" aria-label="{markup(description)}">'
  inner = text[text.index('>') + 1:]
  # Attributes do not take var(); a style does.
  inner = re.sub(r'(fill|stroke)="(var\([^)]*\))"', r'style="\1: \2"', inner)
  return start + re.sub(r'\n\s*', '\n', inner).strip()
