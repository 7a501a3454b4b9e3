"""Criteo's display advertising challenge: 39 columns of category numbers.

A line of `train.txt` has the label, 13 counts and 26 hashed categories,
separated by tabs, empty if unknown. As in the challenge's winning solution
(Juan et al., 2014) and in GAFM (appendix E.1), a count v above 2 becomes the
category floor(ln(v)^2), and each smaller one has a category of its own. Values
seen fewer than 10 times in their column become one category, and the others are
hashed. Here each column has its own vocabulary. The numbers are for
`nets.wide_deep`, with data.scale=none.
Source: https://www.kaggle.com/c/criteo-display-ad-challenge
"""
import pathlib
import zlib

import numpy as np

from vfljax.data.files import brief, find, reading
from vfljax.data.options import whole
from vfljax.data.source import Facts, Source
from vfljax.data.table import Table
from vfljax.need import extra

HOW = (
    'Get train.txt from https://www.kaggle.com/c/criteo-display-ad-challenge'
    ' and give its path.'
)
COUNTS = tuple(f'I{i}' for i in range(1, 14))
CATEGORIES = tuple(f'C{i}' for i in range(1, 27))
NAMES = COUNTS + CATEGORIES
UNKNOWN, RARE = 0, 1  # The first numbers of every vocabulary.


def load(
    path: str = '', rows: int = 100_000, buckets: int = 1000, rare: int = 10
) -> Table:
  """Criteo's ads: label 1 is a click.

  Args:
    path: `train.txt`, gzipped or not, or the folder it lies in.
    rows: How many rows to read from the start; 0 reads all 45 million (14 GB in
      memory).
    buckets: Size of each column's vocabulary, 3 to 2^24 (float32 cannot tell
      more numbers apart): 0 (unknown), 1 (rare) and hashes up to buckets - 1.
    rare: A value seen fewer times in its column counts as rare; 0 or more.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: for a file of another form or options out of range, or if
      pandas is not installed.
  """
  with extra():
    import pandas as pd

  whole('criteo', 3, 2**24, buckets=buckets)
  whole('criteo', 0, rare=rare, rows=rows)
  file = find(path, 'train.txt', HOW)
  with reading(file, "is not in the format of Criteo's train.txt"):
    raw = pd.read_csv(
        file, sep='\t', header=None, dtype=str, keep_default_na=False,
        nrows=rows or None,
    )
  cells = raw.to_numpy(dtype=object)
  labels = cells[:, 0]
  if cells.shape[1] != 1 + len(NAMES) or not np.isin(labels, ('0', '1')).all():
    raise ValueError(
        f"{file} is not in the format of Criteo's train.txt: 40 tab-separated"
        ' columns, the first of them 0 or 1.'
    )
  # pandas reads a line that is cut off as one with empty columns at its end.
  if file.suffix == '.txt' and len(_last_line(file).split(b'\t')) <= len(NAMES):
    raise ValueError(
        f'{file}: its last line has fewer than 40 columns; the file is cut off.'
    )
  columns = []
  for name, values in zip(NAMES, cells.T[1:]):
    if name in COUNTS:
      values = _binned(file, name, values)
    columns.append(numbers(values, name, buckets, rare))
  return Table(
      np.stack(columns, axis=1).astype(np.float32), labels.astype(np.int32),
      NAMES, ('no click', 'click'), tuple(range(len(NAMES))),
  )


def bin_count(count: float) -> int:
  """floor(ln(v)^2), 1 or more, of a count v above 2, else v - 2, 0 or less.

  v itself would put 1 with 3 and 4, and 2 with 5.
  """
  return int(np.log(count) ** 2) if count > 2 else int(count) - 2


def numbers(values, name: str, buckets: int, rare: int) -> np.ndarray:
  """One column's values as numbers of its vocabulary, int [n].

  Args:
    values: Words; '' is unknown.
    name: The column's name, which is part of the hash.
    buckets: Size of the vocabulary.
    rare: Values seen fewer times become `RARE`.
  """
  with extra():
    import pandas as pd

  values = pd.Series(values)
  counts = values.value_counts()
  known = {
      value: 2 + zlib.crc32(f'{name}={value}'.encode()) % (buckets - 2)
      if count >= rare else RARE
      for value, count in counts.items()
  }
  return values.map(known | {'': UNKNOWN}).to_numpy(np.int64)


def _last_line(file: pathlib.Path, most: int = 1 << 16) -> bytes:
  with file.open('rb') as raw:
    raw.seek(max(0, file.stat().st_size - most))
    return raw.read().rstrip(b'\r\n').rpartition(b'\n')[2]


def _binned(file, name: str, values) -> list[str]:
  found = []
  for row, value in enumerate(values, start=1):
    try:
      found.append(str(bin_count(float(value))) if value else '')
    except (ValueError, OverflowError, TypeError):  # Words; infinity.
      raise ValueError(
          f'{file}: column {name}, line {row}: {brief(value, 40)} is no'
          ' finite number.'
      ) from None
  return found


SOURCE = Source(
    load, 'binary', HOW, 'CC BY-NC-SA 4.0',
    Facts(
        45840617, (0.744, 0.256),
        'https://www.kaggle.com/c/criteo-display-ad-challenge', (39,),
        whole=(('rows', 0),),
    ),
    files=('train.txt', 'criteo'),
)
