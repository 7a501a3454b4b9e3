"""What must not matter to a defense: the unit of gradients, the names of the
classes, the order of the passive parties; and what it does at no strength.

That the order of samples does not matter is in `vfljax.contracts`.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.contracts import DEFENSES, make
from tests.defenses.test_padding import apart
from tests.hooks_alone import KEY, OF_ALL, given, has, made
from vfljax import crossing, defenses
from vfljax.defense import Defense
from vfljax.types import Batch

ROWS, WIDTH, WAYS = 12, 2, 400
PARTIES, ORDER = 3, (2, 0, 1)
# A new defense needs no line here unless its strength has the gradient's unit.
IN_UNITS = {'dp_gaussian', 'dp_laplace', 'ppdl'}
FREE = [
    name for name in DEFENSES
    if has(make(name), 'gradient') and name not in IN_UNITS
]
# Arguments with which a defense of gradients sends them as they are.
NOTHING = dict(
    dp_gaussian=(0.0, None), dp_laplace=(0.0,), gradient_compression=(1.0,),
    iso=(0.0,), marvell=(0.0,), residue_mask=(0.0,),
    ppdl=(1.0, 1e30, 1e9, 0.0),
)


@functools.cache
def data():
  """Gradients of each party, of another size, and labels; some are padding."""
  rng = np.random.default_rng(3)
  positive = np.arange(ROWS) % 3 == 0
  real = np.arange(ROWS) % 5 > 0
  x = rng.normal(size=(PARTIES, ROWS, WIDTH)) * 0.1
  x = (x + np.where(positive, 0.2, -0.05)[:, None]) * real[:, None]
  x = x * np.array([1, 5, 10])[:, None, None]
  labels = np.eye(2)[positive.astype(int)] * real[:, None]
  return np.float32(x), np.float32(labels)


def test_a_unit_is_nothing_to_a_strength_without_one():
  """Same draws, and powers of two: as much as 32 bits hold."""
  (d, *_), labels = data()
  assert {'iso', 'marvell', 'max_norm', 'discrete_sgd'} <= {*FREE}

  @jax.jit
  def sent(unit):
    return {
        name: make(name).gradient((), KEY, (d * unit,), labels)[0][0] / unit
        for name in FREE
    }

  plain, *others = (sent(np.float32(2.0**i)) for i in (0, -70, 60))
  for name in FREE:
    for other in others:
      np.testing.assert_allclose(
          other[name], plain[name], rtol=1e-4, atol=1e-6, err_msg=name
      )


def test_no_strength_is_no_defense():
  (d, *_), labels = data()
  sent = jax.jit(lambda: {
      name: defenses.REGISTRY[name](*given_it).gradient(
          (), KEY, (d,), labels
      )[0][0] for name, given_it in NOTHING.items()
  })()
  for name, found in sent.items():
    np.testing.assert_array_equal(found, d, err_msg=name)


def fare_alike(one, other):
  """Whether two functions of a key have equally distributed results."""
  keys = jax.random.split(KEY, 2 * WAYS)
  both = jax.jit(lambda one_s, other_s: (
      jax.vmap(one)(one_s), jax.vmap(other)(other_s)
  ))(keys[:WAYS], keys[WAYS:])
  a, b = (np.asarray(x).reshape(WAYS, -1) for x in both)
  if (np.ptp(a, axis=0) == 0).all():
    return np.allclose(a, b, rtol=1e-4, atol=1e-6)
  # Kolmogorov and Smirnov's statistic: one test in 10**8 is above that.
  return max(apart(x, y) for x, y in zip(a.T, b.T)) < 3.1 * (2 / WAYS) ** 0.5


def together(parts):
  return jnp.concatenate([x.ravel() for x in parts])


@pytest.mark.slow
@pytest.mark.parametrize('name', [
    name for name in DEFENSES
    if any(has(make(name), hook) for hook in ('gradient', 'prepare', 'batch'))
])
def test_names_of_classes_are_nothing(name):
  """To what is sent to passive parties, or becomes of a label."""
  own, (_, _, memory) = given(name)
  (d, *_), labels = map(jnp.asarray, data())

  def run(turn):
    y = turn(labels)

    def one(key):
      if own.prepare:
        return turn(own.prepare(key, d, y))
      if has(own, 'gradient'):
        return own.gradient(memory, key, (d,), y)[0][0]
      batch = own.batch(key, Batch((None, d), y))
      return together([batch.features[1], turn(batch.labels)])

    return one

  assert fare_alike(run(lambda y: y), run(lambda y: y[:, ::-1]))


def reordered(tree):
  """The same with what is of each passive party in another order."""
  if isinstance(tree, dict):
    return {k: reordered(x) for k, x in tree.items()}
  if not isinstance(tree, (tuple, list)):
    return tree
  shapes = [jax.tree.map(jnp.shape, x) for x in tree]
  if len(tree) == PARTIES and shapes == shapes[:1] * PARTIES:
    return tuple(tree[i] for i in ORDER)
  if hasattr(tree, '_fields'):
    return type(tree)(*map(reordered, tree))
  return tuple(map(reordered, tree))


@pytest.mark.slow
@pytest.mark.parametrize('name', [
    name for name in DEFENSES if any(has(make(name), hook) for hook in OF_ALL)
])
def test_parties_in_another_order_fare_as_they_did(name):
  """Each with what is its own in the active party's weights and memory."""
  own, state = made(name, PARTIES)
  active, memory = state.parties[0].params['defense'], state.defense
  xs, labels = data()
  back = np.argsort(ORDER)

  def run(hook, xs, active, memory, places):
    def one(key):
      with crossing.in_round(crossing.rows(labels)):
        found = OF_ALL[hook](own, key, xs, labels, active, None, memory)
      return together([found[i] for i in places])

    return one

  for hook in OF_ALL:
    if has(own, hook):
      assert fare_alike(
          run(hook, tuple(xs), active, memory, range(PARTIES)),
          run(hook, tuple(xs[i] for i in ORDER), reordered(active),
              reordered(memory), back),
      ), hook


def for_the_first_alone(state, key, cut, labels):
  return (cut[0] * 2, *cut[1:]), state


def noise_for_positives(state, key, cut, labels):
  noise = jax.random.normal(key, cut[0].shape) * labels[:, 1:]
  return (cut[0] + noise, *cut[1:]), state


@pytest.mark.parametrize('fault', [for_the_first_alone, noise_for_positives])
def test_what_matters_is_found(fault):
  own, (xs, labels) = Defense(gradient=fault), data()
  positives = fault is noise_for_positives
  turned = labels[:, ::-1] if positives else labels
  order = range(PARTIES) if positives else ORDER
  plain = lambda key: together(own.gradient((), key, tuple(xs), labels)[0])

  def other(key):
    found, _ = own.gradient((), key, tuple(xs[i] for i in order), turned)
    return together([found[i] for i in np.argsort(order)])

  assert not fare_alike(plain, other)
