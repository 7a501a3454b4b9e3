"""Which layers are hidden: Algorithm 2, against cases worked out by hand."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.defenses.layer_selection import SELECTIONS, choose, greedy

KEY = jax.random.key(0)
NORMS = jnp.array([3.0, 1.0, 2.0])
ALL = jnp.ones(3, bool)
NONE = jnp.zeros(3, bool)


def leak(key, hidden):
  """0.9 of nothing hidden; layer 0 is worth 0.1, 1 0.3 and 2 0.2."""
  del key
  return 0.9 - hidden @ jnp.array([0.1, 0.3, 0.2])


@pytest.mark.parametrize('budget, hidden, leaked', [
    (0.95, [0, 0, 0], 0.9),  # Within the budget from the start.
    (0.85, [1, 0, 0], 0.8),  # The largest norm goes first,
    (0.65, [1, 0, 1], 0.6),  # then the second largest, 2,
    (0.35, [1, 1, 1], 0.3),  # and at last the most telling one.
    (0.2, [1, 1, 1], 0.3),  # Not even that is within this budget.
])
def test_greedy_selection(budget, hidden, leaked):
  found, value = greedy(KEY, NORMS, NONE, ALL, budget, leak)
  assert found.astype(int).tolist() == hidden
  np.testing.assert_allclose(value, leaked, rtol=1e-6)


def test_only_candidates_are_hidden():
  found, value = greedy(
      KEY, NORMS, NONE, jnp.array([False, True, True]), 0.65, leak
  )
  assert found.tolist() == [False, True, True]  # 0.7, with 2 alone, is over.
  np.testing.assert_allclose(value, 0.4, rtol=1e-6)


def chosen(selection, key=KEY, masked=NONE, budget=0.65):
  return choose(key, selection, NORMS, masked, ALL, budget, leak)[0]


def test_a_number_stands_for_its_word():
  """Also where it is traced: as each alone."""
  before, keys = jnp.array([False, True, False]), jax.random.split(KEY, 5)
  every = lambda selection: jax.vmap(
      lambda key: chosen(selection, key, before)
  )(keys)
  numbers = jnp.arange(3.0)
  found, alone = jax.jit(lambda: (
      jax.lax.map(every, numbers), [every(word) for word in SELECTIONS]
  ))()
  for sets, expected in zip(found, alone, strict=True):
    np.testing.assert_array_equal(sets, expected)


def test_the_variants_differ_as_they_are_defined():
  before = np.array([False, True, False])

  @jax.jit
  def run(before):
    return (
        chosen('critical', masked=before),
        *(chosen('accumulative', masked=before, budget=b)
          for b in (0.65, 0.55)),
        jax.vmap(lambda k: chosen('random', k))(jax.random.split(KEY, 40)),
    )

  critical, kept, more, sets = map(np.asarray, run(before))
  assert critical.tolist() == [True, False, True]
  # What is hidden stays so: 0.6 is within the budget.
  assert kept.tolist() == before.tolist()
  assert more.tolist() == [True, True, False]
  assert (sets.sum(-1) == 2).all()  # As many as 'critical' hides, but any.
  assert len(np.unique(sets, axis=0)) == 3


@pytest.mark.parametrize('least, hidden', [
    (0, [False, False, False]), (1, [True, False, False]),
    (2, [True, False, True]), (5, [True, True, True]),
])
def test_so_many_layers_are_hidden_whatever_leaks(least, hidden):
  """Within any budget: those of the largest norms, as many as there are."""
  found, _ = choose(KEY, 'critical', NORMS, NONE, ALL, 1.0, leak, least)
  assert found.tolist() == hidden
  some = jnp.array([False, True, True])
  found, _ = choose(KEY, 'critical', NORMS, NONE, some, 1.0, leak, least)
  assert not found[0] and found.sum() == min(least, 2)


def test_the_smaller_the_budget_the_more_is_hidden_also_under_vmap():
  budgets = jnp.array([0.95, 0.85, 0.65, 0.35, 0.2])
  one = lambda b: greedy(KEY, NORMS, NONE, ALL, b, leak)[0]
  many = jax.jit(jax.vmap(one))(budgets)
  assert many.sum(-1).tolist() == [0, 1, 2, 3, 3]
  assert all((many[i] == one(b)).all() for i, b in enumerate(budgets))


def test_a_leakage_right_at_the_budget_is_within_it():
  found, _ = greedy(KEY, NORMS, NONE, ALL, leak(KEY, NONE), leak)
  assert not found.any()


def test_every_set_is_attacked_with_luck_of_its_own():
  """An attack that is all luck does not stop by the same luck at each set."""
  lucky = lambda key, hidden: jax.random.uniform(key)
  found = jax.jit(jax.vmap(
      lambda key: greedy(key, NORMS, NONE, ALL, 0.5, lucky)[0]
  ))(jax.random.split(KEY, 60))
  assert {1, 2} <= set(found.sum(-1).tolist())


@pytest.mark.parametrize('unknown, hidden', [
    (0, [1, 0, 1]),  # Nothing said of nothing hidden: on, as of too much.
    (3, [1, 1, 1]),
])
def test_a_leakage_that_is_no_number_is_not_within_the_budget(unknown, hidden):
  def broken(key, now):
    return jnp.where(now.sum() <= unknown, jnp.nan, leak(key, now))

  found, _ = greedy(KEY, NORMS, NONE, ALL, 0.65, broken)
  assert found.astype(int).tolist() == hidden


@pytest.mark.parametrize('selection', [3, -1, 0.5, 'all', np.asarray(7)])
def test_a_selection_that_there_is_not(selection):
  """It was 'critical'."""
  run = lambda which: choose(KEY, which, NORMS, NONE, ALL, 1.0, leak)[0]
  with pytest.raises(ValueError, match="selection must be one of 'critical'"):
    run(selection)
  which = jnp.asarray(1)  # Not traced, in a program that is.
  assert jax.eval_shape(lambda: run(which)).shape == NORMS.shape
