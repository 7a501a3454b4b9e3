"""Default of Credit Card Clients (Yeh and Lien, 2009) as UCI has it.

The file is a CSV file with an ID, 23 features and the label. UCI's own file is
an Excel sheet with a line of X1..X23 above the names. If it is saved as CSV,
that line is skipped here.
Source: https://archive.ics.uci.edu/dataset/350

Kang et al. (2022), Appendix B: party B has the first 13 features; party A has
the other ten (`PARTY_A`) and the label.
"""
import numpy as np

from vfljax.data.files import find, reading
from vfljax.data.source import Facts, Source
from vfljax.data.table import Table, single
from vfljax.need import extra

HOW = (
    'Get it from https://archive.ics.uci.edu/dataset/350, save the sheet as'
    ' credit.csv and give its path.'
)
NAMES = (
    'LIMIT_BAL', 'SEX', 'EDUCATION', 'MARRIAGE', 'AGE',
    *(f'PAY_{i}' for i in (0, 2, 3, 4, 5, 6)),
    *(f'BILL_AMT{i}' for i in range(1, 7)),
    *(f'PAY_AMT{i}' for i in range(1, 7)),
)
PARTY_A = NAMES[13:]


def load(path: str = '') -> Table:
  """Credit: 30000 x 23; class 1 (22 %) defaulted on the next payment.

  Args:
    path: The CSV file, or the folder that credit.csv lies in.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it has other columns, or other labels than 0 and 1, or
      pandas is not installed.
  """
  with extra():
    import pandas as pd

  file = find(path, 'credit.csv', HOW)
  with reading(file, 'is not the sheet saved as CSV'):
    with file.open(encoding='utf-8') as lines:
      numbered = 'X1' in next(lines, '').replace('"', '').split(',')
    raw = pd.read_csv(file, skiprows=int(numbered))
    values = raw.to_numpy(np.float64)
  if values.shape[1] != len(NAMES) + 2:
    raise ValueError(
        f'{file} has {values.shape[1]} columns; it should have 25: an ID, 23'
        ' features and the label.'
    )
  labels = values[:, -1]
  if not np.isin(labels, (0, 1)).all():
    raise ValueError(f'{file}: labels (the last column) must be 0 or 1.')
  return Table(
      single(values[:, 1:-1]), labels.astype(np.int32), NAMES,
      ('paid', 'default'), tuple(range(len(NAMES))),
  )


SOURCE = Source(
    load, 'binary', HOW, 'CC BY 4.0',
    Facts(
        30000, (23364, 6636), 'https://archive.ics.uci.edu/dataset/350', (23,),
        # Means of the limit and the age, from several published analyses that
        # agree; the file itself was not at hand.
        means=((0, 167484.3), (4, 35.4855)),
    ),
    files=('credit.csv',),
)
