"""CAFE against its authors' numbers, closed forms and a small network."""
from pathlib import Path
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import small_networks
from vfljax import algorithms, attacks, metrics, nets
from vfljax.attacks.cafe import (
    FirstLinear, Found, Recovery, begin, first, first_linear,
    published, recover, second, third, total_variation,
)
from vfljax.defenses import dp_weights
from vfljax.nets import bottleneck
from vfljax.nets import cafe as network
from vfljax.views import WhiteBox

KEY = jax.random.key(0)
GOLDEN = np.load(Path(__file__).parents[1] / 'golden' / 'cafe_shots.npz')
POOL, BATCH, ROUNDS = 12, 4, 30
FIRST_SLOPE, SECOND_SLOPE = jax.jit(jax.grad(first)), jax.jit(jax.grad(second))


@pytest.mark.parametrize('worker', [0, 1])
def test_the_authors_first_step(worker):
  get = lambda name: jnp.asarray(GOLDEN[f'w{worker}_{name}'])
  rows = jnp.asarray(GOLDEN['batch_index'])
  start = get('dummy_out_grad0')
  slope = np.asarray(FIRST_SLOPE(start, rows, get('true_db')))
  np.testing.assert_allclose(
      np.asarray(start) - np.float32(5e-3) * slope, get('out_grad_after1'),
      rtol=1e-5, atol=1e-7,
  )


@pytest.mark.parametrize('worker', [0, 1])
def test_the_direction_of_the_authors_second_step(worker):
  """Their Adam is their own, without the bias correction of the first step: it
  goes where ours goes, a third as far."""
  get = lambda name: jnp.asarray(GOLDEN[f'w{worker}_{name}'])
  rows = jnp.asarray(GOLDEN['batch_index'])
  start = get('dummy_in0')
  slope = np.asarray(SECOND_SLOPE(
      start, get('out_grad_after1'), rows, get('true_dW')
  ))
  moved = np.asarray(get('in_after1')) - np.asarray(start)
  clear = np.abs(slope) > 1e-5
  assert clear.sum() > 15
  np.testing.assert_array_equal(np.sign(moved)[clear], -np.sign(slope)[clear])
  others = np.setdiff1d(np.arange(len(start)), np.asarray(rows))
  assert not slope[others].any() and not moved[others].any()


def linear(weights, x):
  """Flattened pixels into one linear layer: stage two gives the samples."""
  into = x.reshape(len(x), -1)
  return into, into @ weights['bottom']['kernel'] + weights['bottom']['bias']


LINEAR = FirstLinear(
    linear, lambda g: (g['bottom']['kernel'], g['bottom']['bias'])
)


def view_of(weights, around, truth, outputs, seed=0):
  """Gradients of the mean loss in rounds whose dz are `outputs`."""
  rng = np.random.default_rng(seed)
  rows = jnp.asarray(
      np.stack([rng.permutation(POOL)[:BATCH] for _ in range(ROUNDS)])
  )

  def gradient(i):
    out = lambda w: around(w, truth[i])[1]
    return jax.vjp(out, weights)[1](outputs[i] / BATCH)[0]

  return WhiteBox(
      weights, jax.jit(lambda: jax.lax.map(gradient, rows))(), rows,
      jnp.zeros_like(truth),
  )


def images(seed=0, side=6):
  """Smooth images in [0, 1]."""
  rng = np.random.default_rng(seed)
  grid = np.linspace(0, 1, side)
  x = [np.outer(np.sin(a * grid + b) ** 2, np.cos(c * grid) ** 2)
       for a, b, c in rng.uniform(0.5, 3, (POOL, 3))]
  return jnp.asarray(np.stack(x)[..., None], jnp.float32)


def test_the_first_two_stages_find_what_they_should():
  """Thirty rounds over twelve samples determine dz, and four samples a round
  with eight outputs determine x."""
  rng = np.random.default_rng(1)
  weights = dict(bottom=dict(
      kernel=jnp.asarray(rng.normal(size=(36, 8)), jnp.float32),
      bias=jnp.asarray(np.zeros(8, np.float32)),
  ))
  outputs = jnp.asarray(rng.normal(size=(POOL, 8)), jnp.float32)
  view = view_of(weights, linear, images(), outputs)
  view = view._replace(gradients=jax.tree.map(
      lambda g: jnp.asarray(np.asarray(g) * BATCH), view.gradients
  ))
  how = Recovery(1500, output_rate=0.05, input_rate=0.01)

  @jax.jit
  def run(key):
    start = begin(key, view, LINEAR)
    return recover(view, LINEAR, start, how)[0], start

  found, start = run(jax.random.key(0))
  np.testing.assert_allclose(found.outputs, outputs, atol=1e-3)
  truth = np.asarray(images()).reshape(POOL, -1)
  assert np.abs(np.asarray(found.inputs) - truth).mean() < 0.02
  assert isinstance(start, Found) and (np.abs(start.outputs) <= 8e-4).all()


def test_each_stage_goes_by_what_the_one_before_has_just_found():
  """One step from zeros on one number: dz becomes db, by which the input's
  slope is no longer 0, nor then the sample's. Adam's first step is its rate."""
  one, zero = jnp.ones((1, 1)), jnp.zeros((1, 1))
  weights = dict(bottom=dict(kernel=one, bias=jnp.zeros(1)))
  gradients = dict(bottom=dict(kernel=3 * one[None], bias=2 * one))
  view = WhiteBox(weights, gradients, jnp.zeros((1, 1), jnp.int32), zero)
  how = Recovery(
      1, output_rate=0.5, input_rate=0.1, sample_rate=0.03, gradients=0.0
  )
  found, _ = recover(view, LINEAR, Found(zero, zero, zero), how)
  np.testing.assert_allclose(np.ravel(found), [2, 0.1, 0.03], rtol=1e-3)


def test_the_published_weights_are_of_means_over_a_round():
  """The authors' loss: 1e-3 of the inputs' distance, 1e-4 * 100 of that of the
  mean loss's gradients, 1e-4 of an average image's variation."""
  rng = np.random.default_rng(3)
  draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
  x, inputs, outputs = np.asarray(images()), draw(POOL, 36), draw(POOL, 8)
  rows, seen = np.array([1, 3, 4, 7]), dict(kernel=draw(36, 8), bias=draw(8))
  into, dz = x[rows].reshape(BATCH, -1), outputs[rows] / BATCH
  gap = ((into.T @ dz - seen['kernel']) ** 2).sum()
  gap += ((dz.sum(0) - seen['bias']) ** 2).sum()
  rough = sum(np.abs(np.diff(x[rows], axis=axis)).sum() for axis in (1, 2))
  expected = 1e-3 * ((into - inputs[rows]) ** 2).sum() + 1e-4 * 100 * gap
  sums = dict(bottom={k: jnp.asarray(BATCH * v) for k, v in seen.items()})
  weights = jax.tree.map(jnp.zeros_like, sums)
  found = jax.jit(lambda x: third(
      x, jnp.asarray(inputs), jnp.asarray(outputs), jnp.asarray(rows), sums,
      weights, LINEAR, published(BATCH)._replace(smooth=0.0),
  ))(x)
  np.testing.assert_allclose(found, expected + 1e-4 * rough / BATCH, rtol=1e-5)


def test_guesses_start_where_the_authors_do():
  weights = dict(bottom=dict(kernel=np.ones((36, 8)), bias=np.zeros(8)))
  view = WhiteBox(weights, (), np.zeros((1, 1), np.int32), images())
  start = begin(KEY, view, LINEAR)
  for found, low, high in (
      (start.inputs, 0, 0.08), (start.outputs, -8e-4, 8e-4),
      (start.samples, 0, 1),
  ):
    assert low <= found.min() < low + 0.05 * (high - low)
    assert high >= found.max() > high - 0.05 * (high - low)


def small():
  """CAFE's network, small, around its first linear layer."""
  params = small_networks.drawn(
      network.cafe(4, (6, 8), (24, 6)), images(side=8), 2
  )
  middle = network.middle(4, (6, 8), (24, 6))
  around = lambda weights, x: middle(weights['bottom'], x)

  def gradient(g):
    part = g['bottom']['fc1']['Dense_0']
    return part['kernel'], part['bias']

  return dict(bottom=params), FirstLinear(around, gradient)


@pytest.mark.slow
def test_images_come_back_and_noise_keeps_them():
  weights, layer = small()
  truth = images(side=8)
  rng = np.random.default_rng(1)
  outputs = jnp.asarray(rng.normal(size=(POOL, 24)), jnp.float32) * 0.1
  view = view_of(weights, layer.around, truth, outputs)
  attack = attacks.cafe(layer, Recovery(
      400, restarts=2, output_rate=0.05, input_rate=0.02, sample_rate=0.02
  ))
  run = jax.jit(attack.run)
  guess = run(jax.random.key(0), view)
  assert guess.shape == truth.shape
  assert np.min(guess) >= 0 and np.max(guess) <= 1
  score = lambda x: np.mean(metrics.psnr(x, truth))
  whole = np.asarray(truth)
  mean = score(whole.mean(0, keepdims=True) + 0 * whole)
  share = dp_weights.dp_weights(1.0).share
  blurred = jax.jit(jax.vmap(share, (0, 0)))(
      jax.random.split(jax.random.key(5), ROUNDS), view.gradients
  )
  hidden = run(jax.random.key(0), view._replace(gradients=blurred))
  assert score(guess) > mean + 3
  assert score(hidden) < mean


def test_the_restart_of_the_least_misfit_is_believed(monkeypatch):
  """Searches that end where they began, and say so of how far they came."""
  seen = []

  def recover(view, layer, start, recovery):
    misfit = start.samples.mean()
    jax.debug.callback(lambda *x: seen.append(x), start.samples, misfit)
    return start, misfit

  monkeypatch.setattr(sys.modules[begin.__module__], 'recover', recover)
  weights = dict(bottom=dict(
      kernel=np.ones((36, 8), np.float32), bias=np.zeros(8, np.float32)
  ))
  view = WhiteBox(
      weights, jax.tree.map(lambda w: np.stack([w] * ROUNDS), weights),
      np.zeros((ROUNDS, BATCH), np.int32), images(),
  )
  run = jax.jit(attacks.cafe(LINEAR, Recovery(1, restarts=5)).run)
  guess = jax.block_until_ready(run(KEY, view))
  jax.effects_barrier()
  starts, misfits = zip(*seen)
  assert len({float(misfit) for misfit in misfits}) == 5  # Each its own start.
  np.testing.assert_array_equal(guess, starts[np.argmin(misfits)])


def test_total_variation_of_an_edge():
  x = np.zeros((1, 4, 4, 1), np.float32)
  x[:, :, 2:] = 0.5
  np.testing.assert_allclose(jax.jit(total_variation)(x), 4 * 0.5)
  assert float(total_variation(jnp.ones((3, 5)))) == 0


def test_noise_on_weights_clips_all_of_them_together():
  gradients = dict(
      bottom=np.full(4, 3.0, np.float32), defense=np.full(9, 4.0, np.float32)
  )
  norm = (4 * 9 + 9 * 16) ** 0.5
  exact = jax.jit(dp_weights.dp_weights(0.0, 3.0).share)(
      jax.random.key(0), gradients
  )
  np.testing.assert_allclose(exact['bottom'], 3 * 3 / norm, rtol=1e-5)
  np.testing.assert_allclose(exact['defense'], 4 * 3 / norm, rtol=1e-5)
  small = jax.jit(dp_weights.dp_weights(0.0, 0.25).share)(
      jax.random.key(0), dict(bottom=np.full(4, 0.25, np.float32))
  )
  np.testing.assert_allclose(small['bottom'], 0.125, rtol=1e-6)
  many = jax.jit(jax.vmap(
      dp_weights.dp_weights(2.0, 3.0).share, (0, None)
  ))(jax.random.split(jax.random.key(1), 800), gradients)
  np.testing.assert_allclose(
      np.std(np.asarray(many['defense'])), 2.0, rtol=0.04
  )


@pytest.mark.parametrize('make, message', [
    (lambda: attacks.cafe(LINEAR, Recovery(0)), 'steps'),
    (lambda: attacks.cafe(LINEAR, Recovery(restarts=0)), 'restarts'),
    (lambda: dp_weights.dp_weights(-1.0), 'std'),
    (lambda: dp_weights.dp_weights(1.0, 0.0), 'clip_norm'),
])
def test_bad_arguments(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_it_starts_behind_a_bottleneck_where_there_is_one():
  """At MID's linear decoder, whose input is the mean; else at fc1."""
  x = images(side=8)[:3]
  options = dict(width=4, channels=(2, 3), hidden=(5, 4))
  net = network.cafe(**options)
  vfl = algorithms.vhnn([net] * 2, nets.mlp(2))
  start = first_linear(network.middle(**options), vfl)
  params = small_networks.drawn(net, x)
  plain = dict(bottom=params, defense=())
  around = jax.jit(start.around)
  into, out = around(plain, x)
  fc1 = params['fc1']['Dense_0']
  np.testing.assert_allclose(
      out, into @ fc1['kernel'] + fc1['bias'], rtol=1e-5, atol=1e-6
  )
  kernel, bias = start.gradient(plain)
  np.testing.assert_array_equal(kernel, fc1['kernel'])
  np.testing.assert_array_equal(bias, fc1['bias'])
  encoder, decoder = bottleneck.bottleneck(4, hidden=0)
  u = jax.jit(net.apply)(params, x)
  own = bottleneck.Bottleneck(
      small_networks.drawn(decoder, u), small_networks.drawn(encoder, u)
  )
  hidden = dict(bottom=params, defense=own)
  mean, z = around(hidden, x)
  np.testing.assert_allclose(mean, encoder.apply(own.encoder, u)[:, :4])
  np.testing.assert_allclose(z, decoder.apply(own.decoder, mean))
  kernel, bias = start.gradient(hidden)
  np.testing.assert_allclose(mean @ kernel + bias, z, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('hidden, scale', [(0, 2), (5, 1)])
def test_of_bottlenecks_it_starts_behind_any_with_a_linear_decoder(
    hidden, scale
):
  """At its own fc1 behind others, whose decoder is no single layer."""
  x = images(side=8)[:3]
  options = dict(width=4, channels=(2, 3), hidden=(5, 4))
  net, middle = network.cafe(**options), network.middle(**options)
  vfl = algorithms.vhnn([net] * 2, nets.mlp(2))
  start, params = first_linear(middle, vfl), small_networks.drawn(net, x)
  encoder, decoder = bottleneck.bottleneck(4, scale, hidden)
  u = jax.jit(net.apply)(params, x)
  code = jnp.zeros((3, 4 * scale))
  own = bottleneck.Bottleneck(
      small_networks.drawn(decoder, code), small_networks.drawn(encoder, u)
  )
  weights = dict(bottom=params, defense=own)
  into, out = start.around(weights, x)
  if hidden:
    expected, layer = middle(params, x)[0], params['fc1']
  else:
    expected = encoder.apply(own.encoder, u)[:, : 4 * scale]
    layer = own.decoder
  np.testing.assert_allclose(into, expected, rtol=1e-5, atol=1e-6)
  kernel, bias = start.gradient(weights)
  assert {id(kernel), id(bias)} == {*map(id, jax.tree.leaves(layer))}
  np.testing.assert_allclose(out, into @ kernel + bias, rtol=1e-5, atol=1e-6)
