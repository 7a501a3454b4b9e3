"""One table of each party, joined by the ids of its rows.

Real parties find their common rows by private set intersection. Here all tables
are on one machine, as whoever studies a federation has them: rows whose ids all
parties have are used, in the active party's order. Who has a column stays known
(`Table.holders`), so that a split is not chosen but `held`.
"""
from collections.abc import Iterable, Sequence
import pathlib
from typing import TYPE_CHECKING, Any

from vfljax.data import cells, frame, namesakes
from vfljax.data.each import advising, each
from vfljax.data.files import brief, find, parted
from vfljax.data.ids import by_id, in_all, named, rows_named
from vfljax.data.options import Names, flag, several
from vfljax.data.source import OWN, Source
from vfljax.data.table import Table, impute, listing

if TYPE_CHECKING:
  import pandas as pd

BETWEEN = ';'  # What parts the files of a path.
HOW = (
    'Give a file of each party, the active one first, the label column and the '
    "column of ids: --config.data.path='bank.csv;telecom.csv' "
    '--config.data.label=target --config.data.options=ids=customer '
    '--config.data.split=held'
)


def parties(
    path: str = '', label: str = '', ids: Names = '', missing: str = 'refuse',
    sep: Names = '', drop: Names = '', positive: str = '',
    categories: int = 100, text: Names = '', rounded: Names = '',
    decimal: Names = '', encoding: Names = '', gaps: Names = '',
) -> Table:
  """A CSV or Parquet file of each party, joined by ids.

  Args:
    path: The files with ';' between, the active party's first. Those that end
      in .parquet or .pq are Parquet, all others CSV.
    label: Name of the label column, in the first file.
    ids: Name of a column of ids, which is in all files and is no feature; or a
      name in each file, 'customer,client'. Ids are compared as text: 7 and 007
      are two.
    sep, decimal, encoding: As of `frame.csv`; one word for all files, or one of
      each, 'comma,point', which is empty for Parquet.
    missing, drop, positive, categories, text, rounded, gaps: As of `frame.csv`,
      for all files.

  Raises:
    FileNotFoundError, ValueError: as `frame.csv` and `joined`.

  Warns:
    Recognised: as `frame.csv` and `joined`.
  """
  files = parted(path)
  if len(files) < 2:
    raise ValueError(f'This needs two files or more. {HOW}')
  for one in files:
    find(one, '', HOW)
  own = each('ids', ids, len(files))
  if not all(own):
    raise ValueError(f'Which column has the ids of rows? {HOW}')
  typed = {
      name: each(name, word, len(files)) for name, word in
      dict(sep=sep, decimal=decimal, encoding=encoding).items()
  }
  frames, names = [], _called(files)
  for k, (one, name) in enumerate(zip(files, names)):
    way = {option: words[k] for option, words in typed.items()}
    how = cells.Written(gaps=gaps, **way)
    with named(name), advising(k, typed):
      if one.lower().endswith(('.parquet', '.pq')):
        _refuse_words(k, typed)
        frames.append(cells.parquet(one, gaps))
      else:
        left = [word for word in several(drop) if word != own[k]]
        frames.append(cells.csv(
            one, '' if k else label, left, text, rounded, how, own[k]
        ))
  return joined(
      frames, label, own, missing, names=names, drop=drop, positive=positive,
      categories=categories, text=text, rounded=rounded,
  )


def _called(files: Sequence[str]) -> list[str]:
  """What messages call files: names without folders, if they tell them apart.
  """
  names = [pathlib.Path(one).name for one in files]
  return names if len({*names}) == len(names) else [*files]


def _refuse_words(file: int, typed: dict[str, tuple[str, ...]]) -> None:
  """Refuses words of a Parquet file's own, which would do nothing."""
  for option, words in typed.items():
    if words[file] and len({*words}) > 1:
      raise ValueError(
          f'{option}={words[file]} is how a CSV file is written, and this one '
          f'is Parquet. Leave its word empty: {flag(**{option: ""})}'
      )


def joined(
    frames: 'Sequence[pd.DataFrame]', label: str, ids: Names,
    missing: str = 'refuse', names: Sequence[str] = (), drop: Names = '',
    **more: Any,
) -> Table:
  """The rows that all parties have, by their ids; with `Table.holders`.

  Args:
    frames: Each party's, the active one's first. They stay as they are. Names
      of columns are read as text: 5 as '5'.
    label, missing: As of `parties`.
    ids: The column of ids: its name, or a list of one in each frame.
    names: What messages call the frames.
    drop: Columns to leave out, wherever they are.
    **more: `positive`, `categories`, `text` and `rounded`, as of `frame.csv`.

  Raises:
    ValueError: (one line) for a column that is missing, or at two parties, for
      ids that are missing or twice in a table, if no row is at all parties, and
      as `frame.csv`.

  Warns:
    Recognised: (one line) if some rows are not at all parties; and as
      `frame.csv`.
  """
  frames, ids = _frames(frames, label, ids)
  names = names or [f'the table of party {k}' for k in range(len(frames))]
  for one, name, column in zip(frames, names, ids):
    with named(name):  # Of two such columns of ids, one would be chosen.
      namesakes.refuse_twice(list(one.columns), label, [column, *several(drop)])
  _check(frames, names, label, ids, several(drop))
  own = [
      by_id(one, column, name).drop(columns=[column, *several(drop)],
                                    errors='ignore')
      for one, name, column in zip(frames, names, ids)
  ]
  for one, name, column in zip(own[1:], names[1:], ids[1:]):
    if not len(one.columns):
      raise ValueError(f'{name} has no column besides {column!r}.')
  common = in_all([one.index for one in own], names)
  own = [one.loc[common].reset_index(drop=True) for one in own]
  whole = own[0].join(own[1:])
  with rows_named(common):
    table = frame.table(whole, label, missing, **more)
  holders = [k for k, one in enumerate(own) for c in one if c != label]
  table = table._replace(holders=tuple(holders[g] for g in table.groups))
  return impute(table) if missing == 'impute' else table


def _frames(
    frames: Any, label: Any, ids: Any
) -> 'tuple[list[pd.DataFrame], tuple[str, ...]]':
  """(the frames with names of columns as text, the column of ids of each)."""
  every = list(frames) if isinstance(frames, Iterable) else [frames]
  odd = [one for one in every
         if not hasattr(one, 'set_axis') or not hasattr(one, 'columns')]
  if odd:
    from vfljax import check as checks  # Tables need no JAX.
    raise ValueError(
        'The tables must be a list of pandas DataFrames, one of each party; '
        f'got {checks.kind(frames if isinstance(odd[0], str) else odd[0])}.'
    )
  ids = ids if isinstance(ids, tuple | list) else [ids]
  for what, name in [('label', label), *(('ids', one) for one in ids)]:
    if not isinstance(name, str):
      raise ValueError(
          f"{what} must be the name of a column as text, such as '5'; got "
          f'{brief(name)}.'
      )
  kept = [one.set_axis([str(c) for c in one.columns], axis=1) for one in every]
  return kept, each('ids', ids, len(every))


def _check(
    frames: 'Sequence[pd.DataFrame]', names: Sequence[str], label: str,
    ids: Sequence[str], drop: Sequence[str],
) -> None:
  """Refuses columns that are missing, or at two parties."""
  if len(frames) < 2 or len(names) != len(frames):
    raise ValueError(
        'There must be a table of each of two or more parties, and a name of '
        f'each; got {len(frames)} and {len(names)}.'
    )
  for one, name, own in zip(frames, names, ids):
    try:
      frame.require(one, own)
    except ValueError as error:
      raise ValueError(
          f'{name} lacks the ids. {error} If tables call them otherwise, give '
          f'a name for each, ids={",".join(["<name>"] * len(names))}, in Python'
          ' a list.'
      ) from None
  # A party may have, and leave out, what another one's ids are called.
  others = {c for one, own in zip(frames, ids) for c in one if c != own}
  if label in (ids[0], *drop) or ({*ids} & {*drop}) - others:
    same = ids[0] if len({*ids}) == 1 else list(ids)
    raise ValueError(
        'The label, the ids and columns to leave out must be different columns;'
        f' got {brief(label)}, {brief(same)}, {brief(list(drop))}.'
    )
  every = [column for one in frames for column in one]
  for name in drop:
    frame.require(frames[0].iloc[:0].reindex(columns=[*dict.fromkeys(every)]),
                  name)
  if label not in frames[0] and label in every:
    raise ValueError(
        f'The label {label!r} must be in {names[0]}, the first table, which is '
        'that of the active party.'
    )
  if every.count(label) > 1:
    raise ValueError(
        f'Several tables have the label, {label!r}. It is the active '
        f"party's: remove it from all but {names[0]}."
    )
  kept = [
      c for one, own in zip(frames, ids) for c in one if c not in (own, *drop)
  ]
  if twice := [*dict.fromkeys(c for c in kept if kept.count(c) > 1)]:
    raise ValueError(
        f'Several tables have {listing(map(repr, twice))}, and a column can be '
        f'at one party only. Rename it in one, or leave it out of all: '
        f'{flag(drop=twice[0])}'
    )


SOURCE = Source(parties, 'any', HOW, OWN, own=True)
