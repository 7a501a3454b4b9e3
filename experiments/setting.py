"""From a configuration and a table to a federation, its plan and its attackers.

Everything here is checked before anything is compiled: what cannot work ends in
a `UserError` that says so.
"""
from collections.abc import Callable, Hashable
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import config as configs, inversion
from experiments.config import Config, Entry
from experiments.errors import UserError
from vfljax import (
    algorithms, attacks, defenses, measure, nets, networks, protocol, train,
    wide_deep,
)
from vfljax.attack import Attack
from vfljax.attacks.active_completion import malicious_sgd
from vfljax.attacks.gradient_inversion import Search
from vfljax.attacks.model_completion import Schedule
from vfljax.data import scale, split
from vfljax.data.table import Table
from vfljax.defense import Defense, Slots, chain
from vfljax.shuffle import permutation
from vfljax.types import VFL, Array, Batch, Key, Net, State
from vfljax.views import TrainedBottom, TrainedTop

AFTER_TRAINING = (TrainedBottom, TrainedTop)

# What takes over a trained bottom network, and is measured by its baselines.
COMPLETIONS = ('model_completion', 'active_completion')


class Sizes(NamedTuple):
  """How many samples go where."""

  train: int
  validation: int
  test: int
  auxiliary: int = 0


class Splits(NamedTuple):
  """One seed's samples, standardised on its training samples.

  The auxiliary ones are an attacker's; nobody trains the federation on them.
  """

  train: Batch
  validation: Batch
  test: Batch
  auxiliary: Batch


class Setting(NamedTuple):
  """An experiment, checked and ready to be compiled.

  Attributes:
    config: What was asked for.
    samples: All samples, training ones first where there is a test set.
    sizes: How they are divided.
    official: Whether the data set has a test set of its own.
    vfl: The federation.
    in_training: Attacks on rounds, by name.
    after_training: Attacks on the trained federation, by name.
  """

  config: Config
  samples: Batch
  sizes: Sizes
  official: bool
  vfl: VFL
  in_training: dict[str, Attack]
  after_training: dict[str, Attack]

  @property
  def classes(self) -> int:
    return self.samples.labels.shape[-1]

  @property
  def attackers(self) -> tuple[int, ...]:
    party = self.config.attack.party
    return (party,) if party else tuple(range(1, len(self.vfl.bottoms)))


def make(config: Config, table: Table) -> Setting:
  """Checks a configuration against its data.

  Raises:
    UserError: if it cannot be run.
  """
  try:
    setting = _make(config, table)
    _check(setting)
  except ValueError as error:
    raise UserError(str(error)) from None
  return setting


def _make(config: Config, table: Table) -> Setting:
  data, classes = config.data, len(table.classes)
  has_own = config.model.algorithm != 'vsnn'
  features = split.apply(table, split.Spec(
      data.parties, data.split, data.ratios or None, data.named or None,
      label_only=not has_own, seed=data.split_seed,
  ))
  order, sizes = _divide(table, config)
  labels = jax.nn.one_hot(jnp.asarray(table.labels[order]), classes)
  samples = Batch(
      tuple(None if x is None else jnp.asarray(x[order]) for x in features),
      labels,
  )
  vfl = _federation(config, classes)
  names = configs.attack_names(config, classes)
  made = {name: _attack(name, config, vfl, classes) for name in names}
  after = {n: a for n, a in made.items() if a.view in AFTER_TRAINING}
  during = {n: a for n, a in made.items() if n not in after}
  return Setting(
      config, samples, sizes, table.test is not None, vfl, during, after
  )


def _divide(table: Table, config: Config):
  """The order of the samples, and how many are for what."""
  data, count = config.data, len(table.labels)
  if not 0 < data.test < 1 or not 0 <= data.validation < 1:
    raise ValueError(
        'data.test must be inside (0, 1) and data.validation inside [0, 1); '
        f'got {data.test} and {data.validation}.'
    )
  if table.test is not None:
    order = np.argsort(table.test, kind='stable')
    held = int(table.test.sum())
  else:
    order, held = slice(None), math.ceil(data.test * count)
  auxiliary = config.attack.auxiliary
  if not 0 <= auxiliary < count - held:
    raise ValueError(
        f'attack.auxiliary must be 0 or more and leave some of the '
        f'{count - held} training samples to train on; got {auxiliary}.'
    )
  validation = math.ceil(data.validation * (count - held - auxiliary))
  return order, Sizes(
      count - held - auxiliary - validation, validation, held, auxiliary
  )


def split_samples(setting: Setting, key: Key, samples: Batch) -> Splits:
  """One seed's split of the samples, features scaled by its training part."""
  sizes = setting.sizes
  fit = sizes.train + sizes.validation + sizes.auxiliary
  if setting.official:
    known, test = _rows(samples, slice(fit)), _rows(samples, slice(fit, None))
    if sizes.validation or sizes.auxiliary:
      known = _rows(known, permutation(key, fit))
  else:
    order = permutation(key, fit + sizes.test)
    known, test = _rows(samples, order[:fit]), _rows(samples, order[fit:])
  training = _rows(known, slice(sizes.train))
  rest = _rows(known, slice(sizes.train, None))
  validation = _rows(rest, slice(sizes.validation))
  auxiliary = _rows(rest, slice(sizes.validation, None))
  how = setting.config.data.scale
  scalers = [x if x is None else _scaler(x, how) for x in training.features]

  def scaled(batch):
    return batch._replace(features=tuple(
        f and f(x) for f, x in zip(scalers, batch.features)
    ))

  return Splits(*map(scaled, (training, validation, test, auxiliary)))


def _rows(samples: Batch, rows: Array | slice) -> Batch:
  return jax.tree.map(lambda x: x[rows], samples)


def _scaler(x: Array, how: str) -> Callable[[Array], Array]:
  """How features are scaled, by the training samples `x`.

  Images keep one mean and deviation for all their pixels.
  """
  if x.ndim == 4:
    seen = scale.images(x)
    mean, std = (seen.mean(), seen.std()) if how == 'standard' else (0.0, 1.0)
    return lambda x: (scale.images(x) - mean) / jnp.maximum(std, 1e-12)
  if how == 'none':
    return lambda x: x
  fit = scale.fit if how == 'standard' else scale.fit_min_max
  stats = fit(x, jnp.ones(len(x), bool))
  return lambda x: scale.transform(x, stats)


def _federation(config: Config, classes: int) -> VFL:
  model, parties = config.model, config.data.parties
  configs.choices(model, algorithm=('vlr', 'vhnn', 'vsnn'))
  if model.algorithm == 'vlr':
    return algorithms.vlr(parties, classes)
  if not (model.bottom or model.channels):
    raise ValueError('model.bottom needs at least one width.')
  bottom = _network(config, model.bottom, model.bottom_final)
  width = 1 if classes == 2 else classes
  if not model.trainable_top:
    if model.bottom[-1:] != (width,):
      raise ValueError(
          'With a top without weights the embedding is the logits: the last '
          f'width of model.bottom must be {width}, not {model.bottom[-1:]}.'
      )
    # Logits are added up, not laid side by side.
    fuse = 'sum' if model.aggregation == 'concat' else model.aggregation
    top = algorithms.plain(fuse)
    bottoms = [bottom] * (parties - (model.algorithm == 'vsnn'))
    own = [None] if model.algorithm == 'vsnn' else []
    return VFL((*own, *bottoms), top, optax.softmax_cross_entropy)
  top = nets.mlp(*model.top, width, activation=model.activation)
  top = nets.binary(top) if width == 1 else top
  if model.algorithm == 'vsnn':
    return algorithms.vsnn([bottom] * (parties - 1), top, model.aggregation)
  return algorithms.vhnn([bottom] * parties, top, model.aggregation)


def _network(
    config: Config, widths: tuple[int, ...], final: str = 'linear'
) -> Net:
  """A network of linear layers of `widths`, after the configured convolutions
  or beside a linear model of the categories, if any."""
  model = config.model
  if model.buckets:
    return wide_deep.wide_and_deep(
        model.buckets, *widths, activation=model.activation, final=final
    )
  if not model.channels:
    return nets.mlp(
        *widths, activation=model.activation, final=final,
        dropout=model.dropout,
    )
  return networks.convolutional(
      model.channels, *widths, pools=model.pools, activation=model.activation,
      final=final, same=model.padding,
  )


def _attack(name: str, config: Config, vfl: VFL, classes: int) -> Attack:
  """An attack with what the configuration says of the attacker."""
  who, model = configs.attacker(config, name), config.model
  reason = configs.why_not(name, config, classes)
  if reason:
    raise ValueError(reason)
  name = configs.base(name)
  if name == 'median_scoring':
    return attacks.median_scoring(who.median)
  schedule = Schedule(who.epochs, who.batch_size, who.stages, who.learning_rate)
  linear = model.algorithm == 'vlr'
  head = nets.mlp(*(() if linear else who.head), classes)
  bottom = vfl.bottom(1)
  if name == 'gradient_inversion':
    search = Search(who.inversion_steps, who.inversion_restarts)
    return attacks.gradient_inversion(bottom, classes, search)
  factory: Callable[..., Attack] = attacks.REGISTRY[name]
  if name in COMPLETIONS:
    return factory(
        bottom, None if linear else head, schedule, who.tune,
        standardize=who.standardize,
    )
  if name == 'scratch':
    return attacks.scratch(
        bottom, head, schedule, who.tune, standardize=who.standardize
    )
  if name == 'local_model':
    hidden = () if linear else (*model.bottom, *who.head)
    return attacks.local_model(_network(config, (*hidden, classes)), schedule)
  if name in inversion.INVERSIONS:
    return inversion.attack(name, who, model, vfl)
  return factory()


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


def plan(setting: Setting, defense: Defense, splits: Splits) -> train.Plan:
  """The training of one cell."""
  config = setting.config.train
  watch, digest = measure.watcher(
      setting.in_training, setting.attackers, setting.config.attack.pool
  )
  held = splits.validation if setting.sizes.validation else splits.test

  def validate(key, state: State):
    logits = protocol.predict(key, setting.vfl, defense, state, held.features)
    return measure.of_model(logits, held.labels)

  tx, parties = _optimizer(setting), range(len(setting.vfl.bottoms))
  active = 'active_completion' in _bases(setting)
  evil = setting.attackers if active else ()
  return train.Plan(
      setting.vfl, defense,
      [_malicious(config) if k in evil else tx for k in parties],
      config.epochs, config.batch_size,
      remainder=config.remainder,
      watch=watch, digest=digest, validate=validate, every=every(setting),
      best=main_metric(setting) if config.best else '',
      patience=config.patience,
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
  if config.optimizer == 'momentum':
    return optax.sgd(rate, momentum=0.9)
  return getattr(optax, config.optimizer)(rate)


def _malicious(config: configs.TrainConfig) -> optax.GradientTransformation:
  """The optimizer of an attacker who completes its model actively.

  Raises:
    ValueError: if the federation does not train with SGD at a constant rate.
  """
  momentum = dict(sgd=0.0, momentum=0.9).get(config.optimizer)
  if momentum is None or config.schedule != 'constant':
    raise ValueError(
        'active_completion scales up the updates of SGD at a constant rate: use'
        ' --config.train.optimizer=sgd or momentum.'
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


def _bases(setting: Setting) -> set[str]:
  """Which attacks there are after training, variants by what they are of."""
  return {configs.base(name) for name in setting.after_training}


def known_samples(
    setting: Setting, key: Key, training: Batch, attack: str
) -> Batch:
  """The attacker's labeled samples: random ones of every class, or all."""
  known = configs.attacker(setting.config, attack).known
  if not known:
    return training
  lot = jax.random.uniform(key, (len(training.labels), 1))
  ranked = jnp.where(training.labels > 0, lot, -1.0)  # [samples, classes]
  chosen = jax.lax.top_k(ranked.T, known)[1].ravel()
  return jax.tree.map(lambda x: x[chosen], training)


def _check(setting: Setting) -> None:
  """What is not checked by who uses it."""
  config, sizes = setting.config, setting.sizes
  configs.choices(
      config.train, optimizer=('adam', 'adamw', 'sgd', 'momentum'),
      schedule=('constant', 'cosine'), remainder=('drop', 'keep', 'pad'),
  )
  configs.choices(config.data, scale=('standard', 'minmax', 'none'))
  configs.choices(
      config.attack, pool=('epoch', 'round'), when=('last', 'max', 'mean')
  )
  _check_numbers(config)
  if config.model.channels and setting.samples.features[-1].ndim != 4:
    raise ValueError(
        f'model.channels are for images; {config.data.name} is a table.'
    )
  if min(sizes.train, sizes.test) < 1:
    raise ValueError(f'Too few samples to split: {sizes}.')
  if config.train.best and not sizes.validation:
    raise ValueError(
        'train.best needs held-out samples: set --config.data.validation, for '
        'instance to 0.1.'
    )
  if config.train.patience and not config.train.best:
    raise ValueError('train.patience needs --config.train.best.')
  if not 0 <= config.attack.party < len(setting.vfl.bottoms):
    raise ValueError(
        'attack.party must be a passive party, '
        f'1..{len(setting.vfl.bottoms) - 1}, or 0 for all; got '
        f'{config.attack.party}.'
    )
  views = {attack.view for attack in setting.after_training.values()}
  _check_completion(setting)
  if TrainedTop in views:
    inversion.check(config, setting.samples, sizes.test)
  blank = Splits(*[setting.samples] * 4)
  train.check(plan(setting, defenses.none(), blank), sizes.train)
  for entry in configs.entries(config, setting.classes):
    _check_entry(setting, entry)


def _check_numbers(config: Config) -> None:
  """Refuses numbers outside their ranges, and what is no number at all."""
  least = {
      'seeds': 1, 'seeds_per_chunk': 0, 'first_seed': 0,
      'train.measure_every': 0, 'train.patience': 0, 'attack.repeats': 1,
      'data.limit': 0, 'data.parties': 2, 'train.defense_learning_rate': 0,
  }
  positive = ('train.learning_rate', 'attack.learning_rate')
  for path, value in configs.flat(config):
    if isinstance(value, float) and not math.isfinite(value):
      raise ValueError(f'{path} must be a finite number; got {value}.')
    if path in least and value < least[path]:
      raise ValueError(f'{path} must be {least[path]} or more; got {value}.')
    if path in positive and value <= 0:
      raise ValueError(f'{path} must be above 0; got {value}.')
  if config.first_seed + config.seeds > 2**31:
    raise ValueError('Seeds must be below 2147483648.')


def _check_known(setting: Setting, attack: str) -> None:
  known = configs.attacker(setting.config, attack).known
  if known == 0:
    return
  # A random split may leave a class fewer training samples than its share.
  counts = setting.samples.labels.sum(0)
  share = setting.sizes.train / len(setting.samples.labels)
  least = int(counts.min() * share * 0.8)
  if not 1 <= known <= max(least, 1):
    raise ValueError(
        f'attack.known must be between 1 and {max(least, 1)} labels per class '
        f'(the rarest class has {int(counts.min())} samples); got {known}.'
    )


def _check_completion(setting: Setting) -> None:
  if set(COMPLETIONS) <= _bases(setting):
    raise ValueError(
        'active_completion changes how its party trains: run it apart from '
        'model_completion.'
    )
  for name, attack in setting.after_training.items():
    if attack.view is TrainedBottom:
      _check_known(setting, name)


def _check_entry(setting: Setting, entry: Entry) -> None:
  """Builds the defense once at every strength: factories check their ranges."""
  if entry.defense in defenses.BINARY and setting.classes != 2:
    raise ValueError(
        f'{entry.defense} is for two classes; this data set has '
        f'{setting.classes}. Leave it out with --config.defenses=...'
    )
  if len(set(entry.strengths)) < len(entry.strengths):
    raise ValueError(f'{entry.name} has a strength twice: {entry.strengths}.')
  for strength in entry.strengths or (None,):
    for others in grid(entry):
      try:
        build(entry, strength, **others)
      except TypeError as error:  # An argument too many, or too few.
        raise ValueError(f'{entry.name}: {error}') from None
  first = entry.strengths[0] if entry.strengths else None
  _check_start(setting, build(entry, first, **grid(entry)[0]))


def _check_start(setting: Setting, defense: Defense) -> None:
  """Traces the start of a training: the defense may not fit the federation."""
  if defense.init is defenses.none().init and not defense.prepare:
    return

  def start(key, samples):
    splits = split_samples(setting, key, samples)
    return train.start(key, plan(setting, defense, splits), splits.train)

  jax.eval_shape(start, jax.random.key(0), setting.samples)


def grid(entry: Entry) -> list[dict[str, float]]:
  """Every combination of an entry's other arguments; one of none at least."""
  return [
      dict(zip(entry.grid, values))
      for values in itertools.product(*entry.grid.values())
  ]
