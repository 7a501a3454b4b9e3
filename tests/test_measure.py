"""What scores attacks in training is told of the defense."""
import jax
import jax.numpy as jnp

from tests.contracts import make, one_round
from vfljax import measure, views
from vfljax.attack import Attack
from vfljax.defense import Defense


def test_attacks_in_training_read_weights_as_the_defense_lets_them():
  nothing = Defense(expose=lambda state, key, k, weights: jax.tree.map(
      jnp.zeros_like, weights
  ))
  size = Attack(views.ModelGradients, lambda key, view: sum(
      jnp.abs(x).sum() for x in jax.tree.leaves(view.weights)
  ) + 0 * view.valid)
  for defense, hidden in (make('none'), False), (nothing, True):
    watch, _ = measure.watcher(dict(size=size), defense)
    guessed = watch(jax.random.key(3), one_round()[1])['size'].guessed
    assert (guessed.scores == 0).all() == hidden


def test_who_asks_is_told_the_defense_in_training():
  defense = make('none')
  scored = lambda value: lambda key, view: value + 0 * view.valid
  asking = Attack(views.CutGradients, scored(0.0), against=lambda told: Attack(
      views.CutGradients, scored(1.0 if told is defense else 2.0)
  ))
  watch, _ = measure.watcher(dict(asking=asking), defense)
  guessed = watch(jax.random.key(3), one_round()[1])['asking'].guessed
  assert (guessed.scores == 1).all()
