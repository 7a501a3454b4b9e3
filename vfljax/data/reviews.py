"""Texts with a binary label, as 0/1 columns of the most frequent words.

GAFM (appendix E.1) does this to IMDB: one column for each of the top 500 words,
1 if a review has the word. `load` reads `label TAB text` files, `imdb` reads
TFDS's imdb_reviews. If there is a test set, words are counted in training rows
only.
"""
from collections import Counter
from collections.abc import Iterable, Sequence
import pathlib
import re
import unicodedata
import warnings

import numpy as np

from vfljax.data import tfds
from vfljax.data.dialect import Recognised
from vfljax.data.files import ENCODING, brief, find, fits, lines
from vfljax.data.options import flag, whole
from vfljax.data.source import OWN, Facts, Source
from vfljax.data.table import Table

HOW = (
    'Give a text file with a line `label TAB text` for each review, label 0 or'
    ' 1.'
)
IMDB_HOW = (
    "Prepare it once with tfds.builder('imdb_reviews', file_format="
    "'array_record').download_and_prepare() and give its folder."
)
CLASSES = ('negative', 'positive')
_WORD = re.compile(r"[a-z0-9']+")
_FEW, _FEWEST = 0.01, 10  # Letters beyond a to z that English texts have.


def load(
    path: str = '', words: int = 500, sentences: int = 1,
    encoding: str = 'utf-8', unicode: bool = False,
) -> Table:
  """Reviews from a file of `label TAB text` lines.

  Args:
    path: The file.
    words: How many of the most frequent words become columns, 1 or more.
    sentences: How many lines of a label, in the file's order, are joined to one
      text; 1 or more. It makes texts as long as reviews from single sentences.
      Lines that remain at the end are left out.
    encoding: The file's encoding, see `files.lines`.
    unicode: Whether words have letters of all alphabets. If not, they end at
      any letter that is not a to z.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: for a line of another form or encoding, or a label that is not 0
      or 1 (the message names the line); if `sentences` is below 1, or larger
      than the number of lines of a label.

  Warns:
    Recognised: (one line) if many letters are not a to z, without `unicode`.
  """
  whole('reviews', 1, words=words)
  file = find(path, 'movie_reviews.tsv', HOW)
  labels, texts = join(*_read(file, encoding), sentences)
  if not unicode:
    _tell_of_letters(file, texts)
  return table(texts, labels, words, unicode=unicode)


def _tell_of_letters(file: pathlib.Path, texts: Sequence[str]) -> None:
  """Warns if words would often be cut at letters that are not a to z."""
  foreign = sum(
      c.isalpha() for text in texts if not text.isascii()
      for c in text if not c.isascii()
  )
  if foreign <= _FEWEST:
    return
  letters = sum(c.isalpha() for text in texts for c in text)
  if foreign > _FEW * letters:
    warnings.warn(
        f'{file}: {foreign / letters:.0%} of the letters are not a to z, and '
        f'words end there. To keep them: {flag(unicode="True")}', Recognised,
        stacklevel=3,
    )


def join(
    labels: np.ndarray, texts: Sequence[str], count: int
) -> tuple[np.ndarray, list[str]]:
  """Joins every `count` texts of a label to one text, label after label.

  Raises:
    ValueError: if `count` is below 1 or more than a label has.
  """
  fewest = min(np.bincount(labels, minlength=2))
  if not 1 <= count <= max(fewest, 1):
    raise ValueError(
        f'sentences must be between 1 and {fewest}, the number of lines of the '
        f'rarer label; got {count}.'
    )
  if count == 1:
    return labels, list(texts)
  joined = []
  for label in (0, 1):
    own = [text for text, of in zip(texts, labels) if of == label]
    joined += [
        (label, ' '.join(own[i : i + count]))
        for i in range(0, len(own) - count + 1, count)
    ]
  found = np.array([label for label, _ in joined], np.int32)
  return found, [text for _, text in joined]


def imdb(path: str = '', words: int = 500) -> Table:
  """TFDS's imdb_reviews with its official test set: 25000 and 25000 reviews.

  Args:
    path: Its folder, see `tfds.load`.
    words: As in `load`.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if the data set there has no text.
  """
  if not path:
    raise FileNotFoundError(f'No path to imdb_reviews given. {IMDB_HOW}')
  parts = [tfds.rows(path, split) for split in ('train', 'test')]
  both = [row for part in parts for row in part]
  if any('text' not in row or 'label' not in row for row in both):
    raise ValueError(f'The data set at {path} has no text and label.')
  labels = np.array([row['label'] for row in both], np.int32)
  if not np.isin(labels, (0, 1)).all():
    raise ValueError(f'The data set at {path} has labels other than 0 and 1.')
  test = np.arange(len(both)) >= len(parts[0])
  return table([row['text'] for row in both], labels, words, test)


def table(
    texts: Sequence[str], labels: np.ndarray, words: int = 500,
    test: np.ndarray | None = None, unicode: bool = False,
) -> Table:
  """Texts as a table of 0 and 1, a column for each of the most frequent words.

  Args:
    texts: One text for each row.
    labels: Zeros and ones, [n].
    words: The number of columns, 1 or more; fewer if the texts have fewer
      words. Of equally frequent words the first in the alphabet is taken.
    test: Rows whose words do not count, bool [n], or `None`.
    unicode: As in `load`.

  Raises:
    ValueError: if `words` is below 1 or no text has a word.
  """
  whole('reviews', 1, words=words)
  found = [_words(text, unicode) for text in texts]
  keep = np.ones(len(texts), bool) if test is None else ~test
  names = _most_frequent((w for w, k in zip(found, keep) if k), words)
  if not names:
    raise ValueError('The texts contain no words.')
  fits(4 * len(texts) * len(names), f'{len(names)} words as columns')
  column = {name: j for j, name in enumerate(names)}
  x = np.zeros((len(texts), len(names)), np.float32)
  for i, own in enumerate(found):
    x[i, [column[word] for word in own if word in column]] = 1
  return Table(
      x, labels.astype(np.int32), tuple(names), CLASSES,
      tuple(range(len(names))), test,
  )


def _words(text: str, unicode: bool) -> list[str]:
  if not unicode:
    return _WORD.findall(text.lower())
  # One letter for a letter and its accent.
  letters = unicodedata.normalize('NFC', text).lower()
  return ''.join(c if _in_word(c) else ' ' for c in letters).split()


def _in_word(c: str) -> bool:
  """Letters, digits and what stands above or below them, as vowels do."""
  return c == "'" or c.isalnum() or unicodedata.category(c)[0] == 'M'


def _most_frequent(rows: Iterable[list[str]], words: int) -> list[str]:
  counts = Counter(word for row in rows for word in row)
  return sorted(counts, key=lambda word: (-counts[word], word))[:words]


def _read(
    file: pathlib.Path, encoding: str
) -> tuple[np.ndarray, list[str]]:
  labels, texts = [], []
  for number, line in lines(file, encoding, ENCODING):
    label, tab, text = line.partition('\t')
    if not tab or label.strip() not in ('0', '1'):
      raise ValueError(
          f'{file}, line {number}: expected 0 or 1, a tab and a text; got'
          f' {brief(line, 40)}.'
      )
    labels.append(int(label))
    texts.append(text)
  if not texts:
    raise ValueError(f'{file} has no line.')
  return np.array(labels, np.int32), texts


SOURCE = Source(
    load, 'binary', HOW, OWN, extent='(lines) x 500',
    files=('movie_reviews.tsv',), own=True,
)
IMDB = Source(
    imdb, 'binary', IMDB_HOW, 'none stated',
    Facts(25000, (25000,) * 2, 'Maas et al. (2011)', test=25000),
    files=('imdb_reviews',),
)
