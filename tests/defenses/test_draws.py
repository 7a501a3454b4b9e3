"""Who draws, and that rows of a batch never share what is drawn, nor parties.

Noise that two rows have in common is gone from their difference. So each hook
of each defense that draws for rows is given a batch, again and again, and what
becomes of two rows must not go together. Of two passive parties the same: they
may be one and the same behind the back of the active one.
"""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.contracts import DEFENSES
from tests.hooks_alone import (
    KEY, OF_ALL, ROWS, data, drawing, outcome, outcome_of_all,
)
from tests.perturbing import check_apart, draws
from vfljax import defenses
from vfljax.defenses import dp_weights, ppdl

WAYS = 600

# A new defense needs no line here; these are the exceptions. Of whose luck all
# rows share, the hook and why.
SHARED = dict(
    kdk=('prepare', 'a teacher is one network: rows that look alike are taught '
                    'alike, and what hides them is the smoothing'),
)
# Of whose luck all parties share.
SHARED_BY_PARTIES = dict(
    gafm=('objective', 'what is drawn is of the prediction, which all parties '
                       'have a part in; each is sent its gradient of that'),
)
# How many rows nothing is drawn for: Max-Norm adds nothing to the largest.
UNTOUCHED = dict(max_norm=1)


def test_hooks_that_draw_are_found():
  """Else nobody would be asked."""
  found = {name: drawing(name) for name in DEFENSES}
  assert not found['none'] and not found['discrete_sgd']
  assert found['gradient_dropout'] == ['gradient']  # BUILD.md's own example.
  assert {hook for hooks in found.values() for hook in hooks} == {
      'batch', 'gradient', 'objective', 'prepare', 'receive', 'send',
  }
  for name, (hook, _) in [*SHARED.items(), *SHARED_BY_PARTIES.items()]:
    assert hook in found[name], name


@pytest.mark.parametrize('name', DEFENSES)
def test_rows_do_not_share_what_is_drawn(name):
  for hook in drawing(name):
    if hook != SHARED.get(name, (None,))[0]:
      check_rows_apart(outcome(name, hook), ROWS - UNTOUCHED.get(name, 0))


@pytest.mark.parametrize('name', DEFENSES)
def test_parties_do_not_share_what_is_drawn(name):
  shared, _ = SHARED_BY_PARTIES.get(name, (None, None))
  for hook in (OF_ALL.keys() & drawing(name)) - {shared}:
    check_rows_apart(outcome_of_all(name, hook), 2, rows=2)


def check_rows_apart(run, least, rows=ROWS):
  """That what becomes of two rows does not go together, and that it is by luck
  for as many rows."""
  seen = jax.jit(jax.vmap(run))(jax.random.split(KEY, WAYS))
  seen = np.asarray(seen, np.float64).reshape(WAYS, rows, -1)
  row = np.repeat(np.arange(rows), seen.shape[2])
  seen = seen.reshape(WAYS, -1)
  random = seen.std(0) > 1e-6 * np.abs(seen).max()
  assert len({*row[random]}) >= least, 'Some rows are as they were: UNTOUCHED.'
  together = np.abs(np.corrcoef(seen[:, random].T))
  others = row[random][:, None] != row[random]
  assert together[others].max() < 6 / WAYS**0.5


@pytest.mark.parametrize('shape', [(ROWS, 1), (1, 2)])
def test_luck_of_two_rows_is_told_apart_from_their_own(shape):
  """The check itself: of noise for each row, and of one noise for all."""
  x = data().features[1]
  run = lambda key: x + 0.1 * jax.random.normal(key, shape)
  if shape[0] == ROWS:
    check_rows_apart(run, ROWS)
  else:
    with pytest.raises(AssertionError):
      check_rows_apart(run, ROWS)


# Formulas of noise that other tests do not look at.


@pytest.mark.parametrize('name', ['dp_laplace', 'dp_gaussian'])
def test_what_is_clipped_is_the_gradient_and_not_the_noise(name):
  d, labels = np.asarray(data().features[1]), data().labels
  sent = draws(defenses.REGISTRY[name](1.0, clip_norm=1e-3), d, labels, 400)
  expected = 2**0.5 if name == 'dp_laplace' else 1
  np.testing.assert_allclose(sent.std(), expected, rtol=0.05)


def test_noise_on_weights_is_drawn_for_each_number():
  gradients = dict(a=jnp.zeros((2, 3)), b=jnp.zeros(3))
  run = jax.jit(jax.vmap(lambda key: dp_weights.dp_weights(2.0).share(
      key, gradients
  )))
  found = run(jax.random.split(KEY, 2000))
  noise = np.concatenate(
      [np.reshape(x, (2000, -1)) for x in jax.tree.leaves(found)], 1
  )
  check_apart(noise)
  np.testing.assert_allclose(noise.std(0), 2, rtol=0.08)
  np.testing.assert_allclose(noise.mean(0), 0, atol=0.2)


def test_ppdl_spends_its_budget_on_the_choice_and_on_the_answer():
  """Of one element, 3 scales above the threshold or far above it."""
  budget = 1.8
  choice, answer = (2 / (part * budget) for part in (8 / 9, 2 / 9))
  own = ppdl.ppdl(1.0, budget, gamma=1e6, tau=0.0)
  labels = np.array([[1, 0]], np.float32)
  near = draws(own, np.float32([[3 * choice]]), labels, 8000).ravel()
  # P(t - q <= 3) of Laplace noise t and q, of scales 1 and 2.
  above = 1 - (4 * np.exp(-3 / 2) - np.exp(-3)) / 6
  np.testing.assert_allclose((near != 0).mean(), above, atol=0.02)
  far = draws(own, np.float32([[1e3]]), labels, 8000).ravel() - 1e3
  np.testing.assert_allclose(np.abs(far).mean(), answer, rtol=0.05)


def test_ppdl_visits_in_any_order_and_releases_at_the_threshold():
  x, nothing = jnp.full(3, 1e-4), jnp.zeros(3)
  found = jax.jit(ppdl.release)(
      x, jnp.arange(3), 3, nothing, nothing, nothing
  )
  np.testing.assert_array_equal(found, x)
  d = np.full((5, 1), 1e-3, np.float32)  # All alike: the first one is sent.
  labels = np.tile(np.float32([1, 0]), (5, 1))
  sent = draws(ppdl.ppdl(0.2, 1e6), d, labels, 400)[..., 0] != 0
  np.testing.assert_array_equal(sent.sum(1), 1)
  np.testing.assert_allclose(sent.mean(0), 0.2, atol=0.1)
