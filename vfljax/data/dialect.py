"""How a CSV file is written: its separator, its decimal mark, its encoding.

What the header and the bytes leave no doubt about is recognised; what could be
read in two ways is refused with the words that say which is meant.
"""
import bz2
import codecs
from collections.abc import Iterator
import csv
import gzip
import io
import lzma
import pathlib
from typing import BinaryIO, NamedTuple
import warnings

from vfljax.data.files import brief, codec, reading
from vfljax.data.options import flag
from vfljax.data.table import bare

# At a command line ';' ends an option, and a tab is hard to type.
SEPARATORS = dict(
    comma=',', semicolon=';', tab='\t', bar='|', blanks=r'\s+'
)
MARKS = dict(point='.', comma=',')
_TRIED = (',', ';', '\t', '|')  # In this order, of headers that fit several.
_OPEN = {'.gz': gzip.open, '.bz2': bz2.open, '.xz': lzma.open}
_OTHER = ('.zip', '.zst', '.tar', '.tgz')  # Pandas opens these by itself.
_BOMS = (
    (codecs.BOM_UTF8, 'utf-8-sig'), (codecs.BOM_UTF16_LE, 'utf-16'),
    (codecs.BOM_UTF16_BE, 'utf-16'),
)
_BLOCK, _HEAD = 1 << 20, 1 << 16


class Recognised(UserWarning):
  """A file is read in a way that nobody asked for, and may be wrong."""


class Dialect(NamedTuple):
  """How a file is to be read.

  Attributes:
    sep: What stands between two cells, as pandas takes it.
    decimal: '.' or ','.
    encoding: A name that Python knows.
  """

  sep: str
  decimal: str
  encoding: str


def dialect(
    file: pathlib.Path, label: str, sep: str = '', decimal: str = '',
    encoding: str = '',
) -> Dialect:
  """How a file is to be read: as it is said, and else as its bytes tell.

  Args:
    file: With a header line.
    label: The label column: splits that have it in the header are preferred.
    sep: '' for the one that splits the header; or one character, or a name of
      `SEPARATORS`.
    decimal: '' or 'point', or 'comma'.
    encoding: '' for UTF-8, or UTF-16 with its mark, or where the bytes are
      neither latin-1; or a name that Python knows.

  Raises:
    ValueError: (one line) for another option, and for a file that is damaged
      UTF-8.

  Warns:
    Recognised: (one line) of a file that is read as latin-1.
  """
  if decimal not in ('', *MARKS):
    raise ValueError(
        f'decimal must be point or comma; got {brief(decimal)}. '
        f'{flag(decimal="comma")}'
    )
  with reading(file, 'cannot be read as CSV'):
    known = codec(encoding, ascii_alike=False) if encoding else _encoding(file)
  split = separator(sep) if sep else _separator(file, label, known)
  return Dialect(split, MARKS.get(decimal, '.'), known)


def separator(sep: str) -> str:
  """What pandas splits at, of what a person says.

  Raises:
    ValueError: for what separates nothing, or not only.
  """
  sep = SEPARATORS.get(sep, '\t' if sep == r'\t' else sep)
  one = len(sep) == 1 and sep.isascii() and not sep.isalnum()
  if sep != r'\s+' and not one or sep in '"\'\r\n\0.+-':
    raise ValueError(
        'sep must be one character that is no letter, digit, sign or quote, or'
        f' one of {", ".join(SEPARATORS)}; got {brief(sep)}.'
    )
  return sep


def _separator(file: pathlib.Path, label: str, encoding: str) -> str:
  """Of the usual ones that which splits the header best; a comma if none does.
  """
  with reading(file, 'cannot be read as CSV'), _opened(file) as raw:
    head = raw.read(_HEAD) if raw else b''
  text = head.decode(encoding, 'replace').lstrip('\ufeff\r\n')
  best, fields = ',', (False, 1)
  for sep in _TRIED:
    try:
      names = next(csv.reader(io.StringIO(text, newline=''), delimiter=sep), [])
    except csv.Error:
      continue
    found = bool(label) and bare(label) in map(bare, names), len(names)
    if found > fields:
      best, fields = sep, found
  if fields == (False, 1):  # Columns lined up by blanks?
    names = text.partition('\n')[0].split()
    if len(names) > 1 and (label in names or not label):
      return r'\s+'
  return best


def _encoding(file: pathlib.Path) -> str:
  """UTF-8, with a mark or without, UTF-16 with one; else latin-1.

  Raises:
    ValueError: for a file that is UTF-8 but for some damage.
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
        f'{bad} characters are not UTF-8, and {good} beyond ASCII are: it is'
        f' damaged, or in another encoding, as in {flag(encoding="latin-1")}'
    )
  warnings.warn(
      f'{file} is not UTF-8 and is read as latin-1: where names look wrong, say'
      f' what it is, as in {flag(encoding="cp1250")}', Recognised, stacklevel=6,
  )
  return 'latin-1'


def _blocks(file: pathlib.Path) -> Iterator[bytes]:
  with _opened(file) as raw:
    while block := raw.read(_BLOCK) if raw else b'':
      yield block


class _opened:
  """A file's bytes without its compression; nothing of what pandas alone opens.
  """

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
