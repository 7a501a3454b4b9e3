"""One of several defenses, chosen by a number that may be traced.

Defenses that act on labels before training, or on gradients, can so share one
compiled program, and compiling takes most of a short experiment's time. They
may keep a memory, as gradient compression keeps what it has dropped.
"""
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import Tracer

from vfljax import check
from vfljax.check import Misfit
from vfljax.hooks import Defense, slots
from vfljax.returned import checked
from vfljax.samples import reals
from vfljax.types import Array

_PLAIN = Defense()
HOOKS = 'init', 'prepare', 'gradient'  # That the members of `one_of` may have.


def can_be_one(defense: Defense) -> bool:
  """Whether `one_of` can choose it: it has no other hooks than `HOOKS`."""
  plain = {hook: getattr(_PLAIN, hook) for hook in HOOKS}
  return defense._replace(**plain) == _PLAIN


def has_memory(defense: Defense) -> bool:
  """Whether a defense has its own hook `init`."""
  return defense.init is not _PLAIN.init


def one_of(
    which: Array | int, defenses: Sequence[Defense], names: Sequence[str] = (),
) -> Defense:
  """The defense with index `which`; the others are not computed.

  But where `vmap` batches `which`, all of them are computed. Its memory is a
  tuple with that of each member that has one, in their order; only that of the
  chosen one changes. Weights that a member's `init` returns are left out, as
  none of its other hooks gets them. If one member prepares labels, the others
  return theirs as they are.

  Args:
    which: Integer scalar, from 0; may be traced.
    defenses: One or more that `can_be_one`.
    names: Their names, for messages.

  Raises:
    ValueError: if one of them has another hook or is no `Defense`, or there is
      none of that number.
  """
  defenses = tuple(defenses)
  if not defenses:
    raise ValueError('one_of: there is no defense to choose.')
  for each in defenses:
    if not isinstance(each, Defense):
      raise ValueError(
          f'one_of: it takes a list of defenses; got {each!r} in it. A factory '
          'has to be called: none(), not none.'
      )
  # `switch` would take the last one for a number past it, and 0 for -1.
  check.whole('one_of: which', which, 0, len(defenses) - 1)
  which = which if isinstance(which, Tracer) else int(which)
  if not all(map(can_be_one, defenses)):
    raise ValueError(
        'one_of: each defense may have its hooks init, prepare and gradient '
        'only.'
    )
  called = [*names, *[''] * (len(defenses) - len(names))]
  own = [checked(*named) for named in zip(defenses, called)]
  keeping = [i for i, each in enumerate(defenses) if has_memory(each)]

  def init(key, spec):
    made = [defenses[i].init(key, spec).state for i in keeping]
    return slots(spec, state=tuple(made))

  def prepare(key, features, labels):
    labels = reals(labels)  # Softened, whole numbers would be zeros.
    branches = [_preparing(*named) for named in zip(own, called)]
    return jax.lax.switch(which, branches, key, features, labels)

  def gradient(state, key, cut, labels):
    branches = [
        _perturbing(each, keeping.index(i) if i in keeping else None)
        for i, each in enumerate(own)
    ]
    return jax.lax.switch(which, branches, state, key, cut, labels)

  prepares = any(each.prepare for each in defenses)
  return Defense(init, prepare if prepares else None, gradient=gradient)


def _preparing(defense: Defense, name: str) -> Callable[..., Array]:
  """The defense's hook `prepare`, with labels of the type that it gets."""

  def prepare(key, features, labels):
    if not defense.prepare:
      return labels
    found = defense.prepare(key, features, labels)
    if found.shape != labels.shape:
      raise Misfit(
          f'{name}: prepare must return as many columns as the labels have, '
          f'{labels.shape}; it returned {found.shape}.'
      )
    return found.astype(labels.dtype)

  return prepare


def _perturbing(defense: Defense, place: int | None) -> Callable[..., Any]:
  """The defense's hook `gradient` on the memory of all, its own at `place`.

  Its gradients are made a tuple, as branches must agree.
  """

  def gradient(state, *given):
    own = () if place is None else state[place]
    cut, own = defense.gradient(own, *given)
    if place is not None:
      state = *state[:place], own, *state[place + 1 :]
    return tuple(cut), state

  return gradient
