"""What leads XLA to fewer kernels on a GPU: the same numbers, traced for one.

That the kernels are fewer is in `experiments/bench/accel.json`.
"""
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import batch, make, play, start
from vfljax import algorithms, descent, fusing, nets, target, train
from vfljax import defense as defense_of
from vfljax.defenses import fedpass_cut, gafm, gan, randomized
from vfljax.types import Batch

BACK = (fusing.apart_back, fusing.joined_back)
N, KEY = 70, jax.random.key(1)


def for_a_gpu(fn, *arguments):
  """`fn` of the arguments, traced as for a GPU and run here."""
  with target.tracing_for('cuda'):
    return jax.jit(lambda *xs: fn(*xs))(*arguments)


def barriers(platform, fn, *arguments):
  with target.tracing_for(platform):
    made = jax.make_jaxpr(lambda *xs: fn(*xs))(*arguments)
  return str(made).count('optimization_barrier')


def tree() -> dict[str, Any]:
  return dict(
      numbers=jnp.array([2e-38, -0.0, jnp.inf, 3e38, -1.5]), key=KEY,
      counts=jnp.int32([2**31 - 1, -7]), half=jnp.bfloat16([0.1, 3]),
      truths=jnp.array([True, False]), nothing=(),
  )


@pytest.mark.parametrize('fn', [fusing.apart, fusing.joined])
def test_not_a_bit_is_changed(fn):
  found, want = for_a_gpu(fn, tree()), tree()
  assert jax.tree.structure(found) == jax.tree.structure(want)
  for own in (found, want):
    own['key'] = jax.random.key_data(own['key'])
  for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(want)):
    assert x.dtype == y.dtype
    assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize('fn', BACK)
def test_neither_are_a_gradients(fn):
  """Forwards, backwards, twice and for many at a time."""
  x = np.float32([0.3, -2.0, 5.0])
  plain = lambda x: (x**3).sum()
  marked = lambda x: (fn(x) ** 3).sum()
  for of in (
      jax.grad, jax.hessian, lambda f: jax.vmap(jax.grad(lambda x: f(x[None]))),
      lambda f: lambda x: jax.jvp(f, (x,), (x,)),
  ):
    jax.tree.map(
        np.testing.assert_array_equal, for_a_gpu(of(marked), x),
        jax.jit(of(plain))(x),
    )
  assert barriers('cuda', marked, x) == 0
  assert barriers('cuda', jax.grad(marked), x) == 1


def plan(defense, remainder='keep'):
  vfl = algorithms.vhnn([nets.mlp(6, 4)] * 2, nets.binary(nets.mlp(4, 1)))
  return train.Plan(
      vfl, defense, (optax.adam(0.01),) * 2, 2, 16, remainder=remainder
  )


def samples():
  x = np.random.default_rng(0).normal(size=(N, 8)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)]
  return Batch((jnp.array(x[:, :3]), jnp.array(x[:, 3:])), jnp.array(labels))


def trained(defense, remainder='keep'):
  data, own = samples(), plan(defense, remainder)
  run, history = train.advance(own, train.start(KEY, own, data), data, 0, 2)
  return [p.params for p in run.state.parties], history['loss']


@pytest.mark.slow
@pytest.mark.parametrize('remainder', ['keep', 'pad'])
def test_a_training_is_the_same(remainder):
  """Its weights, and the mean of its losses, which are not written down."""
  defense = make('none')
  want = jax.jit(lambda: trained(defense, remainder))()
  found = for_a_gpu(lambda: trained(defense, remainder))
  jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6),
      found, want,
  )


@pytest.mark.parametrize('name', [
    pytest.param('gafm', marks=pytest.mark.slow), 'iso', 'plugvfl', 'ppdl',
])
def test_a_defended_round_is_the_same(name):
  """With its luck, and where networks and norms of a round are taken at once.
  """
  defense = make(name)
  begun = start(KEY, defense, batch())
  fn = lambda *given: play(KEY, defense, *given)
  want = jax.jit(fn)(begun, batch())
  found = for_a_gpu(fn, begun, batch())
  jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5),
      found, want,
  )


@pytest.mark.parametrize('part', gafm.PARTS)
@pytest.mark.parametrize('norm', randomized.NORMS)
def test_terms_may_be_normalised_at_once(norm, part):
  """What GAFM sends, whose two terms have weights and norms of their own."""
  own = gafm.Settings(
      0.05, 3.0, 0.01, 0.1, part, 'f', gafm.Reading(norm), gan.GAN()
  )
  labels = np.eye(2, dtype=np.float32)[np.arange(7) % 2]
  f = np.random.default_rng(0).random((7, 4), np.float32)
  made = gafm.gafm(networks=own.gan)
  state = made.init(KEY, defense_of.Spec((f,), 2)).state

  def slope(f):
    loss = lambda f: sum(gafm.losses(KEY, own, state, f, labels)).mean()
    return jax.value_and_grad(loss)(f)

  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
      for_a_gpu(slope, f), jax.jit(slope)(f),
  )


def test_what_remembers_nothing_reads_a_gradient_once():
  """SGD's step is optax's; Adam's gradient alone is set apart."""
  params = dict(a=jnp.arange(3.0), b=jnp.ones((2, 2)))
  gradients = jax.tree.map(jnp.sin, params)

  def step(tx):
    return lambda g: descent.step(tx, g, tx.init(params), params)[0]

  sgd, adam = step(optax.sgd(0.1)), step(optax.adam(0.1))
  jax.tree.map(
      np.testing.assert_array_equal, for_a_gpu(sgd, gradients), sgd(gradients)
  )
  ones = len(jax.tree.leaves(gradients))
  assert barriers('cuda', sgd, gradients) == ones
  # Both moments, the count, and a gradient twice: set apart and joined.
  assert barriers('cuda', adam, gradients) == 4 * ones + 1


def test_a_single_row_is_not_set_apart():
  params = dict(a=jnp.ones((1, 4)), b=jnp.ones((2, 4)))
  tx = optax.adam(0.1)
  step = lambda g: descent.step(tx, g, tx.init(params), params)[0]
  both = lambda g: step(jax.tree.map(jnp.sin, g))
  jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6),
      for_a_gpu(both, params), jax.jit(lambda g: both(g))(params),
  )
  with target.tracing_for('cuda'):
    traced = str(jax.make_jaxpr(both)(params))
  assert 'f32[2,4] = optimization_barrier' in traced
  assert 'f32[1,4] = optimization_barrier' not in traced


def test_elsewhere_nothing_is_fused():
  fn = lambda: trained(make('fedpass_cut'), 'drop')  # Of one kind of round.
  assert not barriers('cpu', fn) and not barriers('tpu', fn)
  assert barriers('cuda', fn)


def test_a_step_is_optaxs():
  """Also of an optimizer whose state has keys and what is no number."""
  tx = optax.chain(
      optax.add_noise(0.1, 0.5, KEY), optax.apply_if_finite(optax.adam(0.1), 3)
  )
  params = dict(a=jnp.arange(3.0), b=jnp.ones((2, 2)))
  gradients = jax.tree.map(jnp.sin, params)
  step = lambda g, opt, p: descent.step(tx, g, opt, p)
  opt = tx.init(params)
  want, _ = jax.jit(step)(gradients, opt, params)
  found, after = for_a_gpu(step, gradients, opt, params)
  jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), found, want
  )
  assert jax.tree.structure(after) == jax.tree.structure(opt)


@pytest.mark.parametrize('columns', [0, 1, 2, 16, 17])
def test_sums_of_rows_are_sums(columns):
  """Of few columns without a reduction, which would be a kernel."""
  x = np.arange(3 * 2 * columns, dtype='f4').reshape(3, 2, columns)
  np.testing.assert_array_equal(for_a_gpu(fusing.row_sums, x), x.sum(-1))
  with target.tracing_for('cuda'):
    traced = str(jax.make_jaxpr(fusing.row_sums)(x))
  assert ('reduce_sum' in traced) == (columns in (0, 17))


def same_slopes(fn, other, *arguments):
  """Values and gradients, the first traced as for a GPU."""
  both = lambda f: jax.value_and_grad(f, tuple(range(len(arguments))))
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
      for_a_gpu(both(fn), *arguments), jax.jit(both(other))(*arguments),
  )


@pytest.mark.parametrize('classes', [1, 2, 3])
def test_the_loss_of_two_classes(classes):
  """Optax's, also where labels are no distribution and logits are large."""
  random = np.random.default_rng(0)
  logits = random.normal(size=(7, classes)).astype('f4')
  logits[:2] *= 1e4
  labels = random.random((7, classes), 'f4')
  weights = jnp.arange(7.0)
  same_slopes(
      lambda z, y: (weights * fusing.cross_entropy(z, y)).sum(),
      lambda z, y: (weights * optax.softmax_cross_entropy(z, y)).sum(),
      logits, labels,
  )


@pytest.mark.parametrize('rows', [0, 3, 7])
def test_a_mean_over_some_rows(rows):
  """Its gradient is the mean's, and 0 without a row."""
  real = (jnp.arange(7) < rows).astype(jnp.float32)
  square = lambda x: (x**2).sum(-1)
  x = np.random.default_rng(0).normal(size=(7, 2)).astype('f4')
  plain = lambda x: (real * square(x)).sum() / max(rows, 1)
  same_slopes(lambda x: fusing.mean_over(real, square, x), plain, x)
  same_slopes(lambda x: 3 + 2 * fusing.mean_over(real, square, x),
              lambda x: 3 + 2 * plain(x), x)
  product = lambda x, y: square(x) * y
  same_slopes(lambda x, y: fusing.mean_over(real, product, x, y),
              lambda x, y: (real * product(x, y)).sum() / max(rows, 1),
              x, np.arange(7, dtype='f4'))


def test_slopes_of_a_mean_that_was_differentiated():
  """Of its value and of its gradient, to whatever decides them."""
  random = np.random.default_rng(0)
  x, y, scale = random.normal(size=(7, 2)), random.random((7, 2)), 1.5
  real = (jnp.arange(7) < 4).astype(jnp.float32)

  def stepped(mean, loss):
    def fn(x, y, scale):
      own = lambda z, y: scale * loss(scale * z, y)  # Closes over one, too.
      value, slope = jax.value_and_grad(mean(own))(x, y)
      return value + scale * (slope**2).sum() + mean(own)(x - slope, y)

    return fn

  same_slopes(
      stepped(lambda fn: lambda x, y: fusing.mean_over(real, fn, x, y),
              fusing.cross_entropy),
      stepped(lambda fn: lambda x, y: (real * fn(x, y)).sum() / 4,
              optax.softmax_cross_entropy),
      *(jnp.asarray(a, 'f4') for a in (x, y, scale)),
  )


def test_a_means_slope_to_which_rows_count():
  x, real = jnp.arange(1.0, 5.0), jnp.array([1.0, 0.5, 1, 0])
  mean = lambda real, x: (real * x**2).sum() / real.sum()
  same_slopes(
      lambda real, x: fusing.mean_over(real, jnp.square, x), mean, real, x
  )


@pytest.mark.parametrize('margin', [-80.0, -20, -12, 0, 12, 20, 80])
def test_slopes_of_samples_that_are_all_but_certain(margin):
  """They are small, and as exact as those of others, for either class."""
  logits = jnp.array([0, margin], jnp.float32)
  for labels, odds in ((0, 1), -margin), ((1, 0), margin):
    value, slope = for_a_gpu(jax.value_and_grad(
        lambda z, y=jnp.array(labels, jnp.float32): fusing.cross_entropy(z, y)
    ), logits)
    wrong = 1 / (1 + np.exp(-odds))  # The other class's probability.
    sign = 2 * labels[0] - 1
    np.testing.assert_allclose(slope, [-sign * wrong, sign * wrong], rtol=1e-5)
    np.testing.assert_allclose(value, np.logaddexp(0, odds), rtol=1e-5)


def test_a_mean_of_fewer_bits_than_its_rows():
  """Also where JAX forbids to promote."""
  real, x = jnp.ones(4), jnp.arange(4, dtype=jnp.bfloat16)
  mean = lambda x: fusing.mean_over(real, lambda x: x.astype(jnp.float32), x)
  with jax.numpy_dtype_promotion('strict'):
    value, slope = for_a_gpu(jax.value_and_grad(mean), x)
  assert value == 1.5 and slope.dtype == x.dtype
  np.testing.assert_array_equal(slope.astype('f4'), np.full(4, 0.25))


@pytest.mark.parametrize('dtype', [jnp.bfloat16, jnp.float32])
def test_rows_are_counted_in_full_where_labels_are_in_half(dtype):
  """In bfloat16 there is no 301, also where JAX forbids to promote."""
  real, x = jnp.ones(301, jnp.bfloat16), jnp.full(301, 3, dtype)
  mean = lambda x: fusing.mean_over(real, lambda x: x, x)
  with jax.numpy_dtype_promotion('strict'):
    assert mean(x) == for_a_gpu(mean, x) == 3


def test_losses_are_summed_in_full_where_labels_are_in_half():
  data, own = samples(), plan(make('none'), 'pad')
  data = data._replace(labels=data.labels.astype(jnp.bfloat16))
  with target.tracing_for('cuda'):
    _, history = jax.eval_shape(
        lambda: train.advance(own, train.start(KEY, own, data), data, 0, 2)
    )
  assert history['loss'].dtype == jnp.float32


def test_a_critic_climbs_the_same_way():
  """Samples that are real one way, guesses the other, in a pass of both."""
  nets_of, tx = gan.networks((3,), (4,)), optax.sgd(0.1)
  draw = np.random.default_rng(0).normal
  f, y = draw(size=(6, 2)).astype('f4'), np.array([0, 1, 1, 0, 1, 0], 'f4')
  generator = nets_of.generator.init(KEY, f)
  critic = nets_of.critic.init(KEY, y[:, None])
  state = gan.Memory(generator, critic, (), tx.init(critic))
  seen = gan.Seen(f, y, jnp.ones(6))
  step = lambda f: jax.tree.leaves(gan.critic_step(
      KEY, nets_of, tx, state, seen._replace(f=f), 0.1, 5.0
  ))
  for found, want in zip(
      for_a_gpu(step, f), jax.jit(step)(f), strict=True
  ):
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_a_norm_in_one_pass():
  """Of rows whose squares are 0 or infinite, of zeros, and of what is none."""
  rows = np.random.default_rng(0).normal(size=(7, 9)).astype('f4')
  rows *= np.array([1, 1e-30, 1e30, 0, 1, 1, 1], 'f4')[:, None]
  rows[4, 2], rows[5] = np.nan, np.eye(9)[3]
  rows[6, 4] = np.inf
  for found in (for_a_gpu(randomized.normalise, rows[:1]),
                for_a_gpu(lambda x: randomized.normalise(x, 'sample'), rows)):
    how = 'batch' if len(found) == 1 else 'sample'
    want = randomized.normalise(rows[: len(found)], how)
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize('pair', [nets.pair, nets.padded_pair])
def test_two_logits_of_one_number(pair):
  z = jnp.array([[[-3.0], [0.0]], [[jnp.inf], [2.0]]])
  np.testing.assert_array_equal(for_a_gpu(pair, z), pair(z))
  weights = jnp.arange(8.0).reshape(2, 2, 2)
  slope = jax.grad(lambda z: (pair(z) * weights).sum())
  np.testing.assert_array_equal(for_a_gpu(slope, z), weights[..., 1:])
  with jax.numpy_rank_promotion('raise'):
    with jax.numpy_dtype_promotion('strict'):
      for_a_gpu(slope, z)


def test_passports_may_be_rows_of_the_batch():
  """The layer and its gradients, of several passports for each."""
  normal = lambda key, shape: jax.random.normal(key, (3, *shape[1:]))
  params = jax.jit(lambda: fedpass_cut.draw(KEY, 6, 5, normal))()
  x, weights = np.random.default_rng(0).normal(size=(2, 7, 6)).astype('f4')

  def loss(params, x):
    y, s, b = fedpass_cut.block(params, x)
    return (y * weights).sum() + (s * b).sum(), (y, s, b)

  slope = lambda *own: jax.value_and_grad(loss, (0, 1), has_aux=True)(*own)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
      for_a_gpu(slope, params, x), jax.jit(slope)(params, x),
  )
