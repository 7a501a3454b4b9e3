"""The config file beside a record of `vfljax.run`: r.py beside r.json.

A record has the command that repeats it. A program has no command line, so its
configuration is written as a config file, and the command names that. What no
config file can say, such as samples or methods that only the program has, is
refused before anything runs.
"""
import dataclasses
import os
from pathlib import Path
import shlex

from vfljax import data
from vfljax.check import kind as kind_of
from vfljax.data import files
from vfljax.data.table import Table
from vfljax.runner.checking import checks
from vfljax.runner.config import Config, as_code, outside
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import sources
from vfljax.runner.machine import disk
from vfljax.runner.workdir import overwriting, recording

_AGAIN = 'A record says how to make it again, and '
_THEN = (
    'Leave out record, or put that into a config file and record its run: '
    'vfljax --config=FILE'
)


def command(record: str, config: Config, devices: int) -> list[str]:
  """The command line that repeats a program's run, for its record."""
  most = [f'--devices={devices}'] if devices else []
  seeds = f'--config.seeds={config.seeds}'
  return ['vfljax', f'--config={_file(record).name}', seeds, *most]


def check(record: str, config: Config, table: Table, given: bool) -> None:
  """Refuses a record that could not be made again, or would replace another.

  Args:
    record: Where the record is to be written.
    config: The configuration, checked.
    table: The samples.
    given: Whether the program has the samples.

  Raises:
    UserError: says what to do instead.
  """
  said = f'--record={shlex.quote(record)}'
  if Path(record).suffix == '.py':
    other = shlex.quote(f'{Path(record).stem}.json')
    raise UserError(
        f'{said}: a config file of that name is written beside the record. '
        f'Type --record={other}'
    )
  _check_again(config, table, given)
  overwriting.check(record, command(record, config, 0), config.seeds)
  place = Path(record).expanduser()
  file = _file(record)
  if not os.path.lexists(file):
    if os.path.lexists(place):
      raise UserError(
          f'{said}: its config file {file.name} is gone, so it may '
          'be of another configuration.\nChoose another name, or remove that '
          'record.'
      )
    return
  try:
    same = file.read_text('utf-8') == _text(record, config)
  except (OSError, ValueError):
    same = False
  if not same:
    raise UserError(
        f'{said}: {file.name} beside it is not the config file of '
        'this configuration.\nChoose another name, or remove both.'
    )


def write(record: str, work: Path, config: Config, devices: int) -> Path:
  """Writes the record of a finished run, and the config file: its path.

  Raises:
    UserError: if one of them cannot be written.
  """
  file = _file(record)
  disk.write_text(file.absolute(), _text(record, config), '--record')
  recording.write(record, work, command(record, config, devices))
  return file


def _check_again(config: Config, table: Table, given: bool) -> None:
  """Raises UserError if no config file could say what the program has done."""
  if given:
    raise UserError(
        f'{_AGAIN}samples that a program has cannot be loaded again. Write '
        'them to a file and name that: '
        "config.data = DataConfig('csv', path='my.csv', label='target')."
    )
  source = data.REGISTRY.get(config.data.name)
  own = [] if source is None or outside.is_ours(source) else [config.data.name]
  own += sources.of(checks.assembled(config, table))
  if own:
    raise UserError(
        f'{_AGAIN}{", ".join(own)} is code of this program.\n{_THEN}'
    )
  if changed := recording.settings():
    said = ', '.join(f'{name}={value}' for name, value in changed.items())
    raise UserError(
        f'{_AGAIN}this program has set {said} in JAX.\n{_THEN}'
    )
  if odd := as_code.unwritable(config):
    raise UserError(
        f'{_AGAIN}config.{odd[0]} is {kind_of(odd[1])}, which cannot '
        'be written into a config file.\nUse numbers, words, tuples and '
        'dictionaries.'
    )


def _file(record: str) -> Path:
  place = Path(record).expanduser()
  return place.parent / f'{place.stem}.py'  # Also of '.', which has no suffix.


def _text(record: str, config: Config) -> str:
  """The config file, without the seeds, which the command has."""
  own = dataclasses.replace(config.data, path=files.bare(config.data.path))
  plain = dataclasses.replace(config, data=own, seeds=Config().seeds)
  name = Path(record).name
  return as_code.module(plain, f'The experiment of {name}, by vfljax.run.')
