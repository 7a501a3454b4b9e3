"""What one step, one row, one unit or one shadow would not show."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, nets
from vfljax.defense import Holdings
from vfljax.defenses import (
    fedpass_cut, minibatch, multi_head, randomized, rvfr, shadow,
)
from vfljax.types import Batch, Net

KEY = jax.random.key(0)


def test_an_optimizer_remembers_from_pass_to_pass():
  fitted = minibatch.fit(
      KEY, lambda w, rows: w + 0 * rows.sum(), jnp.zeros(()), jnp.zeros(4),
      optax.sgd(1.0, momentum=0.5), epochs=3, batch_size=4,
  )
  np.testing.assert_allclose(fitted, -(1 + 1.5 + 1.75), rtol=1e-6)


def test_no_row_is_left_out_of_every_pass():
  fitted = minibatch.fit(
      KEY, lambda w, rows: (w * rows).sum(), jnp.zeros(5), jnp.eye(5),
      optax.sgd(1.0), epochs=20, batch_size=2,
  )
  assert (np.asarray(fitted) < 0).all()


def test_each_output_is_a_probability_before_their_mean():
  found = randomized.probability(jnp.array([[3.0, 0.5], [-1.0, 0.5]]))
  wanted = [(1 - 1e-4 + 0.5) / 2, (1e-4 + 0.5) / 2]
  np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_party_whose_first_row_is_zeros_is_there():
  net = multi_head.heads(Net(
      lambda key, us: jnp.float32(sum(u is not None for u in us)),
      lambda p, us: p * jnp.ones((3, 1)),
  ))
  u = jnp.ones((3, 2))
  found = net.apply(net.init(KEY, (u, u)), (u, u.at[0].set(0.0)))
  np.testing.assert_array_equal(found, 2)


def test_passports_of_a_cut_layer_have_the_scale_of_what_they_read():
  layer = fedpass_cut.draw(KEY, 64, 8, lambda key, shape: jnp.zeros(shape))
  for name, fan_in in dict(encode=64, decode=16).items():
    largest = np.abs(layer[name]).max()
    np.testing.assert_allclose(largest, fan_in**-0.5, rtol=0.05)


def test_the_subspace_is_of_what_was_sent_not_of_what_was_made_of_it():
  draws = np.random.default_rng(0).normal(size=(2, 20, 3))
  us = tuple(draws.astype(np.float32))
  plain = Net(lambda key, us: (), lambda _, us: rvfr.together(us))
  found = []
  for server in (False, True):
    net = rvfr.purifying(
        rvfr.Settings(0.3, server=server, warmup=1, decay=0.9, steps=2), plain
    )
    params = net.init(KEY, us)
    for _ in range(4):  # Three of them after the warmup.
      params = net.absorb(params, net.train(params, KEY, us)[1])
    found.append(params['seen'])
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
      *found,
  )


@pytest.fixture
def samples():
  """Of an active party without features and two passive ones."""
  x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)]
  return Batch((None, jnp.asarray(x), jnp.asarray(x)), jnp.asarray(labels))


def test_norms_are_the_mean_over_a_pass(samples):
  """At no pace to speak of that mean does not depend on the order."""
  samples = samples._replace(features=samples.features[:2])
  vfl = algorithms.vsnn([nets.mlp(2)], nets.mlp(2))
  params = vfl.bottom(1).init(KEY, samples.features[1])
  top = dict(top=vfl.top.init(KEY, (None, jnp.zeros((1, 2)))))
  one, other = (
      shadow.update(
          jax.random.key(seed), Holdings(vfl, top, samples), (params,),
          shadow.Learning(1e-9, 1),
      )[1][0] for seed in (0, 1)
  )
  np.testing.assert_allclose(one, other, rtol=1e-4)


def test_each_shadow_has_luck_of_its_own(samples):
  seen = []

  def train(params, key, x):
    seen.append(key)
    return nets.mlp(2).apply(params, x), ()

  net = nets.mlp(2)._replace(train=train)
  vfl = algorithms.vsnn([net, net], nets.mlp(2), 'sum')
  params = net.init(KEY, samples.features[1])
  top = dict(top=vfl.top.init(KEY, (None, *[jnp.zeros((1, 2))] * 2)))
  with jax.disable_jit():
    shadow.update(
        KEY, Holdings(vfl, top, samples), (params, params),
        shadow.Learning(0.1, 40),
    )
  assert len({tuple(jax.random.key_data(k).tolist()) for k in seen}) == 2
