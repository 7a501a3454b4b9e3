"""SensIT Vehicle (Duarte and Hu, 2004) in LIBSVM's format.

The files are `combined` and `combined.t`, or the same with .bz2. A line has a
type of vehicle (1, 2 or 3), 50 acoustic features and 50 seismic ones.
Source: https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html

Kang et al. (2022), Appendix B: the first two types only; party A has the
acoustic features and the labels, party B the seismic ones; 40000 samples for
training, 5000 for validation, 5000 for test.
"""
import bz2
import pathlib

import numpy as np

from vfljax.data.files import at, brief, find, reading
from vfljax.data.options import whole
from vfljax.data.source import Facts, Source, check_file
from vfljax.data.table import Table, listing, single
from vfljax.need import extra

HOW = (
    'Get combined.bz2 and combined.t.bz2 from https://www.csie.ntu.edu.tw/'
    '~cjlin/libsvmtools/datasets/multiclass.html and give their folder.'
)
ROWS = {'combined': 78823, 'combined.t': 19705}  # The official files'.
COLUMNS = 100
NAMES = tuple(
    f'{kind}_{i}' for kind in ('acoustic', 'seismic') for i in range(1, 51)
)


def load(path: str = '', samples: int = 50000) -> Table:
  """Vehicle: up to 50000 x 100 of two types; class 1 is the second type.

  Args:
    path: The folder of `combined` and `combined.t`; either may end in .bz2.
    samples: How many of both files' samples to draw, with a fixed seed; 0 keeps
      all. The paper takes 50000.

  Raises:
    FileNotFoundError: if one of the files is not there.
    ValueError: if a file is not in LIBSVM's format with 100 features, or has
      other labels than 1, 2 and 3, or scikit-learn is not installed.
  """
  whole('vehicle', 0, samples=samples)
  parts = []
  for name, rows in ROWS.items():
    parts.append(_read(_locate(path, name)))
    check_file('vehicle', name, len(parts[-1][1]), rows)
  x = np.concatenate([part[0] for part in parts])
  y = np.concatenate([part[1] for part in parts])
  rows = np.flatnonzero(np.isin(y, (1, 2)))
  if 0 < samples < len(rows):
    drawn = np.random.default_rng(0).choice(rows, samples, replace=False)
    rows = np.sort(drawn)
  return Table(
      x[rows], (y[rows] == 2).astype(np.int32), NAMES, ('type 1', 'type 2'),
      tuple(range(COLUMNS)),
  )


def _locate(path: str, name: str) -> pathlib.Path:
  place = at(path)
  if path and place.is_dir():
    packed = f'{name}.bz2'
    return find(path, packed if (place / packed).exists() else name, HOW)
  if path and place.exists():
    raise FileNotFoundError(f'{path} is a file, not a folder. {HOW}')
  return find(path, name, HOW)


def _read(file: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  with extra():
    from sklearn.datasets import load_svmlight_file

  try:
    with reading(file, f"is not in LIBSVM's format with {COLUMNS} features"):
      read = load_svmlight_file(str(file), n_features=COLUMNS)
  except ValueError as error:
    _blame(file)
    raise error
  labels = np.asarray(read[1])
  if not len(labels) or not np.isin(labels, (1, 2, 3)).all():
    raise ValueError(
        f'{file}: expected lines that start with a type of vehicle, 1, 2 or 3; '
        f'the types here are {listing(np.unique(labels)) or "none"}.'
    )
  return single(read[0].toarray()), labels


def _blame(file: pathlib.Path) -> None:
  """Finds the first wrong line of a file that cannot be read.

  Raises:
    ValueError: names the line; nothing is raised if there is none.
  """
  unpacked = bz2.open if file.suffix == '.bz2' else open
  try:
    with unpacked(file, 'rb') as raw:
      for number, line in enumerate(raw, start=1):
        odd = [
            word for word in line.partition(b'#')[0].split()[1:]
            if not _pair(word)
        ]
        if odd:
          raise ValueError(
              f"{file}, line {number}: not in LIBSVM's format with {COLUMNS}"
              f' features: {brief(odd[0], 40)} is no pair of an index, 1 to'
              f' {COLUMNS}, and a number.'
          )
  except (OSError, EOFError):
    return  # The whole file is damaged; another error says so.


def _pair(word: bytes) -> bool:
  index, colon, value = word.partition(b':')
  try:
    return 1 <= int(index[:9]) <= COLUMNS and bool(colon and [float(value)])
  except ValueError:
    return False


SOURCE = Source(
    load, 'binary', HOW, 'none stated',
    Facts(
        50000, (0.5, 0.5), 'Kang et al. (2022), Appendix B: "1 : 1"', (100,),
        whole=(('samples', 50000),),
    ),
    files=('combined.bz2', 'vehicle'),
)
