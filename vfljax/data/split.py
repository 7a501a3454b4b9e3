"""Vertical splits: which party holds which columns, or which part of an image.

A categorical column's one-hot columns stay with one party, so shares are
counted in original columns. The active party is party 0; if it has labels only,
its features are `None`.
"""
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vfljax.data import controlled, naming
from vfljax.data.table import Table

COLUMN_SPLITS = (
    'even', 'ratios', 'named', 'random', 'importance', 'correlation', 'held',
)
HELD = '--config.data.split=held'
IMAGE_SPLITS = (
    'even', 'left_right', 'right_left', 'top_bottom', 'bottom_top', 'strips',
    'quadrants',
)


class Spec(NamedTuple):
  """A vertical split, as a configuration describes it.

  Attributes:
    parties: Number of parties, the active one included; at least 2.
    how: One of `COLUMN_SPLITS` or `IMAGE_SPLITS`.
    ratios: See `columns`.
    named: See `columns`.
    label_only: Whether the active party has labels only.
    seed: For how='random', 'importance' and 'correlation'.
    strength: See `columns`.
    unheld: If the active party has labels only: True if no party holds the
      columns that it would have, False if the others share them. It has no
      effect on images in two halves, where no party holds one half anyway.
  """

  parties: int = 2
  how: str = 'even'
  ratios: str | Sequence[float] | None = None
  named: str | None = None
  label_only: bool = False
  seed: int = 0
  strength: float = 1.0
  unheld: bool = False


def apply(
    table: Table, spec: Spec, x: np.ndarray | None = None
) -> tuple[np.ndarray | None, ...]:
  """Every party's features, all rows; `None` for a party with labels only.

  They may be views of the table's.

  Args:
    table: The table.
    spec: How it is divided.
    x: Other samples, whose columns are held by those who hold the table's; by
      default the table's own.

  Raises:
    ValueError: as `columns` and `images`.
  """
  x = table.features if x is None else x
  if spec.label_only and spec.unheld:
    held = apply(table, spec._replace(label_only=False, unheld=False), x)
    return None, *held[1:]
  if x.ndim == 4:
    if spec.ratios or spec.named:
      raise ValueError('Images are not split by ratios or names of columns.')
    return images(x, spec.parties, spec.how, spec.label_only)
  return tuple(
      None if own is None else _held(x, own)
      for own in columns(table, *spec[:-1])
  )


def columns(
    table: Table, parties: int, how: str = 'even',
    ratios: str | Sequence[float] | None = None, named: str | None = None,
    label_only: bool = False, seed: int = 0, strength: float = 1.0,
) -> tuple[np.ndarray | None, ...]:
  """Every party's column indices, int [columns of the party], ascending.

  Args:
    table: The table, with `names` and `groups`.
    parties: Number of parties, at least 2.
    how: 'even': equal numbers of original columns, in order, the first parties
      getting the remainder. 'ratios': by `ratios`, in order. 'named': by
      `named`. 'random': a random choice of columns by `seed`, in equal numbers
      or by `ratios`. 'importance' and 'correlation': see `controlled`. 'held':
      by `Table.holders`, if it has them, and no other then.
    ratios: '2:2:1' or numbers, one a party; 0 for party 0 means labels only.
    named: 'a,b;c,d': ';' separates parties, ',' separates names of original
      columns or of the table's columns. '*' means all columns not named. If
      nothing stands before the first ';', party 0 has labels only.
    label_only: Whether party 0 has labels only; `ratios` and `named` may then
      leave it out.
    seed: For 'random', 'importance' and 'correlation'.
    strength: For 'importance', above 0: small for very unequal parties. For
      'correlation', in 0..1: how correlated the parties' columns are.

  Raises:
    ValueError: if a party would have no column, with the numbers of parties and
      columns; for contradicting or malformed arguments; for names that are
      unknown, given twice or left out.
  """
  _check(parties, how, COLUMN_SPLITS, 'a table')
  _check_given(how, ratios, named)
  if how == 'held' or table.holders is not None:
    return _by_holders(table, parties, how, label_only)
  if how in ('importance', 'correlation'):
    owners = _controlled(table, parties - label_only, how, seed, strength)
    owners = [[], *owners] if label_only else owners
  elif how == 'named':
    owners = naming.owners(table, parties, named or '', label_only)
  else:
    if how == 'ratios' and not ratios:
      raise ValueError(
          "how='ratios' needs ratios, such as '2:1': --config.data.ratios=2:1."
      )
    shares = _ratios(ratios, parties, label_only)
    groups = np.array(sorted(set(table.groups)))
    if how == 'random':
      groups = np.random.default_rng(seed).permutation(groups)
    edges = np.cumsum(_counts(len(groups), shares, 'columns'))
    owners = np.split(groups, edges[:-1])
  members = np.array(table.groups)
  return tuple(
      None if not k and not len(own) else np.flatnonzero(np.isin(members, own))
      for k, own in enumerate(owners)
  )


def images(
    x: np.ndarray, parties: int, how: str = 'even', label_only: bool = False
) -> tuple[np.ndarray | None, ...]:
  """Every party's part of images [n, height, width, channels].

  Args:
    x: A NumPy or JAX array; the parts are slices of it.
    parties: Number of parties, at least 2.
    how: 'strips' ('even' means the same): vertical strips from left to right,
      for any number of parties. For two parts: 'left_right' and 'top_bottom',
      or 'right_left' and 'bottom_top', which give the first part to the second
      party. For four: 'quadrants', in reading order. If a side does not divide
      evenly, the first parts are larger.
    label_only: Whether the active party has labels only and the others share
      the image. With two parties, though, halves stay halves: the second party
      has the same part as otherwise, and no party holds the other one.

  Raises:
    ValueError: if the number of parties does not fit, or exceeds the pixels.
  """
  _check(parties, how, IMAGE_SPLITS, 'images')
  holders = parties - label_only
  need = {'even': None, 'strips': None, 'quadrants': 4}.get(how, 2)
  if label_only and parties == need == 2:
    return None, images(x, parties, how)[1]
  if need and need != holders:
    raise ValueError(
        f'{how} makes {need} parts; {holders} parties have features.'
    )
  if how == 'quadrants':
    high = _slices(x.shape[1], 2, 'rows')
    wide = _slices(x.shape[2], 2, 'columns')
    parts = [x[:, r, c] for r in high for c in wide]
  elif how in ('top_bottom', 'bottom_top'):
    parts = [x[:, r] for r in _slices(x.shape[1], 2, 'rows')]
  else:
    parts = [x[:, :, c] for c in _slices(x.shape[2], holders, 'columns')]
  if how in ('right_left', 'bottom_top'):
    parts.reverse()
  return (None, *parts) if label_only else tuple(parts)


def _held(x: np.ndarray, own: np.ndarray) -> np.ndarray:
  """Columns of x, `own` ascending; neighbours are a view, without a copy."""
  if len(own) and own[-1] - own[0] + 1 == len(own):
    return x[:, own[0] : own[-1] + 1]
  return x[:, own]


def _by_holders(
    table: Table, parties: int, how: str, label_only: bool
) -> tuple[np.ndarray | None, ...]:
  """Every party's columns, as the data say."""
  if table.holders is None:
    raise ValueError(
        f"This data set does not say which party has which column: {HELD} is "
        'for --config.data.name=parties, a file of each party.'
    )
  holders = np.array(table.holders)
  count = int(holders.max(initial=0)) + 1
  if how != 'held' or parties != count:
    raise ValueError(
        f'The data say which of {count} parties has which column: type {HELD}'
        + (f' --config.data.parties={count}' if parties != count else '')
    )
  owned = [np.flatnonzero(holders == k) for k in range(count)]
  if label_only != (not len(owned[0])):
    raise ValueError(
        'The active party has labels only with this algorithm, and its table '
        f'has {len(owned[0])} columns: type --config.model.algorithm=vhnn, or '
        '--config.data.unheld=True to leave them out.' if label_only else
        'The active party has the label alone: type '
        '--config.model.algorithm=vsnn, without --config.data.unheld.'
    )
  return None if label_only else owned[0], *owned[1:]


def _controlled(table: Table, parties: int, how: str, seed: int, strength):
  """Every party's groups, for the splits of `controlled`."""
  groups = np.array(sorted(set(table.groups)))
  if how == 'importance':
    found = controlled.by_importance(len(groups), parties, strength, seed)
  else:
    found = controlled.by_correlation(
        table.features, table.groups, parties, strength, seed
    )
  return [groups[own] for own in found]


def _check(parties: int, how: str, known: Sequence[str], what: str) -> None:
  if parties < 2:
    raise ValueError(f'A federation needs 2 or more parties; got {parties}.')
  if how not in known:
    raise ValueError(
        f'Unknown split {how!r} of {what}; known: {", ".join(known)}.'
    )


def _check_given(how: str, ratios, named: str | None) -> None:
  if ratios and how not in ('ratios', 'random'):
    raise ValueError(
        "Ratios need how='ratios' or 'random': --config.data.split=ratios."
    )
  if (how == 'named') != bool(named):
    raise ValueError(
        "how='named' and names of columns need each other: "
        f'--config.data.split=named {naming.EXAMPLE}'
    )


def _slices(size: int, parts: int, what: str) -> list[slice]:
  edges = np.cumsum([0, *_counts(size, [1.0] * parts, f'{what} of pixels')])
  return [slice(a, b) for a, b in zip(edges[:-1], edges[1:])]


def _counts(size: int, shares: Sequence[float], what: str) -> list[int]:
  """Whole numbers near the shares of `size`; at least 1 for a share above 0."""
  holders = sum(s > 0 for s in shares)
  if holders > size:
    raise ValueError(
        f'{holders} parties need {holders} or more {what}, one each; there'
        f' {"is" if size == 1 else "are"} {size}.'
    )
  quota = [size * s / sum(shares) for s in shares]
  counts = [max(int(q), 1) if q else 0 for q in quota]
  # Largest remainder; the largest surplus pays for the minimum of 1.
  while sum(counts) < size:
    lack = [q - c if q else -np.inf for q, c in zip(quota, counts)]
    counts[int(np.argmax(lack))] += 1
  while sum(counts) > size:
    spare = [c - q if c > 1 else -np.inf for q, c in zip(quota, counts)]
    counts[int(np.argmax(spare))] -= 1
  return counts


def _ratios(ratios, parties: int, label_only: bool) -> list[float]:
  if not ratios:
    return [0.0 if k < label_only else 1.0 for k in range(parties)]
  words = ratios.split(':') if isinstance(ratios, str) else list(ratios)
  try:
    shares = [float(w) for w in words]
  except ValueError as error:
    raise ValueError(
        f"Ratios are numbers with ':' between, such as '2:1'; got {ratios!r}."
    ) from error
  if label_only and len(shares) == parties - 1:
    shares = [0.0, *shares]
  if len(shares) != parties:
    raise ValueError(
        f'{parties} parties, but {len(shares)} ratios: {ratios!r}.'
    )
  if not all(0 < s < np.inf for s in shares[1:]) or not 0 <= shares[0] < np.inf:
    raise ValueError(
        'Ratios must be above 0 (the active party may have 0: labels only); got'
        f' {ratios!r}.'
    )
  if label_only and shares[0]:
    raise ValueError(
        f'The active party has labels only, but ratio {shares[0]:g}.'
    )
  return shares
