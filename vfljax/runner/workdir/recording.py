"""`--record=FILE`: all results of a run in one file, small enough to keep.

A record is JSON. It has the command and configuration that repeat the run, the
samples' digest, versions, device, date, and every measurement seed by seed:

  "rows": [[defense, strength, attack, metric, split, [one value a seed]], ...]

The seeds themselves are in "seeds". Values have 7 significant digits as in
results.jsonl; null means that the training diverged. `rows` turns a record back
into rows as in results.jsonl. Standard deviations over seeds have n - 1 in the
denominator, here and in all tables.
"""
from collections.abc import Mapping, Sequence
import datetime
import functools
from importlib import metadata
import json
import math
import os
from pathlib import Path
import platform
import re
import shlex
from typing import Any

import jax

import vfljax
from vfljax.data import files
from vfljax.runner.errors import UserError, denied
from vfljax.runner.machine import disk
from vfljax.runner.workdir import raising, shares, store

FORMAT = 'vfljax record 1'
PACKAGES = ('jax', 'jaxlib', 'flax', 'optax', 'numpy')
# Flags that a record leaves out: places on this machine, and other outputs.
_PLACES = (
    'workdir', 'record', 'cache', 'tensorboard', 'notensorboard', *shares.FLAGS,
)
MADE = 'made'  # A field of a timing record.
FIELD = 'jax'  # A field of a saved configuration: `settings`, if any.
_SETTINGS = dict(
    jax_enable_x64='False', jax_threefry_partitionable='True',
    jax_default_prng_impl='threefry2x32', jax_random_seed_offset='0',
    jax_high_dynamic_range_gumbel='False',  # It decides how classes are drawn.
)
_TITLE = ('experiment', 'dataset', 'algorithm')
_KEY = ('defense', 'strength', 'attack', 'metric', 'split')


def write(file: str, work: Path, argv: Sequence[str]) -> None:
  """Writes the record of a finished work directory.

  Args:
    file: Where to write it.
    work: The work directory.
    argv: The command line that ran it.

  Raises:
    UserError: if there are no results, or the file cannot be written.
  """
  said = text(make(work, argv))
  disk.write_text(Path(file).expanduser().absolute(), said, '--record')


def make(work: Path, argv: Sequence[str]) -> dict[str, Any]:
  """The record of a finished work directory, see the module's docstring.

  Raises:
    UserError: if the directory has no results.
  """
  rows, timings = store.read_results(work), store.read_timings(work)
  if not rows:
    raise UserError(f'{work} has no results to be recorded.')
  config = store.read_config(work)
  samples, paper = config.pop('samples', ''), config.pop('paper', None)
  del paper  # It is in the config file.
  for name in (raising.FIELD, FIELD, 'columns', 'weights'):
    config.pop(name, None)
  config['data']['path'] = files.bare(config['data']['path'])
  seeds = sorted({row['seed'] for row in rows})
  by_key: dict[tuple, dict[int, float]] = {}
  for row in rows:
    key = tuple(row[name] for name in _KEY)
    by_key.setdefault(key, {})[row['seed']] = row['value']
  total = lambda key: round(sum(t.get(key) or 0 for t in timings), 1)
  return dict(
      format=FORMAT, command=command(argv), config=config, samples=samples,
      title=[rows[0][name] for name in _TITLE], seeds=seeds,
      classes=max((t.get('classes', 0) for t in timings), default=0),
      **_origin(timings), device=_devices(timings),
      seconds=dict(
          compiling=total('compile_seconds'), running=total('run_seconds'),
      ),
      rows=[
          [*key, [_or_null(found.get(seed, math.nan)) for seed in seeds]]
          for key, found in by_key.items()
      ],
  )


def read(
    file: str | os.PathLike, form: str = FORMAT, what: str = 'record of vfljax'
) -> dict[str, Any]:
  """Reads a record.

  Args:
    file: The file.
    form: What its "format" must be.
    what: The name of such a file in the error message.

  Raises:
    UserError: if the file cannot be read or has another format.
  """
  try:
    files.ordinary(Path(file), '')  # A pipe would wait for who writes to it.
    found = json.loads(Path(file).read_text('utf-8'))
    if found['format'] != form:
      raise ValueError
    return found
  except PermissionError as error:
    raise denied(error) from None
  except (OSError, ValueError, LookupError, TypeError, RecursionError):
    raise UserError(f'{file} is no {what}.') from None


def rows(record: Mapping[str, Any]) -> list[dict]:
  """A record's measurements as rows of results.jsonl, with NaN for null."""
  base = dict(zip(_TITLE, record['title']))
  return [
      base | dict(zip(_KEY, key)) | dict(
          seed=seed, value=math.nan if value is None else value
      )
      for *key, values in record['rows']
      for seed, value in zip(record['seeds'], values, strict=True)
  ]


def text(record: Mapping[str, Any]) -> str:
  """A record as JSON with one row a line, so that a diff shows changes."""
  head = {k: v for k, v in record.items() if k != 'rows'}
  lines = ',\n'.join('  ' + json.dumps(row) for row in record['rows'])
  return json.dumps(head, indent=1)[:-2] + f',\n "rows": [\n{lines}\n ]\n}}\n'


def command(argv: Sequence[str]) -> str:
  """The command that repeats a run, without the user's own folders.

  It begins with JAX's settings, as variables of the environment, because
  without them it would be another experiment (`asking`).
  """
  kept = [*environment(), 'python', 'launch.py']
  for argument in joined(argv[1:]):
    flag, equals, value = argument.partition('=')
    if flag.lstrip('-') in _PLACES:
      continue
    if flag.endswith('data.path'):
      value = files.bare(value)
    if flag.endswith('-config'):
      value = value.replace(os.sep, '/')  # It is repeated on any system.
    kept.append(shlex.quote(f'{flag}{equals}{value}'))
  return ' '.join(kept)


def joined(words: Sequence[str]) -> list[str]:
  """A command line's words, with '--flag value' joined to '--flag=value'.

  Words that begin with a command (`recommend my.csv`) stay as they are, because
  commands have arguments without a flag.
  """
  if words and not words[0].startswith('-'):
    return list(words)
  found: list[str] = []
  for word in words:
    last = found[-1] if found else ''
    lacks = last.startswith('-') and '=' not in last
    if lacks and not re.match(r'-+[a-zA-Z]', word):
      found[-1] = f'{last}={word}'
    else:
      found.append(word)
  return found


def made() -> dict[str, Any]:
  """Date, commit and versions of this process, for its timing records."""
  return dict(
      date=datetime.date.today().isoformat(), code=code(), versions=versions()
  )


def origin(units: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
  """When, with which commit and which versions results were measured.

  It is read from the timing records, because a process that looks at results
  later may have other versions. Values that differ between units are joined:
  'jax': '0.9.0 and 0.10.1'. The date is the last one.

  Args:
    units: The records of timings.json.

  Returns:
    The fields of `made`; {} if the records are of earlier versions.
  """
  said = [u[MADE] for u in units if isinstance(u.get(MADE), Mapping)]
  if not said:
    return {}
  every = lambda values: ' and '.join(dict.fromkeys(v for v in values if v))
  names = dict.fromkeys(k for one in said for k in one['versions'])
  return dict(
      date=max(one['date'] for one in said),
      code=every(one['code'] for one in said),
      versions={
          k: every(one['versions'].get(k) for one in said) for k in names
      },
  )


def _origin(units: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
  """Like `origin`; for results of earlier versions `made`, without commit."""
  return origin(units) or made() | dict(code='')


def _devices(units: Sequence[Mapping[str, Any]]) -> str:
  """The devices of all units, as several processes may have unlike ones."""
  found = dict.fromkeys(str(u['device']) for u in units if u.get('device'))
  return ' and '.join(found)


def versions() -> dict[str, str]:
  """Versions of Python and of the packages that decide the numbers."""
  found = {name: metadata.version(name) for name in PACKAGES}
  return dict(
      python=platform.python_version(), vfljax=vfljax.__version__
  ) | found | dict(platform=jax.default_backend()) | settings()


def settings() -> dict[str, str]:
  """JAX's settings that decide the numbers, if they are not at their defaults.
  """
  now = {name: str(getattr(jax.config, name, usual))
         for name, usual in _SETTINGS.items()}
  return {name: value for name, value in now.items()
          if value != _SETTINGS[name]}


def environment() -> list[str]:
  """These settings as variables: ['JAX_ENABLE_X64=True']."""
  return [f'{name.upper()}={value}' for name, value in settings().items()]


@functools.cache  # A commit that is checked out later is not what runs.
def code() -> str:
  """The commit of the clone that runs, as of the first call; '' if unknown.

  It is read from .git, because vfljax starts no other program. Whether files
  differ from the commit is not checked.
  """
  git = Path(vfljax.__file__).parents[1] / '.git'
  try:
    if git.is_file():  # In a second work tree, .git names the real folder.
      git = Path(git.read_text('utf-8').removeprefix('gitdir:').strip())
    head = (git / 'HEAD').read_text('utf-8').strip()
    if not head.startswith('ref:'):
      return head[:12]
    name = head.removeprefix('ref:').strip()
    common = git / 'commondir'
    if common.exists():
      git = git / common.read_text('utf-8').strip()
    if (git / name).exists():
      return (git / name).read_text('utf-8').strip()[:12]
    packed = (git / 'packed-refs').read_text('utf-8').splitlines()
    return next((x[:12] for x in packed if x.endswith(f' {name}')), '')
  except (OSError, ValueError):
    return ''


def _or_null(value: float) -> float | None:
  return value if math.isfinite(value) else None
