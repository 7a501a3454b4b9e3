"""One of several defenses, chosen by a number that may be traced.

Defenses that act on labels before training, on the embeddings that the active
party receives, or on gradients, can so share one compiled program, and
compiling takes most of a short experiment's time. They may keep a memory, as
gradient compression keeps what it has dropped, or have weights of the active
party, as MID's bottlenecks.
"""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.core import Tracer
import jax.numpy as jnp

from vfljax import check
from vfljax.check import Misfit
from vfljax.hooks import Defense, slots
from vfljax.returned import check_slots, checked
from vfljax.samples import reals
from vfljax.types import Array

_PLAIN = Defense()
# That the members of `one_of` may have.
HOOKS = 'init', 'prepare', 'receive', 'gradient'


def can_be_one(defense: Defense) -> bool:
  """Whether `one_of` can choose it: it has no other hooks than `HOOKS`."""
  plain = {hook: getattr(_PLAIN, hook) for hook in HOOKS}
  return defense._replace(**plain) == _PLAIN


def has_memory(defense: Defense) -> bool:
  """Whether a defense has its own hook `init`."""
  return defense.init is not _PLAIN.init


def receives(defense: Defense) -> bool:
  """Whether a defense has its own hook `receive`."""
  return defense.receive is not _PLAIN.receive


def one_of(
    which: Array | int, defenses: Sequence[Defense], names: Sequence[str] = (),
) -> Defense:
  """The defense with index `which`; the others are not computed.

  But where `vmap` batches `which`, all of them are computed. Its memory is a
  tuple with that of each member that has one, in their order; only that of the
  chosen one changes. So are the active party's weights, of each member that has
  a hook `receive`; those of the others get gradients of 0. All other weights
  that a member's `init` returns are left out, as none of its hooks gets them.
  If one member prepares labels, the others return theirs as they are.

  Args:
    which: Integer scalar, from 0; may be traced.
    defenses: One or more that `can_be_one`. Their hooks `receive` must return
      embeddings of the shapes and types that they get.
    names: Their names, for messages.

  Raises:
    ValueError: if one of them has another hook or is no `Defense`, or there is
      none of that number.
  """
  defenses = tuple(defenses)
  which = _chosen(which, defenses)
  called = [*names, *[''] * (len(defenses) - len(names))]
  own = _members(defenses, called)

  def init(key, spec):
    made = [each.init(key, spec) for each in defenses]
    for each in made:
      check_slots(each, len(spec.embeddings))
    both = list(zip(own, made, strict=True))
    return slots(
        spec,
        tuple(its.active for m, its in both if m.weights is not None),
        state=tuple(its.state for m, its in both if m.memory is not None),
    )

  def prepare(key, features, labels):
    labels = reals(labels)  # Softened, whole numbers would be zeros.
    branches = [_preparing(each) for each in own]
    return jax.lax.switch(which, branches, key, features, labels)

  def receive(active, state, key, up, labels):
    branches = [_receiving(each, labels) for each in own]
    return jax.lax.switch(which, branches, active, state, key, tuple(up))

  def gradient(state, key, cut, labels):
    branches = [_perturbing(each) for each in own]
    return jax.lax.switch(which, branches, state, key, cut, labels)

  return Defense(
      init, prepare if any(each.prepare for each in defenses) else None,
      receive=receive if any(map(receives, defenses)) else _PLAIN.receive,
      gradient=gradient,
  )


def _chosen(which: Array | int, defenses: tuple[Defense, ...]) -> Any:
  """The number; ValueError unless these can be one and have it."""
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
  if not all(map(can_be_one, defenses)):
    raise ValueError(
        'one_of: each defense may have its hooks init, prepare, receive and '
        'gradient only.'
    )
  return which if isinstance(which, Tracer) else int(which)


class _Member(NamedTuple):
  """One of several defenses.

  Attributes:
    defense: Its hooks, whose results are checked.
    name: For messages.
    weights: Its place in the tuple of all members' weights; `None` without any.
    memory: Likewise in that of their memories.
  """

  defense: Defense
  name: str
  weights: int | None
  memory: int | None


def _members(
    defenses: Sequence[Defense], names: Sequence[str]
) -> list[_Member]:
  holding = [i for i, each in enumerate(defenses) if receives(each)]
  keeping = [i for i, each in enumerate(defenses) if has_memory(each)]
  place = lambda some, i: some.index(i) if i in some else None
  return [
      _Member(checked(each, name), name, place(holding, i), place(keeping, i))
      for i, (each, name) in enumerate(zip(defenses, names))
  ]


def _own(parts: tuple, place: int | None) -> Any:
  return () if place is None else parts[place]


def _preparing(member: _Member) -> Callable[..., Array]:
  """The defense's hook `prepare`, with labels of the type that it gets."""

  def prepare(key, features, labels):
    if not member.defense.prepare:
      return labels
    found = member.defense.prepare(key, features, labels)
    if found.shape != labels.shape:
      raise Misfit(
          f'{member.name}: prepare must return as many columns as the labels '
          f'have, {labels.shape}; it returned {found.shape}.'
      )
    return found.astype(labels.dtype)

  return prepare


def _receiving(member: _Member, labels: Array | None) -> Callable[..., Any]:
  """The defense's hook `receive` on the weights and memories of all.

  Its embeddings are made a tuple and its penalty a float, as branches must
  agree.
  """

  def receive(active, state, key, up):
    found, penalty = member.defense.receive(
        _own(active, member.weights), _own(state, member.memory), key, up,
        labels,
    )
    for u, z in zip(up, found):
      if (u.shape, u.dtype) != (z.shape, z.dtype):
        raise Misfit(
            f'{member.name}: to be one of several, receive must return '
            f'embeddings as it gets them, {u.shape} {u.dtype}; it returned '
            f'{z.shape} {z.dtype}. A method that changes them must not say '
            'keeps_shapes=True.'
        )
    wide = jnp.promote_types(up[0].dtype, jnp.float32)
    return tuple(found), jnp.asarray(penalty, wide)

  return receive


def _perturbing(member: _Member) -> Callable[..., Any]:
  """The defense's hook `gradient` on the memories of all.

  Its gradients are made a tuple, as branches must agree.
  """

  def gradient(state, *given):
    place = member.memory
    cut, own = member.defense.gradient(_own(state, place), *given)
    if place is not None:
      state = *state[:place], own, *state[place + 1 :]
    return tuple(cut), state

  return gradient
