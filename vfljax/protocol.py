"""One round of vertical federated learning, from the first message to the last.

  passive party k                           active party (0)
  ---------------                           ----------------
  u_k = bottom_k(x_k)      -- up[k] -->     loss = L(top(u_0, ..., u_K), y)
  grads = vjp_k(d_k)       <-- down[k] --   d_k = dloss/du_k

`Messages` is all that crosses the line, so it is all that an attack on the
other side can see. A round is a pure function of (key, state, batch), for
`jit`, `vmap` and `scan`. `init` and `predict` are in `vfljax.federation`.
"""
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import adversary as adversaries, crossing, descent, fusing
from vfljax.adversary import HONEST, Adversary, pick, put
from vfljax.defense import Defense
from vfljax.federation import check_round, embed, init, predict
from vfljax.hooks import exposes
from vfljax.nets import counting, with_weights
from vfljax.returned import checked, losses
from vfljax.types import (
    VFL, Array, Batch, Embeddings, Key, Messages, Params, PartyState, Round,
    State, Transforms,
)

__all__ = ['HONEST', 'embed', 'init', 'play_round', 'predict']


def play_round(
    key: Key, vfl: VFL, defense: Defense, txs: Transforms,
    state: State, batch: Batch, adversary: Adversary = HONEST,
) -> tuple[State, Round]:
  """Plays one round: (the next state, the round as attackers and tests see it).

  Args:
    key, state, batch: The round's key, the state before it, its samples.
    vfl, defense, txs, adversary: As in `train.Plan`.

  Raises:
    ValueError: if parties, optimizers and samples do not fit together.
  """
  adversaries.check(adversary)
  check_round(key, vfl, defense, txs, state, batch)
  luck, defense = luck_of(key), checked(defense)
  real = crossing.rows(batch.labels)
  # The sums of soft labels differ in their last digits, which tell of classes.
  with crossing.in_round((real > 0).astype(real.dtype)):
    batch = defense.batch(luck.batch, batch)
    return _played(luck, vfl, defense, txs, state, batch, adversary, real)


def _played(
    luck: 'Luck', vfl: VFL, defense: Defense, txs: Transforms, state: State,
    batch: Batch, adversary: Adversary, real: Array,
) -> tuple[State, Round]:
  vfl = counting(vfl._replace(top=defense.top(vfl.top)), real > 0)
  stage = _Stage(luck, vfl, defense, adversary, state, batch)

  # 1. Every passive party embeds its features and sends the embedding up.
  up, sent, ways, stats = _embed_all(stage)

  # 2. The active party, which alone knows the labels, computes the loss ...
  memory, (loss, stat), (grads, cut) = _differentiate(stage, up)

  # 3. ... and sends each passive party the (perturbed) gradient of its message.
  down, memory = defense.gradient(memory, luck.gradient, cut, batch.labels)
  down = crossing.sent('down', tuple(
      d * real.astype(d.dtype).reshape(-1, *[1] * (d.ndim - 1)) for d in down
  ))

  # 4. Everyone updates what they own.
  own, read, got = _pull_back(stage, down, ways)
  parties = [
      PartyState(*descent.step(tx, slope, p.opt, p.params))
      for tx, p, slope in zip(txs, state.parties, [grads] + own)
  ]
  parties = _absorb(vfl, parties, stat, stats)
  evil = adversary.update(state.adversary, luck.learn, sent, got)
  played = Round(
      state, batch, Messages(up, down), loss,
      tuple(g['bottom'] for g in own), tuple(g['defense'] for g in own), read,
  )
  return State(parties, memory, evil), played


class Luck(NamedTuple):
  """A round's keys, named by what is drawn with them."""

  batch: Key
  net: Key
  send: Key
  label: Key
  adapt: Key
  active: Key
  objective: Key
  gradient: Key
  lie: Key
  tamper: Key
  mishear: Key
  learn: Key
  share: Key


def luck_of(key: Key) -> Luck:
  """All keys of a round, derived from the round's key."""
  *own, evil = jax.random.split(key, 9)
  evils = jax.random.split(evil, 4)
  return Luck._make([*own, *evils, jax.random.fold_in(key, 9)])


class _Stage(NamedTuple):
  """What the steps of a round have in common."""

  luck: Luck
  vfl: VFL
  defense: Defense
  adversary: Adversary
  state: State
  batch: Batch

  @property
  def lying(self) -> tuple[int, ...]:
    """Indices of the deviating parties in `Messages`."""
    return tuple(k - 1 for k in self.adversary.parties)


def _embed_all(stage: _Stage):
  """Step 1.

  Returns:
    All embeddings; those of deviating parties; each passive party's `_WayBack`;
    its forward pass's statistics.
  """
  luck, _, _, adversary, state, batch = stage
  liars, lying = adversary.parties, stage.lying
  lies = adversary.features(
      state.adversary, luck.lie, pick(batch.features, liars)
  )
  features = put(batch.features, liars, lies, 'features')
  each = [_embed(stage, k, x) for k, x in enumerate(features[1:], start=1)]
  up, ways, stats = zip(*each)
  sent = adversary.send(state.adversary, luck.tamper, pick(up, lying))
  arrived = crossing.sent('up', put(up, lying, sent, 'send'))
  return arrived, sent, ways, list(stats)


def _embed(stage: _Stage, k: int, x: Any) -> tuple[Array, '_WayBack', Any]:
  """Passive party k's message for x, its way back, its pass's statistics."""
  luck, vfl, defense, _, state, _ = stage

  def message(net, params):
    u, stat = net.run(params['bottom'], jax.random.fold_in(luck.net, k), x)
    u, penalty = defense.send(
        params['defense'], jax.random.fold_in(luck.send, k), u
    )
    return (u, penalty), stat

  net = defense.bottom(state.defense, k, vfl.bottom(k))
  (u, penalty), pullback, stat = jax.vjp(
      partial(message, net), state.parties[k].params, has_aux=True
  )
  return u, _WayBack(pullback, penalty, _reading(stage, k, message)), stat


class _WayBack(NamedTuple):
  """A passive party's pullbacks, from its message's gradient to its weights'.

  Attributes:
    trained: Gradient of (message, penalty) -> (that of the trained weights,).
    penalty: A scalar.
    read: As `trained`, to the weights that it reads; `None` if it trains those.
  """

  trained: Callable[[Any], tuple[Any]]
  penalty: Array
  read: Callable[[Any], tuple[Any]] | None

  def back(self, pullback: Callable[[Any], tuple[Any]], d: Array) -> Params:
    """Applies one of the two pullbacks to the message's gradient `d`."""
    return pullback((d, jnp.ones_like(self.penalty)))[0]


def _reading(stage: _Stage, k: int, message: Callable) -> Callable | None:
  """`_WayBack.read` of passive party k.

  A defense may have the party's network compute with other weights than it
  trains. Their gradient is that of a shift by zeros, added to them where the
  plain network receives them.
  """
  defense, memory = stage.defense, stage.state.defense
  params = stage.state.parties[k].params
  if not exposes(defense, memory, k, own := params['bottom']):
    return None

  def shifted(by):
    plain = with_weights(
        stage.vfl.bottom(k), lambda w: jax.tree.map(jnp.add, w, by)
    )
    return message(defense.bottom(memory, k, plain), params)

  zeros = jax.tree.map(jnp.zeros_like, own)
  return jax.vjp(shifted, zeros, has_aux=True)[1]


def _differentiate(stage: _Stage, up: Embeddings):
  """Step 2.

  Returns:
    The defense's memory; (loss, statistics of the forward pass); the loss's
    gradients with respect to (the active party's weights, the messages).
  """
  luck, vfl, defense, _, state, batch = stage
  active, x0 = state.parties[0], batch.features[0]
  real = fusing.row_sums(batch.labels)
  labels = defense.label(state.defense, luck.label, batch.labels)

  def head(params, received):
    return _head(vfl, luck.net, params, x0, received)

  memory = defense.adapt(
      state.defense, luck.adapt, lambda us: head(active.params, us)[0], up,
      labels,
  )

  def objective(params, up):
    received, penalty = defense.receive(
        params['defense'], memory, luck.active, up, labels
    )
    if defense.objective:
      predict = lambda us: head(params, us)[0]
      task = defense.objective(
          memory, luck.objective, predict, received, labels
      )
      return penalty + task, head(active.params, received)[1]
    logits, stat = head(params, received)
    # A round of padding alone has the loss 0, not NaN, and gradients of 0.
    task = fusing.mean_over(real, partial(losses, vfl), logits, labels)
    return penalty + task, stat

  value, slopes = jax.value_and_grad(objective, argnums=(0, 1), has_aux=True)(
      active.params, up
  )
  return memory, value, slopes


def _pull_back(stage: _Stage, down: Embeddings, ways: Sequence[_WayBack]):
  """Step 4 at the passive parties.

  Returns:
    Each passive party's gradients {'bottom', 'defense'}; `Round.read`; what
    deviating parties were sent.
  """
  luck, _, defense, adversary, state, _ = stage
  got = pick(down, stage.lying)
  lies = adversary.receive(state.adversary, luck.mishear, got)
  used = put(down, stage.lying, lies, 'receive')
  raw = [way.back(way.trained, d) for way, d in zip(ways, used)]

  def shared(k, gradients):
    return defense.share(jax.random.fold_in(luck.share, k), gradients)

  own = [shared(k, g) for k, g in enumerate(raw)]
  read = [g['bottom'] for g in own]
  for k, (way, d) in enumerate(zip(ways, used)):
    if way.read:  # `share` acts on these, too, with the same key.
      seen = raw[k] | dict(bottom=way.back(way.read, d))
      read[k] = shared(k, seen)['bottom']
  return own, tuple(read) if any(way.read for way in ways) else (), got


def _head(vfl: VFL, key: Key, params: dict, x0: Array | None, received):
  """The active party's bottom and top network: (logits, statistics)."""
  u0, stat = None, ()
  if vfl.bottoms[0]:
    u0, stat = vfl.bottoms[0].run(
        params['bottom'], jax.random.fold_in(key, 0), x0
    )
  logits, top_stat = vfl.top.run(
      params['top'], jax.random.fold_in(key, len(vfl.bottoms)), (u0, *received)
  )
  return logits, dict(bottom=stat, top=top_stat)


def _absorb(vfl: VFL, parties: list[PartyState], active: dict, passive: list):
  """Puts this round's forward passes' statistics into the parameters."""
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
