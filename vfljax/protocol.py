"""One round of vertical federated learning, from the first message to the last.

  passive party k                           active party (0)
  ---------------                           ----------------
  u_k = bottom_k(x_k)      -- up[k] -->     loss = L(top(u_0, ..., u_K), y)
  grads = vjp_k(d_k)       <-- down[k] --   d_k = dloss/du_k

`Messages` is all that crosses the line, so it is all that an attack on the
other side can see. Everything is a pure function of (key, state, batch): `jit`,
`vmap` over seeds and `scan` over rounds apply from outside.
"""
from typing import Any

import jax
import jax.numpy as jnp
import optax

from vfljax.adversary import Adversary, pick, put
from vfljax.defense import Defense
from vfljax.federation import HONEST, Transforms, embed, init, predict
from vfljax.nets import counting
from vfljax.types import (
    VFL, Array, Batch, Key, Messages, Params, PartyState, Round, State,
)

__all__ = ['HONEST', 'Transforms', 'embed', 'init', 'play_round', 'predict']


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
