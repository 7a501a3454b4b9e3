"""Texts as token numbers, cut into one piece for each party, as in VMask.

A text's tokens are divided, in order, into equal pieces. Each piece gets the
tokenizer's first and last special token, so that it looks like a whole text to
a party's encoder. The pieces stand side by side as columns, and the split
'even' gives each party its piece. Token numbers must not be scaled: use
data.scale=none.
"""
from collections.abc import Callable, Sequence
import functools
import json
import pathlib

import numpy as np

from vfljax.data import tfds
from vfljax.data.files import ENCODING, brief, find, fits, lines, reading
from vfljax.data.options import whole
from vfljax.data.source import OWN, TEXTS, Facts, Source
from vfljax.data.table import Table, few_classes, listing
from vfljax.need import extra

HOW = (
    'Give a file with a line `label TAB text` for each text, and'
    " encoder='FOLDER' with the tokenizer.json of an encoder."
)
# Names of a column of labels, which are no labels.
_HEADERS = {'label', 'labels', 'class', 'target', 'category', 'sentiment'}
_LARGEST = 2**24  # Number of tokens that float32 can tell apart.


def load(
    path: str = '', encoder: str = '', parts: int = 2, length: int = 32,
    rows: int = 0, encoding: str = 'utf-8',
) -> Table:
  """Texts of a file of `label TAB text` lines as token numbers.

  Args:
    path: The file.
    encoder: The folder with the encoder's tokenizer.json.
    parts: Number of pieces of each text, one for each party with features; 1 or
      more.
    length: Tokens of a piece, special ones included, 3 or more. Longer pieces
      are cut off, shorter ones padded.
    rows: How many texts to choose at random, always the same ones; 0 for all.
    encoding: The file's encoding, see `files.lines`.

  Returns:
    float32 [n, parts * length]. The classes are the different labels, in order.

  Raises:
    FileNotFoundError: if the file or the tokenizer is not there.
    ValueError: for a line of another form or encoding (the message names it), a
      header, a tokenizer that cannot be read, or an option out of its range.
  """
  whole('texts', 0, rows=rows)
  file = find(path, '', HOW)
  found = _read(file, encoding)
  few_classes(len({label for label, _ in found}), len(found), f'{file}: it')
  found = _choice(found, rows)
  x = tokens([text for _, text in found], encoder, parts, length)
  return _table(x, [label for label, _ in found], parts, length)


def prepared(
    name: str, text: str = 'text', target: str = 'label'
) -> Callable[..., Table]:
  """A loader of the TFDS data set `name` with its official test set.

  Args:
    name: Its name in TFDS.
    text: The name of the feature that is the text.
    target: The name of the feature that is the class.
  """
  how = prepared_how(name)

  def load_prepared(
      path: str = '', encoder: str = '', parts: int = 2, length: int = 128,
      rows: int = 0, test_rows: int = 0,
  ) -> Table:
    if not path:
      raise FileNotFoundError(f'No path to {name} given. {how}')
    whole(name, 0, rows=rows, test_rows=test_rows)
    both = tfds.rows(path, 'train'), tfds.rows(path, 'test')
    if any(text not in row or target not in row for row in both[0][:1]):
      raise ValueError(
          f'The data set at {path} has no {text!r} and {target!r}; it has '
          f'{listing(both[0][0])}.'
      )
    # A random choice as in VMask for AG's News, but always the same one.
    chosen = [_choice(part, k) for part, k in zip(both, (rows, test_rows))]
    all_rows = [row for part in chosen for row in part]
    x = tokens([row[text] for row in all_rows], encoder, parts, length)
    table = _table(x, [str(row[target]) for row in all_rows], parts, length)
    return table._replace(
        test=np.arange(len(all_rows)) >= len(chosen[0])
    )

  return load_prepared


def prepared_how(name: str) -> str:
  """How to get a TFDS data set of texts."""
  return (
      f"Prepare it once with tfds.builder('{name}', file_format='array_record')"
      ".download_and_prepare(), give its folder and encoder='FOLDER'."
  )


def tokens(
    texts: Sequence[str], encoder: str, parts: int, length: int
) -> np.ndarray:
  """Token numbers, float32 [n, parts * length], see `load`."""
  whole('texts', 1, parts=parts)
  whole('texts', 3, length=length)
  file = find(encoder, 'tokenizer.json', HOW)
  fits(4 * len(texts) * parts * length, f'{parts} times {length} tokens a text')
  # The time is part of the cache's key, so that a changed file is read again.
  tokenizer = _tokenizer(file, file.stat().st_mtime_ns)
  special = _special(tokenizer, encoder)
  first, last, padding = special
  found = np.full((len(texts), parts, length), padding, np.float32)
  known = _known(file.parent)
  with reading(file, 'is no tokenizer of these texts'):
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
  for i, one in enumerate(encoded):
    most = max(*special, *one.ids)
    if most >= known:
      raise ValueError(
          f'{file} has a token with the number {most}, but the encoder beside'
          f' it knows only {known} tokens. They do not belong together.'
      )
    for j, piece in enumerate(np.array_split(one.ids, parts)):
      piece = [first, *piece[: length - 2], last]
      found[i, j, : len(piece)] = piece
  return found.reshape(len(texts), -1)


def _known(folder: pathlib.Path) -> int:
  """The number of tokens that the folder's encoder knows; 2^24 if unknown.

  An encoder would read an unknown token as the last one that it knows.
  """
  file = folder / 'config.json'
  words = None
  if file.is_file():
    with reading(file, 'cannot be read'):
      words = json.loads(file.read_text('utf-8')).get('vocab_size')
  return min(words, _LARGEST) if isinstance(words, int) else _LARGEST


def _special(tokenizer, encoder: str) -> tuple[int, int, int]:
  """Numbers of the tokens that start, end and pad a text."""
  names = ('[CLS]', '[SEP]', '[PAD]')
  found = [tokenizer.token_to_id(name) for name in names]
  missing = [name for name, number in zip(names, found) if number is None]
  if missing:
    raise ValueError(
        f'The tokenizer in {encoder} has no {listing(missing)}: it is not one '
        'of BERT or DistilBERT.'
    )
  return tuple(found)


@functools.cache
def _tokenizer(file: pathlib.Path, changed: int):
  del changed  # Only a part of the cache's key.
  with extra('text'):
    from tokenizers import Tokenizer

  with reading(file, 'is no tokenizer'):
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
  return tokenizer


def _choice(items: list, count: int) -> list:
  """`count` random items, always the same; all if that is 0 or too many."""
  if not 0 < count < len(items):
    return items
  order = np.random.default_rng(0).permutation(len(items))
  return [items[i] for i in order[:count]]


def _read(file: pathlib.Path, encoding: str) -> list[tuple[str, str]]:
  """(label, text) of every line."""
  found = []
  for number, line in lines(file, encoding, ENCODING):
    label, tab, text = line.partition('\t')
    if not tab or not label.strip() or not text.strip():
      raise ValueError(
          f'{file}, line {number}: expected a label, a tab and a text; got'
          f' {brief(line, 40)}.'
      )
    found.append((label.strip(), text))
  if not found:
    raise ValueError(f'{file} has no line.')
  (first, _), *rest = found
  if first.lower() in _HEADERS and first not in {label for label, _ in rest}:
    raise ValueError(
        f'{file}, line 1: {first} is the label of this line alone. It seems to '
        'be a header, which has to be left out.'
    )
  return found


def _table(x, labels: Sequence[str], parts: int, length: int) -> Table:
  # Python cannot read all alphabets' digits, nor very many, as a number.
  digits = lambda word: word.removeprefix('-')
  plain = lambda word: (
      word.isascii() and digits(word).isdigit() and len(word) < 19
  )
  number = lambda word: (0, int(word), word) if plain(word) else (1, 0, word)
  classes = tuple(sorted(set(labels), key=number))
  index = {name: i for i, name in enumerate(classes)}
  names = [f'piece{j}_token{i}' for j in range(parts) for i in range(length)]
  return Table(
      x, np.array([index[name] for name in labels], np.int32), tuple(names),
      classes, tuple(range(len(names))),
  )


def _prepared(
    name: str, task: str, facts: Facts, licence: str, text: str = 'text',
    target: str = 'label',
) -> Source:
  """A TFDS data set; its facts are compared only if all its rows are read."""
  return Source(
      prepared(name, text, target), task, prepared_how(name), licence,
      facts._replace(whole=(('rows', 0), ('test_rows', 0))), files=(name,),
      parties=TEXTS,
  )


SOURCE = Source(
    load, 'any', HOW, OWN, extent='(lines) x (tokens)',
    files=('movie_reviews.tsv', 'snippets.tsv'), parties=TEXTS, own=True,
)
IMDB = _prepared(
    'imdb_reviews', 'binary',
    Facts(25000, (25000,) * 2, 'Maas et al. (2011)', test=25000), 'none stated',
)
AG_NEWS = _prepared(
    'ag_news_subset', '4 classes',
    Facts(120000, (31900,) * 4, 'Zhang et al. (2015)', test=7600),
    'non-commercial use', 'description',
)
TREC = _prepared(
    'trec', '6 classes',
    Facts(  # DESC, ENTY, ABBR, HUM, NUM, LOC: the order of TFDS.
        5452, (1300, 1344, 95, 1288, 1009, 916), 'Li and Roth (2002)', test=500,
    ),
    'none stated', target='label-coarse',
)
