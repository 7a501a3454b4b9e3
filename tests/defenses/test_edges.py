"""Defenses at the edges of what they are given."""
from functools import partial
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import nets
from vfljax.defenses import rvfr
from vfljax.defenses.ppdl import _chosen
from vfljax.defenses.shadow import _score


def test_before_the_first_round_nothing_is_purified():
  u = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
  us = (None, jnp.asarray(u), jnp.asarray(2 * u[::-1]))
  plain = nets.Net(lambda key, us: (), lambda params, us: us)
  net = rvfr.purifying(rvfr.Settings(0.4, True, 0, 0.9, 3), plain)
  params = net.init(None, us)
  found = net.apply(params, us)
  assert found[0] is None
  np.testing.assert_array_equal(found[1], us[1])
  np.testing.assert_array_equal(found[2], us[2])

  _, stats = net.run(params, None, us)
  assert stats['seen']['weight'] == 5  # No row is an outlier of nothing.
  later = net.apply(net.absorb(params, stats), us)
  assert not np.allclose(later[1], us[1])


def test_releases_are_those_of_one_visit_after_the_other():
  """All crossings of four visits, all numbers of releases."""
  cases = list(itertools.product((0.0, 1.0), repeat=4))
  for count in range(5):
    chosen_of = partial(_chosen, thresholds=jnp.full(4, 0.5), count=count)
    found = jax.vmap(chosen_of)(jnp.array(cases))
    for crosses, chosen in zip(cases, np.asarray(found)):
      left = itertools.accumulate(crosses)
      wanted = [c > 0 and n <= count for c, n in zip(crosses, left)]
      assert chosen.tolist() == wanted, (crosses, count)


def test_the_imagined_attacker_is_scored_by_auc_where_there_are_two_classes():
  guess = jnp.array([[1.0, 3], [-2, 1], [1, 2], [9, 0]])  # All say 1 but one.
  labels = jnp.eye(2)[jnp.array([1, 0, 1, 1])]
  counts = jnp.array([True, True, True, False])
  assert float(_score(guess, labels, counts)) == 0  # Accuracy: 2/3.
  three = jnp.pad(guess, ((0, 0), (0, 1)), constant_values=-9)
  wide = jnp.pad(labels, ((0, 0), (0, 1)))
  np.testing.assert_allclose(_score(three, wide, counts), 2 / 3, rtol=1e-6)
