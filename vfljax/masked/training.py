"""Training steps on masked layers: one passive party and the active one.

`step` in 64-bit mode runs the protocol of every masked layer, word by word; the
masked weights are nowhere in the clear. With no layer chosen it is plain
training. On weights theta + theta_r that is the fast mode: it computes the same
as the exact mode, up to rounding (tested: outputs to 2e-6 relative, an epoch's
losses to 1e-4).

  setup = Setup(net, head, (optax.sgd(0.1), optax.sgd(0.1)), chosen)
  state = start(setup, weights, active)
  exact = mpc.jit(functools.partial(step, setup), donate_argnums=0)
  dealt = mpc.jit(functools.partial(deal, setup))
  state, played = exact(state, dealt(keys, state.weights, 0, i)[0], key, x, y)
  check(setup, played)

The step donates its state's memory (`donate_argnums`): otherwise shares that do
not change would be copied.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax import descent
from vfljax.masked import autodiff, optimizers, ranges, shares
from vfljax.masked.autodiff import Record, Rule
from vfljax.masked.masking import Weights
from vfljax.masked.shares import Layer, Public
from vfljax.mpc import wire
from vfljax.mpc.one_sided import Seeds
from vfljax.mpc.wire import Transcript
from vfljax.nets import intercept
from vfljax.nets.intercept import Linear
from vfljax.types import Array, Key, Net, Params


class Setup(NamedTuple):
  """A training step's static part.

  Attributes:
    net: The passive party's network.
    head: (active weights, embedding, batch) -> mean loss; all that the active
      party computes. `batch` has its own features and labels.
    txs: Optimizers of the passive and of the active party. The passive party's
      must not use the weights (no weight decay), as no party has them.
    chosen: The masked layers, from `masking.choose`; none: the fast mode.
    public: Public numbers.
    eta: With a layer under T4: the learning rate; `txs[0]` must then be plain
      SGD with it.
  """

  net: Net
  head: Callable[[Params, Array, Any], Array]
  txs: tuple[optax.GradientTransformation, optax.GradientTransformation]
  chosen: tuple[Layer, ...] = ()
  public: Public = Public()
  eta: float = 0.0


class Training(NamedTuple):
  """The state of both parties between steps."""

  weights: Weights
  passive_opt: Any
  active: Params
  active_opt: Any


class Played(NamedTuple):
  """What a step returns beside the new state.

  Attributes:
    loss: Mean over the batch.
    embedding: The one sent to the active party.
    ranges: For each masked layer [4] largest absolute values, for `check`.
    seen: For each masked layer (input, output, output gradient): under T3 the
      passive party knows all three, under T4 only its input.
    moves: What the passive party's optimizer added to its weights; zeros under
      T4, where no party knows the update.
    clipped: For each masked layer, bool: whether its update left the
      fixed-point range and was clipped; for `check`.
  """

  loss: Array
  embedding: Array
  ranges: dict[str, Array]
  seen: dict[str, tuple[Array, Array, Array]]
  moves: Params
  clipped: dict[str, Array]


def start(setup: Setup, weights: Weights, active: Params) -> Training:
  """A training before its first step.

  Raises:
    ValueError: as `shares.matched`, `optimizers.check`, or if T4 has no rate.
  """
  shares.matched(weights.secret, setup.chosen)
  if any(layer.to_active for layer in setup.chosen) and not setup.eta > 0:
    raise ValueError(
        'A layer whose output A keeps (T4) needs eta, the rate of plain SGD.'
    )
  tx, own = setup.txs
  optimizers.check(tx, weights.plain, setup.chosen, setup.eta)
  return Training(weights, tx.init(weights.plain), active, own.init(active))


def deal(
    setup: Setup, keys: Seeds, weights: Weights, period: Any, number: Any
) -> tuple[dict[str, Any], Transcript]:
  """The dealer's randomness for step `number` of a masking, made offline.

  Args:
    setup: Static.
    keys: The parties' seeds.
    weights: Only V is used, which does not change while a layer is masked.
    period: As in `masking.mask`.
    number: The step's, a uint32, each used once in a period.
  """
  dealt, said = {}, ()
  for i, layer in enumerate(setup.chosen):
    dealt[layer.name], words = shares.deal(
        setup.public, layer, keys, (period, i, number),
        weights.secret[layer.name],
    )
    said += words
  return dealt, said


class _Held(NamedTuple):
  """Shares and correlations by layer, and the record of messages."""

  secret: dict[str, Any]
  dealt: dict[str, Any]
  record: Record


class _Passed(NamedTuple):
  """A masked layer's values in a forward pass.

  Attributes:
    x, y: Its input and output.
    largest: [2] their largest absolute values.
    opened: What the active party keeps under T4, for `autodiff.update`.
  """

  x: Array
  y: Array
  largest: Array
  opened: Any


def _run(setup: Setup, held: _Held, key, x, params, taps, gauges):
  """The bottom's pass: (embedding, (statistics, `_Passed` by layer), rules)."""
  by_name = {layer.name: layer for layer in setup.chosen}
  rules, passed = {}, {}

  def compute(linear: Linear, z: Array) -> Array | None:
    name = linear.name
    if name not in by_name:
      return None
    rules[name] = Rule(
        by_name[name], setup.public, linear.plain, setup.eta, held.record
    )
    out: Any = autodiff.masked_layer(
        rules[name], z, linear.params, taps[name], gauges[name],
        held.secret[name], held.dealt[name],
    )
    passed[name] = _Passed(z, *out)
    return passed[name].y

  net = intercept.intercepted(setup.net, compute) if by_name else setup.net
  u, stats = net.run(params, key, x)
  return u, (stats, passed), rules


def step(
    setup: Setup, state: Training, dealt: dict[str, Any], key: Key, x: Any,
    batch: Any, record: Record | None = None,
) -> tuple[Training, Played]:
  """One training step; in the exact mode needs 64-bit types on.

  Args:
    setup: Static.
    state: Before the step.
    dealt: From `deal`; for this step only. {} in the fast mode.
    key: For networks whose training is random.
    x: The passive party's features, [batch, ...].
    batch: The active party's data, handed to `setup.head`.
    record: Receives the messages' shapes, by layer and pass; for `transcript`.
  """
  plain, secret = state.weights
  held = _Held(secret, dealt, {} if record is None else record)
  rules = {}

  def bottom(params, taps, gauges):
    u, rest, found = _run(setup, held, key, x, params, taps, gauges)
    rules.update(found)
    return u, rest

  taps = {
      c.name: jnp.zeros(c.bilinear.y_shape, _dtype(plain, c))
      for c in setup.chosen
  }
  gauges = {c.name: jnp.zeros(2, jnp.float32) for c in setup.chosen}
  u, pull, (stats, passed) = jax.vjp(bottom, plain, taps, gauges, has_aux=True)
  loss, (d_active, d) = jax.value_and_grad(setup.head, (0, 1))(
      state.active, u, batch
  )
  grads, out_grads, back_largest = pull(d)
  moves, passive_opt = descent.moves_of(
      setup.txs[0], grads, state.passive_opt, plain
  )
  active, active_opt = descent.step(
      setup.txs[1], d_active, state.active_opt, state.active
  )
  updated = {
      c.name: autodiff.update(
          rules[c.name], secret[c.name], intercept.leaves_at(moves, c.path),
          out_grads[c.name], passed[c.name].opened, dealt[c.name],
      ) for c in setup.chosen
  }
  secret = {name: weights for name, (weights, _) in updated.items()}
  clipped = {name: far for name, (_, far) in updated.items()}
  plain = setup.net.absorb(_moved(setup, plain, moves), stats)
  state = Training(Weights(plain, secret), passive_opt, active, active_opt)
  largest = {
      name: jnp.concatenate([p.largest, back_largest[name]])
      for name, p in passed.items()
  }
  seen = {name: (p.x, p.y, out_grads[name]) for name, p in passed.items()}
  return state, Played(loss, u, largest, seen, moves, clipped)


def _dtype(params: Params, layer: Layer) -> Any:
  return intercept.leaves_at(params, layer.path)['kernel'].dtype


def _moved(setup: Setup, params: Params, moves: Params) -> Params:
  """Plain weights after a step; those of masked layers stay zeros."""
  new = descent.moved(params, moves)
  for layer in setup.chosen:
    # The same arrays: new zeros would be written and copied in each step.
    zeros = intercept.leaves_at(params, layer.path)
    new = intercept.with_leaves(new, layer.path, zeros)
  return new


def transcript(
    setup: Setup, state: Training, keys: Seeds, key: Key, x: Any, batch: Any
) -> Transcript:
  """All messages of a step's masked layers, in order; found by tracing.

  Messages have shapes in place of words: count them with `wire.count`, model a
  network's time with `wire.seconds`. The embedding and its gradient, which are
  sent in plain training, too, are left out.
  """
  record: Record = {}
  offline: list[wire.Message] = []

  def whole(state, keys, key, x, batch):
    dealt, said = deal(setup, keys, state.weights, 0, 0)
    offline.extend(autodiff.shapes('', said))
    return step(setup, state, dealt, key, x, batch, record)[1].loss

  with jax.enable_x64(True):
    jax.eval_shape(whole, state, keys, key, x, batch)
  order = [(c.name, 'forward') for c in setup.chosen]
  order += [
      (c.name, back) for c in reversed(setup.chosen)
      for back in ('input gradient', 'backward')
  ]
  steps = [record[at] for at in order if at in record]
  return wire.then(tuple(offline), *steps)


def check(setup: Setup, played: Played) -> None:
  """Raises ValueError if a masked layer's values left the fixed-point range.

  Of products it sees what is left mod 2^64 (`ranges.check`).

  Args:
    setup: Static.
    played: One step's, or many steps' with a leading axis.
  """
  for layer in setup.chosen:
    ranges.check(setup.public, layer, played.ranges[layer.name])
    ranges.check_update(setup.public, layer, played.clipped[layer.name])


def reveal(setup: Setup, weights: Weights, dtype: Any = jnp.float32) -> Params:
  """The network's true parameters, which only the simulator can compute."""
  params = weights.plain
  for layer in setup.chosen:
    bits = shares.weight_bits(setup.public, layer)
    whole = shares.opened(weights.secret[layer.name], bits, dtype)
    params = intercept.with_leaves(params, layer.path, whole)
  return params
