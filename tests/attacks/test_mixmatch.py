"""What each step of MixMatch is made of, seen from within."""
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from vfljax.attacks.mixmatch import MixMatch, _completed, complete, mixed
from vfljax.types import Net

KEY = jax.random.key(0)
MODULE = sys.modules[MixMatch.__module__]
LINEAR = Net(lambda key, x: {}, lambda w, x: x @ w)


def test_a_step_guesses_by_its_weights_and_mixes_with_a_growing_share(
    monkeypatch
):
  """Two epochs of two steps, each of which leaves 0.9 of the weights."""
  asked, guesses, steps = [], [], []

  def sharpen(p, temperature):
    asked.append(temperature)
    jax.debug.callback(guesses.append, p, ordered=True)
    return p[:, ::-1]

  def mixed(key, x, y, alpha):
    asked.append(alpha)
    return x, y

  def without(how, net):
    def loss(params, key, x, y, share):
      jax.debug.callback(lambda *s: steps.append(s), x, y, share, ordered=True)
      return 0 * params.sum(), ()

    return loss

  for name, fn in dict(sharpen=sharpen, mixed=mixed, _loss=without).items():
    monkeypatch.setattr(MODULE, name, fn)
  how = MixMatch(
      2, 2, batch_size=4, stages=1, learning_rate=1e-5, alpha=0.3,
      temperature=0.7, average=0.9, decay=1e4,
  )
  w, known = jnp.array([[6.0, 0], [0, 2], [0, 0]]), jnp.eye(3)
  labels = jnp.array([[1, 0], [0, 1], [0.5, 0.5]])
  others = jnp.full((5, 3), 0.5)
  complete(KEY, how, LINEAR, w, known, labels, others, known)
  jax.effects_barrier()
  assert asked == [0.7, 0.3]
  assert len(guesses) == 4
  for i, (p, (x, y, share)) in enumerate(zip(guesses, steps)):
    odds = np.exp(0.5 * 0.9**i * (6 - 2))
    np.testing.assert_allclose(p[:, 0], odds / (1 + odds), atol=1e-5)
    np.testing.assert_allclose(y[4:], p[:, ::-1])
    np.testing.assert_array_equal(x[4:], others[:4])
    np.testing.assert_array_equal(y[:4], x[:4] @ labels)  # Each has its own.
    assert share == i / 4
  assert any((np.diff(x[:4].argmax(1)) < 0).any() for x, _, _ in steps)
  assert len({x[:4].tobytes() for x, _, _ in steps}) > 1


def test_shares_of_mixtures_are_of_a_symmetric_beta():
  """The larger one, in the mean over draws."""
  x, y = jnp.zeros((2, 1)), jnp.eye(2)
  own = jax.jit(jax.vmap(
      lambda key, alpha: mixed(key, x, y, alpha)[1].max(), (0, None)
  ))
  keys = jax.random.split(KEY, 4000)
  for alpha in 0.75, 20.0:
    expected = stats.beta(alpha, alpha).expect(lambda s: max(s, 1 - s))
    found = np.asarray(own(keys, alpha))
    # A row in the place of its own keeps all.
    np.testing.assert_allclose(found[found < 1].mean(), expected, atol=0.01)


def test_statistics_are_kept_from_step_to_step():
  """A network that has counted its training passes, two an epoch: one epoch
  comes before two stages of two."""
  counting = Net(
      lambda key, x: {}, lambda n, x: jnp.zeros((len(x), 2)) + n,
      lambda n, key, x: (jnp.zeros((len(x), 2)), n + 1), lambda n, seen: seen,
  )
  how = MixMatch(5, 2, batch_size=2, stages=2, average=0.0, decay=0.0)
  x = jnp.eye(2)
  found = complete(KEY, how, counting, jnp.zeros(()), x, x, x, x)
  np.testing.assert_allclose(found[:, 0, 0], [6, 10])


def test_both_networks_keep_their_statistics():
  def net(name) -> Any:
    return Net(
        lambda key, x: {}, lambda p, x: x,
        lambda p, key, x: (x + 1, f'{name} has seen {int(x)}'),
        lambda p, seen: (p, seen),
    )

  whole = _completed(net('bottom'), net('head'), True)
  params = dict(bottom='b', head='h')
  y, seen = whole.run(params, KEY, 5)
  assert y == 7 and whole.absorb(params, seen) == dict(
      bottom=('b', 'bottom has seen 5'), head=('h', 'head has seen 6')
  )
