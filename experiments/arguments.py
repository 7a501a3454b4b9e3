"""The command line's arguments: parsed, checked, and turned into settings."""
import dataclasses
import difflib
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import config_flags

from experiments.config import Config, DataConfig
from experiments.errors import UserError


def parse(found: flags.FlagValues, argv: list[str]) -> list[str]:
  """Parses `argv`: the arguments that are no flags.

  Raises:
    UserError: for a flag or a config field that does not exist or does not take
      its value, and for a config file that cannot be read.
  """
  argv = ['--list=all' if a in ('--list', '-list') else a for a in argv]
  argv = _join_list(argv)
  _check_fields(argv)
  try:
    rest = found(argv)[1:]
    config = found['config'].value if found['config'].present else None
  except (OSError, flags.Error, AttributeError, KeyError, TypeError,
          ValueError) as error:
    raise UserError(_readable(error)) from None
  if config is not None and not isinstance(config, Config):
    raise UserError(
        "The config file's get_config() must return an experiments.config."
        f'Config, not {type(config).__name__}.'
    )
  return rest


def _join_list(argv: list[str]) -> list[str]:
  """'--list data' means '--list=data'."""
  if '--list=all' in argv:
    i = argv.index('--list=all')
    if i + 1 < len(argv) and not argv[i + 1].startswith('-'):
      return [*argv[:i], f'--list={argv[i + 1]}', *argv[i + 2:]]
  return argv


def _check_fields(argv: list[str]) -> None:
  """Refuses --config.<field> for a field that no config has."""
  fields = dict(_fields(Config, ''))
  for argument in argv[1:]:
    name = argument.lstrip('-').split('=')[0]
    if not argument.startswith('-') or not name.startswith('config.'):
      continue
    path = name.removeprefix('config.')
    if path not in fields:
      close = difflib.get_close_matches(path, fields, n=3, cutoff=0.5)
      hint = f' Did you mean {" or ".join(close)}?' if close else ''
      raise UserError(f'A config has no field {path!r}.{hint}')
    if fields[path]:
      raise UserError(
          f'{path} is a group of fields: set one, like --config.{path}.'
          f'{fields[path][0]}=...'
      )


def _fields(cls: type, prefix: str):
  """(path, names of the fields below it) of every field of a config."""
  for f in dataclasses.fields(cls):
    inner = f.default_factory
    nested = inner if dataclasses.is_dataclass(inner) else None
    below = [g.name for g in dataclasses.fields(nested)] if nested else []
    yield prefix + f.name, below
    if nested:
      yield from _fields(nested, f'{prefix}{f.name}.')


def _readable(error: Exception) -> str:
  """The last lines of a parser's error, which are those that say something."""
  lines = [line for line in str(error).strip().splitlines() if line.strip()]
  return '\n'.join(lines[-2:]) if lines else type(error).__name__


def default_workdir(found: flags.FlagValues) -> str:
  """out/<folders and name of the config file below experiments/>."""
  given = Path(str(config_flags.get_config_filename(found['config'])))
  parts = given.with_suffix('').parts
  if 'experiments' in parts:
    parts = parts[parts.index('experiments') + 1 :]
  return str(Path('out', *parts[-2:]))


def data_options(data: DataConfig) -> dict[str, Any]:
  """The arguments of `vfljax.data.load`."""
  return dict(
      name=data.name, path=data.path, label=data.label, missing=data.missing
  )


def closing(path: Path) -> str:
  """What is printed at the end."""
  summary = (path / 'summary.md').read_text()
  return f'{summary}\nReport: {path / "report.html"}'
