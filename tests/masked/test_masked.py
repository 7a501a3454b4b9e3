"""Masked layers: equal to plain training, messages by the formulas.

Expected numbers come from NumPy in float64 and from JAX's own operations.
"""
import functools
from pathlib import Path
import warnings

from flax import linen as nn
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.masked_federation import (
    BATCH, ETA, MLP, QUICK, SEEDS, compiled, digits, federated, federation,
    found_in, in_the_clear, network, noise, numbers,
)
from vfljax import mpc, nets, target
from vfljax.masked import masking, shares, training
from vfljax.masked.shares import Public
from vfljax.masked.training import Setup
from vfljax.mpc import one_sided, prg, wire
from vfljax.nets import augment, intercept
from vfljax.nets.convolution import Conv

GOLDEN = Path(__file__).parents[1] / 'golden'


def numpy_mlp(params, x):
  """The float64 network, written out."""
  for i in range(3):
    layer = params[f'Dense_{i}']['Dense_0']
    x = x @ np.float64(layer['kernel']) + np.float64(layer['bias'])
    x = np.maximum(x, 0) if i < 2 else x
  return x


@pytest.fixture(scope='module', params=[
    'dense', pytest.param('conv', marks=pytest.mark.slow)
])
def epoch(request):
  """Exact training, and its plaintext equivalent beside it.

  An epoch of convolutions, which learn later, and half of one without.
  """
  kind = request.param
  names = MLP if kind == 'dense' else ('conv1', 'conv2', 'fc2')
  setting = Public(prg=prg.THREEFRY if kind == 'dense' else QUICK)
  job, state, plain, other, keys, x, y = federation(
      kind, names, setting=setting)
  rows, traces, key = [], [], jax.random.key(0)

  def once(*args):
    traces.append(1)
    return training.step(job, *args)

  step, deal = mpc.jit(once), compiled(job)[1]
  fast = in_the_clear(plain)
  for i in range(50 if kind == 'dense' else len(x) // BATCH):
    batch = slice(BATCH * i, BATCH * (i + 1))
    dealt, _ = deal(keys, state.weights, 0, i)
    before = state.weights
    state, played = step(state, dealt, key, x[batch], y[batch])
    training.check(job, played)
    other, want = fast(other, {}, key, x[batch], y[batch])
    rows.append((before, played, want))
  assert len(traces) == 1
  return kind, job, x, rows, state, other


def test_losses_are_those_of_plain_training(epoch):
  _, _, _, rows, state, other = epoch
  got = np.array([float(played.loss) for _, played, _ in rows])
  want = np.array([float(want.loss) for *_, want in rows])
  assert np.abs(got - want).max() < 1e-4
  assert want[-5:].mean() < want[:5].mean() - 0.05  # It learns.
  for a, b in zip(jax.tree.leaves(state.active), jax.tree.leaves(other.active)):
    np.testing.assert_allclose(a, b, atol=1e-4)


def test_outputs_are_the_layers_own_to_2e6(epoch):
  kind, job, x, rows, _, _ = epoch
  apply = jax.jit(job.net.apply)
  for i in (0, len(rows) // 2, len(rows) - 1):
    before, played, _ = rows[i]
    params = training.reveal(job, before, jnp.float32)
    batch = np.float64(x[BATCH * i:BATCH * (i + 1)])
    if kind == 'dense':
      want = numpy_mlp(params, batch)
    else:
      with jax.enable_x64(True):
        exact = jax.tree.map(lambda p: jnp.asarray(p, jnp.float64), params)
        want = np.asarray(apply(exact, batch))
    off = np.abs(np.asarray(played.embedding) - want).max()
    assert off < 2e-6 * np.abs(want).max()


def test_the_shares_sum_to_the_weights_after_every_step(epoch):
  """M + V == enc(theta), with theta's codes kept in NumPy."""
  _, job, _, rows, state, _ = epoch
  after = [before for before, _, _ in rows[1:]] + [state.weights]
  for layer in job.chosen:
    bits = shares.weight_bits(job.public, layer)
    path = tuple(layer.name.split('/'))
    for name in layer.leaves:
      pick = lambda w, at=(layer.name, name): w.secret[at[0]][at[1]]
      both = lambda w, pick=pick: np.add(*map(np.asarray, pick(w)))
      codes, v = both(rows[0][0]), pick(rows[0][0]).active
      for (_, played, _), weights in zip(rows, after):
        move = intercept.leaves_at(played.moves, path)[name]
        codes = codes + np.round(np.float64(move) * 2.0**bits[name]).astype(int)
        np.testing.assert_array_equal(both(weights), codes)
      # V never moves.
      np.testing.assert_array_equal(v, pick(state.weights).active)


def test_moves_are_the_passive_partys_own_arithmetic(epoch):
  kind, job, _, rows, _, _ = epoch
  _, played, _ = rows[0]
  for layer in job.chosen:
    z, _, g = played.seen[layer.name]
    move = intercept.leaves_at(played.moves, tuple(layer.name.split('/')))
    if z.ndim == 2:
      want = -ETA * np.einsum('bi,bj', z, g, dtype=np.float64)
      np.testing.assert_allclose(move['kernel'], want, atol=1e-7)
    want = -ETA * np.float64(g).reshape(-1, g.shape[-1]).sum(0)
    np.testing.assert_allclose(move['bias'], want, atol=1e-7)
  plain = jax.tree.leaves(rows[-1][0].plain)
  zero = sum(not np.any(leaf) for leaf in plain)
  assert zero == 2 * len(job.chosen)  # Masked weights are nowhere in the clear.


def test_the_callers_program_stays_32_bit(epoch):
  _, _, _, rows, _, _ = epoch
  assert jnp.arange(3).dtype == jnp.int32 and jnp.zeros(3).dtype == jnp.float32
  _, played, _ = rows[0]
  told = played._replace(clipped={})  # Yes or no.
  assert {leaf.dtype for leaf in jax.tree.leaves(told)} == {
      jnp.dtype('float32')}


@pytest.mark.slow
def test_the_last_layer_can_leave_its_output_with_the_active_party():
  """T4: plain training to its fixed point's precision, and no g at P."""
  job, state, plain, other, keys, x, y = federation(
      'dense', ('Dense_1', 'Dense_2'), 'Dense_2')
  step, deal = compiled(job)
  fast = in_the_clear(plain)
  off = []
  for i in range(20):
    batch = slice(BATCH * i, BATCH * (i + 1))
    dealt, _ = deal(keys, state.weights, 0, i)
    state, played = step(state, dealt, jax.random.key(0), x[batch], y[batch])
    training.check(job, played)
    other, want = fast(other, {}, jax.random.key(0), x[batch], y[batch])
    off.append(abs(float(played.loss) - float(want.loss)))
    move = intercept.leaves_at(played.moves, ('Dense_2', 'Dense_0'))
    assert not np.any(move['kernel']) and not np.any(move['bias'])
  assert max(off) < 1e-4
  got = training.reveal(job, state.weights)
  for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(other.weights.plain)):
    np.testing.assert_allclose(a, b, atol=2e-5)


def said(job, state, keys, x, y):
  transcript = training.transcript(
      job, state, keys, jax.random.key(0), x[:BATCH], y[:BATCH])
  return [(m.name, m.size, m.flight) for m in transcript if m.flight], (
      wire.count(transcript)), transcript


def test_messages_of_dense_layers_are_the_formulas():
  """X + Y words up and down a pass; nothing for the first layer's gradient."""
  job, state, _, _, keys, x, y = federation('dense', MLP[:2])
  got, count, transcript = said(job, state, keys, x, y)
  x0, y0, y1 = BATCH * 32, BATCH * 24, BATCH * 16
  first, second = 'Dense_0/Dense_0', 'Dense_1/Dense_0'
  assert got == [
      (f'{first}: E', 8 * x0, 1), (f'{first}: s', 8 * y0, 2),
      (f'{second}: E', 8 * y0, 3), (f'{second}: s', 8 * y1, 4),
      (f'{second}: E', 8 * y1, 5), (f'{second}: s', 8 * y0, 6),
  ]
  assert count.bytes == 8 * (x0 + y0 + 2 * (y0 + y1)) and count.flights == 6
  assert count.offline_bytes == 8 * (y0 + y1 + y0)
  slow = wire.seconds(transcript, wire.Network(1e6, 0.25))
  assert slow == pytest.approx(6 * 0.25 + 8 * count.bytes / 1e6)


def test_masked_training_stretches_no_axis_itself():
  job, state, _, _, keys, x, y = federation('dense', MLP[:2])
  with jax.numpy_rank_promotion('raise'):
    assert said(job, state, keys, x, y)[1].flights == 6


def test_messages_of_convolutions_are_the_formulas():
  setting = Public(drop_bytes=3, prg=QUICK)
  job, state, _, _, keys, x, y = federation(
      'conv', ('conv1', 'conv2'), setting=setting)
  got, count, _ = said(job, state, keys, x, y)
  x1, y1 = BATCH * 8 * 4, BATCH * 8 * 4 * 3
  x2, y2 = BATCH * 4 * 2 * 3, BATCH * 4 * 2 * 4
  assert got == [
      ('conv1: E', 8 * x1, 1), ('conv1: s', 5 * y1, 2),
      ('conv2: E', 8 * x2, 3), ('conv2: s', 5 * y2, 4),
      ('conv2: E', 8 * y2, 5), ('conv2: s', 5 * x2, 6),
  ]
  assert count.offline_bytes == 8 * (y1 + y2 + x2)


def test_messages_under_t4_are_the_formulas():
  job, state, _, _, keys, x, y = federation('dense', ('Dense_2',), 'Dense_2')
  got, count, _ = said(job, state, keys, x, y)
  x_, y_, w_ = BATCH * 16, BATCH * 8, 16 * 8
  name = 'Dense_2/Dense_0'
  assert got == [
      (f'{name}: F', 8 * w_, 1), (f'{name}: E', 8 * x_, 2),
      (f'{name}: c', 8 * y_, 2), (f'{name}: F2', 8 * y_, 3),
      (f'{name}: E3', 8 * w_, 3), (f'{name}: s', 8 * x_, 4),
  ]
  assert count.offline_bytes == 8 * (x_ + y_ + w_)


def test_no_two_masks_are_the_same_words():
  """Layers of one weight and one bias: of all the words drawn for them, over
  layers, leaves, steps, passes and maskings, no two are alike."""
  net, x = nets.mlp(1, 1, 1), jnp.ones((1, 1), jnp.float32)
  params = jax.jit(net.init)(jax.random.key(0), x)
  chosen = masking.layers(net, params, x)
  assert len(chosen) == 3
  keys = one_sided.seeds(prg.THREEFRY, jax.random.key(3))
  extra = masking.noise(jax.random.key(4), chosen)
  assert len({float(n.ravel()[0]) for layer in extra.values()
              for n in layer.values()}) == 6
  head = lambda active, u, batch: u.sum()
  job = Setup(net, head, (optax.sgd(0.1),) * 2, chosen)
  words = []
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # So few inputs fail VMask's condition.
    both = [
        masking.mask(Public(), chosen, keys, params, extra, period)[0]
        for period in range(2)
    ]
  with jax.enable_x64(True):
    for weights in both:
      for leaves in weights.secret.values():
        words += [leaf.active for leaf in leaves.values()]
    for period, number in ((0, 0), (0, 1), (1, 0)):
      dealt, _ = training.deal(job, keys, both[period], period, number)
      for own in dealt.values():
        for one in (own.forward, own.backward):
          words += [] if one is None else [one.u, one.passive]
  found = [int(np.ravel(word)[0]) for word in words]
  # The first layer's input needs no gradient.
  assert len(found) == 2 * 6 + 3 * (2 + 4 + 4)
  assert len(set(found)) == len(found)


def test_masking_and_unmasking_say_the_weights_once():
  net, shape = network('dense')
  x, _ = digits(shape)
  params = numbers(net, x[:2], 1)
  chosen = masking.choose(masking.layers(net, params, x[:8]), ('Dense_1',))
  keys, quick = SEEDS, Public(prg=QUICK)
  extra, fresh = (noise(chosen, seed) for seed in (4, 5))
  weights, told = masking.mask(quick, chosen, keys, params, extra, 0)
  words = 24 * 16 + 16
  assert wire.count(told) == wire.Count(8 * words, words, 1, 0)
  back, told = masking.unmask(quick, chosen, weights, fresh)
  assert wire.count(told) == wire.Count(8 * words, words, 1, 0)
  assert not back.secret
  for name in ('kernel', 'bias'):
    got = back.plain['Dense_1']['Dense_0'][name]
    want = sum(
        np.float64(part[name]) for part in (
            params['Dense_1']['Dense_0'], *extra.values(), *fresh.values())
    )
    np.testing.assert_allclose(got, want, atol=2e-7)
  again, _ = masking.mask(quick, chosen, keys, params, extra, 1)
  old, new = (w.secret['Dense_1/Dense_0']['kernel'] for w in (weights, again))
  assert not np.any(np.asarray(old.active) == np.asarray(new.active))


# One is masked again, one goes on being masked, and in the end none is.
SELECTIONS = (
    ('Dense_0', 'Dense_2'), ('Dense_1', 'Dense_2'), ('Dense_0', 'Dense_2'), (),
)
MOMENTUM = optax.sgd(0.2, momentum=0.9), optax.sgd(0.2)


def test_training_goes_on_exactly_when_other_layers_are_masked():
  """Algorithm 4's loop: masks, trains, unmasks, masks others, trains on."""
  first, *others = SELECTIONS
  job, state, plain, other, keys, x, y = federation('dense', first)
  job, plain = (one._replace(txs=MOMENTUM) for one in (job, plain))
  state, other = (
      training.start(one, now.weights, now.active)
      for one, now in ((job, state), (plain, other))
  )
  found = masking.layers(job.net, other.weights.plain, x[:BATCH])
  fast = in_the_clear(plain)
  key, told = jax.random.key(0), []

  def some_steps(job, state, other, period):
    step, deal = compiled(job)
    for i in range(5):
      batch = slice(BATCH * (5 * period + i), BATCH * (5 * period + i + 1))
      dealt, _ = deal(keys, state.weights, period, i)
      state, played = step(state, dealt, key, x[batch], y[batch])
      training.check(job, played)
      other, _ = fast(other, {}, key, x[batch], y[batch])
    return state, other

  def check_equal(job, state, other):
    got = training.reveal(job, state.weights)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(other.weights.plain)):
      np.testing.assert_allclose(a, b, atol=2e-6)

  state, other = some_steps(job, state, other, 0)
  check_equal(job, state, other)
  for period, names in enumerate(others, start=1):
    chosen = masking.choose(found, names)
    before = {layer.name for layer in job.chosen}
    moved = [f for f in found if (f in chosen) != (f.name in before)]
    extra = noise(moved, 10 + period)
    with warnings.catch_warnings():
      warnings.simplefilter('ignore', UserWarning)  # Condition B < n1.
      weights, said = masking.change(
          job.public, (job.chosen, chosen), keys, state.weights, extra, period
      )
    told.append(len(said))
    assert set(weights.secret) == {layer.name for layer in chosen}
    for layer in found:  # Where nothing changed, not a word was.
      if layer.name in before and layer in chosen:
        assert weights.secret[layer.name] is state.weights.secret[layer.name]
    job, state = job._replace(chosen=chosen), state._replace(weights=weights)
    noisy = masking.noisy(other.weights.plain, moved, extra)
    other = other._replace(weights=masking.Weights(noisy, {}))
    check_equal(job, state, other)
    state, other = some_steps(job, state, other, period)
    check_equal(job, state, other)
  assert all(told)


class Strided(nn.Module):
  """A convolution whose window and padding are all different."""

  @nn.compact
  def __call__(self, x):
    y = Conv(3, (3, 2), strides=(2, 1), padding=((1, 0), (0, 1)), name='a')(x)
    return Conv(2, (2, 2), (1, 2), 'VALID', use_bias=False, name='b')(y)


@pytest.mark.slow
def test_strides_and_padding():
  net = nets.linen(Strided())
  rng = np.random.default_rng(0)
  x = rng.normal(size=(3, 7, 6, 2)).astype(np.float32)
  params = numbers(net, x, 0)
  chosen = masking.choose(masking.layers(net, params, x), ('a', 'b'))
  assert [layer.leaves for layer in chosen] == [('kernel', 'bias'), ('kernel',)]
  assert [layer.first for layer in chosen] == [True, False]
  keys, quick = SEEDS, Public(prg=QUICK)
  still = jax.tree.map(np.zeros_like, noise(chosen))
  with pytest.warns(UserWarning, match='section IV-D'):
    weights = mpc.entry(jax.jit(
        lambda *args: masking.mask(quick, chosen, keys, *args, 0)[0]
    ))(params, still)

  def loss(active, u, batch):
    del active
    return (u * batch).sum()

  job = Setup(net, loss, (optax.sgd(1.0), optax.sgd(1.0)), chosen, quick)
  c = rng.normal(size=jax.eval_shape(net.apply, params, x).shape)

  def reference(params, x):
    conv = functools.partial(
        lax.conv_general_dilated, dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    y = conv(x, params['a']['kernel'], (2, 1), ((1, 0), (0, 1)))
    y = y + params['a']['bias']
    return conv(y, params['b']['kernel'], (1, 2), 'VALID')

  state = training.start(job, weights, ())
  step, deal = compiled(job)
  dealt, _ = deal(keys, weights, 0, 0)
  _, played = step(state, dealt, jax.random.key(0), x, c.astype(np.float32))
  with jax.enable_x64(True):
    wide = jax.tree.map(lambda p: jnp.asarray(p, jnp.float64), params)
    c = c.astype(np.float32).astype(float)
    both = jax.jit(lambda p: (
        reference(p, x.astype(float)),
        jax.grad(lambda p: (reference(p, x.astype(float)) * c).sum())(p)))
    want, grads = both(wide)
  scale = np.abs(want).max()
  np.testing.assert_allclose(played.embedding, want, atol=2e-6 * scale)
  for a, b in zip(jax.tree.leaves(played.moves), jax.tree.leaves(grads)):
    np.testing.assert_allclose(a, -b, rtol=1e-5, atol=1e-5)


def test_a_network_without_masked_layers_is_itself():
  net, shape = network('conv')
  x, _ = digits(shape)
  params = numbers(net, x[:2], 1)
  met = []

  def look(layer, z):
    met.append(layer.name)
    return layer.plain(layer.params, z) if layer.name == 'conv2' else None

  got = jax.jit(intercept.intercepted(net, look).apply)(params, x[:3])
  want = jax.jit(net.apply)(params, x[:3])
  np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
  want = ['conv1', 'conv2', 'fc1/Dense_0', 'fc2/Dense_0', 'fc3/Dense_0']
  assert met == want
  found = masking.layers(net, params, x[:3])
  assert [f.name for f in found] == want
  assert [f.first for f in found] == [True, False, False, False, False]
  assert [f.final for f in found] == [False, False, False, False, True]


@pytest.mark.parametrize('kind', ['cuda', 'tpu'])
def test_layers_are_the_same_on_every_device(kind):
  """What is put behind a layer for a device's sake is none of the network."""
  net, shape = network('dense')
  x, _ = digits(shape)
  params = numbers(net, x[:2], 1)
  told = lambda: [
      (f.name, f.first, f.final) for f in masking.layers(net, params, x[:3])
  ]
  here = told()
  with target.tracing_for(kind):
    assert told() == here


DEEP = {
    'vgg13': (
        dict(channels=(2,), hidden=(6,), dropout=0.3), (8, 4, 1), ('conv1_2',)
    ),
    'encoder': (
        dict(path=str(GOLDEN / 'tiny_distilbert'), blocks=1, dropout=0.2),
        (6,), ('encoder/block00/attention/attend3_value',),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize('name', DEEP)
def test_deeper_networks_train_as_they_do_in_the_clear(name):
  """BatchNorm, dropout, attention: what lies between is nobody's to change."""
  options, shape, names = DEEP[name]
  net = augment.augmented(
      nets.make(name, 8, **options), name == 'vgg13', name == 'vgg13'
  )
  x, y = digits(shape)
  if name == 'encoder':  # Numbers of words.
    x = np.clip(4 + 5 * np.abs(x), 4, 39).astype(np.float32)
  job, state, plain, other, keys, x, y = federated(net, x, y, names)
  step, deal = compiled(job)
  fast = in_the_clear(plain)
  key = jax.random.key(5)
  for i in range(2):
    dealt, _ = deal(keys, state.weights, 0, i)
    state, got = step(state, dealt, key, x[:BATCH], y[:BATCH])
    training.check(job, got)
    other, want = fast(other, {}, key, x[:BATCH], y[:BATCH])
    assert abs(got.loss - want.loss) < 1e-4
    np.testing.assert_allclose(got.embedding, want.embedding, atol=1e-4)


def test_deeper_networks_are_masked_without_a_second_definition():
  """Every linear layer of ResNet18, by tracing the protocol alone."""
  found = found_in(nets.make('resnet18', 8), 2, 8, 8, 3)
  assert len(found) == 21 and found[0].first and found[-1].final
  assert [f.name for f in found if f.first] == ['conv0']
  strides = [f for f in found if f.bilinear.y_shape[1:3] != f.bilinear.x_shape[
      1:3] and len(f.bilinear.x_shape) == 4]
  assert len(strides) == 6  # Three stages that halve, each with a shortcut.
