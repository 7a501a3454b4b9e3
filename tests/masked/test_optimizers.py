"""Which optimizers may train masked layers, and which would train otherwise."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.masked_federation import found_in, network
from vfljax.masked import masking, optimizers

NET, SHAPE = network('dense')
FOUND = found_in(NET, 8, *SHAPE)
PARAMS = {
    f'Dense_{i}': {'Dense_0': {
        'kernel': np.zeros(layer.bilinear.w_shape, np.float32),
        'bias': np.zeros(layer.bilinear.w_shape[-1:], np.float32),
    }} for i, layer in enumerate(FOUND)
}


def chosen(last=''):
  return masking.choose(FOUND, ('Dense_1', 'Dense_2'), last)


def but(name):
  """Weight decay of all layers except one."""
  apart = lambda params: {key: key not in name for key in params}
  return optax.chain(
      optax.masked(optax.add_decayed_weights(0.1), apart), optax.sgd(0.1)
  )


def to_the_start():
  """Towards the first weights, which its state holds."""
  return optax.GradientTransformation(
      lambda params: params,
      lambda g, state, params=None: (jax.tree.map(jnp.add, g, state), state),
  )


@pytest.mark.parametrize('tx', [
    optax.sgd(0.1), optax.adam(0.1), optax.clip_by_global_norm(1.0),
    optax.MultiSteps(optax.sgd(0.1), 2), but(('Dense_1', 'Dense_2')),
    optax.apply_if_finite(optax.rmsprop(0.1), 3),
], ids=list('abcdef'))
def test_gradients_are_enough_for_these(tx):
  optimizers.check(tx, PARAMS, chosen(), 0.0)


@pytest.mark.parametrize('tx', [
    optax.adamw(0.1), optax.lamb(0.1), but(('Dense_1',)),
    optax.MultiSteps(optax.adamw(0.1), 2), to_the_start(),
], ids=list('abcde'))
def test_nobody_has_the_weights_that_these_use(tx):
  """They would get zeros, and train another network in silence."""
  with pytest.raises(ValueError, match='Layer Dense_./Dense_0: the optimizer'):
    optimizers.check(tx, PARAMS, chosen(), 0.0)


def apart(tx):
  """Plain SGD for the last layer alone."""
  kind = lambda params: {k: 'ab'[k == 'Dense_2'] for k in params}
  return optax.multi_transform({'a': tx, 'b': optax.sgd(0.1)}, kind)


def test_shares_move_by_eta_whatever_the_optimizer_says():
  last = chosen('Dense_2')
  for tx in (optax.sgd(0.1), apart(optax.sgd(0.3)),
             optax.apply_if_finite(optax.sgd(0.1), 3),
             optax.MultiSteps(optax.sgd(0.1), 1)):
    optimizers.check(tx, PARAMS, last, 0.1)
  for tx in (
      optax.sgd(0.2), optax.sgd(0.1, momentum=0.5),
      optax.chain(optax.clip(1.5), optax.sgd(0.1)),
      optax.chain(optax.clip(1e3), optax.sgd(0.1)),
      optax.sgd(optax.piecewise_constant_schedule(0.1, {500: 0.5})),
      optax.sgd(optax.warmup_constant_schedule(0.1, 0.2, 20_000)),
  ):
    with pytest.raises(ValueError, match=r'Dense_2/.*optax.sgd\(0.1\)'):
      optimizers.check(tx, PARAMS, last, 0.1)
