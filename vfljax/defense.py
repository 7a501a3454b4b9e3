"""Helpers that make defenses: `none`, `each`, and `Method`, a registry's entry.

`Defense` itself, with its hooks in the order of a round, is in `vfljax.hooks`,
`chain` in `vfljax.chaining`; both can be imported from here, too.
"""
from collections.abc import Callable, Mapping
import dataclasses
import inspect
import math
from typing import Any

import jax

from vfljax import check
from vfljax.chaining import chain
from vfljax.check import Misfit
from vfljax.hooks import Defense, Holdings, Slots, Spec, slots
from vfljax.numerics import floating
from vfljax.returned import checked
from vfljax.samples import reals
from vfljax.telling import is_real
from vfljax.types import Array, Embeddings, Key

__all__ = [
    'Defense', 'Holdings', 'Method', 'Slots', 'Spec', 'chain', 'checked',
    'each', 'none', 'slots',
]


def none() -> Defense:
  """The undefended federation."""
  return Defense()


def each(
    fn: Callable[[Key, Array, Array], Array],
) -> Callable[..., tuple[Embeddings, Any]]:
  """Makes a `Defense.gradient` hook of a function on one party's gradient.

  Args:
    fn: (key, d, labels) -> d, the cut-layer gradient of one passive party as
      [batch, width], whatever the embedding's shape. Parties get independent
      keys. Gradients in half precision arrive as float32, since sums, squares
      and noise of small numbers overflow or vanish there; the result is rounded
      to its own type. Whole numbers are made floats, and stay floats.

  Returns:
    The hook, (state, key, cut, labels) -> (cut, state), which leaves the state
    as it is. It raises ValueError if `fn` returns no such array.
  """

  def gradient(state, key, cut, labels):
    cut = tuple(map(reals, cut))  # Noise rounded to whole numbers is none.
    keys = jax.random.split(key, len(cut))
    flat = lambda d: floating(d).reshape(len(d), -1)
    return tuple(
        _as_gradient(fn(k, flat(d), labels), d) for k, d in zip(keys, cut)
    ), state

  return gradient


def _as_gradient(found: Any, cut: Array) -> Array:
  """What was made of one party's gradient `cut`, in its shape and type."""
  if not is_real(found) or found.size != cut.size or (
      found.shape[:1] != cut.shape[:1]
  ):
    width = cut.size // max(len(cut), 1)
    told = check.kind(found)
    if hasattr(found, 'dtype'):
      told = f'{found.shape} {found.dtype}'
    raise Misfit(
        'each: the function must return an array of numbers [batch, width], '
        f'{(len(cut), width)}; it returned {told}.'
    )
  return found.reshape(cut.shape).astype(cut.dtype)


@dataclasses.dataclass(frozen=True)
class Method:
  """A registered defense; calling it calls its factory.

  Attributes:
    factory: (strength, **options) -> Defense, or (**options) -> Defense.
    strengths: The strengths that a sweep tries by default; () if the defense
      has none.
    binary: Whether it is for two classes only.
    mixes: Whether it mixes the features of samples; numbers of categories or
      words have no mixtures.
    words: Arguments that choose by a word, each with its words, the default
      first. The factory also takes a word's index in that tuple, which may be
      traced, so that rows of a table that differ in such a word alone share one
      compiled program.
    sized: Arguments whose type has a property `sizes`, {field: number}, of the
      fields that may hold traced numbers instead, and a method `of_size`, which
      returns a copy for other numbers: rows that differ in such sizes alone
      share one program, compiled for the largest.
    keeps_shapes: Whether the hook `receive`, if it has one, returns embeddings
      of the shapes and types that it gets. On a CPU, it may then share a
      program with defenses that only change gradients, if it has no other hooks
      than `init`, `prepare` and `gradient` (`runner.compiled.joining`).
    light: Those of `words` that leave out most of what the others compute. A
      number stands for them only on a CPU, which trains one federation after
      the other and so leaves it out, too, and only beside rows of other words,
      which need that program anyway.
  """

  factory: Callable[..., Defense]
  strengths: tuple[float, ...] = ()
  binary: bool = False
  words: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
  sized: tuple[str, ...] = ()
  mixes: bool = False
  keeps_shapes: bool = False
  light: tuple[str, ...] = ()

  def __post_init__(self):
    if not callable(self.factory):
      raise ValueError(
          'Method(factory, strengths) must have a function that returns a '
          f'Defense; got {self.factory!r}.'
      )
    if not isinstance(self.strengths, (tuple, list)) or not all(
        isinstance(s, (int, float)) and math.isfinite(s) for s in self.strengths
    ):
      raise ValueError(
          'Method: strengths must be a tuple of numbers, as in Method(factory, '
          f'(0.5, 1.0)); got {self.strengths!r}.'
      )
    words = {word for some in self.words.values() for word in some}
    if unknown := sorted(set(self.light) - words):
      raise ValueError(
          f'Method: light={self.light!r} names words of `words` that leave out '
          f'work; {", ".join(unknown)} is none of: {", ".join(sorted(words))}.'
      )
    object.__setattr__(self, 'strengths', tuple(self.strengths))
    # `inspect.signature` then shows the factory's arguments.
    object.__setattr__(self, '__signature__', inspect.signature(self.factory))

  def __call__(self, *args: Any, **options: Any) -> Defense:
    return self.factory(*args, **options)
