"""One of several defenses, chosen by a number that may be traced.

Programs that differ in a few operations on gradients are the same program
otherwise, and compiling is most of what a short experiment takes.
"""
from collections.abc import Sequence

import jax

from vfljax.hooks import Defense
from vfljax.returned import checked
from vfljax.types import Array

_PLAIN = Defense()


def gradient_only(defense: Defense) -> bool:
  """Whether all that a defense does is its hook `gradient`."""
  return defense._replace(gradient=_PLAIN.gradient) == _PLAIN


def one_of(
    which: Array | int, defenses: Sequence[Defense], names: Sequence[str] = (),
) -> Defense:
  """The defense of that number, from 0; what the others do is not computed.

  Not where `vmap` batches `which`: then all of them are computed, each time.

  Args:
    which: Integer scalar; may be traced.
    defenses: That `gradient_only` is true of, at least one.
    names: Theirs, for what is wrong with one of them.

  Raises:
    ValueError: if one of them does something else, too.
  """
  if not all(map(gradient_only, defenses)):
    raise ValueError('one_of: each defense may have its hook gradient only.')

  def gradient(state, key, cut, labels):
    called = [*names, *[''] * (len(defenses) - len(names))]
    branches = [_as_tuple(checked(*d)) for d in zip(defenses, called)]
    return jax.lax.switch(which, branches, state, key, cut, labels)

  return Defense(gradient=gradient)


def _as_tuple(defense: Defense):
  """Its hook, whose gradients may be a list: branches have one structure."""
  def gradient(*given):
    cut, state = defense.gradient(*given)
    return tuple(cut), state
  return gradient
