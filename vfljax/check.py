"""Checks of arguments that may be numbers, arrays or traced values.

A strength is a factory argument that a sweep may trace. A traced value has no
number yet, so it passes; the caller has to check the numbers of the sweep.
"""
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

_REAL = (np.integer, np.floating)
ROUNDED = 1e-3  # Of pixels, as those of images that were scaled back.
_MEASURED = 'accuracy', 'leak_auc', 'leak_auc_raw'  # Of guesses in rounds.


class Misfit(ValueError):
  """A method returned, or needs, something of another kind than it must.

  Its author can fix it, so the command line shows the message, no traceback.
  """


def at_least(
    name: str, value: Any, low: float, *, many: bool = False
) -> None:
  """Passes if `value` is finite and `low` or more; `many`: as in `inside`.

  Raises:
    ValueError: if not.
  """
  inside(name, value, low, np.inf, open_high=True, many=many)


def above(name: str, value: Any, low: float) -> None:
  """Passes if `value` is finite and more than `low`.

  Raises:
    ValueError: if not.
  """
  inside(name, value, low, np.inf, open_low=True, open_high=True)


def inside(
    name: str, value: Any, low: float, high: float, *,
    open_low: bool = False, open_high: bool = False, kind: str = 'a number',
    many: bool = False,
) -> None:
  """Passes if `value` is a number between `low` and `high`.

  Args:
    name: What the caller calls the argument.
    value: A number or a traced one, which passes whatever it is.
    low: The smallest value allowed, or the bound below it if `open_low`.
    high: The largest value allowed, or the bound above it if `open_high`.
    kind: For the message: 'a number', 'an integer', ...
    many: Whether `value` may be an array, of which every entry has to pass. A
      strength that is one would be stretched over a gradient's columns.

  Raises:
    ValueError: if `value` is not a number, NaN or outside, or several.
  """
  if not many and np.ndim(value):
    raise ValueError(
        f'{name} must be {kind}; got several, of shape {np.shape(value)}: take '
        'one at a time.'
    )
  if isinstance(value, Tracer):
    return
  above = np.greater if open_low else np.greater_equal
  below = np.less if open_high else np.less_equal
  number = _number(value)
  if number is None or not np.all(above(number, low) & below(number, high)):
    raise ValueError(
        f'{name} must be {kind} {_range(low, high, open_low, open_high)}; got '
        f'{value!r}.'
    )


def whole(
    name: str, value: Any, low: float, high: float = np.inf, *,
    many: bool = False,
) -> None:
  """As `inside`, [low, high], of whole numbers, 3.0 being one.

  Raises:
    ValueError: if `value`, or an entry of it, is no such number.
  """
  kind, endless = 'a whole number', high == np.inf
  inside(name, value, low, high, open_high=endless, kind=kind, many=many)
  if not isinstance(value, Tracer) and np.any(np.asarray(value) % 1):
    raise ValueError(f'{name} must be {kind}; got {value!r}.')


def count(name: str, value: Any, low: int = 1, high: float = np.inf) -> None:
  """Passes if `value` is an integer in [low, high]: a size, a number of steps.

  It decides a shape or the length of a loop, so it must be an `int`: neither
  3.0 nor a traced value.

  Raises:
    ValueError: if not.
  """
  kind, endless = 'an integer', high == np.inf
  inside(name, value, low, high, open_high=endless, kind=kind)
  if not isinstance(value, int | np.integer):
    raise ValueError(
        f'{name} must be {kind}; got {value!r}. It decides a shape or how '
        'often something is done, so a grid cannot sweep it: give each value '
        'an entry of its own.'
    )


def sizes(name: str, **given: Any) -> None:
  """Passes if each of `name`'s numbers is a `count`, or a sequence of them.

  Raises:
    ValueError: if not; it says which.
  """
  for key, value in given.items():
    for one in value if isinstance(value, Sequence) else (value,):
      count(f'{name}: {key}', one)


def widths(name: str, value: Any) -> None:
  """Passes if `value` is a tuple or list of layers' widths, or empty.

  Raises:
    ValueError: if not, as of a single number.
  """
  if not isinstance(value, Sequence) or isinstance(value, str):
    raise ValueError(
        f'{name} must be a tuple of widths, as (64,) or (128, 128); got '
        f'{value!r}.'
    )
  for one in value:
    count(name, one)


def facts(who: str, found: Any) -> None:
  """Raises ValueError unless facts are numbers by names of their own."""
  if not isinstance(found, dict):
    raise Misfit(
        f'{who}: facts must return a dict of numbers by their names, as '
        f'dict(kept=...); it returned {kind(found)}.'
    )
  for fact, x in found.items():
    number = isinstance(x, (int, float)) or hasattr(x, 'dtype') and any(
        jnp.issubdtype(x.dtype, kind) for kind in (np.bool_, *_REAL)
    )
    if not (number and isinstance(fact, str)) or fact in _MEASURED:
      raise Misfit(
          f'{who}: facts are numbers by names of their own, as own_number, and '
          f'none of {", ".join(_MEASURED)}; got {fact!r}, {kind(x)}.'
      )
    if jnp.shape(x):
      raise Misfit(
          f'{who}: its fact {fact!r} has the shape {jnp.shape(x)}, and a fact '
          f'is one number. Give its mean, or one fact each: {fact}_0, {fact}_1.'
      )


def key(value: Any) -> None:
  """Passes if `value` is one JAX key, traced or not, or a key's raw numbers.

  Raises:
    ValueError: if not.
  """
  dtype, shape = getattr(value, 'dtype', None), getattr(value, 'shape', None)
  typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
  raw = dtype == np.uint32 and shape is not None
  if typed and shape or raw and len(shape or ()) > 1:
    raise ValueError(
        f'key must be one key; got an array of them, of shape {shape}. For '
        'each of them: jax.vmap(lambda key: ...)(keys).'
    )
  if not (typed or raw and len(shape or ()) == 1):
    raise ValueError(
        'key must be a JAX key, as jax.random.key(0) makes one, and comes '
        f'first; got {kind(value)}.'
    )


def kind(value: Any) -> str:
  """What a value is, for a message: 'an int', 'a list', 'an array', 'None'."""
  if value is None:
    return 'None'
  if isinstance(value, jax.Array):  # Its own name would be ArrayImpl.
    return 'an array'
  if isinstance(value, np.ndarray):
    return 'a NumPy array'
  name = type(value).__name__
  return f'{"an" if name[:1].lower() in set("aeiou") else "a"} {name}'


def alike(who: str, logits: Any, labels: Any) -> None:
  """Passes if logits and labels are both [samples, classes], of one shape.

  A column of one would be broadcast: class numbers for all classes' shares.

  Raises:
    ValueError: if not.
  """
  wide, given = jnp.shape(logits), jnp.shape(labels)
  if len(given) != 2 or wide != given:
    raise Misfit(
        f'{who} needs labels [samples, classes], a column for each of its '
        f'logits; got labels {given} for logits {wide}. From class numbers '
        '[samples]: jax.nn.one_hot(labels, classes).'
    )


def columns(logits: Any, labels: Any, weights: Any) -> None:
  """Passes if logits have columns for classes, and the others fit to them.

  The largest of one column would always be right, and a column of weights be
  stretched over all samples.

  Raises:
    ValueError: if not.
  """
  wide, given = jnp.shape(logits), jnp.shape(labels)
  if len(wide) < 2:  # One argmax of all samples would stand for each.
    raise ValueError(
        f'Logits must be [samples, classes]; got {wide}. Of class numbers they '
        'are jax.nn.one_hot(found, classes).'
    )
  if given not in (wide, wide[:-1]):
    raise ValueError(
        f'For logits {wide} labels must have that shape, or be class '
        f'numbers of shape {wide[:-1]}; got {given}.'
    )
  if wide[-1] < 2:
    raise ValueError(
        f'Logits need a column for each of two classes or more; got {wide}. '
        'nets.pair makes two of the one logit of a sigmoid.'
    )
  if weights is not None and jnp.shape(weights) != wide[:-1]:
    raise ValueError(
        f'Weights must be one a sample, {wide[:-1]}; got {jnp.shape(weights)}.'
    )
  if not (weights is None or isinstance(weights, Tracer)):
    at_least('A weight', np.asarray(weights, float), 0, many=True)


def pixels(name: str, images: Any) -> None:
  """Passes if `images` are traced, or in [0, 1] but for rounding.

  Raises:
    ValueError: if not, as of pixels up to 255, or standardized ones.
  """
  if isinstance(images, Tracer) or not images.size:
    return
  known = np.asarray(images)
  low, high = float(known.min()), float(known.max())
  if not (low >= -ROUNDED and high <= 1 + ROUNDED):  # Nor NaN.
    raise ValueError(
        f'{name} must be pixels in [0, 1]; these are from {low:g} to {high:g}.'
    )


def passive(k: int, parties: int) -> None:
  """Passes if `k` is one of so many passive parties, which are 1..parties.

  Messages are at k - 1, so that party 0 would get the last one's.

  Raises:
    ValueError: if not.
  """
  if not 1 <= k <= parties:
    raise ValueError(f'Passive parties are 1 to {parties}; there is no {k}.')


def one_of(name: str, value: Any, options: tuple) -> None:
  """Passes if `value` is one of `options`.

  Raises:
    ValueError: if not.
  """
  several = getattr(value, 'ndim', 0)  # An array equals none of them.
  if several or value not in options:
    allowed = ', '.join(repr(option) for option in options)
    raise ValueError(f'{name} must be one of {allowed}; got {value!r}.')


def _number(value: Any) -> np.ndarray | None:
  """`value` as an array of real numbers; `None` if it is something else."""
  array = np.asarray(value)
  real = any(jnp.issubdtype(array.dtype, kind) for kind in _REAL)
  return array if real else None


def _range(low: float, high: float, open_low: bool, open_high: bool) -> str:
  if high == np.inf:
    return f'{"above" if open_low else "of at least"} {low:g}'
  left, right = '(' if open_low else '[', ')' if open_high else ']'
  return f'in {left}{low:g}, {high:g}{right}'
