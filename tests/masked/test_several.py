"""What both modes of a masked training have in common, by numbers of others.

The exact mode is tested against the fast one, so a fault in what is the same
code in both would show in neither.
"""
from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.masked_federation import (
    BATCH, ETA, MLP, QUICK, SEEDS, compiled, digits, federated, federation,
    in_the_clear, masked, network, noise, numbers,
)
from vfljax import mpc, nets
from vfljax.masked import autodiff, masking, ranges, shares, training
from vfljax.masked.shares import Public
from vfljax.masked.training import Setup
from vfljax.nets import intercept
from vfljax.types import Net


def test_ranges_are_the_largest_of_what_passed():
  """Of input, output and both gradients; under T4 of eta times those."""
  job, state, _, _, keys, x, y = federation('dense', MLP, 'Dense_2')
  params = training.reveal(job, state.weights)
  step, deal = compiled(job)
  dealt, _ = deal(keys, state.weights, 0, 0)
  _, played = step(state, dealt, jax.random.key(0), x[:BATCH], y[:BATCH])
  for layer, name in zip(job.chosen, MLP):
    z, out, g = map(np.asarray, played.seen[layer.name])
    back = g @ np.asarray(params[name]['Dense_0']['kernel']).T
    rate = ETA if name == 'Dense_2' else 1
    expected = [z, out, rate * g, (0 if layer.first else rate) * back]
    np.testing.assert_allclose(
        played.ranges[layer.name], [np.abs(v).max() for v in expected],
        rtol=1e-4,
    )


@pytest.mark.parametrize('bias', [True, False])
def test_a_layer_by_itself_is_the_plain_one(bias):
  """Where nothing is differentiated, and also without a bias."""
  net = nets.linen(nn.Dense(3, bias))
  x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
  params = numbers(net, x, 0)
  layer, = masking.layers(net, params, x)
  assert layer.leaves == ('kernel', 'bias')[:1 + bias]
  public = Public(prg=QUICK)
  extra = noise((layer,))
  secret = masked(public, (layer,), SEEDS, params, extra, 0).secret[layer.name]

  def run(secret, x):
    dealt, _ = shares.deal(public, layer, SEEDS, (0, 0), secret)
    rule = autodiff.Rule(layer, public, net.apply, ETA, {})
    return autodiff.masked_layer(rule, x, params, None, None, secret, dealt)

  y, largest, _ = mpc.jit(run)(secret, x)
  want = net.apply(masking.noisy(params, (layer,), extra), x)
  np.testing.assert_allclose(y, want, atol=1e-5)
  np.testing.assert_allclose(largest, [np.abs(v).max() for v in (x, y)])


@pytest.mark.parametrize('dtype', [np.uint8, jnp.bfloat16])
def test_features_need_not_be_float32(dtype):
  """A layer's output is as the plain layer has it, not as its input is: of
  pixels it was cut to whole numbers, and no gradient came through them."""
  net, shape = network('dense')
  x = np.asarray(4 + 2 * np.clip(digits(shape)[0], -2, 2), dtype)
  job, state, plain, other, keys, x, y = federated(
      net, x, digits(shape)[1], ('Dense_0', 'Dense_1'))
  step, deal = compiled(job)
  dealt, _ = deal(keys, state.weights, 0, 0)
  new, got = step(state, dealt, jax.random.key(0), x[:BATCH], y[:BATCH])
  other, want = in_the_clear(plain)(
      other, {}, jax.random.key(0), x[:BATCH], y[:BATCH])
  np.testing.assert_allclose(got.embedding, want.embedding, atol=1e-5)
  for a, b in zip(jax.tree.leaves(training.reveal(job, new.weights)),
                  jax.tree.leaves(other.weights.plain), strict=True):
    assert a.dtype == b.dtype == jnp.float32
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_each_party_steps_by_its_own_optimizer():
  """And the network passes as in training, whose statistics are kept."""
  net = Net(
      lambda key, x: jnp.ones(2), lambda w, x: w[0] * x,
      lambda w, key, x: (2 * w[0] * x, x.sum()),
      lambda w, stat: w.at[1].set(stat),
  )
  setup = Setup(
      net, lambda active, u, batch: active * (u * batch).sum(),
      (optax.sgd(1.0), optax.sgd(0.1)),
  )
  weights = masking.Weights(jnp.ones(2), {})
  state = training.start(setup, weights, jnp.array(5.0))
  x, batch = jnp.array([1.0, 3.0]), jnp.array([1.0, -1.0])
  state, played = training.step(setup, state, {}, jax.random.key(0), x, batch)
  np.testing.assert_allclose(played.embedding, [2, 6])
  np.testing.assert_allclose(played.loss, 5 * (2 - 6))
  np.testing.assert_allclose(state.active, 5 - 0.1 * (2 - 6))
  np.testing.assert_allclose(state.weights.plain, [1 - 5 * 2 * (1 - 3), 4])


def test_what_is_masked_already_is_not_there_to_be_masked():
  """`plain` has zeros in its place, which would take the place of weights."""
  job, state, _, _, keys, *_ = federation('dense', MLP[:1])
  plain, (layer,) = state.weights.plain, job.chosen
  with pytest.warns(UserWarning, match='Dense_0 is masked with .* all zero'):
    masking.mask(job.public, job.chosen, keys, plain, noise(job.chosen), 1)
  leaves = intercept.leaves_at(plain, layer.path)
  assert not ranges.blank(layer, leaves | dict(bias=leaves['bias'] + 1))
