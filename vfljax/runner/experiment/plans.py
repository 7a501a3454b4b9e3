"""How one cell of an experiment trains: its plan and its optimizers."""
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import optax

from vfljax import measure, protocol, train
from vfljax.backdoor import Backdoor
from vfljax.defense import Defense
from vfljax.runner.experiment import attackers
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.setting import Setting
from vfljax.scene import Pace
from vfljax.types import State


def training_plan(
    setting: Setting, defense: Defense, splits: Splits,
    backdoor: Backdoor | None = None,
) -> train.Plan:
  """The plan of one cell's training.

  Args:
    setting: The experiment.
    defense: The cell's defense.
    splits: One seed's samples.
    backdoor: The attack that changes the training, if there is one.
  """
  config = setting.config.train
  watch, digest = measure.watcher(
      setting.in_training, defense, setting.attackers,
      setting.config.attack.pool,
  )
  held = splits.validation if setting.sizes.validation else splits.test

  def validate(key, state: State):
    logits = protocol.predict(key, setting.vfl, defense, state, held.features)
    return measure.of_model(logits, held.labels) | defense.facts(state.defense)

  tx, parties = _optimizer(setting), range(len(setting.vfl.bottoms))
  theirs = _attackers_optimizer(setting)
  evil = setting.attackers if theirs else ()
  return train.Plan(
      setting.vfl, defense,
      [theirs if theirs and k in evil else tx for k in parties],
      config.epochs, config.batch_size,
      remainder=config.remainder,
      adversary=backdoor.training if backdoor else protocol.HONEST,
      watch=watch, digest=digest, validate=validate, every=every(setting),
      best=main_metric(setting) if config.best else '',
      patience=config.patience, auxiliary=splits.spare,
  )


def main_metric(setting: Setting) -> str:
  """The utility metric: 'auc' for two classes, 'accuracy' for more."""
  return 'auc' if setting.classes == 2 else 'accuracy'


def every(setting: Setting) -> int:
  """Epochs between two measurements."""
  config = setting.config.train
  return config.measure_every or max(1, config.epochs // 50)


def rounds_an_epoch(setting: Setting) -> int:
  """The number of rounds in an epoch."""
  config = setting.config.train
  full, rest = divmod(setting.sizes.train, config.batch_size)
  return full + (rest > 0 and config.remainder != 'drop')


def _optimizer(setting: Setting) -> optax.GradientTransformation:
  return _by_rate(setting, partial(_at_rate, setting))


def _by_rate(
    setting: Setting, made: Callable[[float], optax.GradientTransformation]
) -> optax.GradientTransformation:
  """A party's optimizer; a defense's weights may have their own rate.

  Args:
    made: (learning rate) -> optimizer.
  """
  config = setting.config.train
  tx = made(config.learning_rate)
  if not config.defense_learning_rate:
    return tx
  own = made(config.defense_learning_rate)
  by_rate: dict[Hashable, Any] = {'own': own, 'rest': tx}

  def whose(params):
    return {k: 'own' if k == 'defense' else 'rest' for k in params}

  return optax.partition(by_rate, whose)


def _at_rate(setting: Setting, start: float) -> optax.GradientTransformation:
  config, rate = setting.config.train, start
  if config.schedule == 'cosine':
    steps = config.epochs * rounds_an_epoch(setting)
    rate = optax.cosine_decay_schedule(start, steps)
  if config.optimizer == 'adamw':
    return optax.adamw(rate, weight_decay=config.weight_decay or 1e-4)
  if config.optimizer == 'momentum':
    tx = optax.sgd(rate, momentum=0.9)
  else:
    tx = getattr(optax, config.optimizer)(rate)
  if not config.weight_decay:
    return tx
  return optax.chain(optax.add_decayed_weights(config.weight_decay), tx)


def _attackers_optimizer(
    setting: Setting,
) -> optax.GradientTransformation | None:
  """The optimizer of attackers who update their weights in another way.

  `None` if no attack after training has one.

  Raises:
    ValueError: if it does not fit how the federation trains.
  """
  config = setting.config.train
  constant = config.schedule == 'constant' and not config.weight_decay
  recipes = map(attackers.recipe, setting.after_training)
  made = next((r.optimizer for r in recipes if r.optimizer), None)
  return made and _by_rate(
      setting, lambda rate: made(Pace(config.optimizer, rate, constant))
  )
