"""Lowers numbers that nobody chose, where a table is too small for them.

A default that is refused is no default. So a batch size above the number of
training samples, and labels that an attacker knows of classes with few rows,
are lowered if they are defaults, or a config file's for other samples than
those that were typed. A number that somebody typed is refused, as before.
"""
from collections.abc import Sequence
import dataclasses

import numpy as np

from vfljax.data.table import Table
from vfljax.runner.checking import checks, knowing
from vfljax.runner.compiled import replay
from vfljax.runner.config import AttackConfig, Config, TrainConfig
from vfljax.runner.experiment import division, rounds


def lowered(
    config: Config, table: Table, typed: Sequence[str] = ()
) -> tuple[Config, list[str]]:
  """A configuration that fits a table, and a sentence for each change.

  Whatever could be run stays as it is.

  Args:
    config: The configuration, checked.
    table: The samples.
    typed: The command line, whose fields stay; () if a program calls.

  Raises:
    UserError: if the configuration and the samples do not fit together.
  """
  names = {word.lstrip('-').partition('=')[0] for word in typed}
  others = any(name.startswith('config.data.') for name in names)
  free = lambda name, value, usual: f'config.{name}' not in names and (
      others or value == usual
  )
  said, train, attack = [], config.train, config.attack
  if free('train.batch_size', train.batch_size, TrainConfig().batch_size):
    there = _training(config, table)
    if 1 <= there < train.batch_size:
      suited = min(rounds.batch_size(table), there)
      said.append(
          f'train.batch_size is {suited} here, not {train.batch_size}: there '
          f'are {there} training samples.'
      )
      train = dataclasses.replace(train, batch_size=suited)
      config = dataclasses.replace(config, train=train)
  if free('attack.known', attack.known, AttackConfig().known):
    most = _most_known(config, table)
    if 1 <= most < attack.known:
      said.append(
          f'attack.known is {most} here, not {attack.known} labels per class: '
          f'there are {len(table.labels)} rows, {_rarest(table)} of the rarest '
          'class.'
      )
      attack = dataclasses.replace(attack, known=most)
      config = dataclasses.replace(config, attack=attack)
  return config, said


def _most_known(config: Config, table: Table) -> int:
  """How many labels of a class an attacker may know; 0 if not one.

  What is certain is not computed: most tables have enough.
  """
  known, size = config.attack.known, config.train.batch_size
  there = _training(config, table)
  again = config.attack.replay_rounds or max(replay.recorded(there, size), 1)
  each = _rarest(table) * there / len(table.labels)  # In training, about.
  if there < size or min(each, again * size / len(table.classes)) >= 2 * known:
    return known
  setting = checks.assembled(config, table)
  return min(
      config.attack.known, replay.most_known(setting, there),
      knowing.most_known(setting),
  )


def _training(config: Config, table: Table) -> int:
  """How many training samples there are; 0 if they cannot be divided."""
  try:
    return division.divide(table, config)[1].train
  except ValueError:  # `checks` tells why.
    return 0


def _rarest(table: Table) -> int:
  return int(np.bincount(table.labels).min())
