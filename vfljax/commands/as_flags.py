"""What the arguments of `vfljax recommend` mean as fields of a config."""
import argparse
from collections.abc import Sequence
import shlex

from vfljax.data import files
from vfljax.runner.config.ranges import shown
from vfljax.runner.errors import UserError

_INSTEAD = dict(
    name=': files that end in .parquet or .pq are Parquet, all others CSV',
    path=', or name that file first',
    options=', or --ids',
)


def of(asked: argparse.Namespace, typed: Sequence[str]) -> list[str]:
  """Our arguments as fields of a config.

  Args:
    typed: The fields of a config that were typed.

  Raises:
    UserError: for a field that an argument sets, too, or a file of arrays.
  """
  parquet = asked.file.lower().endswith(('.parquet', '.pq'))
  _refuse_twice(asked, typed)
  for one in files.parted(asked.file):
    if one.lower().endswith('.npz'):
      raise UserError(
          f'{shown(one)} has arrays; recommend reads CSV or Parquet.\nIn '
          'Python it takes them, too: vfljax.recommend('
          f"vfljax.data.load('npz', {one!r}))"
      )
  kind = 'parquet' if parquet else 'csv'
  more = len(files.parted(asked.file)[1:])
  flags = [
      f'--config.data.name={"parties" if more else kind}',
      f'--config.data.path={asked.file}',
  ] if asked.file else []
  if more:
    flags += ['--config.data.split=held', f'--config.data.parties={more + 1}']
  flags += [f'--config.data.options=ids={asked.ids}'] if asked.ids else []
  if asked.label:
    flags.append(f'--config.data.label={asked.label}')
  if asked.named:
    parties = asked.named.count(';') + 1
    flags += [
        '--config.data.split=named', f'--config.data.named={asked.named}',
        f'--config.data.parties={parties}',
    ]
  flags += [f'--devices={asked.devices}'] if asked.devices else []
  flags += [f'--cache={asked.cache}'] if asked.cache is not None else []
  flags += ['--tensorboard'] if asked.tensorboard else []
  return flags


def _refuse_twice(asked: argparse.Namespace, typed: Sequence[str]) -> None:
  """Raises a UserError for fields that would silently win over arguments."""
  said = dict(name=asked.file, path=asked.file) if asked.file else {}
  if files.parted(asked.file)[1:]:
    said |= dict(split=asked.file, parties=asked.file)
    if asked.named:
      raise UserError(
          'The files say which party has which column: leave out '
          f'{shlex.quote(f"--named={asked.named}")}.'
      )
  if asked.ids:
    said |= dict(options=f'--ids={asked.ids}')
  if asked.label:
    said |= dict(label=f'--label={asked.label}')
  if asked.named:
    named = f'--named={asked.named}'
    said |= dict(split=named, named=named, parties=named)
  for flag in typed:
    field = flag.lstrip('-').partition('=')[0]
    name = field.removeprefix('config.data.')
    if name == 'options' and asked.ids:
      own = f'ids={asked.ids}'
      if own in _options(flag):  # As messages advise, which know no --ids.
        continue
      if not any(one.startswith('ids=') for one in _options(flag)):
        whole = ';'.join([own, *_options(flag)])
        raise UserError(
            'What --ids says is an option of the files, too.\nLeave out '
            f'{shlex.quote(said[name])} and type '
            f'{shlex.quote(f"--config.data.options={whole}")}'
        )
    if name != field and name in said:
      raise UserError(
          f'{field} is set by {shlex.quote(said[name])} already.\nLeave out '
          f'{shlex.quote(flag)}{_INSTEAD.get(name, "")}.'
      )


def _options(flag: str) -> list[str]:
  """The loader's options that a flag sets: ['ids=who', 'decimal=comma']."""
  field, _, value = flag.lstrip('-').partition('=')
  if field != 'config.data.options':
    return []
  return [part.strip() for part in value.split(';') if part.strip()]
