"""`--record=FILE`: what a finished run measured, small enough to be kept.

A record is JSON: the command and the configuration that make it again, the
samples' digest, versions, device, date, and every measurement seed by seed,

  "rows": [[defense, strength, attack, metric, split, [one value a seed]], ...]

with the seeds once, in "seeds". Values have 7 significant digits as in
results.jsonl; null is a training that diverged. `rows` turns it back into the
rows that a report is made of. What differs between the seeds of a row has the
deviation with n - 1 in the denominator, here and in all tables.
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
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import raising, shares, store

FORMAT = 'vfljax record 1'
PACKAGES = ('jax', 'jaxlib', 'flax', 'optax', 'numpy')
# What a command line says of a place, which is another one elsewhere; and what
# is written beside the results.
_PLACES = (
    'workdir', 'record', 'cache', 'tensorboard', 'notensorboard', *shares.FLAGS,
)
MADE = 'made'  # Of a timing record.
FIELD = 'jax'  # Of a saved configuration: `settings`, if there are any.
_SETTINGS = dict(
    jax_enable_x64='False', jax_threefry_partitionable='True',
    jax_default_prng_impl='threefry2x32', jax_random_seed_offset='0',
)
_TITLE = ('experiment', 'dataset', 'algorithm')
_KEY = ('defense', 'strength', 'attack', 'metric', 'split')


def check(file: str, argv: Sequence[str]) -> None:
  """Before a run: can its record be written there?

  Args:
    argv: The command line. The record of the same command is written anew.

  Raises:
    UserError: if its folder is not there, or something else is.
  """
  place = Path(file).expanduser()
  if not place.absolute().parent.is_dir():
    raise UserError(
        f'--record={file}: there is no folder {place.parent}. Make it first: '
        f'mkdir -p {place.parent}'
    )
  if os.path.lexists(place):
    try:
      before = read(place)
    except UserError:
      raise UserError(
          f'--record={file}: that is there, and is no record of vfljax.\n'
          'Choose another name.'
      ) from None
    if _asked(before['command']) != _asked(command(argv)):
      raise UserError(
          f'--record={file}: choose another name, or remove that file. It is '
          f'the record of another command:\n{before["command"]}'
      )


def _asked(line: str) -> set[str]:
  """A command's config and fields, without the number of seeds."""
  words = [w.lstrip('-') for w in shlex.split(line)]
  return {
      w for w in words
      if w.startswith('config') and not w.startswith('config.seeds=')
  }


def write(file: str, work: Path, argv: Sequence[str]) -> None:
  """Writes the record of a finished work directory.

  Args:
    argv: The command line that ran it.

  Raises:
    UserError: if there is no result to be recorded, or the disk does not take
      it.
  """
  said = text(make(work, argv))
  disk.write_text(Path(file).expanduser().absolute(), said, '--record')


def make(work: Path, argv: Sequence[str]) -> dict[str, Any]:
  """The record of a finished work directory, see the module.

  Raises:
    UserError: if there is no result in it.
  """
  rows, timings = store.read_results(work), store.read_timings(work)
  if not rows:
    raise UserError(f'{work} has no results to be recorded.')
  config = store.read_config(work)
  samples, paper = config.pop('samples', ''), config.pop('paper', None)
  del paper  # The config file has it.
  for name in (raising.FIELD, FIELD, 'columns'):
    config.pop(name, None)
  config['data']['path'] = os.path.basename(config['data']['path'])
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
      **_origin(timings), device=timings[0].get('device', ''),
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
  """A record.

  Args:
    form: What its "format" must be.
    what: What it is then called.

  Raises:
    UserError: if the file cannot be read or is none.
  """
  try:
    found = json.loads(Path(file).read_text('utf-8'))
    if found['format'] != form:
      raise ValueError
    return found
  except (OSError, ValueError, LookupError, TypeError):
    raise UserError(f'{file} is no {what}.') from None


def rows(record: Mapping[str, Any]) -> list[dict]:
  """A record's measurements as the rows of results.jsonl, null as NaN."""
  base = dict(zip(_TITLE, record['title']))
  return [
      base | dict(zip(_KEY, key)) | dict(
          seed=seed, value=math.nan if value is None else value
      )
      for *key, values in record['rows']
      for seed, value in zip(record['seeds'], values, strict=True)
  ]


def text(record: Mapping[str, Any]) -> str:
  """JSON with a line for each row, so that a difference is seen in a diff."""
  head = {k: v for k, v in record.items() if k != 'rows'}
  lines = ',\n'.join('  ' + json.dumps(row) for row in record['rows'])
  return json.dumps(head, indent=1)[:-2] + f',\n "rows": [\n{lines}\n ]\n}}\n'


def command(argv: Sequence[str]) -> str:
  """How to run it again: without the places that are the user's own."""
  kept = ['python', 'launch.py']
  for argument in joined(argv[1:]):
    flag, equals, value = argument.partition('=')
    if flag.lstrip('-') in _PLACES:
      continue
    if flag.endswith('data.path'):
      value = os.path.basename(value)
    kept.append(shlex.quote(f'{flag}{equals}{value}'))
  return ' '.join(kept)


def joined(words: Sequence[str]) -> list[str]:
  """A command line's words, '--flag value' as '--flag=value'.

  Those of a command (`recommend my.csv`) stay as they are: it has arguments
  without a flag.
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
  """What a timing record says of the process that measured: see `origin`."""
  return dict(
      date=datetime.date.today().isoformat(), code=code(), versions=versions()
  )


def origin(units: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
  """When, by which commit and by which versions results were measured.

  Who looks at them later, with other versions, has measured nothing. What is
  not the same of all is told of each: 'jax': '0.9.0 and 0.10.1'. The date is
  the last one.

  Args:
    units: Those of timings.json.

  Returns:
    `made` of all, as far as they say: {} of those of earlier versions.
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
  """The same; of earlier versions' results the commit is unknown."""
  return origin(units) or made() | dict(code='')


def versions() -> dict[str, str]:
  """Of Python and of what decides the numbers."""
  found = {name: metadata.version(name) for name in PACKAGES}
  return dict(
      python=platform.python_version(), vfljax=vfljax.__version__
  ) | found | dict(platform=jax.default_backend()) | settings()


def settings() -> dict[str, str]:
  """JAX's that decide the numbers, where they are not as JAX has them."""
  now = {name: str(getattr(jax.config, name, usual))
         for name, usual in _SETTINGS.items()}
  return {name: value for name, value in now.items()
          if value != _SETTINGS[name]}


@functools.cache  # What is checked out later does not run here.
def code() -> str:
  """The commit of the clone that runs; '' where there is none, or none known.

  Read from .git, as nothing is started from here: whether files differ from the
  commit is not looked at. It is that of when this is first asked.
  """
  git = Path(vfljax.__file__).parents[1] / '.git'
  try:
    if git.is_file():  # A second work tree: it says where its own folder is.
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
