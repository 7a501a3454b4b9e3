"""Hooks that return the wrong thing are told so, by name, where it happens."""
import jax
import jax.numpy as jnp
import optax
import pytest

from vfljax import algorithms, protocol, switching
from vfljax.defense import Defense, chain, checked, none, slots
from vfljax.types import Batch

X = jnp.ones((6, 4))
BATCH = Batch((X[:, :1], X[:, 1:2], X[:, 2:]), jnp.eye(2)[jnp.arange(6) % 2])
VFL, TXS = algorithms.vlr(3, 2), (optax.sgd(0.1),) * 3


def played(defense):
  state = protocol.init(jax.random.key(0), VFL, defense, TXS, BATCH)
  return protocol.play_round(jax.random.key(1), VFL, defense, TXS, state, BATCH)


WRONG = [
    (lambda state, key, cut, labels: cut, 'gradient must return a tuple of'),
    (lambda state, key, cut, labels: (cut[:1], state), 'one a passive party'),
    (lambda state, key, cut, labels: (tuple(d[:2] for d in cut), state),
     r'a tuple of \(6, 1\) float32, \(6, 1\) float32, .* it returned '
     r'\(\(2, 1\) float32, \(2, 1\) float32\), \(\)'),
    (lambda state, key, cut, labels: (cut, None), 'the state as init made it'),
    (lambda state, key, cut, labels: None, 'it returned NoneType'),
]


@pytest.mark.parametrize('hook, message', WRONG)
def test_a_wrong_gradient_is_told(hook, message):
  wrong = Defense(gradient=hook)
  with pytest.raises(ValueError, match=message):
    played(wrong)
  with pytest.raises(ValueError, match=f'^mine: .*{message}'):
    played(switching.one_of(1, [none(), wrong], ['none', 'mine']))
  with pytest.raises(ValueError, match=message):
    played(switching.one_of(1, [none(), wrong]))


@pytest.mark.parametrize('send, message', [
    (lambda passive, key, u: (u, u.sum(-1)), r'one number, .* shape \(6,\)'),
    (lambda passive, key, u: u, r'\(message, penalty\), a pair; it returned'),
])
def test_a_wrong_message_is_told(send, message):
  with pytest.raises(ValueError, match=message):
    played(Defense(send=send))


def test_a_list_and_a_plain_number_are_right():
  right = Defense(
      send=lambda passive, key, u: (u, 0.0),
      gradient=lambda state, key, cut, labels: ([*cut], state),
  )
  for defense in (right, chain(right, right)):
    _, found = played(defense)
    assert found.messages.up[0].shape == (6, 1)


def test_who_has_no_such_hook_is_as_before():
  assert checked(none()) == none()


@pytest.mark.parametrize('init, message', [
    (lambda key, spec: slots(spec, passive=((),)), 'for 1 passive parties; th'),
    (lambda key, spec: None, 'init must return defense.slots'),
])
def test_weights_for_other_parties_are_refused(init, message):
  with pytest.raises(ValueError, match=message):
    protocol.init(
        jax.random.key(0), VFL, Defense(init=init), TXS, BATCH
    )
