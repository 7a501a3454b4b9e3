"""Defenses: what makes them, chains them and gives them a name.

`Defense` itself, its hooks in the order of a round, is in `vfljax.hooks`, and
`chain` in `vfljax.chaining`; both are to be had from here.
"""
from collections.abc import Callable, Mapping
import dataclasses
import inspect
from typing import Any

import jax

from vfljax.chaining import chain
from vfljax.hooks import Defense, Holdings, Slots, Spec, slots
from vfljax.returned import checked
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
  """Lifts `fn(key, d, labels) -> d` on one party's gradient to `gradient`.

  `d` arrives as [batch, width], whatever the embedding's shape, and the parties
  get independent keys. Nothing is remembered.
  """

  def gradient(state, key, cut, labels):
    keys = jax.random.split(key, len(cut))
    flat = lambda d: d.reshape(len(d), -1)
    return tuple(
        fn(k, flat(d), labels).reshape(d.shape) for k, d in zip(keys, cut)
    ), state

  return gradient


@dataclasses.dataclass(frozen=True)
class Method:
  """A defense that goes by a name: call it as its factory.

  Attributes:
    factory: (strength, **options) -> Defense, or (**options) without one.
    strengths: What a sweep tries unless told otherwise; () where there is
      nothing to choose.
    binary: Whether it is for two classes only.
    words: Arguments that choose by a word, with the words for which their
      number may stand, which may be traced: rows of a table that differ in such
      a word alone are compiled as one. The first is the argument's default.
    sized: Arguments with a property `sizes`, numbers by the names of fields
      which may be traced instead, and `of_size`, which makes one of others:
      rows that differ in such sizes alone are compiled as one, of the largest.
  """

  factory: Callable[..., Defense]
  strengths: tuple[float, ...] = ()
  binary: bool = False
  words: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
  sized: tuple[str, ...] = ()

  def __post_init__(self):
    if not callable(self.factory):
      raise ValueError(
          'Method(factory, strengths) must have a function that returns a '
          f'Defense; got {self.factory!r}.'
      )
    if not isinstance(self.strengths, (tuple, list)) or not all(
        isinstance(s, (int, float)) for s in self.strengths
    ):
      raise ValueError(
          'Method: strengths must be a tuple of numbers, as in Method(factory, '
          f'(0.5, 1.0)); got {self.strengths!r}.'
      )
    object.__setattr__(self, 'strengths', tuple(self.strengths))
    # `inspect.signature` then shows the factory's arguments.
    object.__setattr__(self, '__signature__', inspect.signature(self.factory))

  def __call__(self, *args: Any, **options: Any) -> Defense:
    return self.factory(*args, **options)
