"""Several defenses as one, in the order given.

Each private function is a hook of the chain: its arguments are the defenses,
then the hook's own. `state` and the weights that `init` returns are tuples with
one entry per defense; each defense gets a key of its own.
"""
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from vfljax.check import Misfit
from vfljax.hooks import Defense, Slots
from vfljax.types import Array, Key

Parts = Sequence[Defense]


def chain(*defenses: Defense) -> Defense:
  """Applies several defenses; every hook runs in the order given.

  Penalties are added. `decode` runs in reverse order, as it undoes `label`. So
  does `expose`: of networks nested by `bottom`, the last defense's is the
  outermost and gets the weights first.

  Raises:
    ValueError: if one is no `Defense`, or two of them replace the training
      objective.
  """
  for d in defenses:
    if not isinstance(d, Defense):
      raise ValueError(
          f'chain: it takes defenses, chain(one, other); got {d!r}. A factory '
          'has to be called: none(), not none.'
      )
  if sum(d.objective is not None for d in defenses) > 1:
    raise ValueError(
        'chain: two defenses replace the training objective; only one can.'
    )
  hooks: dict[str, Any] = {
      name: partial(hook, defenses) for name, hook in HOOKS.items()
  }
  for name in ('prepare', 'objective'):  # They are `None` where nobody has one.
    if not any(getattr(d, name) for d in defenses):
      hooks[name] = None
  return Defense(**hooks)


def _keys(defenses: Parts, key: Key) -> Array:
  return jax.random.split(key, max(len(defenses), 1))


def _init(defenses: Parts, key, spec):
  parts = [d.init(k, spec) for d, k in zip(defenses, _keys(defenses, key))]
  parties = range(len(spec.embeddings))
  return Slots(
      active=tuple(s.active for s in parts),
      passive=tuple(tuple(s.passive[k] for s in parts) for k in parties),
      state=tuple(s.state for s in parts),
  )


def _prepare(defenses: Parts, key, features, labels):
  for d, k in zip(defenses, _keys(defenses, key)):
    labels = d.prepare(k, features, labels) if d.prepare else labels
  return labels


def _batch(defenses: Parts, key, batch):
  for d, k in zip(defenses, _keys(defenses, key)):
    batch = d.batch(k, batch)
  return batch


def _bottom(defenses: Parts, state, k, net):
  for d, s in zip(defenses, state):
    net = d.bottom(s, k, net)
  return net


def _top(defenses: Parts, net):
  for d in defenses:
    net = d.top(net)
  return net


def _send(defenses: Parts, passive, key, u):
  total = jnp.zeros((), jnp.float32)
  for d, p, k in zip(defenses, passive, _keys(defenses, key)):
    u, penalty = d.send(p, k, u)
    total = total + penalty
  return u, total


def _label(defenses: Parts, state, key, labels):
  for d, s, k in zip(defenses, state, _keys(defenses, key)):
    labels = d.label(s, k, labels)
  return labels


def _adapt(defenses: Parts, state, key, predict, up, labels):
  return tuple(
      d.adapt(s, k, predict, up, labels)
      for d, s, k in zip(defenses, state, _keys(defenses, key))
  )


def _receive(defenses: Parts, active, state, key, up, labels):
  total = jnp.zeros((), jnp.float32)
  for d, a, s, k in zip(defenses, active, state, _keys(defenses, key)):
    up, penalty = d.receive(a, s, k, up, labels)
    total = total + penalty
  return up, total


def _objective(defenses: Parts, state, key, predict, up, labels):
  own = [(s, d.objective) for d, s in zip(defenses, state) if d.objective]
  (memory, objective), = own
  return objective(memory, key, predict, up, labels)


def _gradient(defenses: Parts, state, key, cut, labels):
  kept = []
  for d, s, k in zip(defenses, state, _keys(defenses, key)):
    cut, memory = d.gradient(s, k, cut, labels)
    kept.append(memory)
  return cut, tuple(kept)


def _share(defenses: Parts, key, gradients):
  for d, k in zip(defenses, _keys(defenses, key)):
    gradients = d.share(k, gradients)
  return gradients


def _epoch(defenses: Parts, state, key, holdings):
  return tuple(
      d.epoch(s, k, holdings)
      for d, s, k in zip(defenses, state, _keys(defenses, key))
  )


def _lent(defenses: Parts, state, k):
  return tuple(d.lent(s, k) for d, s in zip(defenses, state))


def _facts(defenses: Parts, state):
  found = {}
  for d, s in zip(defenses, state):
    own = d.facts(s)
    if both := sorted({*own} & {*found}):
      raise Misfit(
          f'chain: two defenses have a fact {both[0]!r}, of which one would be '
          'lost. Give each a name of its own.'
      )
    found |= own
  return found


def _expose(defenses: Parts, state, key, k, weights):
  keys = _keys(defenses, key)
  for d, s, sub in reversed(list(zip(defenses, state, keys))):
    weights = d.expose(s, sub, k, weights)
  return weights


def _decode(defenses: Parts, state, logits):
  for d, s in reversed(list(zip(defenses, state))):
    logits = d.decode(s, logits)
  return logits


HOOKS = dict(
    init=_init, prepare=_prepare, batch=_batch, bottom=_bottom, top=_top,
    send=_send, label=_label, adapt=_adapt, receive=_receive,
    objective=_objective, gradient=_gradient, share=_share, epoch=_epoch,
    lent=_lent, facts=_facts, expose=_expose, decode=_decode,
)
