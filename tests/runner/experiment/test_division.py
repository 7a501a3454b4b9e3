"""What an attacker knows, drawn from the training samples."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.runner.experiment import division
from vfljax.types import Batch

KEY = jax.random.key(0)


@pytest.mark.parametrize('count', [1, 2, 3, 4])
def test_fewer_known_samples_are_those_drawn_with_fewer(count):
  """Also where a class has fewer than that: of the last there are two."""
  numbers = jnp.array([0] * 5 + [1] * 9 + [2] * 2)
  training = Batch((jnp.arange(16.0)[:, None],), jax.nn.one_hot(numbers, 3))
  all_ = division.known(KEY, training, 4)
  fewer = division.fewer(all_, jnp.array(count))
  expected = division.known(KEY, training, count)
  with_labels = lambda batch: np.asarray(batch.labels.sum(-1) > 0)
  for one, other in zip(jax.tree.leaves(fewer), jax.tree.leaves(expected)):
    np.testing.assert_array_equal(
        one[with_labels(fewer)], other[with_labels(expected)]
    )
  assert with_labels(fewer).sum() == 2 * count + min(count, 2)
