"""One of several defenses, chosen by a number that may be traced.

Defenses that act on gradients alone can so share one compiled program, and
compiling takes most of a short experiment's time.
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
  """The defense with index `which`; the others are not computed.

  But where `vmap` batches `which`, all of them are computed.

  Args:
    which: Integer scalar, from 0; may be traced.
    defenses: One or more, each `gradient_only`.
    names: Their names, for messages.

  Raises:
    ValueError: if one of them has another hook.
  """
  if not all(map(gradient_only, defenses)):
    raise ValueError('one_of: each defense may have its hook gradient only.')

  def gradient(state, key, cut, labels):
    called = [*names, *[''] * (len(defenses) - len(names))]
    branches = [_as_tuple(checked(*d)) for d in zip(defenses, called)]
    return jax.lax.switch(which, branches, state, key, cut, labels)

  return Defense(gradient=gradient)


def _as_tuple(defense: Defense):
  """The defense's hook, its gradients made a tuple: branches must agree."""
  def gradient(*given):
    cut, state = defense.gradient(*given)
    return tuple(cut), state
  return gradient
