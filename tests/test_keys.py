"""No key is drawn from twice, in one program and over the steps of a run.

Two draws from one key are one draw: noise that another draw gives away, weights
of two networks that start alike. JAX follows keys through a program as it is
traced, which compiles nothing; its checker is in a private module, without
which those tests are left out. It takes a key folded with a number for a new
one, whatever the number, so the keys of a small run are looked at themselves.
"""
import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import DEFENSES, WIDTH, make
from vfljax import (
    algorithms, attacks, epochs, measure, nets, protocol, train,
)
from vfljax.adversary import Adversary
from vfljax.attack import Attack
from vfljax.defense import Defense, Holdings, none
from vfljax.types import Batch, Messages, Net, Round, State
from vfljax.views import CutGradients, KnownPositive


def check(fn, *arguments):
  core = pytest.importorskip('jax.experimental.key_reuse._core')
  core.check_key_reuse(fn, *arguments)


VFL = algorithms.vhnn(
    [nets.mlp(8, WIDTH)] * 3, nets.binary(nets.mlp(8, 1))
)
TXS = (optax.sgd(0.1),) * 3


def data_of_three():
  """Two passive parties, that could share a key."""
  x = np.arange(96, dtype=np.float32).reshape(3, 8, 4) / 100
  labels = np.eye(2, dtype=np.float32)[np.arange(8) % 2]
  return Batch(tuple(jnp.asarray(a) for a in x), jnp.asarray(labels))


def life(defense, key):
  """All of a defense's hooks, each with its own key."""
  keys, data = jax.random.split(key, 6), data_of_three()
  if defense.prepare:
    labels = defense.prepare(keys[0], data.features[0], data.labels)
    data = data._replace(labels=labels)
  state = protocol.init(keys[1], VFL, defense, TXS, data, auxiliary=data)
  state, played = protocol.play_round(keys[2], VFL, defense, TXS, state, data)
  top = VFL._replace(top=defense.top(VFL.top))
  memory = defense.epoch(
      state.defense, keys[3], Holdings(top, state.parties[0].params, data)
  )
  state = state._replace(defense=memory)
  weights = state.parties[1].params['bottom']
  return played.messages, protocol.predict(
      keys[4], VFL, defense, state, data.features
  ), defense.expose(memory, keys[5], 1, weights)


@pytest.mark.parametrize('name', DEFENSES)
def test_no_defense_draws_from_a_key_twice(name):
  check(functools.partial(life, make(name)), jax.random.key(0))


def test_the_checker_sees_a_key_that_two_parties_share():
  core = pytest.importorskip('jax.experimental.key_reuse._core')
  shared = Defense(gradient=lambda state, key, cut, labels: (tuple(
      d + jax.random.normal(key, d.shape) for d in cut
  ), state))
  with pytest.raises(core.KeyReuseError):
    check(functools.partial(life, shared), jax.random.key(0))


# A run whose every hook tells the key that it is given.

ROWS = 5  # Two rounds of two samples in an epoch, and one of the last.


class Told:
  """Keys by who was given them."""

  def __init__(self):
    self.keys = []

  def note(self, what, key):
    with jax.ensure_compile_time_eval():  # Some are told while one traces.
      self.keys.append((what, tuple(jax.random.key_data(key).tolist())))

  def hook(self, what, at, answer):
    """A hook that notes the argument at place `at` and answers."""
    def noted(*arguments):
      self.note(what, arguments[at])
      return answer(*arguments)
    return noted


def noting(told):
  """A plan of two epochs."""
  zero = jnp.zeros(())

  apply = lambda params, x: x[:, :2] * params

  def train_pass(params, key, x):
    told.note('net', key)
    return apply(params, x), ()

  net = Net(
      told.hook('weights', 0, lambda key, x: jnp.ones(())), apply, train_pass
  )
  same = lambda at: lambda *arguments: arguments[at]
  defense = Defense(
      init=told.hook('init', 0, Defense().init),
      prepare=told.hook('prepare', 0, same(2)),
      batch=told.hook('batch', 0, same(1)),
      send=told.hook('send', 1, lambda passive, key, u: (u, zero)),
      label=told.hook('label', 1, same(2)),
      adapt=told.hook('adapt', 1, same(0)),
      receive=told.hook('receive', 2, lambda *a: (a[3], zero)),
      gradient=told.hook('gradient', 1, lambda *a: (a[2], a[0])),
      share=told.hook('share', 0, same(1)),
      epoch=told.hook('epoch', 1, same(0)),
  )
  liar = Adversary(
      (1,), told.hook('evil init', 0, lambda key, own: ()),
      told.hook('rows', 0, same(1)), told.hook('features', 1, same(2)),
      told.hook('tamper', 1, same(2)), told.hook('mishear', 1, same(2)),
      told.hook('learn', 1, same(0)),
  )
  vfl = algorithms.vhnn([net] * 3, net)
  return train.Plan(
      vfl, defense, (optax.sgd(0.1),) * 3, 2, 2, 'keep', liar,
      watch=told.hook('watch', 0, lambda key, played: ()),
      validate=told.hook('validate', 0, lambda key, state: {}),
  )


def looped(step, carry, xs):
  """`lax.scan` in Python, so that keys are numbers."""
  rows = []
  for i in range(len(jax.tree.leaves(xs)[0])):
    carry, row = step(carry, jax.tree.map(lambda x, i=i: x[i], xs))
    rows.append(row)
  return carry, jax.tree.map(lambda *x: jnp.stack(x), *rows)


def test_every_step_of_a_run_has_keys_of_its_own(monkeypatch):
  for module in train, epochs:
    monkeypatch.setattr(module, 'lax', SimpleNamespace(scan=looped))
  told, x = Told(), jnp.ones((ROWS, 2))
  plan = noting(told)
  labels = np.eye(2, dtype=np.float32)[np.arange(ROWS) % 2]
  data = Batch((x,) * 3, jnp.asarray(labels))
  run = train.start(jax.random.key(0), plan, data)
  for epoch in range(2):  # A call for each: the run's key is the same.
    run, _ = train.advance(plan, run, data, epoch, 1)
  protocol.predict(
      jax.random.key(1), plan.vfl, plan.defense, run.state, data.features,
      adversary=plan.adversary,
  )
  counts = {
      what: len({key for w, key in told.keys if w == what})
      for what, _ in told.keys
  }
  once = dict.fromkeys(['init', 'prepare', 'evil init'], 1)
  twice = dict.fromkeys(['epoch', 'validate'], 2)
  rounds = dict.fromkeys([
      'batch', 'label', 'adapt', 'gradient', 'rows', 'mishear', 'learn',
      'watch',
  ], 6)
  assert counts == once | twice | rounds | dict(
      weights=4, net=24, share=12, send=12 + 2, features=6 + 1, tamper=6 + 1,
      receive=1 + 6 + 1,  # The first starts the top, the last predicts.
  )
  given = {key for _, key in told.keys}
  assert len(given) == sum(counts.values())
  # A key split into two is the same two keys as one folded with 0 and 1.
  split = lambda key: jax.random.key_data(jax.random.split(
      jax.random.wrap_key_data(key)
  ))
  parts = jax.jit(jax.vmap(split))(np.array(sorted(given), np.uint32))
  parts = {tuple(part) for part in parts.reshape(-1, 2).tolist()}
  assert len(parts | given) == 3 * len(given)


def test_watched_attacks_have_keys_of_their_own():
  """One for each attack and attacker, and another for what it gets to know."""
  told, d = Told(), (jnp.ones((4, 2)),) * 2
  labels = np.eye(2, dtype=np.float32)[np.arange(4) % 2]
  played = Round(
      State((), ()), Batch((None, *d), labels), Messages(d, d), jnp.zeros(()),
      (),
  )
  noted = Attack(
      CutGradients, told.hook('run', 0, lambda key, view: view.valid)
  )
  watch, _ = measure.watcher(dict(a=noted, b=noted), none(), (1, 2))
  watch(jax.random.key(2), played)
  assert len({*told.keys}) == len(told.keys) == 4
  drawing = Attack(
      KnownPositive, lambda key, view: jax.random.normal(key, (4,))
  )
  watch, _ = measure.watcher(dict(a=drawing, b=drawing), none(), (1, 2))
  check(lambda key: watch(key, played), jax.random.key(2))


def test_epochs_draw_from_no_key_twice():
  data = data_of_three()
  plan = train.Plan(
      VFL, make('iso'), TXS, 2, 3, 'keep',
      watch=measure.watcher(
          dict(ds=attacks.direction_scoring()), none()
      )[0],
      validate=lambda key, state: dict(u=jax.random.normal(key)),
  )

  def both(key):
    return train.advance(plan, train.start(key, plan, data), data, 0, 2)[1]

  check(both, jax.random.key(0))
