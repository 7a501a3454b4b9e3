"""BatchNorm in a round with rows of padding, against NumPy on the real rows."""
from collections.abc import Callable
import functools

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.small_networks import drawn, numbers
from vfljax import algorithms, crossing, nets, protocol, train
from vfljax.completion import Samples, Schedule, complete
from vfljax.defense import none
from vfljax.defenses.dcor import dcor
from vfljax.nets import Norm
from vfljax.nets.heads import normalized_head
from vfljax.types import Batch

KEY = jax.random.key(0)
REAL = np.array([1, 1, 0, 1, 1, 0, 1], bool)
X = np.random.default_rng(0).normal(3, 2, (2, 7, 2, 2, 3)).astype(np.float32)


class Normed(nn.Module):
  """What a network with batch statistics is, at the least."""

  @nn.compact
  def __call__(self, x, train: bool = False):
    x = Norm('batch')(x, train)
    return nets.Dense(4)(x.reshape(len(x), -1))


def federation():
  net = nets.linen(Normed())
  # The top has statistics of its own.
  return algorithms.vhnn([net] * 2, nets.then(nets.mlp(4), top()))


def top():
  class Top(nn.Module):

    @nn.compact
    def __call__(self, x, train: bool = False):
      return nets.Dense(2)(Norm('batch')(x, train))

  return nets.linen(Top())


def batch(rows):
  """Those rows of the samples; padding has no label."""
  labels = np.eye(2, dtype=np.float32)[np.arange(7) % 2] * REAL[:, None]
  return Batch(tuple(x[rows] for x in X), labels[rows])


@pytest.mark.parametrize('defense', [none(), dcor(0.0)], ids=['none', 'dcor'])
def test_padding_is_nothing_to_statistics(defense):
  vfl, txs = federation(), (optax.sgd(0.5),) * 2
  state = numbers(jax.eval_shape(
      lambda data: protocol.init(KEY, vfl, defense, txs, data), batch(REAL)
  ))

  @jax.jit
  def play(samples):
    return protocol.play_round(KEY, vfl, defense, txs, state, samples)

  padded, seen = play(batch(np.ones(7, bool)))
  alone, expected = play(batch(REAL))
  np.testing.assert_allclose(seen.loss, expected.loss, rtol=1e-5)
  for ours, theirs in zip(
      jax.tree.leaves(padded.parties), jax.tree.leaves(alone.parties)
  ):
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
  for party, x in zip(padded.parties, X):
    stats = party.params['bottom']['batch_stats']['Norm_0']['BatchNorm_0']
    real = x[REAL].astype(np.float64).reshape(-1, 3)
    # The running ones start at 0 and 1 and go a tenth of the way.
    np.testing.assert_allclose(stats['mean'], 0.1 * real.mean(0), rtol=1e-5)
    np.testing.assert_allclose(
        stats['var'], 0.9 + 0.1 * real.var(0), rtol=1e-5
    )


class Folded(nn.Module):
  """It normalizes rows of another number than the batch's: [b, t, d] folded."""

  fold: Callable = lambda x: x.reshape(-1, x.shape[-1])
  masked: bool = False

  @nn.compact
  def __call__(self, x, train: bool = False):
    rows = self.fold(x)
    mask = rows[:, :1] > 3 if self.masked else None
    return nn.BatchNorm(not train, momentum=0.9)(rows, mask=mask)


@pytest.mark.parametrize('masked', [False, True])
def test_rows_that_hold_a_folded_axis(masked):
  """Each sample has as many; of these the module may leave some out."""
  x = X[0].reshape(7, 4, 3)
  net = nets.counting_rows(nets.linen(Folded(masked=masked)), REAL)
  params = drawn(net, x)
  y, found = jax.jit(net.run)(params, KEY, x)
  real = x[REAL].astype(np.float64).reshape(-1, 3)
  if masked:
    real = real[real[:, 0] > 3]
  stats = found['BatchNorm_0']
  np.testing.assert_allclose(stats['mean'], 0.1 * real.mean(0), rtol=1e-5)
  np.testing.assert_allclose(stats['var'], 0.9 + 0.1 * real.var(0), rtol=1e-5)
  expected = (x.reshape(-1, 3) - real.mean(0)) / np.sqrt(real.var(0) + 1e-5)
  expected += params['params']['BatchNorm_0']['bias']
  np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_a_batch_of_padding_alone_leaves_finite_statistics():
  """As completion has them, where all labels of a batch are of no class: the
  running statistics were NaN from then on, and so was what VMask imagines."""
  x = X[0].reshape(7, 12)
  net = nets.linen(Folded())
  params = drawn(net, x)
  none_real = nets.counting_rows(net, np.zeros(7, bool))
  for ours, theirs in zip(*(
      jax.tree.leaves(jax.jit(made.run)(params, KEY, x))
      for made in (none_real, net)
  )):
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_rows_of_no_sample_cannot_be_counted():
  x = X[0].reshape(7, 4, 3)
  for fold in (lambda x: x[:5, 0], lambda x: x[:, 0].repeat(2, 0)[:13]):
    net = nets.linen(Folded(fold))
    params = jax.eval_shape(net.init, KEY, x)
    counted = nets.counting_rows(net, REAL)
    with pytest.raises(ValueError, match='BatchNorm_0 .* rows in a batch of 7'):
      jax.eval_shape(counted.train, params, KEY, x)
    jax.eval_shape(counted.apply, params, x)


def test_running_statistics_ask_for_no_rows():
  class Frozen(nn.Module):

    @nn.compact
    def __call__(self, x, train: bool = False):
      return nn.BatchNorm()(x[:5, 0], use_running_average=True)

  net = nets.linen(Frozen())
  params = jax.eval_shape(net.init, KEY, X[0])
  counted = nets.counting_rows(net, REAL)
  assert jax.eval_shape(counted.train, params, KEY, X[0])[0].shape[0] == 5


@pytest.mark.slow
def test_an_epoch_with_a_padded_round():
  """7 samples in rounds of 4: the last round's statistics are of three."""
  labels = np.eye(2, dtype=np.float32)[np.arange(7) % 2]
  data = jax.device_put(Batch(tuple(X), labels))
  plans = {
      how: train.Plan(
          federation(), none(), (optax.sgd(0.1),) * 2, 1, 4, remainder=how
      ) for how in ('pad', 'keep')
  }

  def run(plan):
    shapes = jax.eval_shape(lambda: train.start(KEY, plan, data))
    begun = shapes._replace(key=KEY, state=numbers(shapes.state))
    return jax.jit(
        lambda begun: train.advance(plan, begun, data, 0, 1)[0].state.parties
    )(begun)

  for ours, theirs in zip(
      jax.tree.leaves(run(plans['pad'])), jax.tree.leaves(run(plans['keep']))
  ):
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_perceptron_with_batch_norm_against_numpy():
  """Before every activation, the last one too, in training by the batch."""
  net = nets.mlp(3, 2, norm='batch', final='relu')
  x = X[0].reshape(7, -1)
  params = drawn(net, x)
  y, stats = jax.jit(net.run)(params, KEY, x)
  own, state = params['params'], x
  for i in range(2):
    dense, norm = own[f'Dense_{i}']['Dense_0'], own[f'Norm_{i}']['BatchNorm_0']
    state = state @ np.asarray(dense['kernel']) + np.asarray(dense['bias'])
    found = stats[f'Norm_{i}']['BatchNorm_0']
    np.testing.assert_allclose(
        found['mean'], 0.1 * state.mean(0), rtol=1e-4, atol=1e-5
    )
    state = (state - state.mean(0)) / np.sqrt(state.var(0) + 1e-5)
    state = state * np.asarray(norm['scale']) + np.asarray(norm['bias'])
    state = np.maximum(state, 0)
  np.testing.assert_allclose(y, state, rtol=1e-4, atol=1e-5)
  init = lambda net: jax.eval_shape(net.init, KEY, x)
  assert 'Norm_0' not in init(nets.mlp(3, 2))
  plain = init(nets.mlp(3, 2, norm='batch', final='linear'))['params']
  assert 'Norm_0' in plain and 'Norm_1' not in plain  # No activation after it.
  with pytest.raises(ValueError, match='mlp: norm'):
    nets.mlp(3, 2, norm='layer')


def test_an_attackers_last_batch_counts_its_samples_alone():
  """Five samples in batches of four: the fifth is a batch of its own."""
  net = nets.linen(Normed())
  x, y = X[0][:5], np.eye(4, dtype=np.float32)[np.arange(5) % 4]
  params = drawn(net, x)

  def logits(params, x):
    """The statistics by which they are asked for."""
    seen = params['batch_stats']['Norm_0']['BatchNorm_0']['mean']
    return jnp.tile(seen, (len(x), 1))

  schedule = Schedule(1, 4, 1, 1e-9, 'sgd')
  found = jax.jit(lambda samples: complete(
      KEY, schedule, logits, params, samples, net
  ))(Samples(x, y, x))
  order = np.asarray(jax.random.permutation(jax.random.split(KEY, 1)[0], 5))
  mean = np.zeros(3)
  for rows in (order[:4], order[4:]):
    mean = 0.9 * mean + 0.1 * X[0][rows].mean((0, 1, 2))
  np.testing.assert_allclose(found[-1, 0], mean, rtol=1e-4)


@pytest.mark.parametrize('real', [REAL, ~REAL, np.ones(7, bool)])
def test_an_inference_head_leaves_out_rows_that_fill_up(real):
  """It is what it is of the real rows alone; of none it is a number."""
  net, x = normalized_head(3, layers=2), X[0].reshape(7, -1)
  params = drawn(net, x)

  @jax.jit
  def run(x, rows):
    with crossing.in_round(rows):
      return net.run(params, KEY, x)

  y, stats = run(x, np.float32(real))
  alone, expected = jax.jit(lambda x: net.run(params, KEY, x))(x[real])
  np.testing.assert_allclose(y[real], alone, rtol=1e-4, atol=1e-5)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
      stats, expected,
  )
  nobody = run(x, np.zeros(7, np.float32))
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(nobody))


def test_an_inference_head_written_out():
  """By what was measured at inference, by the batch in training."""
  net, x = normalized_head(3), X[0].reshape(7, -1)
  (p,) = params = [drawn(net, x)[0] | dict(
      mean=x[0] / 2, var=1e-4 * x[1] ** 2, scale=x[2], shift=x[3] - 3
  )]

  def output(mean, var):
    u = (x - mean) / np.sqrt(var + 1e-5) * p['scale'] + p['shift']
    return np.maximum(u, 0) @ np.asarray(p['kernel']) + p['bias']

  at_rest, (y, (stats,)) = jax.jit(
      lambda params: (net.apply(params, x), net.run(params, KEY, x))
  )(params)
  near = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4)
  near(at_rest, output(p['mean'], p['var']))
  near(y, output(x.mean(0), x.var(0)))
  near(stats['mean'], 0.9 * p['mean'] + 0.1 * x.mean(0))
  near(stats['var'], 0.9 * p['var'] + 0.1 * x.var(0))
  shapes = jax.eval_shape(normalized_head(3, layers=3).init, KEY, x)
  assert [p['kernel'].shape for p in shapes] == [(12, 12), (12, 12), (12, 3)]


def test_an_inference_heads_bias_is_added():
  net, x = normalized_head(3), X[0].reshape(7, -1)
  (params,) = net.init(KEY, x)
  bias = np.float32([1, 2, 3])
  params |= dict(kernel=0 * params['kernel'], bias=bias)
  np.testing.assert_array_equal(net.apply([params], x), np.tile(bias, (7, 1)))


def test_an_attackers_head_counts_its_samples_alone():
  """Five samples in batches of four, of a head that is no Linen module."""
  net, x = normalized_head(4), X[0][:5].reshape(5, -1)
  y = np.eye(4, dtype=np.float32)[np.arange(5) % 4]
  params = drawn(net, x)
  seen = lambda params, x: jnp.tile(params[0]['mean'][:4], (len(x), 1))
  found = jax.jit(lambda samples: complete(
      KEY, Schedule(1, 4, 1, 1e-9, 'sgd'), seen, params, samples, net
  ))(Samples(x, y, x))
  order = np.asarray(jax.random.permutation(jax.random.split(KEY, 1)[0], 5))
  mean = np.asarray(params[0]['mean'])
  for rows in (order[:4], order[4:]):
    mean = 0.9 * mean + 0.1 * x[rows].mean(0)
  np.testing.assert_allclose(found[-1, 0], mean[:4], rtol=1e-4)
