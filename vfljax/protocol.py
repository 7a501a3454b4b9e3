"""One round of vertical federated learning, from the first message to the last.

  passive party k                           active party (0)
  ---------------                           ----------------
  u_k = bottom_k(x_k)      -- up[k] -->     loss = L(top(u_0, ..., u_K), y)
  grads = vjp_k(d_k)       <-- down[k] --   d_k = dloss/du_k

`Messages` is all that crosses the line, so it is all that an attack on the
other side can see. Everything is a pure function of (key, state, batch): `jit`,
`vmap` over seeds and `scan` over rounds apply from outside. `init` comes before
the first round, `predict` after the last.
"""
from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer
import jax.numpy as jnp
import optax

from vfljax.adversary import Adversary, pick, put
from vfljax.defense import Defense, Spec
from vfljax.nets import counting
from vfljax.types import (
    VFL, Array, Batch, Key, Messages, Params, PartyState, Round, State,
)

Transforms = Sequence[optax.GradientTransformation]
HONEST = Adversary()


def play_round(
    key: Key, vfl: VFL, defense: Defense, txs: Transforms, state: State,
    batch: Batch, adversary: Adversary = HONEST,
) -> tuple[State, Round]:
  """Plays one round: returns the next state, and the round for who watches."""
  keys = jax.random.split(key, 9)
  k_batch, k_net, k_send, k_label, k_adapt, k_active, *keys = keys
  k_objective, k_gradient, k_evil = keys
  k_lie, k_tamper, k_mishear, k_learn = jax.random.split(k_evil, 4)
  k_share = jax.random.fold_in(key, 9)
  batch = defense.batch(k_batch, batch)
  real = batch.labels.sum(-1)  # [batch]: 1, or 0 where a row is padding.
  vfl = counting(vfl._replace(top=defense.top(vfl.top)), real > 0)
  liars, lying = adversary.parties, tuple(k - 1 for k in adversary.parties)
  active, *passive = state.parties

  # 1. Every passive party embeds its features and sends the embedding up.
  own = pick(batch.features, liars)
  features = put(
      batch.features, liars, adversary.features(state.adversary, k_lie, own)
  )
  up, pullbacks, stats = [], [], []
  for k, party in enumerate(passive, start=1):
    net = defense.bottom(state.defense, k, vfl.bottom(k))

    def message(params, k=k, net=net):
      u, stat = net.run(
          params['bottom'], jax.random.fold_in(k_net, k), features[k]
      )
      u, penalty = defense.send(
          params['defense'], jax.random.fold_in(k_send, k), u
      )
      return (u, penalty), stat

    (u, penalty), pullback, stat = jax.vjp(message, party.params, has_aux=True)
    up.append(u)
    pullbacks.append(lambda d, f=pullback, p=penalty: f((d, jnp.ones_like(p))))
    stats.append(stat)
  sent = adversary.send(state.adversary, k_tamper, pick(tuple(up), lying))
  up = put(tuple(up), lying, sent)

  # 2. The active party, which alone knows the labels, computes the loss ...
  labels = defense.label(state.defense, k_label, batch.labels)

  def head(params, received):
    return _head(vfl, k_net, params, features[0], received)

  memory = defense.adapt(
      state.defense, k_adapt, lambda us: head(active.params, us)[0], up, labels
  )

  def objective(params, up):
    received, penalty = defense.receive(
        params['defense'], memory, k_active, up, labels
    )
    if defense.objective:
      predict = lambda us: head(params, us)[0]
      task = defense.objective(memory, k_objective, predict, received, labels)
      return penalty + task, head(active.params, received)[1]
    logits, stat = head(params, received)
    task = (real * vfl.loss(logits, labels)).sum() / real.sum()
    return penalty + task, stat

  (loss, stat), (grads, cut) = jax.value_and_grad(
      objective, argnums=(0, 1), has_aux=True
  )(active.params, up)

  # 3. ... and sends each passive party the (perturbed) gradient of its message.
  down = defense.gradient(memory, k_gradient, cut, batch.labels)
  down = tuple(d * real.reshape(-1, *[1] * (d.ndim - 1)) for d in down)
  memory = defense.remember(memory, k_gradient, cut, batch.labels)

  # 4. Everyone updates what they own.
  got = pick(down, lying)
  told = adversary.receive(state.adversary, k_mishear, got)
  heard = put(down, lying, told)
  own = [pull(d)[0] for pull, d in zip(pullbacks, heard)]
  own = [
      defense.share(jax.random.fold_in(k_share, k), g)
      for k, g in enumerate(own)
  ]
  grads = [grads] + own
  parties = [_update(t, p, g) for t, p, g in zip(txs, state.parties, grads)]
  parties = _absorb(vfl, parties, stat, stats)
  evil = adversary.update(state.adversary, k_learn, sent, got)
  played = Round(
      state, batch, Messages(up, down), loss,
      tuple(g['bottom'] for g in own), tuple(g['defense'] for g in own),
  )
  return State(parties, memory, evil), played


def _head(vfl: VFL, key: Key, params: dict, x0: Array | None, received):
  """The active party's own bottom and top: (logits, statistics)."""
  u0, stat = None, ()
  if vfl.bottoms[0]:
    u0, stat = vfl.bottoms[0].run(
        params['bottom'], jax.random.fold_in(key, 0), x0
    )
  logits, top_stat = vfl.top.run(
      params['top'], jax.random.fold_in(key, len(vfl.bottoms)), (u0, *received)
  )
  return logits, dict(bottom=stat, top=top_stat)


def _update(tx, party: PartyState, grads: Params) -> PartyState:
  updates, opt = tx.update(grads, party.opt, party.params)
  params: Any = optax.apply_updates(party.params, updates)
  return PartyState(params, opt)


def _absorb(vfl: VFL, parties: list[PartyState], active: dict, passive: list):
  """Puts the statistics of this round's forward passes beside the weights."""
  nets = [dict(bottom=vfl.bottoms[0], top=vfl.top)]
  nets += [dict(bottom=net) for net in vfl.bottoms[1:]]
  stats = [active] + [dict(bottom=s) for s in passive]
  fill = lambda p, n, s: p | {
      name: net.absorb(p[name], s[name]) for name, net in n.items() if net
  }
  return tuple(
      party._replace(params=fill(party.params, n, s))
      for party, n, s in zip(parties, nets, stats)
  )


def init(
    key: Key, vfl: VFL, defense: Defense, txs: Transforms, batch: Batch,
    adversary: Adversary = HONEST, auxiliary: Batch | None = None,
) -> State:
  """Draws every party's weights, optimizer states and the defense's slots.

  Args:
    txs: One optax transformation per party, the active party's first.
    batch: Any batch of the shapes to come.
    auxiliary: The active party's own samples, for defenses that need some.

  Raises:
    ValueError: if the parties in `vfl`, `txs` and `batch` do not agree.
  """
  _check_parties(vfl, txs, batch)
  vfl = vfl._replace(top=defense.top(vfl.top))
  parties = len(vfl.bottoms)
  k_top, k_defense, k_adversary, *k_bottom = jax.random.split(key, 3 + parties)
  bottoms = [
      net.init(k, x) if net else ()
      for net, k, x in zip(vfl.bottoms, k_bottom, batch.features)
  ]
  shapes: tuple[Any, ...] = tuple(
      jax.eval_shape(net.apply, p, x) if net else None
      for net, p, x in zip(vfl.bottoms, bottoms, batch.features)
  )
  k_slots, k_receive = jax.random.split(k_defense)
  spec = Spec(
      shapes[1:], batch.labels.shape[-1], vfl, tuple(bottoms[1:]),
      jax.eval_shape(lambda x: x, batch.features[1:]), auxiliary,
  )
  slots = defense.init(k_slots, spec)
  blank = tuple(u and jnp.zeros(u.shape, u.dtype) for u in shapes)
  received, _ = defense.receive(
      slots.active, slots.state, k_receive, blank[1:], batch.labels
  )
  top = vfl.top.init(k_top, (blank[0], *received))
  params = [dict(bottom=bottoms[0], top=top, defense=slots.active)]
  params += [
      dict(bottom=b, defense=d) for b, d in zip(bottoms[1:], slots.passive)
  ]
  states = tuple(PartyState(p, tx.init(p)) for p, tx in zip(params, txs))
  own = pick(batch.features, adversary.parties)
  return State(states, slots.state, adversary.init(k_adversary, own))


def predict(
    key: Key, vfl: VFL, defense: Defense, state: State,
    features: tuple[Any, ...], present: Sequence | None = None,
    adversary: Adversary = HONEST,
) -> Array:
  """Joint inference: logits [batch, classes].

  Args:
    features: As in `Batch`; no labels are needed.
    present: One number per passive party; 0 for one that has quit, whose
      embedding is replaced by zeros, 1 for one that is there. May be traced.
      Zeros are nothing to a sum and to layers on a concatenation; an
      element-wise product they annihilate.
    adversary: Who deviates at inference: of its hooks, `features` and `send`
      act, with () for their state.

  Raises:
    ValueError: if `present` has not one entry per passive party, or one that is
      neither 0 nor 1, or leaves an active party without features nobody.
  """
  active = state.parties[0]
  if present is not None:
    _check_present(present, vfl)
  k_send, k_active = jax.random.split(key)
  k_lie, k_tamper = jax.random.split(jax.random.fold_in(key, 2))
  liars, lying = adversary.parties, tuple(k - 1 for k in adversary.parties)
  own = adversary.features((), k_lie, pick(features, liars))
  features = put(features, liars, own)
  up = tuple(
      embed(k_send, vfl, defense, state, k, features[k])
      for k in range(1, len(state.parties))
  )
  up = put(up, lying, adversary.send((), k_tamper, pick(up, lying)))
  if present is not None:
    up = tuple(u * p for u, p in zip(up, present))
  params = active.params
  vfl = vfl._replace(top=defense.top(vfl.top))
  received, _ = defense.receive(
      params['defense'], state.defense, k_active, up, None
  )
  u0 = (
      vfl.bottoms[0].apply(params['bottom'], features[0])
      if vfl.bottoms[0] else None
  )
  logits = vfl.top.apply(params['top'], (u0, *received))
  return defense.decode(state.defense, logits)


def embed(
    key: Key, vfl: VFL, defense: Defense, state: State, k: int, x: Array
) -> Array:
  """Passive party k's message for features `x`, at inference."""
  net = defense.bottom(state.defense, k, vfl.bottom(k))
  params = state.parties[k].params
  u = net.apply(params['bottom'], x)
  return defense.send(params['defense'], jax.random.fold_in(key, k), u)[0]


def _check_present(present: Sequence, vfl: VFL) -> None:
  parties = len(vfl.bottoms) - 1
  if len(present) != parties:
    raise ValueError(
        f'present has {len(present)} entries; there are {parties} passive'
        ' parties.'
    )
  if any(isinstance(p, Tracer) for p in (present, *present)):
    return  # Whoever traces it checks the numbers that go into it.
  there = [float(p) for p in present]
  if not set(there) <= {0.0, 1.0}:
    raise ValueError(f'present must be 0 or 1 for each party; got {there}.')
  if not (any(there) or vfl.bottoms[0]):
    raise ValueError(
        'All passive parties are absent and the active party has labels only: '
        'there is nobody whose features could predict anything.'
    )


def _check_parties(vfl: VFL, txs: Transforms, batch: Batch) -> None:
  counts = len(vfl.bottoms), len(txs), len(batch.features)
  if len(set(counts)) > 1 or counts[0] < 2:
    raise ValueError(
        'A federation needs two or more parties, with a bottom network (or '
        'None at 0), an optimizer and features each; got %d, %d, %d.' % counts
    )
  if (vfl.bottoms[0] is None) != (batch.features[0] is None):
    raise ValueError(
        'The active party needs both a bottom network and features, or neither.'
    )
