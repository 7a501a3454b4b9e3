"""Somebody's own defense or attack, checked by what `contracts` has for it."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from vfljax import algorithms, attacks, contracts, defenses
from vfljax.attack import Attack
from vfljax.defense import Defense, each, slots
from vfljax.views import CutGradients, RecordedGradients, TrainedBottom


@pytest.mark.parametrize('name', ['none', 'iso', 'dcor', 'marvell', 'mid'])
def test_ours_are_good(name):
  method = defenses.REGISTRY[name]
  contracts.check_defense(method, *method.strengths[:1])


def test_noise_that_is_drawn_otherwise_beside_padding_is_good():
  contracts.check_defense(on_gradients(
      lambda s, key, d, labels: d + s * jax.random.normal(
          jax.random.fold_in(key, len(d)), d.shape
      )
  ), 0.1)


def test_the_example_of_a_defense_is_good():
  contracts.check_defense(examples.DEFENSES['gradient_dropout'], 0.3)


def on_gradients(fn):
  """fn(strength, key, d, labels) -> d, as a factory."""
  return lambda s: Defense(gradient=each(functools.partial(fn, s)))


def numpys(s, key, d, labels):
  return d + s * np.random.default_rng().normal()


def clipped_to_the_mean(s, key, d, labels):
  size = jnp.linalg.norm(d, axis=1, keepdims=True)
  return d * jnp.minimum(1, size.mean() / jnp.maximum(size, 1e-12))


def noise_of_the_mean(s, key, d, labels):
  """Another draw where there is padding."""
  size = jnp.linalg.norm(d, axis=1).mean()
  return d + size * jax.random.normal(jax.random.fold_in(key, len(d)), d.shape)


def labels_in_features(s):
  return Defense(batch=lambda key, b: b._replace(features=(
      b.features[0], b.features[1] + s * b.labels[:, 1:]
  )))


def an_if(s):
  scale = s if s > 0.5 else 1
  return Defense(gradient=each(lambda key, d, labels: d * scale))


BAD = {
    'labels in features': (labels_in_features, 'no message'),
    'an if': (an_if, 'jnp.where in place of `if`'),
    'another draw each time': (on_gradients(numpys), 'not the same twice'),
    'padding that counts': (
        on_gradients(clipped_to_the_mean), 'with rows of padding',
    ),
    'padding that counts by its spread': (
        on_gradients(noise_of_the_mean), 'with rows of padding',
    ),
    'another width': (lambda s: Defense(send=lambda passive, key, u: (
        s * u[:, :3], jnp.zeros(())
    )), r'send makes \(16, 3\)'),
    'a penalty a row': (lambda s: Defense(send=lambda passive, key, u: (
        u, s * jnp.square(u).mean(-1)
    )), r'a penalty \(16,\)'),
    'a gradient of another width': (lambda s: Defense(
        gradient=lambda state, key, cut, labels: (
            tuple(s * d[:, :1] for d in cut), state
        )
    ), 'gradient must return'),
    'no memory returned': (lambda s: Defense(
        gradient=lambda state, key, cut, labels: tuple(s * d for d in cut)
    ), 'gradient must return'),
    'not finite': (on_gradients(
        lambda s, key, d, labels: s * d / jnp.zeros(())
    ), 'is not finite'),
    'one draw for all': (on_gradients(
        lambda s, key, d, labels: d + s * jax.random.normal(key, (1, 6))
    ), 'rows share what gradient draws'),
    'a penalty of padding': (lambda s: Defense(
        send=lambda passive, key, u: (u, s * jnp.square(u).mean())
    ), 'rows of padding'),
    'a list of facts': (lambda s: Defense(
        facts=lambda state: dict(which=jnp.arange(3))
    ), "fact 'which' has the shape"),
    'a memory of another type': (lambda s: Defense(
        init=lambda key, spec: slots(spec, state=jnp.zeros((), jnp.int32)),
        adapt=lambda state, key, predict, up, labels: state + 0.5,
    ), 'cannot be scanned'),
}


@pytest.mark.parametrize('bad', BAD)
def test_a_mistake_is_told(bad):
  make, said = BAD[bad]
  with pytest.raises(ValueError, match=said):
    contracts.check_defense(make, 0.1)


@pytest.mark.parametrize('made', [
    attacks.norm_scoring(), attacks.direction_scoring(),
    examples.ATTACKS['sum_scoring'](),
    Attack(TrainedBottom, lambda key, view: (
        jnp.zeros((1, 16, 2)) + view.features.sum(-1)[None, :, None]
    )),
])
def test_good_attacks(made):
  contracts.check_attack(made)


def test_an_attack_may_be_made_for_another_federation():
  contracts.check_attack(attacks.direct_label(), algorithms.vlr(2, 2))


@pytest.mark.parametrize('view, run, said', [
    (CutGradients, lambda key, view: jnp.zeros(3), r'guesses \(3,\)'),
    (CutGradients, lambda key, view: view.valid / 0, 'not finite'),
    (CutGradients, lambda key, view: jnp.square(
        view.received - view.received.mean(0)[None]
    ).sum(-1), 'counts rows of padding'),
    (TrainedBottom, lambda key, view: jnp.zeros((16, 2)), 'one stage if'),
    (RecordedGradients, lambda key, view: jnp.zeros(16), 'not a view of'),
])
def test_a_bad_attack_is_told(view, run, said):
  with pytest.raises(ValueError, match=said):
    contracts.check_attack(Attack(view, run))
