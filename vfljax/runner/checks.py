"""What cannot work is refused before anything is compiled or written."""
import math

import jax

from vfljax.runner import (
    backdoors, config as configs, inversion, memory, replay,
)
from vfljax.runner import whitebox
from vfljax.runner import setting as settings
from vfljax.runner.config import Config, Entry
from vfljax.runner.errors import UserError
from vfljax.runner.federations import COMPLETIONS
from vfljax.runner.samples import Splits
from vfljax.runner.setting import Setting
from vfljax import completion, defenses, nets, stream, train
from vfljax.data.table import Table
from vfljax.defense import Defense
from vfljax.views import TrainedBottom, TrainedTop, UnlabeledBottom


def make(config: Config, table: Table) -> Setting:
  """Checks a configuration against its data.

  Raises:
    UserError: if it cannot be run.
  """
  try:
    _check_choices(config)
    _check_numbers(config)
    setting = settings.from_config(config, table)
    _check(setting)
  except ValueError as error:
    raise UserError(str(error)) from None
  return setting


def _check_choices(config: Config) -> None:
  """Refuses texts that are none of their field's choices."""
  configs.choices(
      config.train, optimizer=('adam', 'adamw', 'sgd', 'momentum'),
      schedule=('constant', 'cosine'), remainder=('drop', 'keep', 'pad'),
  )
  configs.choices(config.data, scale=('standard', 'minmax', 'none'))
  configs.choices(
      config.attack, pool=('epoch', 'round'), when=('last', 'max', 'mean'),
      optimizer=tuple(completion.OPTIMIZERS), schedule=completion.RATES,
      norm=nets.NORMS,
  )
  configs.choices(config.model, norm=nets.NORMS)


def _check(setting: Setting) -> None:
  """What is not checked by who uses it."""
  config, sizes = setting.config, setting.sizes
  _check_network(setting)
  _check_attackers_network(config)
  if (config.data.flips or config.data.shifts) and not _images(setting):
    raise ValueError(
        'data.flips and data.shifts are for images; '
        f'{config.data.name} is a table.'
    )
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
  if setting.stream:
    others = [*setting.after_training, *setting.replayed, setting.backdoor]
    memory.check(
        config, setting.classes, [*setting.in_training],
        [x for x in others if x],
    )
  views = {attack.view for attack in setting.after_training.values()}
  _check_completion(setting)
  if TrainedTop in views:
    inversion.check(config, setting.samples, sizes.test)
  blank = Splits(*[setting.samples] * 4)
  train.check(settings.plan(setting, defenses.none(), blank), sizes.train)
  backdoors.check(
      config, setting.backdoor, sizes.train, setting.samples.labels
  )
  if 'cafe' in map(configs.base, setting.replayed):
    whitebox.check(config, 'cafe', sizes.train)
  replay.check(config, list(setting.replayed), sizes.train, setting.classes)
  for entry in configs.entries(config, setting.classes):
    _check_entry(setting, entry)


def _images(setting: Setting) -> bool:
  return all(x is None or x.ndim == 4 for x in setting.samples.features)


def _check_network(setting: Setting) -> None:
  """Refuses a named network on features that it is not for."""
  model, data = setting.config.model, setting.config.data
  linear = model.algorithm == 'vlr' or (model.name and not model.trainable_top)
  if model.norm != 'none' and (model.channels or model.buckets or linear):
    raise ValueError(
        'model.norm is for multilayer perceptrons: a top with weights, and '
        'bottoms without model.name, model.channels and model.buckets. Named '
        "networks have a norm option of their own: model.options='norm=batch'."
    )
  if not model.name:
    return
  if model.algorithm == 'vlr':
    raise ValueError(
        f'model.name={model.name} needs model.algorithm=vhnn or vsnn; vlr has '
        'linear bottoms.'
    )
  reads = nets.REGISTRY[model.name].reads
  if reads == 'images' and not _images(setting):
    raise ValueError(
        f'{model.name} is for images; {data.name} is a table. Use '
        '--config.model.name=mlp3, or model.bottom with widths.'
    )
  if reads == 'numbers' and data.scale != 'none':
    raise ValueError(
        f'{model.name} reads the numbers of categories or words, which scaling '
        'would change: set --config.data.scale=none.'
    )


def _check_attackers_network(config: Config) -> None:
  """Refuses settings of attackers that would change nothing."""
  who = config.attack
  headless = config.model.algorithm == 'vlr' or not who.head
  if who.norm != 'none' and headless:
    raise ValueError(
        'attack.norm normalizes the hidden layers of an inference head, and '
        'there are none: set --config.attack.head=64, not with vlr.'
    )
  if who.bottom_rate != 1 and (config.model.algorithm == 'vlr' or not who.tune):
    raise ValueError(
        'attack.bottom_rate is of a stolen bottom network that is trained '
        'beside a head: it needs --config.attack.tune=True, and not vlr.'
    )


def _check_numbers(config: Config) -> None:
  """Refuses numbers outside their ranges, and what is no number at all."""
  least = {
      'seeds': 1, 'seeds_per_chunk': 0, 'strengths_per_chunk': 0,
      'first_seed': 0,
      'train.measure_every': 0, 'train.patience': 0, 'attack.repeats': 1,
      'data.limit': 0, 'data.parties': 2, 'train.defense_learning_rate': 0,
      'auxiliary.samples': 0, 'auxiliary.classes': 0, 'auxiliary.noise': 0,
      'model.width': 0, 'data.test_limit': 0, 'data.shifts': 0,
      'data.stream': -1, 'train.weight_decay': 0, 'attack.weight_decay': 0,
  }
  positive = (
      'train.learning_rate', 'attack.learning_rate', 'attack.bottom_rate'
  )
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
  if set(COMPLETIONS) <= settings.bases(setting):
    raise ValueError(
        'active_completion changes how its party trains: run it apart from '
        'model_completion.'
    )
  for name, attack in setting.after_training.items():
    if attack.view in (TrainedBottom, UnlabeledBottom):
      _check_known(setting, name)


def _check_entry(setting: Setting, entry: Entry) -> None:
  """Builds the defense once at every strength: factories check their ranges."""
  if defenses.REGISTRY[entry.defense].binary and setting.classes != 2:
    raise ValueError(
        f'{entry.defense} is for two classes; this data set has '
        f'{setting.classes}. Leave it out with --config.defenses=...'
    )
  if len(set(entry.strengths)) < len(entry.strengths):
    raise ValueError(f'{entry.name} has a strength twice: {entry.strengths}.')
  for strength in entry.strengths or (None,):
    for others in settings.grid(entry):
      try:
        settings.build(entry, strength, **others)
      except TypeError as error:  # An argument too many, or too few.
        raise ValueError(f'{entry.name}: {error}') from None
  ends = {min(entry.strengths), max(entry.strengths)} if entry.strengths else {
      None
  }
  for strength in ends:
    defense = settings.build(entry, strength, **settings.grid(entry)[0])
    _check_start(setting, entry.name, defense)


def _check_start(setting: Setting, name: str, defense: Defense) -> None:
  """Traces the start of a training: the defense may not fit the federation."""
  if setting.stream:
    blank = Splits(*[setting.samples] * 4)
    plan = settings.plan(setting, defense, blank)
    try:
      stream.check(plan, setting.sizes.train, setting.stream)
    except ValueError as error:
      raise ValueError(
          f'{name}: {error} --config.data.stream=-1 trains in memory.'
      ) from None
  if defense.init is defenses.none().init and not defense.prepare:
    return

  def start(key, samples):
    splits = settings.split_samples(setting, key, samples)
    plan = settings.plan(setting, defense, splits)
    return train.start(key, plan, splits.train)

  jax.eval_shape(start, jax.random.key(0), setting.samples)
