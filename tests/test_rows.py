"""A round's samples, taken out of all samples."""
import jax
from jax.experimental import checkify
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, nets, rows, target, train
from vfljax.defenses.label_dp import label_dp
from vfljax.types import Batch

N = 11


def samples():
  """Tables and images of two types, a party without features, labels."""
  draw = np.random.default_rng(0).random
  table = lambda *shape: draw((N, *shape), np.float32)
  images = (table(4, 3, 1) * 256).astype(np.uint8)
  return jax.device_put((
      Batch((table(3), None, table(5, 2), images), table(2)), table(2)
  ))


@pytest.mark.parametrize('padded', [False, True])
def test_the_same_rows_on_every_kind_of_device(padded):
  i = np.array([3, 0, 10, 3, *([N] if padded else [])])
  take = lambda data, i: rows.taker(data, padded)(i)
  want = jax.tree.map(np.asarray, jax.jit(take)(samples(), i))
  for x, found in zip(jax.tree.leaves(samples()), jax.tree.leaves(want)):
    np.testing.assert_array_equal(found[:4], np.asarray(x)[[3, 0, 10, 3]])
    assert not padded or not found[4].any()
  with target.tracing_for('tpu'):
    again = lambda data, i: take(data, i)  # Another function: traced anew.
    found = jax.jit(again)(samples(), i)
  jax.tree.map(np.testing.assert_array_equal, found, want)


def test_checkify_takes_no_padding_for_a_mistake():
  take = lambda i: rows.taker(samples(), True)(i)
  error, (batch, _) = checkify.checkify(take, checkify.index_checks)(
      jnp.array([3, N])
  )
  error.throw()
  assert batch.labels[0].any() and not batch.labels[1].any()


def test_padding_is_of_the_arrays_type_and_the_index_of_any():
  many = jnp.arange(300) > 1
  found = rows.filled(many, jnp.array([0, 2], jnp.int8))
  np.testing.assert_array_equal(found, [False, True], strict=True)
  for kind in (jnp.int8, jnp.bfloat16, bool):
    found = rows.filled(jnp.ones((3, 2), kind), jnp.array([2, 3], jnp.uint8))
    np.testing.assert_array_equal(found, np.array([[1] * 2, [0] * 2], kind))
    assert found.dtype == kind


def shapes(platform, data):
  """Of what is gathered from."""
  with target.tracing_for(platform):
    made = jax.make_jaxpr(lambda i: rows.taker(data, False)(i))(jnp.arange(2))
  found = [e for e in made.jaxpr.eqns if e.primitive.name == 'gather']
  return [e.invars[0].aval.shape for e in found]


def test_narrow_arrays_are_columns_on_tpus():
  wide = jnp.zeros((N, rows.NARROW + 1))
  assert shapes('tpu', (wide, wide[:, :2])) == [wide.shape, (N,), (N,)]
  assert shapes('tpu', wide[:, :1, None]) == [(N, 1, 1)]
  assert shapes('cuda', (wide, wide[:, :2])) == [wide.shape, (N, 2)]


def test_nothing_is_taken_where_labels_are_not_prepared():
  data, _ = samples()
  with target.tracing_for('tpu'):
    truth, prepared = rows.taker((data, None), False)(jnp.arange(3))
  assert prepared is None and truth.features[1] is None


@pytest.mark.parametrize('remainder', [
    pytest.param('drop', marks=pytest.mark.slow), 'keep', 'pad'
])
def test_a_training_is_the_same(remainder):
  """With prepared labels, and orders from a walk of fixed length."""
  n = 300
  x = np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)]
  data = jax.device_put(Batch((x[:, :2], x[:, 2:]), labels))
  vfl = algorithms.vhnn([nets.mlp(3)] * 2, nets.mlp(2))

  plan = train.Plan(
      vfl, label_dp(1.0), (optax.sgd(0.1),) * 2, 2, 64, remainder=remainder
  )

  def loss():  # What is compiled is another function each time.
    run = train.start(jax.random.key(1), plan, data)
    advance = lambda run: train.advance(plan, run, data, 0, 2)[1]['loss']
    return jax.jit(advance)(run)

  want = loss()
  with target.tracing_for('tpu'):
    np.testing.assert_allclose(loss(), want, rtol=1e-6)


@pytest.mark.parametrize('i, right', [
    ([0, 10], True), ([0, 11], False), ([-1, 3], False),
])
def test_of_a_failed_round_floats_are_no_numbers(i, right):
  """Whole numbers and truths stay, which have no such value."""
  found = dict(x=jnp.ones(2), half=jnp.ones((), jnp.bfloat16), n=jnp.arange(3),
               yes=jnp.array(True))
  out = rows.failed(found, np.array(i, np.int8), np.array([0], np.int32), N)
  assert np.isnan(out['x']).all() == np.isnan(out['half']) == (not right)
  assert out['n'].tolist() == [0, 1, 2] and out['n'].dtype == jnp.int32
  assert out['half'].dtype == jnp.bfloat16 and bool(out['yes'])
