"""How a CSV file is written: its separator, decimal mark and encoding.

They are recognised if header and bytes leave no doubt. If a file can be read in
two ways, it is refused, and the message says which options decide.
"""
import bz2
import codecs
from collections.abc import Iterator
import csv
import gzip
import io
import lzma
import pathlib
import re
import threading
from typing import BinaryIO, NamedTuple
import warnings

from vfljax.data.files import brief, codec, reading
from vfljax.data.options import flag
from vfljax.data.table import bare

# Names, because on a command line ';' ends an option and a tab is hard to type.
SEPARATORS = dict(
    comma=',', semicolon=';', tab='\t', bar='|', blanks=r'\s+'
)
MARKS = dict(point='.', comma=',')
_TRIED = (',', ';', '\t', '|')  # If several split a header equally, the first.
_OPEN = {'.gz': gzip.open, '.bz2': bz2.open, '.xz': lzma.open}
_OTHER = ('.zip', '.zst', '.tar', '.tgz')  # Pandas opens these by itself.
_BOMS = (
    (codecs.BOM_UTF8, 'utf-8-sig'), (codecs.BOM_UTF16_LE, 'utf-16'),
    (codecs.BOM_UTF16_BE, 'utf-16'),
)
# Excel's first line, which says what parts cells and is not one of the table.
# (Any other character would be refused as an option that nobody typed.)
_TOLD = re.compile(r'([\r\n]*)"?sep=([,;|:\t ~^])"?\r?\n', re.IGNORECASE)
_BLOCK, _HEAD = 1 << 20, 1 << 16


# Filters of warnings are of the process. Of two threads that change and put
# them back at once, the later would leave the other's: whoever does holds this.
FILTERS = threading.RLock()


class Recognised(UserWarning):
  """A file is read in a way that the user did not ask for, and may be wrong."""


class Dialect(NamedTuple):
  """How a file is to be read.

  Attributes:
    sep: The separator between cells, for pandas.
    decimal: '.' or ','.
    encoding: A name that Python knows.
    skiprows: Lines that end in one that says the separator, as Excel's
      'sep=;': 1, or more if blank ones are above it; else 0.
  """

  sep: str
  decimal: str
  encoding: str
  skiprows: int = 0


def dialect(
    file: pathlib.Path, label: str, sep: str = '', decimal: str = '',
    encoding: str = '',
) -> Dialect:
  """How to read a file: as the options say, else as recognised.

  Args:
    file: A CSV file with a header line.
    label: The label column; separators that find it in the header are
      preferred.
    sep: '' for the one that the first line says ('sep=;', as Excel has it, but
      not within .zip, .zst and .tar), or that splits the header best; or one
      character, or a name in `SEPARATORS`.
    decimal: '' or 'point', or 'comma'.
    encoding: A name that Python knows. '' for UTF-8, UTF-16 with a byte order
      mark, or latin-1 if the bytes are neither.

  Raises:
    ValueError: (one line) for an invalid option, or a file that seems to be
      damaged UTF-8.

  Warns:
    Recognised: (one line) if the file is read as latin-1.
  """
  if decimal not in ('', *MARKS):
    raise ValueError(
        f'decimal must be point or comma; got {brief(decimal)}. '
        f'{flag(decimal="comma")}'
    )
  with reading(file, 'cannot be read as CSV'):
    known = codec(encoding, ascii_alike=False) if encoding else _encoding(file)
  with reading(file, 'cannot be read as CSV'), _opened(file) as raw:
    head = raw.read(_HEAD) if raw else b''
  text = head.decode(known, 'replace').lstrip('\ufeff')
  skipped = 0
  if told := _TOLD.match(text):
    sep, skipped = sep or told[2], len(told[1].splitlines()) + 1
  split = separator(sep) if sep else _separator(text.lstrip('\r\n'), label)
  return Dialect(split, MARKS.get(decimal, '.'), known, skipped)


def separator(sep: str) -> str:
  """The separator for pandas, from the user's option.

  Raises:
    ValueError: if it cannot be a separator.
  """
  sep = SEPARATORS.get(sep, '\t' if sep == r'\t' else sep)
  one = len(sep) == 1 and sep.isascii() and not sep.isalnum()
  if sep != r'\s+' and not one or sep in '"\'\r\n\0.+-':
    raise ValueError(
        'sep must be one character other than a letter, digit, sign, point or'
        f' quote, or one of {", ".join(SEPARATORS)}; got {brief(sep)}.'
    )
  return sep


def _separator(text: str, label: str) -> str:
  """The usual separator that splits the header best; a comma if none does.

  Args:
    text: The file's beginning.
    label: The label column.
  """
  best, fields = ',', (False, 1)
  for sep in _TRIED:
    names = next(csv.reader(io.StringIO(text, newline=''), delimiter=sep), [])
    found = bool(label) and bare(label) in map(bare, names), len(names)
    if found > fields:
      best, fields = sep, found
  if fields == (False, 1):  # Columns lined up by blanks?
    names = text.partition('\n')[0].split()
    if len(names) > 1 and (label in names or not label):
      return r'\s+'
  return best


def _encoding(file: pathlib.Path) -> str:
  """The encoding: UTF-8, UTF-16 with a byte order mark, or else latin-1.

  Raises:
    ValueError: if some characters beyond ASCII are UTF-8 and others are not.
  """
  decoder = codecs.getincrementaldecoder('utf-8')('replace')
  good, bad, start = 0, 0, True
  for block in _blocks(file):
    if start:
      for mark, name in _BOMS:
        if block.startswith(mark):
          return name
    start = False
    if block.isascii() and not decoder.getstate()[0]:
      continue
    text = decoder.decode(block)
    lost = text.count('\ufffd')
    plain = len(text.encode('ascii', 'ignore'))
    bad, good = bad + lost, good + len(text) - plain - lost
  bad += decoder.decode(b'', True).count('\ufffd')
  if not bad:
    return 'utf-8'
  if good:
    raise ValueError(
        f'{bad} characters are not UTF-8, but {good} beyond ASCII are: the file'
        ' is damaged, or in another encoding, as in'
        f' {flag(encoding="latin-1")}'
    )
  warnings.warn(
      f'{file} is not UTF-8 and is read as latin-1. If names look wrong, type'
      f' its encoding, as in {flag(encoding="cp1250")}', Recognised,
      stacklevel=7,
  )
  return 'latin-1'


def _blocks(file: pathlib.Path) -> Iterator[bytes]:
  with _opened(file) as raw:
    while block := raw.read(_BLOCK) if raw else b'':
      yield block


class _opened:
  """Opens a file's decompressed bytes; `None` for formats only pandas opens."""

  def __init__(self, file: pathlib.Path):
    self._file, self._raw = file, None

  def __enter__(self) -> BinaryIO | None:
    suffix = self._file.suffix.lower()
    if suffix not in _OTHER:
      self._raw = _OPEN.get(suffix, open)(self._file, 'rb')
    return self._raw

  def __exit__(self, *error) -> None:
    if self._raw:
      self._raw.close()
