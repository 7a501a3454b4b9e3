"""Checks of what a defense's hooks return, where they return it.

Without them a wrong shape fails far from its cause, if at all: labels of
another shape are broadcast, and a gather takes the last row in place of one
that is not there. Shapes are known while a round is traced, so the checks cost
nothing when it is played.
"""
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.check import Misfit
from vfljax.hooks import Defense, Slots
from vfljax.telling import FLOATS, REAL, is_real, told
from vfljax.types import VFL, Array, Batch, Net


def checked(defense: Defense, name: str = '') -> Defense:
  """The same defense; its hooks raise if they return a wrong result.

  Args:
    defense: The one to check.
    name: Its name in the messages; '' for none.
  """
  who, plain = f'{name}: ' if name else '', Defense()
  own = {
      hook: partial(look, who, getattr(defense, hook))
      for hook, look in LOOKS.items()
      if getattr(defense, hook) is not getattr(plain, hook)
  }
  return defense._replace(**own)


def check_slots(slots: Any, passive: int) -> None:
  """Raises ValueError unless `init` has returned `Slots` for all parties."""
  if not isinstance(slots, Slots):
    raise Misfit(
        'init must return defense.slots(spec, ...); it returned '
        f'{check.kind(slots)}.'
    )
  if len(slots.passive) != passive:
    raise Misfit(
        f'init has made weights for {len(slots.passive)} passive parties; '
        f'there are {passive}: give slots(spec, passive=...) one entry each, '
        '() for none.'
    )
  for weight in jax.tree.leaves((slots.active, slots.passive)):
    if not (isinstance(weight, float) or is_real(weight, FLOATS)):
      raise Misfit(
          f'init has made a weight of {told(weight)}, which cannot be trained:'
          ' make it a float; other memory is for slots(spec, state=...).'
      )
  for path, x in jax.tree.leaves_with_path(slots.state):
    if not _is_kept(x):
      raise Misfit(
          f'init has put {check.kind(x)} into the memory, at state'
          f'{jax.tree_util.keystr(path)}: it is of numbers and arrays. What '
          "never changes is for an argument of the defense's factory."
      )


def losses(vfl: VFL, logits: Array, labels: Array) -> Array:
  """The loss of each sample, [batch].

  Raises:
    ValueError: if the labels, which a defense may have changed, have another
      shape than the logits, or the federation's loss gives another one: both
      would be stretched to fit.
  """
  if logits.shape != labels.shape:
    raise Misfit(
        f'The loss compares logits {logits.shape} with labels {labels.shape}: '
        'label and prepare must return as many columns as the top makes.'
    )
  found = vfl.loss(logits, labels)
  # Whole numbers, as of wrong guesses, have no slope: nothing would be learned.
  if not is_real(found, FLOATS) or found.shape != labels.shape[:1]:
    raise Misfit(
        f'The loss must be one number a sample, {labels.shape[:1]}; it is '
        f'{told(found)}. Return floats, added up over classes, without a mean: '
        'that is taken later, over samples that are not padding.'
    )
  return found


def _send(who: str, hook: Callable, passive, key, u):
  found = hook(passive, key, u)
  if not _is_row(found, 2):
    raise Misfit(
        f'{who}send must return (message, penalty), a pair; it returned '
        f'{told(found)}.'
    )
  if not is_real(found[0], FLOATS) or found[0].shape != u.shape:
    raise Misfit(
        f'{who}send must return floats in the shape of {told(u)}; it returned '
        f'{told(found[0])}. Another width is for the hook bottom.'
    )
  _check_penalty(f'{who}the penalty of send', found[1])
  return found


def _receive(who: str, hook: Callable, active, state, key, up, labels):
  found = hook(active, state, key, up, labels)
  if not (_is_row(found, 2) and _is_row(found[0], len(up))):
    raise Misfit(
        f'{who}receive must return (embeddings, penalty), with a tuple of '
        f'{len(up)}, one a passive party; it returned {told(found)}.'
    )
  for one, u in zip(found[0], up):  # Their widths are the defense's choice.
    if getattr(one, 'shape', ())[:1] != u.shape[:1] or not is_real(one, FLOATS):
      raise Misfit(
          f'{who}receive must return floats, a row for each sample of '
          f'{told(u)}; it returned {told(one)}.'
      )
  _check_penalty(f'{who}the penalty of receive', found[1])
  return found


def _gradient(who: str, hook: Callable, state, key, cut, labels):
  found = hook(state, key, cut, labels)
  row: Any = found[0] if _is_row(found, 2) else None
  if not (_is_row(row, len(cut)) and [*map(told, row)] == [*map(told, cut)]):
    raise Misfit(
        f'{who}gradient must return a tuple of {told(cut)}, one a passive '
        f'party, and the state; it returned {told(found)}.'
    )
  check_state(f'{who}gradient', found[1], state)
  return found


def _label(who: str, hook: Callable, state, key, labels):
  found = hook(state, key, labels)
  _check_labels(f'{who}label', found, labels)
  return found


def _prepare(who: str, hook: Callable, key, features, labels):
  found = hook(key, features, labels)
  # Rounds get them as samples' labels, which are floats.
  _check_labels(f'{who}prepare', found, labels, FLOATS)
  return found


def _memory(what: str, who: str, hook: Callable, state, *given):
  found = hook(state, *given)
  check_state(f'{who}{what}', found, state)
  return found


def _objective(who: str, hook: Callable, state, key, predict, up, labels):
  found = hook(state, key, predict, up, labels)
  if not _is_number(found):
    raise Misfit(
        f'{who}objective must return one number, the loss of the round; it '
        f'returned {_odd(found)}. Take its mean over the samples that have a '
        'label.'
    )
  return found


def _share(who: str, hook: Callable, key, gradients):
  found = hook(key, gradients)
  complex_ = any(map(jnp.iscomplexobj, jax.tree.leaves(found)))
  if complex_ or _shapes(found) != _shapes(gradients):
    raise Misfit(
        f'{who}share must return gradients as it gets them, '
        "dict(bottom=..., defense=...), each real and of its weight's shape; "
        f'it returned {told(found)}.'
    )
  return found


def _expose(who: str, hook: Callable, state, key, k, weights):
  found = hook(state, key, k, weights)
  if _shapes(found) != _shapes(weights):
    raise Misfit(
        f'{who}expose must return weights as it gets them, '
        f'{_told_leaves(weights)}; it returned '
        f'{_told_leaves(found) or told(found)}.'
    )
  return found


def _batch(who: str, hook: Callable, key, batch):
  found = hook(key, batch)
  if not isinstance(found, Batch) or _shapes(found) != _shapes(batch):
    raise Misfit(
        f'{who}batch must return a Batch(features, labels) of the shapes that '
        f'it gets; it returned {told(found)}.'
    )
  return found


def _net(what: str, who: str, hook: Callable, *given):
  found = hook(*given)
  if not isinstance(found, Net):
    raise Misfit(f'{who}{what} must return a Net; it returned {told(found)}.')
  return found


def _decode(who: str, hook: Callable, state, logits):
  found = hook(state, logits)
  if not hasattr(found, 'shape'):
    raise Misfit(
        f'{who}decode must return logits; it returned {told(found)}.'
    )
  return found


LOOKS = dict(
    prepare=_prepare, batch=_batch, bottom=partial(_net, 'bottom'),
    top=partial(_net, 'top'), send=_send, label=_label,
    adapt=partial(_memory, 'adapt'), epoch=partial(_memory, 'epoch'),
    receive=_receive, objective=_objective, gradient=_gradient, share=_share,
    expose=_expose, decode=_decode,
)


def _check_penalty(what: str, penalty: Any) -> None:
  if not _is_number(penalty):
    raise Misfit(
        f'{what} must be one number, a scalar; it is {_odd(penalty)}. Take its '
        'mean over the samples that count (crossing.counted).'
    )


def _check_labels(what: str, found: Any, labels: Array, kinds=REAL) -> None:
  """How many columns there have to be, the top decides: see `losses`."""
  shape = getattr(found, 'shape', None)
  if shape is None or len(shape) != 2 or (
      shape[0] != len(labels) or not is_real(found, kinds)
  ):
    of = ' of floats' if kinds is FLOATS else ''
    raise Misfit(
        f'{what} must return labels{of} [samples, classes], of these samples '
        f'{labels.shape}; it returned {told(found)}.'
    )


def check_state(what: str, found: Any, state: Any) -> None:
  """Raises ValueError unless a hook kept its state's structure and types."""
  if jax.tree.structure(found) != jax.tree.structure(state):
    raise Misfit(
        f'{what} must return the state as init made it, '
        f'{jax.tree.structure(state)}; it returned '
        f'{jax.tree.structure(found)}.'
    )
  news, olds = jax.tree.leaves(found), jax.tree.leaves(state)
  if _shapes(found) != _shapes(state) or any(map(_is_retyped, news, olds)):
    raise Misfit(
        f'{what} must return the state in the shapes and types that init gave '
        f'it, {_told_leaves(state)}; it returned {_told_leaves(found)}.'
    )


def _is_kept(x: Any) -> bool:
  """Whether JAX carries it from round to round."""
  try:
    return jax.typeof(x) is not None
  except (TypeError, OverflowError):  # As of 2**40, without 64 bits.
    return False


def _is_retyped(new: Any, old: Any) -> bool:
  """Whether a loop refuses it in place of `old`: it widens plain numbers."""
  one, other = jax.typeof(new), jax.typeof(old)
  return one.dtype != other.dtype and not other.weak_type


def _shapes(tree: Any) -> tuple[Any, list[tuple[int, ...]]]:
  """A tree's structure and the shapes of its leaves."""
  leaves, structure = jax.tree.flatten(tree)
  return structure, [jnp.shape(x) for x in leaves]


def _is_number(x: Any) -> bool:
  return isinstance(x, (int, float)) or is_real(x) and not x.shape


def _odd(x: Any) -> str:
  shape = getattr(x, 'shape', ())
  return f'of the shape {shape}' if shape else told(x)


def _is_row(found: Any, length: int) -> bool:
  return isinstance(found, (tuple, list)) and len(found) == length


def _told_leaves(tree: Any) -> str:
  return ', '.join(map(told, jax.tree.leaves(tree)))
