"""From a configuration and a table to a federation, its plan and its attackers.

`checks.make` makes a `Setting` that is known to work; here is what it is.
"""
from collections.abc import Callable, Hashable
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax.runner import (
    backdoors, config as configs, federations, memory, replay,
)
from vfljax.runner import samples as samples_of
from vfljax.runner.config import Config, Entry
from vfljax.runner.samples import Sizes, Splits
from vfljax import data, defenses, measure, protocol, train
from vfljax.attack import Attack
from vfljax.attacks.active_completion import malicious_sgd
from vfljax.backdoor import Backdoor
from vfljax.data import split
from vfljax.data.table import Table
from vfljax.defense import Defense, Slots, chain
from vfljax.types import VFL, Array, Batch, Key, State
from vfljax.views import TrainedBottom, TrainedTop, UnlabeledBottom

AFTER_TRAINING = (TrainedBottom, TrainedTop, UnlabeledBottom)


class Setting(NamedTuple):
  """An experiment, checked and ready to be compiled.

  Attributes:
    config: What was asked for.
    samples: All samples, training ones first where there is a test set.
    sizes: How they are divided.
    official: Whether the data set has a test set of its own.
    vfl: The federation.
    in_training: Attacks on rounds, by name.
    replayed: Attacks on rounds played again before and after it, by name.
    after_training: Attacks on the trained federation, by name.
    backdoor: The name of the attack that changes the training, or ''.
    outside: The defender's samples of another data set; `None` if they are of
      this one, or if there are none.
    stream: Rounds of samples that are on the device at a time, which are NumPy
      arrays then; 0 if they all are.
  """

  config: Config
  samples: Batch
  sizes: Sizes
  official: bool
  vfl: VFL
  in_training: dict[str, Attack]
  after_training: dict[str, Attack]
  replayed: dict[str, Attack]
  backdoor: str = ''
  outside: Batch | None = None
  stream: int = 0

  @property
  def classes(self) -> int:
    return self.samples.labels.shape[-1]

  @property
  def attackers(self) -> tuple[int, ...]:
    party = self.config.attack.party
    return (party,) if party else tuple(range(1, len(self.vfl.bottoms)))


def from_config(config: Config, table: Table) -> Setting:
  """The setting; `checks.make` is what also says whether it can work.

  Raises:
    ValueError: if it cannot be put together.
  """
  own, classes = config.data, len(table.classes)
  has_own = config.model.algorithm != 'vsnn'
  spec = split.Spec(
      own.parties, own.split, own.ratios or None, own.named or None,
      label_only=not has_own, seed=own.split_seed,
      strength=own.split_strength,
  )
  features = split.apply(table, spec)
  order, sizes = samples_of.divide(table, config)
  vfl = federations.federation(config, classes)
  names = configs.attack_names(config, classes)
  backdoor = backdoors.named(names)
  made = {
      name: federations.attacker(name, config, vfl, classes) for name in names
      if name != backdoor
  }
  after = {n: a for n, a in made.items() if a.view in AFTER_TRAINING}
  rest = {n: a for n, a in made.items() if n not in after}
  again = {n: a for n, a in rest.items() if replay.is_replayed(n, config)}
  during = {n: a for n, a in rest.items() if n not in again}
  possible = memory.even(config) and not (after or again or backdoor)
  chunk = memory.rounds_of(config, table, possible)
  put: Any = np.asarray if chunk else jnp.asarray  # Here, or on the device.
  samples = Batch(
      tuple(None if x is None else put(x[order]) for x in features),
      put(np.eye(classes, dtype=np.float32)[table.labels[order]]),
  )
  return Setting(
      config, samples, sizes, table.test is not None, vfl, during, after, again,
      backdoor, _outside(config, table, spec), chunk,
  )


def split_samples(setting: Setting, key: Key, samples: Batch) -> Splits:
  """One seed's split of the samples, features scaled by its training part."""
  return with_spare(setting, key, samples_of.split(
      key, samples, setting.sizes, setting.official, setting.config.data.scale
  ))


def with_spare(setting: Setting, key: Key, splits: Splits) -> Splits:
  """The split with the defender's samples as they are to be."""
  own = setting.config.auxiliary
  spare = setting.outside if own.data else splits.spare
  if not own.samples or spare is None:
    return splits._replace(spare=None)
  distorted = samples_of.distorted(
      jax.random.fold_in(key, 1), spare, own.classes, own.noise
  )
  return splits._replace(spare=distorted)


def _outside(config: Config, table: Table, spec: split.Spec) -> Batch | None:
  """The defender's samples, where they are of another data set.

  Raises:
    ValueError: if that cannot be had, or is of another shape.
  """
  if not config.auxiliary.data:
    return None
  other = data.load(config.auxiliary.data, path=config.auxiliary.path)
  if (other.features.shape[1:], len(other.classes)) != (
      table.features.shape[1:], len(table.classes)
  ):
    raise ValueError(
        f'auxiliary.data={config.auxiliary.data} has samples of shape '
        f'{other.features.shape[1:]} in {len(other.classes)} classes; it must '
        f'be as {config.data.name}: {table.features.shape[1:]} in '
        f'{len(table.classes)}.'
    )
  return samples_of.outside(
      other, spec, config.auxiliary.samples, config.data.scale
  )


def build(
    entry: Entry, strength: Array | float | None, **others: Array | float
) -> Defense:
  """The entry's defense at a strength, which may be traced.

  Args:
    others: Values of the arguments in the entry's grid; may be traced.

  Raises:
    ValueError: if the strength or another argument is out of its range.
  """
  given = () if strength is None else (strength,)
  factory: Callable[..., Defense] = defenses.REGISTRY[entry.defense]
  defense = factory(*given, **entry.options, **others)
  before = [
      build(e, e.strengths[0] if e.strengths else None) for e in entry.after
  ]
  return chain(*before, defense) if before else defense


def absent() -> Defense:
  """The federation without its passive parties: the active party alone.

  Their embeddings are zeros to the top and learn nothing.
  """

  def receive(active, state, key, up, labels):
    return tuple(jnp.zeros_like(u) for u in up), jnp.zeros(())

  return Defense(
      init=lambda key, spec: Slots((), ((),) * len(spec.embeddings), ()),
      receive=receive,
  )


def plan(
    setting: Setting, defense: Defense, splits: Splits,
    backdoor: Backdoor | None = None,
) -> train.Plan:
  """The training of one cell."""
  config = setting.config.train
  watch, digest = measure.watcher(
      setting.in_training, setting.attackers, setting.config.attack.pool
  )
  held = splits.validation if setting.sizes.validation else splits.test

  def validate(key, state: State):
    logits = protocol.predict(key, setting.vfl, defense, state, held.features)
    return measure.of_model(logits, held.labels) | defense.facts(state.defense)

  tx, parties = _optimizer(setting), range(len(setting.vfl.bottoms))
  active = 'active_completion' in bases(setting)
  evil = setting.attackers if active else ()
  return train.Plan(
      setting.vfl, defense,
      [_malicious(config) if k in evil else tx for k in parties],
      config.epochs, config.batch_size,
      remainder=config.remainder,
      adversary=backdoor.training if backdoor else protocol.HONEST,
      watch=watch, digest=digest, validate=validate, every=every(setting),
      best=main_metric(setting) if config.best else '',
      patience=config.patience, auxiliary=splits.spare,
  )


def main_metric(setting: Setting) -> str:
  """The utility: 'auc' for two classes, 'accuracy' for more."""
  return 'auc' if setting.classes == 2 else 'accuracy'


def every(setting: Setting) -> int:
  """Epochs between two measurements."""
  config = setting.config.train
  return config.measure_every or max(1, config.epochs // 50)


def rounds(setting: Setting) -> int:
  """Rounds an epoch."""
  config = setting.config.train
  full, rest = divmod(setting.sizes.train, config.batch_size)
  return full + (rest > 0 and config.remainder != 'drop')


def _optimizer(setting: Setting) -> optax.GradientTransformation:
  """A party's optimizer; a defense's weights may have a rate of their own."""
  config = setting.config.train
  tx = _at_rate(setting, config.learning_rate)
  if not config.defense_learning_rate:
    return tx
  own = _at_rate(setting, config.defense_learning_rate)
  by_rate: dict[Hashable, Any] = {'own': own, 'rest': tx}

  def whose(params):
    return {k: 'own' if k == 'defense' else 'rest' for k in params}

  return optax.partition(by_rate, whose)


def _at_rate(setting: Setting, start: float) -> optax.GradientTransformation:
  config, rate = setting.config.train, start
  if config.schedule == 'cosine':
    rate = optax.cosine_decay_schedule(start, config.epochs * rounds(setting))
  if config.optimizer == 'adamw':
    return optax.adamw(rate, weight_decay=config.weight_decay or 1e-4)
  if config.optimizer == 'momentum':
    tx = optax.sgd(rate, momentum=0.9)
  else:
    tx = getattr(optax, config.optimizer)(rate)
  if not config.weight_decay:
    return tx
  return optax.chain(optax.add_decayed_weights(config.weight_decay), tx)


def _malicious(config: configs.TrainConfig) -> optax.GradientTransformation:
  """The optimizer of an attacker who completes its model actively.

  Raises:
    ValueError: if the federation does not train with SGD at a constant rate.
  """
  momentum = dict(sgd=0.0, momentum=0.9).get(config.optimizer)
  constant = config.schedule == 'constant' and not config.weight_decay
  if momentum is None or not constant:
    raise ValueError(
        'active_completion scales up the updates of SGD at a constant rate: use'
        ' --config.train.optimizer=sgd or momentum, and no weight decay.'
    )
  return malicious_sgd(config.learning_rate, momentum)


def quits(setting: Setting) -> dict[str, tuple[int, ...]]:
  """Who may be missing: what results call it, and who of the others is there.

  '' is all passive parties, '@k' passive party k.
  """
  if not setting.config.quitting:
    return {}
  parties = len(setting.vfl.bottoms) - 1
  found = {'': (0,) * parties} if setting.vfl.bottoms[0] else {}
  if parties > 1:
    found |= {
        f'@{k + 1}': tuple(int(j != k) for j in range(parties))
        for k in range(parties)
    }
  return found


def bases(setting: Setting) -> set[str]:
  """Which attacks there are after training, variants by what they are of."""
  return {configs.base(name) for name in setting.after_training}


def grid(entry: Entry) -> list[dict[str, float]]:
  """Every combination of an entry's other arguments; one of none at least."""
  return [
      dict(zip(entry.grid, values))
      for values in itertools.product(*entry.grid.values())
  ]
