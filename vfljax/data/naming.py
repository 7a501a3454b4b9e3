"""Each party's columns, given by names: 'age,sex;income'."""
from collections.abc import Collection
import difflib

from vfljax.data.table import Table, bare, listing

EXAMPLE = "--config.data.named='age,sex;*'"


def owners(
    table: Table, parties: int, named: str, label_only: bool
) -> list[list[int]]:
  """Every party's original columns, as numbers of `Table.groups`.

  Args:
    table: The table.
    parties: Number of parties. Each has a list in `named`; party 0's may be
      left out if it has labels only.
    named: As in `split.columns`.
    label_only: Whether party 0 has labels only.

  Raises:
    ValueError: for a name of no column or of several, for a column at no party
      or at two, and for a party without columns.
  """
  lists = [
      [w.strip() for w in part.split(',') if w.strip()]
      for part in named.split(';')
  ]
  if label_only and len(lists) == parties - 1:
    lists = [[], *lists]
  if len(lists) != parties:
    raise ValueError(
        f"{parties} parties, but {len(lists)} lists of columns (';' between):"
        f' {named!r}. For two parties type for example {EXAMPLE}'
    )
  if label_only and lists[0]:
    raise ValueError(
        'The active party has labels only, but columns are named for it.'
    )
  _refuse_alike(table, {w for part in lists for w in part})
  found = [[_group(table, w) for w in part if w != '*'] for part in lists]
  taken = [g for own in found for g in own]
  twice = [w for w in original(table) if taken.count(w) > 1]
  if twice:
    names = listing(original(table)[g] for g in twice)
    raise ValueError(f'A column can be at one party only: {names}.')
  rest = [g for g in original(table) if g not in taken]
  stars = [k for k, part in enumerate(lists) if '*' in part]
  if len(stars) > 1:
    raise ValueError(
        f"{len(stars)} parties have '*', which means all columns that are not"
        f' named; only one can have it: {named!r}.'
    )
  if rest and not stars:
    names = listing(original(table)[g] for g in rest)
    raise ValueError(
        f"These columns are at no party: {names}. Give one party '*', all"
        f' columns that are not named, as in {EXAMPLE}'
    )
  for k in stars:
    found[k] += rest
  empty = [k for k, own in enumerate(found) if k and not own]
  if empty:
    raise ValueError(
        f'Party {empty[0]} would have no column:'
        f' {len(original(table))} columns and {parties} parties.'
    )
  return found


def _refuse_alike(table: Table, words: Collection[str]) -> None:
  """Refuses a word that fits several columns, which differ only in blanks."""
  spelled: dict[str, set[str]] = {}
  for name in original(table).values():
    spelled.setdefault(bare(name), set()).add(name)
  for word in words:
    if len(spelled.get(word, ())) > 1:
      raise ValueError(
          f'{word!r} may be any of {listing(map(repr, sorted(spelled[word])))};'
          " rename one in the data, or leave both to the party with '*'."
      )


def original(table: Table) -> dict[int, str]:
  """The name of each original column: 'city' for 'city=Oslo', 'city=Rome'."""
  names: dict[int, list[str]] = {}
  for name, group in zip(table.names, table.groups):
    names.setdefault(group, []).append(name)
  return {
      g: ns[0] if len(ns) == 1 else ns[0].split('=')[0]
      for g, ns in sorted(names.items())
  }


def _group(table: Table, name: str) -> int:
  columns = [*zip(table.names, table.groups)]
  # 'x=1' may be a category of 'x', or a column of its own.
  for found in (
      {group for column, group in columns if column == name},
      {group for column, group in columns if column.startswith(f'{name}=')},
  ):
    if len(found) > 1:
      raise ValueError(
          f'{name!r} may be any of {len(found)} columns, as a name has "=" in '
          "it; rename it in the data, or leave them to the party with '*'."
      )
    if found:
      return found.pop()
  known = {one.lower(): one for one in original(table).values()}
  close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
  hint = f' Did you mean {known[close[0]]!r}?' if close else ''
  raise ValueError(
      f'There is no column {name!r}; the columns are'
      f' {listing(original(table).values(), 10)}.{hint}'
  )
