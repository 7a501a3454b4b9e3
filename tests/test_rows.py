"""A round's samples, taken out of all samples."""
import jax
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
  draw = lambda i, *shape: jax.random.normal(jax.random.key(i), (N, *shape))
  images = (draw(2, 4, 3, 1) * 100).astype(jnp.uint8)
  labels = jax.nn.softmax(draw(3, 2))
  return Batch((draw(0, 3), None, draw(1, 5, 2), images), labels), draw(4, 2)


@pytest.mark.parametrize('padded', [False, True])
def test_the_same_rows_on_every_kind_of_device(padded):
  i = jnp.array([3, 0, 10, 3, *([N] if padded else [])])
  want = rows.taker(samples(), padded)(i)
  for x, found in zip(jax.tree.leaves(samples()), jax.tree.leaves(want)):
    np.testing.assert_array_equal(found[:4], np.asarray(x)[[3, 0, 10, 3]])
    assert not padded or not found[4].any()
  with target.tracing_for('tpu'):
    jax.tree.map(np.testing.assert_array_equal,
                 rows.taker(samples(), padded)(i), want)


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


@pytest.mark.parametrize('remainder', ['drop', 'keep', 'pad'])
def test_a_training_is_the_same(remainder):
  """With prepared labels, and orders from a walk of fixed length."""
  n = 300
  x = jax.random.normal(jax.random.key(0), (n, 6))
  labels = jax.nn.one_hot((x[:, 0] > 0).astype(int), 2)
  data = Batch((x[:, :2], x[:, 2:]), labels)
  vfl = algorithms.vhnn([nets.mlp(3)] * 2, nets.mlp(2))

  def loss():
    run = lambda key: train.fit(
        key, vfl, label_dp(1.0), (optax.sgd(0.1),) * 2, data, epochs=2,
        batch_size=64, remainder=remainder,
    )[1]['loss']
    return jax.jit(run)(jax.random.key(1))

  want = loss()
  with target.tracing_for('tpu'):
    np.testing.assert_allclose(loss(), want, rtol=1e-6)
