"""Checks of samples before anything is trained on them.

Shapes and types are known while a program is traced, so their checks cost
nothing under `jit`. Numbers are checked only where that is cheap, see
`check_numbers`.
"""
from collections.abc import Iterator
import contextlib
import math
from typing import Any

import jax
from jax.core import Tracer
import jax.numpy as jnp
import numpy as np

from vfljax.check import kind as kind_of
from vfljax.types import Array, Batch

SLACK = 1e-2  # Shares may sum to 1 +- this: bfloat16 rounds by as much.
LOOKED_AT = 1 << 22  # Larger arrays, that take more than ms, are not checked.


def check(data: Batch, what: str = '') -> None:
  """Refuses a batch whose parts do not fit together, by shape and type alone.

  Args:
    data: Arrays, traced ones among them, or their shapes.
    what: '' for training samples, else a word for the messages: 'auxiliary'.

  Raises:
    ValueError: if it is no `Batch`, labels are no [n, classes] floats, a
      party's features are no arrays of numbers or have no columns, or numbers
      of rows differ.
  """
  what = what and f'{what} '
  if not (hasattr(data, 'features') and hasattr(data, 'labels')):
    raise ValueError(
        f'The {what}samples must be a Batch((x_0, x_1, ...), labels), with the '
        f'features of each party; got {kind_of(data)}.'
    )
  if not isinstance(data.features, (tuple, list)):
    raise ValueError(
        f'The {what}features must be a tuple with those of each party; got '
        f'{kind_of(data.features)}.'
    )
  labels = data.labels
  _check_array(f'{what}labels', labels)
  whole = not jnp.issubdtype(labels.dtype, jnp.floating)
  if labels.ndim != 2 or labels.shape[1] < 2:
    raise ValueError(
        f'{what}labels must be [samples, classes], a column for each of two or '
        f'more classes; got shape {labels.shape}. From class numbers [samples]:'
        ' jax.nn.one_hot(labels, classes).'
    )
  if whole:
    raise ValueError(
        f'{what}labels must be floats, the share of each class; got '
        f'{labels.dtype}: labels.astype(jnp.float32) makes them so.'
    )
  for k, own in enumerate(data.features):
    name = f'{what}features of party {k}'
    # JAX's sparse arrays are pytrees, of numbers that are no samples' rows.
    parts = jax.tree.leaves(own, is_leaf=lambda x: hasattr(x, 'todense'))
    for x in parts:
      _check_array(name, x)
      if not x.ndim or x.shape[0] != labels.shape[0]:
        rows = f'{x.shape[0]} rows' if x.ndim else 'no rows'
        raise ValueError(
            f'The {name} have {rows}, the {what}labels {labels.shape[0]}: row '
            'i must be the same sample at every party.'
        )
    if parts and not any(math.prod(x.shape[1:]) for x in parts):
      raise ValueError(
          f'The {name} have no columns. Leave that party out; an active party '
          'with labels only has None as its features and its bottom network.'
      )


def check_numbers(
    data: Batch, tracing: bool = False, what: str = ''
) -> None:
  """Refuses NaN, infinities and labels that are no distributions, where cheap.

  Checked are arrays of at most `LOOKED_AT` numbers that this process holds:
  NumPy's, and floats of JAX's outside of a trace. Traced arrays have no numbers
  yet, and memory-mapped files would have to be read: those pass, and callers
  have to check them.

  Args:
    data: The samples.
    tracing: Whether a program is being traced, which must not wait for a
      device: then only NumPy's arrays are checked.
    what: As in `check`.

  Raises:
    ValueError: if a number is NaN or infinite, or would be another one in
      JAX's types; if a row of labels is neither a distribution nor zeros.
  """
  parts: dict[str, Any] = {
      f'features of party {k}': x for k, x in enumerate(data.features)
  }
  what = what and f'{what} '
  for name, own in (parts | {'labels': data.labels}).items():
    for x in jax.tree.leaves(own):
      wrong = 0
      if at_hand(x, tracing):
        wrong = int((~np.isfinite(jax.device_get(x))).sum())
      if wrong:
        raise ValueError(
            f'The {what}{name} have {wrong} numbers that are NaN or infinite, '
            f'of {x.size}: fill them in, or leave out those samples at all '
            'parties.'
        )
      _check_range(f'{what}{name}', x)
  if at_hand(data.labels, tracing):
    _check_distributions(jax.device_get(data.labels), what)


def _check_distributions(labels: np.ndarray, what: str) -> None:
  """Raises ValueError for a row that is neither a distribution nor zeros."""
  total = labels.sum(1, dtype=np.float64)
  off = (np.abs(total - 1) > SLACK) & (np.abs(total) > 0)
  wrong, = np.nonzero(off | (labels < 0).any(1))
  if len(wrong):
    row = wrong[0]
    raise ValueError(
        f'A row of the {what}labels is the share of each class: none is below '
        '0, and they add up to 1, or to 0 of a sample without a label; '
        f'{len(wrong)} of {len(labels)} rows are not so, row {row} the first: '
        f'{labels[row].tolist()}.'
    )


def check_prepared(
    labels: Array, found: Array, who: str = '', tracing: bool = False
) -> None:
  """Passes labels that `Defense.prepare` returned, if the same rows have some.

  All parties know which rows are padding (`crossing.rows`): one class without
  labels would be told to all.

  Args:
    labels: [n, classes] what it was given.
    found: What it returned.
    who: The defense's name, for the message.
    tracing: As in `check_numbers`, which says where numbers are looked at.

  Raises:
    ValueError: if a row of zeros became a sample's, or the other way round.
  """
  if not (at_hand(labels, tracing) and at_hand(found, tracing)):
    return
  one, other = (jax.device_get(x).sum(1) > 0 for x in (labels, found))
  if (one != other).any():
    raise ValueError(
        f'{who and who + ": "}prepare must leave which rows are samples, as '
        f'all parties know these: {int((one != other).sum())} of {len(one)} '
        'rows of labels were zeros and are not, or add up to 0 now.'
    )


def check_known(who: str, known: Array, labels: Array, least: int) -> None:
  """Passes if `least` samples or more have a row of labels each.

  Raises:
    ValueError: if not. Class numbers [known] would be as many classes.
  """
  shape = jnp.shape(labels)
  fit = len(shape) == 2 and shape[1] > 1  # A column would be one class.
  if not fit or len(known) != shape[0] or shape[0] < least:
    raise ValueError(
        f'{who}: known labels must be [known, classes], of {least} samples or '
        f'more; got labels of shape {shape} and {len(known)} samples. From '
        'class numbers: jax.nn.one_hot(labels, classes).'
    )


@contextlib.contextmanager
def guarded(*parts: Any) -> Iterator[None]:
  """Lets constants be copied to the device, but guards `parts` as the caller.

  Outside of `jit` every constant in an expression is copied to the device, even
  the zero of `jnp.zeros`, which `jax.transfer_guard` reports. Samples on the
  host, which the guard is meant for, still raise.
  """
  for x in jax.tree.leaves(parts):
    if isinstance(x, np.ndarray):
      jnp.asarray(np.empty(0, x.dtype))  # Raises where `x` would.
  with jax.transfer_guard_host_to_device('allow'):
    yield


def _check_array(name: str, x: Any) -> None:
  """Raises ValueError if `x` is no array of numbers that JAX takes."""
  dtype = getattr(x, 'dtype', None)
  numeric = dtype is not None and (
      jnp.issubdtype(dtype, jnp.number) or jnp.issubdtype(dtype, jnp.bool_)
  )
  if not numeric or not hasattr(x, 'ndim') or not _is_jaxs(x):
    named = type(x) is np.ndarray or isinstance(x, jax.Array)
    is_a = f'of {dtype}' if named else f'a {type(x).__name__}'
    dense = next((d for d in ('toarray', 'todense') if hasattr(x, d)), '')
    sparse = f', which {dense}() makes one' if dense else ''
    raise ValueError(
        f'The {name} must be arrays of numbers, of NumPy or JAX; one is '
        f'{is_a}{sparse}.'
    )


def _is_jaxs(x: Any) -> bool:
  """Whether JAX takes it: no Series, masked array, float128 or other order."""
  try:
    jax.typeof(x)
  except (TypeError, ValueError):
    return False
  return True


def _check_range(name: str, x: Any) -> None:
  """Raises ValueError for numbers that are others in JAX's narrower type.

  Without 64 bits JAX takes int64 for int32: long ids and times in nanoseconds
  would wrap around without a word, and large floats become infinite.
  """
  if not isinstance(x, np.ndarray) or isinstance(x, np.memmap):
    return
  narrow = jax.dtypes.canonicalize_dtype(x.dtype)
  whole = jnp.issubdtype(narrow, jnp.integer)
  floats = jnp.issubdtype(narrow, jnp.floating)
  if narrow == x.dtype or not x.size or not (whole or floats):
    return
  limits = jnp.iinfo(narrow) if whole else jnp.finfo(narrow)
  # Of whole numbers the ends are found without an array of their size.
  many = x.size > LOOKED_AT
  if many and (floats or x.min() >= limits.min and x.max() <= limits.max):
    return
  wrong = int(((x < limits.min) | (x > limits.max)).sum())
  if wrong:
    raise ValueError(
        f'The {name} have {wrong} numbers, of {x.size}, too large for '
        f'{narrow}, in which JAX computes: scale them down, or leave out a '
        'column of ids. (JAX_ENABLE_X64=1 keeps 64 bits.)'
    )


def at_hand(x: Any, tracing: bool) -> bool:
  """Whether an array's numbers can be read cheaply; see `check_numbers`."""
  if isinstance(x, Tracer | np.memmap):
    return False
  if isinstance(x, jax.Array) and (tracing or not x.is_fully_addressable):
    return False
  if not isinstance(x, jax.Array | np.ndarray) or x.size > LOOKED_AT:
    return False
  return jnp.issubdtype(x.dtype, jnp.floating)


def reals(x: Array) -> Array:
  """Floats as they are; whole numbers, such as one-hot labels, in float32."""
  x = jnp.asarray(x)
  return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32)
