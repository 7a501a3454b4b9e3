"""How a cell trains: its rounds, its rates, and who has an optimizer alone."""
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import defenses
from vfljax.runner.checking import checks
from vfljax.runner.cli import arguments
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, TrainConfig,
)
from vfljax.runner.experiment import plans
from vfljax.runner.experiment.division import Splits


def setting(samples=10, classes=2, **train):
  return SimpleNamespace(
      config=Config(train=TrainConfig(**train)), classes=classes,
      sizes=SimpleNamespace(train=samples),
  )


@pytest.mark.parametrize('samples, remainder, rounds', [
    (8, 'drop', 2), (8, 'keep', 2), (8, 'pad', 2), (9, 'drop', 2),
    (9, 'keep', 3), (9, 'pad', 3), (11, 'keep', 3), (11, 'drop', 2),
])
def test_what_is_left_of_an_epoch_is_a_round_unless_dropped(
    samples, remainder, rounds
):
  one = setting(samples, batch_size=4, remainder=remainder)
  assert plans.rounds_an_epoch(one) == rounds


@pytest.mark.parametrize('epochs, asked, every', [
    (1, 0, 1), (99, 0, 1), (100, 0, 2), (500, 0, 10), (500, 3, 3),
])
def test_fifty_epochs_are_measured_unless_asked_otherwise(
    epochs, asked, every
):
  assert plans.every(setting(epochs=epochs, measure_every=asked)) == every


def test_two_classes_are_judged_by_the_auc():
  assert [plans.main_metric(setting(classes=n)) for n in (2, 3)] == [
      'auc', 'accuracy'
  ]


def steps(tx, gradients, weights=2.0):
  """What the optimizer adds to a weight for each gradient in turn."""
  params, found = dict(w=jnp.array(weights)), []
  state = tx.init(params)
  for g in gradients:
    updates, state = tx.update(dict(w=jnp.array(g)), state, params)
    found.append(float(updates['w']))
  return found


@pytest.mark.parametrize('train, expected', [
    (dict(optimizer='sgd', learning_rate=0.5), [-0.5, -1.0]),
    (dict(optimizer='momentum', learning_rate=0.5), [-0.5, -1.45]),
    (dict(optimizer='sgd', learning_rate=0.5, weight_decay=0.1),
     [-0.6, -1.1]),
    (dict(optimizer='adam', learning_rate=0.5), [-0.5, -0.4825]),
    (dict(optimizer='adamw', learning_rate=0.5), [-0.5001, -0.4826]),
    (dict(optimizer='adamw', learning_rate=0.5, weight_decay=0.1),
     [-0.6, -0.5825]),
])
def test_the_optimizers_steps(train, expected):
  """Of the gradients 1 and 2 at a weight of 2; Adam's by its formula."""
  found = steps(plans._optimizer(setting(**train)), [1.0, 2.0])
  np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_cosine_ends_with_the_last_round():
  one = setting(
      10, optimizer='sgd', learning_rate=0.5, schedule='cosine', epochs=2,
      batch_size=4, remainder='keep',
  )
  rates = -np.array(steps(plans._optimizer(one), [1.0] * 7))
  expected = 0.25 * (1 + np.cos(np.pi * np.arange(7) / 6))
  np.testing.assert_allclose(rates, expected, atol=1e-6)


def test_a_defenses_weights_may_have_a_rate_of_their_own():
  one = setting(
      optimizer='sgd', learning_rate=0.5, defense_learning_rate=0.125
  )
  params = dict(bottom=jnp.ones(2), defense=jnp.ones(3))
  tx = plans._optimizer(one)
  updates, _ = tx.update(params, tx.init(params), params)
  np.testing.assert_allclose(updates['bottom'], -0.5)
  np.testing.assert_allclose(updates['defense'], -0.125)


@pytest.mark.parametrize('party', [0, 1, 2])
@pytest.mark.parametrize('attack', ['active_completion', 'model_completion'])
def test_only_who_attacks_actively_trains_in_another_way(attack, party):
  config = Config(
      listed=(Entry('none'),), listed_attacks=(attack,),
      data=DataConfig('synthetic', options='samples=60', parties=3),
      model=ModelConfig(bottom=(4,), top=(4,)),
      train=TrainConfig(epochs=3, batch_size=8, optimizer='momentum'),
      attack=AttackConfig(known=2, party=party),
  )
  made = checks.assembled(config, arguments.load_data(config.data))
  plan = plans.training_plan(
      made, defenses.none(), Splits(*[made.samples] * 4)
  )
  kinds = [jax.tree.structure(tx.init(jnp.zeros(2))) for tx in plan.txs]
  plain = jax.tree.structure(optax.sgd(0.1, 0.9).init(jnp.zeros(2)))
  others = {k for k, kind in enumerate(kinds) if kind != plain}
  evil = {1, 2} if party == 0 else {party}
  assert others == (evil if attack == 'active_completion' else set())


def test_nor_do_attackers_train_a_defenses_weights_at_the_networks_rate():
  one = setting(
      optimizer='sgd', learning_rate=0.5, defense_learning_rate=0.125
  )
  one.after_training = dict(active_completion=None)
  params = dict(bottom=jnp.ones(2), defense=jnp.ones(3))
  tx = plans._attackers_optimizer(one)
  first, state = tx.update(params, tx.init(params), params)
  then, _ = tx.update(params, state, params)
  for updates, factor in (first, 1), (then, 2):  # It goes on the same way.
    np.testing.assert_allclose(updates['bottom'], -0.5 * factor, rtol=1e-5)
    np.testing.assert_allclose(updates['defense'], -0.125 * factor, rtol=1e-5)
  one.config.train.weight_decay = 0.1
  with pytest.raises(ValueError, match='SGD at a constant rate'):
    plans._attackers_optimizer(one)
