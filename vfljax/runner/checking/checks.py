"""Checks a configuration with its data, before compiling or writing."""
from collections.abc import Iterator
import contextlib

import jax
import numpy as np

from vfljax import defenses, stream, train
from vfljax.data.table import Table
from vfljax.defense import Defense
from vfljax.runner.checking import (
    combinations, knowing, one_class, rehearsal, suiting,
)
from vfljax.runner.compiled import replay
from vfljax.runner.config import Config, Entry, blaming, ranges
from vfljax.runner.config.declared import as_declared
from vfljax.runner.errors import UserError, brief
from vfljax.runner.experiment import (
    attackers, augmenting, federations, memory,
)
from vfljax.runner.experiment.choosing import entries
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.grids import grid
from vfljax.runner.experiment.plans import training_plan
from vfljax.runner.experiment.setting import (
    Setting, build, from_config, split_samples,
)
from vfljax.scene import Amounts


def make(config: Config, table: Table) -> Setting:
  """Checks a configuration against its data.

  Raises:
    UserError: if it cannot be run.
  """
  setting = assembled(config, table)
  rehearse(setting)
  return setting


def assembled(config: Config, table: Table) -> Setting:
  """The setting of a configuration, before anything is tried.

  Raises:
    UserError: if the configuration and the data do not fit together.
  """
  config = checked(config)
  with _refused():
    return from_config(config, table)


def checked(config: Config) -> Config:
  """A configuration with its fields' declared types.

  Raises:
    UserError: if it cannot be run, whatever the data.
  """
  config = as_declared(config)
  with _refused():
    ranges.check(config)
    combinations.check(config)
  return config


def rehearse(setting: Setting) -> None:
  """Runs the checks that take a second or more: traces the jobs.

  Raises:
    UserError: if it cannot be run.
  """
  with _refused():
    _check(setting)
    rehearsal.check(setting)
    _check_float16(setting)


@contextlib.contextmanager
def _refused() -> Iterator[None]:
  try:
    yield
  except (ValueError, OSError) as error:  # Of auxiliary.data, its file.
    raise UserError(brief(str(error))) from None
  except SystemExit as error:  # Its code may be 0, as of what was done.
    raise UserError(
        f'{blaming.said(error)}\nA method must not end the program.'
    ) from None


def _check(setting: Setting) -> None:
  """Checks that no other part makes."""
  config, sizes = setting.config, setting.sizes
  if config.train.batch_size > sizes.train:
    raise ValueError(
        f'train.batch_size is {config.train.batch_size}, but there are '
        f'{sizes.train} training samples: type --config.train.batch_size='
        f'{sizes.train} for one round an epoch, or less for more.'
    )
  one_class.check(setting)
  suiting.check(setting)
  if (config.data.flips or config.data.shifts) and not suiting.images(setting):
    raise ValueError(
        'data.flips and data.shifts are for images; '
        f'{config.data.name} is a table.'
    )
  if config.auxiliary.augment != 'none' and not (
      suiting.images(setting) or config.model.name == augmenting.READS_TEXTS
  ):
    raise ValueError(
        'auxiliary.augment flips and crops images, and rewords the texts of '
        f'model.name={augmenting.READS_TEXTS}; {config.data.name} is a table.'
    )
  if config.model.channels and setting.samples.features[-1].ndim != 4:
    raise ValueError(
        f'model.channels are for images; {config.data.name} is a table.'
    )
  if config.model.buckets and not config.model.name and suiting.images(setting):
    raise ValueError(
        f'model.buckets are for columns of categories; {config.data.name} has '
        'images.'
    )
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
  if setting.stream:
    others = [*setting.after_training, *setting.replayed, setting.backdoor]
    memory.check(
        config, setting.classes, [*setting.in_training],
        [x for x in others if x],
    )
  attackers.check_apart([*setting.after_training])
  blank = Splits(*[setting.samples] * 4)
  train.check(training_plan(setting, defenses.none(), blank), sizes.train)
  _check_attacks(setting)
  replay.check(setting, sizes.train)
  for entry in entries(config, setting.classes):
    _check_entry(setting, entry)


def _check_float16(setting: Setting) -> None:
  """Refuses Adam on weights of float16, which become NaN: its epsilon is 0.

  Only networks of a user's own can have such weights.
  """
  config, key = setting.config, jax.random.key(0)
  if not config.model.name or 'adam' not in config.train.optimizer:
    return
  for net, x in zip(setting.vfl.bottoms, setting.samples.features):
    weights = net and jax.eval_shape(net.init, key, x)
    if any(w.dtype == np.float16 for w in jax.tree.leaves(weights)):
      raise ValueError(
          f'{config.model.name} has weights of float16, which Adam makes NaN: '
          'its epsilon, 1e-8, is 0 there. Type --config.train.optimizer=sgd, '
          'or give it weights of float32 (param_dtype) or bfloat16.'
      )


def _check_attacks(setting: Setting) -> None:
  """Refuses attacks with too few samples, or options out of range."""
  config, x = setting.config, setting.samples.features[1]
  for group, given in config.attack.own.items():
    attackers.group_options(group, given)
  samples = Amounts(
      setting.sizes.train, setting.sizes.test, config.attack.auxiliary,
      config.train.batch_size, knowing.rarest(setting)[1], config.data.scale,
      tuple(x.shape[1:]),
  )
  scene = federations.scene(config, setting.classes)
  attacks = {**setting.in_training, **setting.after_training,
             **setting.replayed}
  for name in [*attacks, *filter(None, [setting.backdoor])]:
    who, own, recipe = attackers.attacker(config, name)
    recipe.check(own, scene, samples)
    attack = attacks.get(name)
    if attack and attack.view in knowing.LABELED:
      knowing.check(setting, who.known)
  suiting.check_pixels(setting, attacks)


def _check_entry(setting: Setting, entry: Entry) -> None:
  """Builds the defense once at every strength: factories check their ranges."""
  for name in _chained(entry):
    method = defenses.REGISTRY[name]
    if method.binary and setting.classes != 2:
      raise ValueError(
          f'{name} is for two classes; this data set has {setting.classes}. '
          'Leave it out with --config.defenses=...'
      )
    if method.mixes and federations.numbered(setting.config.model):
      raise ValueError(
          f'{name} mixes samples, but numbers of categories or words have no '
          'mixtures. Leave it out with --config.defenses=...'
      )
  if len(set(entry.strengths)) < len(entry.strengths):
    raise ValueError(
        f'{entry.name} has a strength twice: {entry.strengths}. Type each once.'
    )
  for strength in entry.strengths or (None,):
    for others in grid(entry):
      try:
        with rehearsal.options_explained(entry):
          build(entry, strength, **others)
      except TypeError as error:  # An argument too many, or too few.
        raise ValueError(f'{entry.name}: {error}') from None
  ends = {min(entry.strengths), max(entry.strengths)} if entry.strengths else {
      None
  }
  for strength in ends:
    with rehearsal.options_explained(entry):
      defense = build(entry, strength, **grid(entry)[0])
      _check_start(setting, entry.name, defense)


def _chained(entry: Entry) -> Iterator[str]:
  """The entry's defense, and all that are chained before it."""
  yield entry.defense
  for before in entry.after:
    yield from _chained(before)


def _check_start(setting: Setting, name: str, defense: Defense) -> None:
  """Traces a training's start, to see whether the defense fits the federation.

  The strength is a number here, and traced in a job's program (`rehearsal`).
  """
  if setting.stream:
    blank = Splits(*[setting.samples] * 4)
    plan = training_plan(setting, defense, blank)
    try:
      stream.check(plan, setting.sizes.train, setting.stream)
    except ValueError as error:
      raise ValueError(
          f'{name}: {error} --config.data.stream=-1 trains in memory.'
      ) from None
  plain = defenses.none()
  begins = defense.init is not plain.init or defense.prepare
  if not begins and defense.facts is plain.facts:
    return

  def start(key, samples):
    splits = split_samples(setting, key, samples)
    plan = training_plan(setting, defense, splits)
    return train.start(key, plan, splits.train)

  run = jax.eval_shape(start, jax.random.key(0), setting.samples)
  rehearsal.check_facts(name, defense, run.state.defense)
