"""NUS-WIDE (Chua et al., 2009) in its official folders.

  Low_Level_Features/<Train|Test>_Normalized_<CH|CM55|CORR|EDH|WT>.dat
  NUS_WID_Tags/<Train|Test>_Tags1k.dat
  Groundtruth/TrainTestLabels/Labels_<concept>_<Train|Test>.txt

A row has 634 low-level features of the image and 1000 tags; rows with the same
number belong together.
Source: https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/

Kang et al. (2022), Appendix B: party A has the image features and the labels,
party B the tags. They do not say which of the 81 concepts are their ten and
their two classes. Ours are the ten most frequent, as in other VFL papers, and
two of those.
"""
import pathlib

import numpy as np

from vfljax.data.files import folder as folder_at, ordinary, reading
from vfljax.data.options import Names, several
from vfljax.data.source import Source, check_file
from vfljax.data.table import Table, listing
from vfljax.need import extra

HOW = (
    'Get NUS-WIDE from https://lms.comp.nus.edu.sg/wp-content/uploads/2019/'
    'research/nuswide/NUS-WIDE.html and give the folder that contains'
    ' Low_Level_Features, NUS_WID_Tags and Groundtruth.'
)
TEN = (
    'sky', 'clouds', 'person', 'water', 'animal', 'grass', 'buildings',
    'window', 'plants', 'lake',
)
FEATURES = ('CH', 'CM55', 'CORR', 'EDH', 'WT')
IMAGE, TAGS = 634, 1000
ROWS = dict(Train=161789, Test=107859)  # Of the official files.


def load(
    path: str = '', concepts: Names = ','.join(TEN), ratio: float = 0,
    only: str = '',
) -> Table:
  """NUS-WIDE: samples of exactly one of some concepts, with official test rows.

  Args:
    path: The folder that contains the three folders.
    concepts: The classes, separated by commas; of two, the second is positive.
    ratio: With two concepts: the number of negatives for each positive. The
      class that is too frequent is sampled with a fixed seed; 0 keeps all. The
      paper's unbalanced task has 9, its balanced one 2.
    only: 'image' or 'tag' keeps only those columns, for a federation in which
      the active party has labels only.

  Raises:
    FileNotFoundError: if a file is not there.
    ValueError: if files disagree in their rows or have other columns, or
      pandas is not installed.
  """
  names = several(concepts)
  if len(set(names)) < 2 or len(set(names)) < len(names):
    raise ValueError(
        f'nuswide needs two or more different concepts; got {concepts!r}.'
    )
  if not 0 <= ratio < np.inf:
    raise ValueError(f'nuswide: ratio must be 0 or more; got {ratio}.')
  if ratio and len(names) != 2:
    raise ValueError('nuswide: a ratio needs exactly two concepts.')
  if only not in ('', 'image', 'tag'):
    raise ValueError(f"nuswide: only must be 'image' or 'tag'; got {only!r}.")
  root = folder_at(path, HOW)
  parts = [_part(root, names, part, ratio) for part in ('Train', 'Test')]
  x, y = (np.concatenate(arrays) for arrays in zip(*parts))
  columns = tuple(f'image_{i}' for i in range(IMAGE)) + tuple(
      f'tag_{i}' for i in range(TAGS)
  )
  kept = [i for i, name in enumerate(columns) if name.startswith(only)]
  columns = tuple(columns[i] for i in kept)
  test = np.arange(len(y)) >= len(parts[0][1])
  return Table(
      x[:, kept], y, columns, names, tuple(range(len(columns))), test
  )


def _part(
    root: pathlib.Path, names: tuple[str, ...], part: str, ratio: float
) -> tuple[np.ndarray, np.ndarray]:
  """Features and labels of the chosen training or test rows."""
  folder = root / 'Groundtruth/TrainTestLabels'
  known = [folder / f'Labels_{name}_{part}.txt' for name in names]
  seen = [
      root / 'Low_Level_Features' / f'{part}_Normalized_{kind}.dat'
      for kind in FEATURES
  ]
  place = root / 'NUS_WID_Tags' / f'{part}_Tags1k.dat'
  found = [_matrix(file, 1) for file in known]
  images = [_matrix(file) for file in seen]
  tags = _matrix(place, TAGS)
  _check_rows([*known, *seen, place], [*found, *images, tags])
  width = sum(x.shape[1] for x in images)
  if width != IMAGE:
    raise ValueError(
        f'{root}: the {part} files have {width} image features, not {IMAGE}.'
    )
  for file, column in zip(known, found):
    if not np.isin(column, (0, 1)).all():
      raise ValueError(f'{file}: every label must be 0 or 1.')
  labels = np.concatenate(found, axis=1)
  check_file('nuswide', part, len(tags), ROWS[part])
  rows = np.flatnonzero(labels.sum(1) == 1)
  y = labels[rows].argmax(1).astype(np.int32)
  if ratio:
    kept = balance(y, ratio)
    rows, y = rows[kept], y[kept]
  features = np.concatenate([*images, tags], axis=1)[rows]
  return features.astype(np.float32), y


def _check_rows(files: list[pathlib.Path], arrays: list[np.ndarray]) -> None:
  """Refuses files whose number of rows differs from that of most files."""
  counts = [len(x) for x in arrays]
  most = max(set(counts), key=counts.count)
  odd = [f'{f} has {n}' for f, n in zip(files, counts) if n != most]
  if odd:
    raise ValueError(
        f'All files must have the same rows: {listing(odd, 3)} rows, the other'
        f' files {most}. Get them again.'
    )


def balance(labels: np.ndarray, ratio: float) -> np.ndarray:
  """The largest choice of rows with `ratio` zeros for each one, in order.

  Args:
    labels: Zeros and ones, [n].
    ratio: Above 0.
  """
  draw = np.random.default_rng(0)
  zeros, ones = (np.flatnonzero(labels == c) for c in (0, 1))
  few = int(min(len(ones), len(zeros) / ratio))
  chosen = [
      draw.choice(ones, few, replace=False),
      draw.choice(zeros, int(few * ratio), replace=False),
  ]
  return np.sort(np.concatenate(chosen))


def _matrix(file: pathlib.Path, columns: int = 0) -> np.ndarray:
  """A file's numbers, separated by blanks; blanks at lines' ends are ignored.
  """
  with extra():
    import pandas as pd

  ordinary(file, HOW)
  with reading(file, 'is not a table of numbers'), np.errstate(over='ignore'):
    values = pd.read_csv(file, sep=r'\s+', header=None).to_numpy(np.float32)
  if np.isnan(values).any():
    row = int(np.isnan(values).any(axis=1).argmax())
    raise ValueError(f'{file}, line {row + 1}: too few numbers, or no number.')
  if columns and values.shape[1] != columns:
    raise ValueError(
        f'{file} has {values.shape[1]} columns; it should have {columns}.'
    )
  return values


SOURCE = Source(
    load, 'any', HOW, 'none stated', extent='(samples) x 1634',
    files=('NUS-WIDE', 'Low_Level_Features', 'nuswide'),
    parties='2: pictures, tags',
)
