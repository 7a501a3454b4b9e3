"""Refuses settings that contradict each other, or would have no effect.

Each is inside its own range (`ranges`). A setting that would be ignored is
refused, since its user expects an effect. Version 0.1 accepted such settings,
so its work directories may have them: `saved` uses `idle`, too.
"""
from collections.abc import Iterator
from typing import NamedTuple

from vfljax import attacks, defenses
from vfljax.leakage import AttackName
from vfljax.runner.config import (
    AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig, outside,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers
from vfljax.runner.experiment.jobs import ALONE

HALVES = ('left_right', 'right_left', 'top_bottom', 'bottom_top')


class Idle(NamedTuple):
  """A field that is set and has no effect.

  Attributes:
    group, field: The field.
    why: The message to its user.
  """

  group: str
  field: str
  why: str


def check(config: Config) -> None:
  """Refuses settings that contradict each other, whatever the data.

  Raises:
    UserError: for the first such setting.
  """
  outside.check()
  found = [
      *_seeds(config), *_both(config.model),
      *(one.why for one in idle(config.data, config.model, config.auxiliary)),
      *_names(config),
  ]
  for entry in config.listed:
    found += _entry(entry)
  if found:
    raise UserError(found[0])


def _seeds(config: Config) -> Iterator[str]:
  if config.first_seed + config.seeds > 2**31:
    yield 'Seeds must be below 2147483648.'


def idle(
    data: DataConfig, model: ModelConfig, auxiliary: AuxiliaryConfig
) -> Iterator[Idle]:
  """The settings of these groups that differ from defaults without effect."""
  yield from _split(data)
  yield from _unheld(data, model)
  yield from _network(model)
  yield from _auxiliary(auxiliary)


def _split(data: DataConfig) -> Iterator[Idle]:
  if data.split_seed and data.split not in (
      'random', 'importance', 'correlation'
  ):
    yield Idle('data', 'split_seed', (
        f'data.split_seed does nothing with data.split={data.split}: it is for '
        'random, importance and correlation.'
    ))
  if data.split_strength != 1 and data.split not in (
      'importance', 'correlation'
  ):
    yield Idle('data', 'split_strength', (
        f'data.split_strength does nothing with data.split={data.split}: it is '
        'for importance and correlation.'
    ))


def _unheld(data: DataConfig, model: ModelConfig) -> Iterator[Idle]:
  if data.unheld and model.algorithm != 'vsnn':
    yield Idle('data', 'unheld', (
        'data.unheld is for vsnn, where the active party has labels only; with '
        f'model.algorithm={model.algorithm} it holds its own features.'
    ))
  if data.unheld and data.parties == 2 and data.split in HALVES:
    yield Idle('data', 'unheld', (
        f'data.unheld does nothing with data.split={data.split}: of two halves '
        'of an image one is nobody\'s in vsnn anyway.'
    ))


def _network(model: ModelConfig) -> Iterator[Idle]:
  for name in ('width', 'options'):
    if getattr(model, name) and not model.name:
      yield Idle('model', name, (
          f'model.{name} is for a network with a name: set '
          '--config.model.name, see --list models. Other networks have '
          'model.bottom.'
      ))
  if model.pools > 1 and not (model.channels or model.name):
    yield Idle(
        'model', 'pools', 'model.pools are of model.channels, and there are '
        'none.'
    )
  plain = not (model.name or model.channels or model.buckets)
  if model.dropout and not (plain and model.algorithm != 'vlr'):
    yield Idle('model', 'dropout', (
        'model.dropout is of multilayer perceptrons, of model.bottom without '
        'name, channels and buckets, and not of vlr. Some named networks have '
        "an option of their own: model.options='dropout=0.1'."
    ))


def _auxiliary(own: AuxiliaryConfig) -> Iterator[Idle]:
  if own.path and not own.data:
    yield Idle('auxiliary', 'path', (
        'auxiliary.path is of another data set: set auxiliary.data, too.'
    ))
  for name in ('classes', 'noise', 'data', 'path', 'augment'):
    if getattr(own, name) not in (0, '', 'none') and not own.samples:
      yield Idle('auxiliary', name, (
          'The defender has no samples for auxiliary.classes, noise, data or '
          'augment: set --config.auxiliary.samples.'
      ))
  if own.data and own.augment == 'training':
    yield Idle('auxiliary', 'data', (
        'auxiliary.augment=training makes copies of training samples, so '
        'auxiliary.data does nothing: leave one of them out.'
    ))


def _both(model: ModelConfig) -> Iterator[str]:
  if model.buckets and model.channels and not model.name:
    yield (
        'model.buckets are for columns of categories, model.channels for '
        'images: set one of them to 0 or ().'
    )


def _names(config: Config) -> Iterator[str]:
  """Wrong names of variants, and names of two results that are the same."""
  names = [variant.name for variant in config.variants]
  for name, variant in zip(names, config.variants):
    of = AttackName.parse(name)
    if of.base not in attacks.REGISTRY:
      yield (
          f"The variant {name!r} must be called '<attack>:<what is special>'; "
          f'there is no attack {of.base!r}, see --list attacks.'
      )
    if '@' in name or ',' in name:
      yield f"The variant {name!r} must have no '@' and no ',' in its name."
    if names.count(name) > 1:
      yield f'Two variants of attacks have the same name: {name!r}.'
    for option in attackers.ignored(config, variant):
      yield (
          f'The variant {name!r} sets {option}, which is one for all attacks: '
          f'run it apart, with --config.attack.{option}='
          f'{variant.options[option]}.'
      )


def _entry(entry: Entry) -> Iterator[str]:
  """What is wrong with a row of the table and with what is chained to it."""
  name = entry.name
  if name == ALONE or name == 'none' and entry.defense != 'none':
    yield (
        f'The label {name!r} has another meaning in results; give the listed '
        f'defense {entry.defense} another label.'
    )
  for argument, values in entry.grid.items():
    if not values or len(set(values)) < len(values):
      yield (
          f'{name}: the grid of {argument} must have one value or more, each '
          f'once; got {values}.'
      )
  for before in entry.after:
    if before.defense not in defenses.REGISTRY:
      yield (
          f'There is no defense {before.defense!r}. There are: '
          f'{", ".join(sorted(defenses.REGISTRY))}.'
      )
    if len(before.strengths) > 1 or before.grid:
      yield (
          f'{name}: {before.defense} is chained before it, with one strength '
          'at most and without a grid.'
      )
    yield from _entry(before)
