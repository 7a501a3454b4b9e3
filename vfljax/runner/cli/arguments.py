"""The command line's arguments: parsed, checked, and turned into settings."""
import os
from pathlib import Path
import re
import sys
from typing import Any, NamedTuple

from absl import flags
from ml_collections import config_flags

from vfljax import check
from vfljax.runner import variants
from vfljax.runner.checking import combinations
from vfljax.runner.cli import fields, goals, helping, own_flags
from vfljax.runner.cli.loading import load_data as load_data
from vfljax.runner.config import Config, blaming, outside, ranges
from vfljax.runner.config.declared import as_declared
from vfljax.runner.errors import UserError, brief
from vfljax.runner.machine import device
from vfljax.runner.workdir import epoch_events, shares

# Or the folder that a wheel is installed in, which has no experiments.
_CLONE = Path(__file__).parents[3]


class Arguments(NamedTuple):
  """What was asked for on the command line."""

  config: Config
  workdir: str
  devices: int
  cache: str
  list: str  # what to list, or ''
  help: str  # the help text, if it was asked for
  record: str = ''  # where the results are to be kept for good, or ''
  goal: goals.Goal = goals.Goal()  # what may be lost, and what may leak
  share: shares.Share = shares.Share()  # which of several processes this is
  tensorboard: bool = False  # whether its event files are written, too


def parse(argv: list[str]) -> Arguments:
  """Parses the command line, `argv[0]` being the program.

  Raises:
    UserError: for a flag or a config field that does not exist or does not take
      its value, and for a config file that cannot be read.
  """
  if {'--help', '-help', '-h', '--helpfull'} & {w.split('=')[0] for w in argv}:
    said = helping.text(_define(['launch.py']))
    return Arguments(Config(), '', 0, '', '', said)
  argv, own = own_flags.taken(_config_first(_spell_out_list(argv)))
  fields.check(argv)
  _see_neighbours(argv)
  found, rest = _loaded(argv)
  if rest:
    raise UserError(f'Unexpected argument: {brief(rest[0])}\nTry --help.')
  outside.check()
  for name, usual in (('workdir', 'out/<config>'), ('record', 'none')):
    if found[name].present and not found[name].value:
      raise UserError(  # As of a shell variable that is not set.
          f'--{name}= names nothing. Leave it out for the default, {usual}.'
      )
  if found['list'].value:
    return Arguments(Config(), '', 0, '', found['list'].value, '')
  devices, cache = found['devices'].value or 0, found['cache'].value or ''
  goal = goals.goal(found['budget'].value, found['max_leak'].value)
  device.check(devices)
  config = as_declared(_config(found))
  ranges.check(config)
  combinations.check(config)
  own_flags.apply(config, own)
  workdir = found['workdir'].value or _default_workdir(found)
  record = found['record'].value or ''
  return Arguments(
      config, workdir, devices, cache, '', '', record, goal,
      shares.asked(found), bool(found['tensorboard'].value),
  )


def _loaded(argv: list[str]) -> tuple[flags.FlagValues, list[str]]:
  """The flags, the config file's among them, and the arguments left over.

  Raises:
    UserError: for anything that the user's config file raises, SystemExit, too.
  """
  try:
    found = _define(argv)
    return found, found(argv)[1:]
  except KeyboardInterrupt:
    raise
  except SystemExit as error:
    raise UserError(
        f'The config file ends the program (sys.exit({error.code!r})); '
        'get_config() must return a Config.'
    ) from None
  except flags.UnrecognizedFlagError as error:
    raise UserError(fields.unknown(error.flagname)) from None
  except BaseException as error:
    raise UserError(blaming.said(error)) from None


class _Path(str):
  """A config's path; splitting takes off its variant, and no drive."""

  def split(self, sep: Any = None, maxsplit: Any = -1) -> list[str]:
    file, variant = variants.split(self)
    return [file, variant] if len(file) < len(self) else [file]


def _define(argv: list[str]) -> flags.FlagValues:
  found = flags.FlagValues()
  config_flags.DEFINE_config_file(
      'config', None, 'The experiment: a file in experiments/ or your own. A '
      'variant is named after a colon. Each of its fields is a flag: '
      '--config.train.epochs=50.',
      flag_values=found, sys_argv=argv,
  )
  parser = found['config'].parser
  parse: Any = parser.parse
  parser.parse = lambda argument: parse(_Path(argument))
  flags.DEFINE_string(
      'workdir', '', 'Where results go; by default out/<folder of the config>/'
      '<its name>-<its variant>.',
      flag_values=found,
  )
  flags.DEFINE_string(
      'record', '', 'Also write the results of every seed into this file, '
      'with the command, versions and seeds that repeat them.',
      flag_values=found,
  )
  flags.DEFINE_string(
      'list', '', 'Print what there is: experiments, data, models, defenses, '
      'attacks, or all of them. audit prints what crosses between parties in a '
      'round of each method; proving it takes some seconds.',
      flag_values=found,
  )
  goals.define(found)
  shares.define(found)
  epoch_events.define(found)
  flags.DEFINE_integer(
      'devices', 0, 'Into how many devices a CPU is divided; 0: one for each '
      'core.', 0, flag_values=found,
  )
  flags.DEFINE_string(
      'cache', '~/.cache/vfljax',
      'The folder that keeps compiled programs; empty: none are kept.',
      flag_values=found,
  )
  return found


def _spell_out_list(argv: list[str]) -> list[str]:
  """'--list data' means '--list=data', and '--list' alone '--list=all'."""
  if '--list' not in argv:
    return argv
  i = argv.index('--list')
  what = argv[i + 1 : i + 2]
  if what and not what[0].startswith('-'):
    return [*argv[:i], f'--list={what[0]}', *argv[i + 2:]]
  return [*argv[:i], '--list=all', *argv[i + 1:]]


def _config_first(argv: list[str]) -> list[str]:
  """The arguments with --config first, as its fields are flags that it defines.

  Raises:
    UserError: if it is given twice, or is not there, or not given at all.
  """
  files = [a for a in argv[1:] if a.lstrip('-').startswith('config=')]
  if len(files) > 1:
    raise UserError('--config is given more than once; an experiment has one.')
  name, _ = variants.split(files[0].partition('=')[2]) if files else ('', '')
  begins = '--config.', '-config.'
  field = next((a for a in argv[1:] if a.startswith(begins)), '')
  if field and not files and '--config' not in argv:
    raise UserError(
        f'{field.partition("=")[0]} is a field of an experiment, and there is '
        'none: type --config=FILE, too.'
    )
  if files and not name:
    raise UserError('--config= names no file; --list experiments shows some.')
  if name:  # Else its fields would be refused first, by a parser's words.
    _check_there(name)
  return [argv[0], *files, *(a for a in argv[1:] if a not in files)]


def _see_neighbours(argv: list[str]) -> None:
  """Lets a config import modules of its folder; installed ones come first."""
  for argument in argv[1:]:
    flag, _, file = argument.lstrip('-').partition('=')
    folder = str(Path(file).absolute().parent)
    # Ours needs none: what lies beside it has names like any program's.
    own = folder == str(_CLONE / 'vfljax' / 'commands')
    if flag == 'config' and folder not in sys.path and not own:
      sys.path.append(folder)


def _config(found: flags.FlagValues) -> Config:
  """The config, as the file makes it and the flags change it."""
  if not found['config'].present:
    raise UserError(
        'Nothing to run: type --config=FILE, recommend or --list; see --help.'
    )
  path, _ = _config_file(found)
  _check_there(path)
  config = found['config'].value
  if isinstance(config, Config):
    return config
  try:  # A file that failed says why when it is first used.
    getattr(config, 'experiment', None)
  except Exception as error:
    raise UserError(f'{path} cannot be used: {blaming.said(error)}') from None
  raise UserError(
      f"{path}: get_config() must return an vfljax.runner.config.Config, not "
      f'{check.kind(config)}.'
  )


def _check_there(path: str | Path) -> None:
  if not os.path.exists(path):  # Of Path, it raises for endless names.
    if os.path.exists(there := os.path.join(_CLONE, path)):
      raise UserError(
          f'There is no config file {path} in this folder.\n'
          f'The clone that vfljax is run from has it: --config={there}'
      )
    raise UserError(
        f'There is no config file {path}.\n--list experiments shows those that '
        'come with a clone of vfljax; README has one that needs no clone.'
    )


def _config_file(found: flags.FlagValues) -> tuple[Path, str]:
  """The config's file and the variant asked for, or ''."""
  given = str(config_flags.get_config_filename(found['config']))
  file, variant = variants.split(given)
  return Path(file), variant


def _default_workdir(found: flags.FlagValues) -> str:
  """out/<folder and name of the config file>-<variant>, below where we are."""
  file, variant = _config_file(found)
  file, here = file.resolve().with_suffix(''), Path.cwd()
  # A path that has a root or a drive would not be below 'out'.
  parts = file.relative_to(here if here in file.parents else file.anchor).parts
  if 'experiments' in parts:
    parts = parts[parts.index('experiments') + 1 :]
  # Characters that are special to a shell or a file system become '-'.
  suffix = re.sub(r'[^\w.+]+', '-', f'-{variant}') if variant else ''
  return str(Path('out', *parts[-2:])) + suffix
