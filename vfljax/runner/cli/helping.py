"""`--help`: the flags, and every field of a config with what it may be."""
import dataclasses
from typing import Any

from absl import flags

from vfljax.runner.config import Config, ranges
from vfljax.runner.workdir import shares

_FLAGS = (
    'config', 'workdir', 'budget', 'max_leak', 'tensorboard', 'record', 'list',
    'devices', 'cache', *shares.FLAGS,
)
NOT_FLAGS = ('listed', 'listed_attacks', 'paper', 'variants', 'attack.own')


def text(found: flags.FlagValues) -> str:
  """The flags and the fields of a config, with what they may be."""
  lines = [
      f'  --{name}: {found[name].help}'
      for name in _FLAGS
  ]
  all_fields = [
      f'  --config.{path}={_default(path)}{_range(path)}'
      for path, below in fields(Config, '')
      if not below and path not in NOT_FLAGS
  ]
  title = (
      'Fields of a config, with their defaults and what they may be '
      '(vfljax.runner.config):'
  )
  own = (
      '  --config.attack.<attack>.<option>=...: an option of one attack, see '
      '--list attacks'
  )
  return '\n'.join(['Flags:', *lines, own, '', title, *all_fields])


def _default(path: str) -> str:
  value: Any = Config()
  for name in path.split('.'):
    value = getattr(value, name)
  return ','.join(map(str, value)) if isinstance(value, tuple) else str(value)


def _range(path: str) -> str:
  *groups, name = path.split('.')
  group: Any = Config()
  for above in groups:
    group = getattr(group, above)
  own = next(f for f in dataclasses.fields(group) if f.name == name)
  return f'  ({ranges.allowed(own)})' if ranges.allowed(own) else ''


def fields(cls: type, prefix: str):
  """(path, names of the fields below it) of every field of a config."""
  for f in dataclasses.fields(cls):
    nested = f.default_factory
    if not dataclasses.is_dataclass(nested):
      yield prefix + f.name, []
      continue
    yield prefix + f.name, [g.name for g in dataclasses.fields(nested)]
    assert isinstance(nested, type)
    yield from fields(nested, f'{prefix}{f.name}.')
