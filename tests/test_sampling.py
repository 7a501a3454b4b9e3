"""Random samples of each class."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import sampling

KEY = jax.random.key(0)


@pytest.mark.parametrize('low', [0.0, 1e-3])
def test_known_samples_are_of_their_classes(low):
  labels = jax.nn.one_hot(jnp.array([0, 0, 0, 1, 3, 3]), 4)
  rows, own = sampling.per_class(KEY, labels.at[5].set(0), 2, low)
  assert own.sum(0).tolist() == [2, 1, 0, 1]  # Class 2 has none to know.
  kept = own.sum(-1) > 0
  np.testing.assert_array_equal(
      own[kept].argmax(-1), labels.argmax(-1)[rows[kept]]
  )
  assert len(set(rows[kept].tolist())) == 4


def test_every_sample_of_a_class_is_as_likely():
  labels = jax.nn.one_hot(jnp.array([0, 1, 1, 0, 1]), 2)
  keys = jax.random.split(KEY, 400)
  rows = jax.vmap(lambda k: sampling.per_class(k, labels, 1)[0])(keys)
  shares = np.bincount(np.ravel(rows), minlength=5) / 400
  np.testing.assert_allclose(shares, [1/2, 1/3, 1/3, 1/2, 1/3], atol=0.08)


def test_more_than_there_are_is_all_there_are():
  labels = jnp.eye(2)[jnp.array([0, 1, 1])]
  rows, own = sampling.per_class(KEY, labels, 5)
  assert rows.shape == (2 * 3,) and own.sum(0).tolist() == [1, 2]


@pytest.mark.parametrize('kind', [jnp.bfloat16, jnp.float16])
def test_half_precision_draws_as_single_does(kind):
  """Of 128 ranks the only sample of a class would draw 0 at times."""
  labels = jnp.eye(2)[(jnp.arange(20) == 7).astype(int)]
  draw = jax.vmap(lambda k, y: sampling.per_class(k, y, 2), (0, None))
  keys = jax.random.split(KEY, 999)
  rows, own = draw(keys, labels.astype(kind))
  wide = draw(keys, labels)
  assert own.dtype == kind and (own[:, 2, 1] == 1).all()
  np.testing.assert_array_equal(rows, wide[0])
  np.testing.assert_array_equal(own.astype(jnp.float32), wide[1])
