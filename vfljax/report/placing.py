"""Places labels in a figure: beside their points, covering little."""
from collections.abc import Sequence

from matplotlib.axes import Axes
import numpy as np

_OFFSETS = ((6, 6), (6, -6), (-6, 6), (-6, -6), (0, 10), (0, -10), (8, 0),
            (-8, 0), (12, 12), (-12, 12), (12, -12), (-12, -12), (0, 18),
            (0, -18), (16, 20), (-16, 20), (16, -20), (-16, -20))


def place(
    axes: Axes, paths: Sequence[np.ndarray],
    words: Sequence[tuple[str, tuple[float, float], str]],
    bars: Sequence[np.ndarray] = (),
) -> None:
  """Writes each word at the offset where it covers least.

  A word that would still cover a mark or another word is left out: the tables
  have its numbers, and so has the text under a pointer.

  Args:
    axes: Where to write.
    paths: Polylines with a mark at each point, [points, 2] in data coordinates.
    words: (word, its point in data coordinates, its colour).
    bars: Like `paths`, but without marks: the intervals.
  """
  inside = np.array([axes.get_window_extent().extents])
  paths = [axes.transData.transform(path) for path in paths]
  thin = [axes.transData.transform(bar) for bar in bars]
  along = [box for path in [*paths, *thin] for box in _boxes_along(path)]
  lines = np.array(along).reshape(-1, 4)
  taken = [_around(point, 3.5) for path in paths for point in path]
  for word, here, color in words:
    point, spots = axes.transData.transform(here), []
    for offset in _OFFSETS:
      box = _word_box(word, point, offset)
      covered = _overlap(box, np.array(taken))
      cost = 3 * covered + _overlap(box, lines)
      cost += 1e4 * (_overlap(box, inside) < _area(box) - 0.1)
      spots.append((round(cost, 3), len(spots), covered, box))
    _, i, covered, box = min(spots)
    if covered > 0.25 * _area(box):
      continue
    taken.append(box)
    dx, dy = _OFFSETS[i]
    axes.annotate(
        word, here, (dx, dy), textcoords='offset points', fontsize=8,
        va='center', color=color, zorder=6,
        ha='center' if dx == 0 else ('right' if dx < 0 else 'left'),
    )


def _word_box(word: str, point: np.ndarray, offset: tuple) -> tuple:
  """(left, bottom, right, top) of a word at an offset, in display points."""
  width, (dx, dy) = 4.6 * len(word) + 1, offset
  left = point[0] + dx - (width if dx < 0 else width / 2 if dx == 0 else 0)
  return left, point[1] + dy - 4, left + width, point[1] + dy + 4


def _around(point: np.ndarray, r: float) -> tuple:
  return point[0] - r, point[1] - r, point[0] + r, point[1] + r


def _boxes_along(path: np.ndarray) -> list[tuple]:
  """Small boxes along a polyline, about three display points apart."""
  boxes = []
  for start, end in zip(path, path[1:]):
    steps = max(int(np.hypot(*(end - start)) / 3), 1)
    shares = np.linspace(0, 1, steps, endpoint=False)
    boxes += [_around(start + t * (end - start), 1.0) for t in shares]
  return boxes


def _area(a: tuple) -> float:
  return (a[2] - a[0]) * (a[3] - a[1])


def _overlap(box: tuple, others: np.ndarray) -> float:
  """The summed area that a box shares with each of others, [boxes, 4]."""
  a = np.asarray(box)
  low = np.maximum(others[:, :2], a[:2])
  high = np.minimum(others[:, 2:], a[2:])
  return float(np.maximum(high - low, 0).prod(1).sum())
