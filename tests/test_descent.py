"""Optimizers step where implicit casts are forbidden, as they do elsewhere."""
import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import descent

PARAMS = dict(w=jnp.array([1.0, -2.0, 3.0]))
SLOPE = dict(w=jnp.array([0.3, 0.1, -0.2]))


@pytest.mark.parametrize('tx', [
    optax.adam(0.1), optax.adamw(0.1), optax.rmsprop(0.1),
    optax.sgd(optax.cosine_decay_schedule(0.1, 9), momentum=0.9),
], ids=['adam', 'adamw', 'rmsprop', 'schedule'])
def test_a_step_is_that_of_optax_in_a_strict_program_too(tx):
  opt = tx.init(PARAMS)
  moves, after = tx.update(SLOPE, opt, PARAMS)
  expected = optax.apply_updates(PARAMS, moves), after
  with jax.numpy_dtype_promotion('strict'):
    got = descent.step(tx, SLOPE, opt, PARAMS)
    with pytest.raises(Exception, match='strict'):  # It holds again.
      _ = jnp.int32(1) * jnp.float32(1)
  chex.assert_trees_all_equal(got, expected)


def test_complex_weights_go_downhill():
  """Whose gradient in JAX is the conjugate of the way up."""
  tx, aim = optax.sgd(0.25), jnp.array([1 + 2j, -3j])
  slope = jax.grad(lambda w: (jnp.abs(w - aim) ** 2).sum())
  start = jnp.zeros(2, complex)
  after, _ = descent.step(tx, slope(start), tx.init(start), start)
  np.testing.assert_allclose(after, aim / 2)


@pytest.mark.parametrize('tx', [
    optax.sgd(0.5), optax.masked(optax.sgd(0.5), dict(
        bottom=True, top=True, defense=True,
    )),
    optax.partition(dict(a=optax.sgd(0.5), b=optax.sgd(0.5)), dict(
        bottom='a', top='b', defense='a',
    )),
], ids=['sgd', 'masked', 'partition'])
def test_a_networks_own_weight_may_be_called_as_a_passport_is(tx):
  """Attention has a `bias_key`, say; only what a defense has is fixed."""
  pair = dict(scale_key=jnp.ones(2), bias_key=jnp.ones(2))
  params = dict(
      bottom=dict(params=dict(attention=pair)), defense=(pair, dict(w=pair)),
      top=dict(net=dict(dense=pair), passports=dict(dense=pair)),
  )
  after, _ = descent.step(tx, params, tx.init(params), params)
  half = jax.tree.map(lambda w: w / 2, pair)
  chex.assert_trees_all_equal(after, params | dict(
      bottom=dict(params=dict(attention=half)),
      top=dict(net=dict(dense=half), passports=dict(dense=pair)),
  ))


@pytest.mark.parametrize('named', ['params', 'weights'])
def test_a_weight_decay_leaves_statistics_that_a_network_fixes(named):
  """Of a network's own weights called so, there is no sibling `params`."""
  tx = optax.chain(optax.add_decayed_weights(0.5), optax.sgd(1.0))
  net = {named: dict(w=jnp.ones(2)), 'batch_stats': dict(var=jnp.ones(2))}
  params = dict(bottom=net, top=dict(first=net, second=()), defense=())
  none = jax.tree.map(jnp.zeros_like, params)
  after, _ = descent.step(tx, none, tx.init(params), params)
  found = after['bottom']['batch_stats']['var']
  np.testing.assert_array_equal(found, 1.0 if named == 'params' else 0.5)
  np.testing.assert_array_equal(after['bottom'][named]['w'], 0.5)
  chex.assert_trees_all_equal(after['top']['first'], after['bottom'])


def test_whole_numbers_are_no_weights_of_an_optimizer():
  """JAX's gradient of one has no number, at which Optax's words end."""
  params, tx = dict(w=jnp.ones(2), columns=jnp.arange(2)), optax.adam(0.1)
  loss = lambda params: (params['w'] * params['columns']).sum()
  slopes = jax.grad(loss, allow_int=True)(params)
  with pytest.raises(ValueError, match=r"weight \['columns'\] is no float"):
    descent.step(tx, slopes, tx.init(params), params)
