"""Spambase in the UCI repository's format.

A line has 57 numbers and the class (1: spam), separated by commas, without a
header. The columns' names are those of the repository's `spambase.names`, with
punctuation marks as words, because `;` and `,` separate names in a vertical
split.
Source: https://archive.ics.uci.edu/dataset/94/spambase
"""
import numpy as np

from vfljax.data.files import find, reading
from vfljax.data.source import Facts, Source
from vfljax.data.table import Table, single
from vfljax.need import extra

HOW = (
    'Get spambase.data from https://archive.ics.uci.edu/dataset/94/spambase and'
    ' give its path.'
)
_WORDS = """
make address all 3d our over remove internet order mail receive will people
report addresses free business email you credit your font 000 money hp hpl
george 650 lab labs telnet 857 data 415 85 technology 1999 parts pm direct cs
meeting original project re edu table conference
""".split()
_MARKS = 'semicolon parenthesis bracket exclamation dollar hash'.split()
NAMES = (
    *(f'word_freq_{w}' for w in _WORDS),
    *(f'char_freq_{m}' for m in _MARKS),
    *(f'capital_run_length_{s}' for s in ('average', 'longest', 'total')),
)


def load(path: str = '') -> Table:
  """Spambase: 4601 x 57; class 1 is spam (1813 rows).

  Args:
    path: `spambase.data`, gzipped or not, or the folder it lies in. Empty
      fields become NaN, which `data.load` refuses or imputes.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it has other than 58 columns of numbers, or other labels
      than 0 and 1, or pandas is not installed.
  """
  with extra():
    import pandas as pd

  file = find(path, 'spambase.data', HOW)
  with reading(file, 'is not in the format of spambase.data'):
    raw = pd.read_csv(file, header=None, skipinitialspace=True)
    values = raw.to_numpy(np.float64)
  if values.shape[1] != len(NAMES) + 1:
    raise ValueError(
        f'{file} has {values.shape[1]} columns; spambase.data has 57 features'
        ' and the class.'
    )
  labels = values[:, -1]
  wrong = ~np.isin(labels, (0, 1))
  if wrong.any():
    raise ValueError(
        f'{file}: {wrong.sum()} of {len(labels)} labels (the last column) are'
        ' neither 0 nor 1.'
    )
  return Table(
      single(values[:, :-1]), labels.astype(np.int32), NAMES,
      ('ham', 'spam'), tuple(range(len(NAMES))),
  )


SOURCE = Source(
    load, 'binary', HOW, 'CC BY 4.0',
    Facts(
        4601, (2788, 1813), 'https://archive.ics.uci.edu/dataset/94', (57,),
        means=((0, 0.10455), (54, 5.1915), (55, 52.173), (56, 283.29)),
    ),
    files=('spambase.data',),
)
