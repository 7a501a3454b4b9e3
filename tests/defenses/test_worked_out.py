"""Steps of defenses by numbers worked out by hand."""
import re

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import target
from vfljax.defenses import label_dp, marvell, multi_head, plugvfl, rvfr
from vfljax.types import Net

KEY = jax.random.key(0)


def test_the_active_party_is_trusted_in_full():
  """One number each, which should be equal: 10 of its own against 0."""
  us = (jnp.full((3, 1), 10.0), jnp.zeros((3, 1)))
  where = jnp.zeros(2), jnp.full((2, 1), 0.5**0.5), jnp.full(2, 1e-4)
  (own, clean), (_, one, other) = jax.jit(lambda: (
      rvfr.purify(us, *where, steps=20),
      rvfr.purify((None, *us), *where, steps=20),
  ))()
  np.testing.assert_array_equal(own, us[0])
  np.testing.assert_allclose(clean, 10, atol=0.1)
  np.testing.assert_allclose(one, 5, atol=0.1)  # Nobody is to be believed.
  np.testing.assert_allclose(other, 5, atol=0.1)


def test_no_batch_of_equations_waits_for_itself():
  """On CPUs one system at a time is solved, elsewhere all; the same numbers.

  The solution by NumPy's solver is neither's.
  """
  rng = np.random.default_rng(0)
  matrices = rng.normal(size=(5, 3, 3)).astype(np.float32) + 3 * np.eye(3)
  vectors = rng.normal(size=(5, 3)).astype(np.float32)
  expected = np.linalg.solve(matrices, vectors[..., None])[..., 0]
  for platform, batched in ('cpu', False), ('cuda', True):
    with target.tracing_for(platform):
      solve = lambda *both: rvfr._solved(*both)
      traced = str(jax.make_jaxpr(solve)(matrices, vectors))
      found = jax.jit(solve)(matrices, vectors)
    solved = re.findall(r'f32\[([\d,]*)\] = triangular_solve', traced)
    assert solved and all(('5,' in x[:2]) == batched for x in solved), solved
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_negatives_of_a_batch_are_no_padding():
  labels = jnp.eye(3)[jnp.arange(60) % 3].at[:40].set(0)
  drawn = plugvfl._others(KEY, 'batch', jnp.zeros(3), labels)
  np.testing.assert_array_equal(drawn.sum(1), 1)
  assert (drawn.sum(0) > 5).all()


def test_marvells_moments_are_of_the_population():
  x = np.random.default_rng(0).normal(size=(7, 3))
  mask = np.arange(7) % 2 == 0
  count, center, spread = marvell._moments(jnp.asarray(x), jnp.asarray(mask))
  assert count == 4
  np.testing.assert_allclose(center, x[mask].mean(0), rtol=1e-5)
  np.testing.assert_allclose(spread, x[mask].var(0).mean(), rtol=1e-5)


def test_padding_has_no_response():
  labels = jnp.eye(3).at[1].set(0)
  found = label_dp.flip(KEY, labels, 0.5)
  np.testing.assert_array_equal(found.sum(1), [1, 0, 1])


def test_the_bits_of_a_subset_are_its_parties():
  assert multi_head.absent('abc', 0b011) == ('a', 'b', None)
  assert multi_head.absent('abc', 0b100) == (None, None, 'c')


def test_a_party_is_there_whatever_the_signs_of_its_embeddings():
  """Which of four heads answers; only zeros are nobody."""
  numbered = Net(lambda key, us: (), lambda params, us: params)
  heads, u = multi_head.heads(numbered), jnp.ones((2, 3))
  for one, other, answers in ((-1, 0, 1), (0, -1, 2), (-1, -1, 3)):
    found = heads.apply(jnp.arange(4), (u, one * u, other * u))
    assert found == answers
