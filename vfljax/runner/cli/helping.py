"""`--help`: the flags, and every field of a config with what it may be."""
import dataclasses
import functools
import inspect
import re
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
  """The flags and the fields of a config: what they may be, what they mean."""
  lines = [
      f'  --{name}: {found[name].help}'
      for name in _FLAGS
  ]
  all_fields = [
      f'  --config.{path}={_default(path)}{_range(path)}{_meaning(path)}'
      for path, below in fields(Config, '')
      if not below and path not in NOT_FLAGS
  ]
  title = (
      'Fields of a config, with their defaults, what they may be, and what '
      'they are (vfljax.runner.config):'
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


def _group(path: str) -> tuple[Any, str]:
  """The part of a config that has a field, and the field's name there."""
  *groups, name = path.split('.')
  group: Any = Config()
  for above in groups:
    group = getattr(group, above)
  return group, name


def _range(path: str) -> str:
  group, name = _group(path)
  own = next(f for f in dataclasses.fields(group) if f.name == name)
  return f'  ({ranges.allowed(own)})' if ranges.allowed(own) else ''


def _meaning(path: str) -> str:
  group, name = _group(path)
  said = _comments(type(group)).get(name, '')
  return said and f'  {said}'


@functools.cache
def _comments(cls: type) -> dict[str, str]:
  """{field: the comment behind it in the source}; {} without a source."""
  found: dict[str, str] = {}
  name = ''
  try:
    lines = inspect.getsource(cls).split('\n')
  except (OSError, TypeError):
    return found
  for line in lines:
    code, _, comment = line.partition('#')
    if field := re.match(r'  (\w+): ', code):
      name = field[1]
    elif re.match(r'  [@\w]', code):  # A method, and what it says.
      name = ''
    if name and comment:
      found[name] = f'{found.get(name, "")} {comment.strip()}'.strip()
  return found


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
