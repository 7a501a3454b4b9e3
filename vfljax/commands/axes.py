"""A grid's points: every config with every combination of some fields' values.

  --over data.name=wine,digits --over 'model.bottom=(8,4),(16,)'

Values are separated by commas; a comma inside brackets or quotes is part of a
value.
"""
from collections.abc import Sequence
import dataclasses
import hashlib
import itertools
from pathlib import Path
import re
from typing import NamedTuple

from vfljax.commands import apart
from vfljax.runner.cli import arguments
from vfljax.runner.config import options
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers

_LONGEST = 120  # Characters of a folder's name.
_PAIRS = {'(': ')', '[': ']', '{': '}'}


class Point(NamedTuple):
  """One experiment of a grid.

  Attributes:
    name: The name of its folder.
    argv: The command line that runs it alone.
    workdir: The path of its folder.
    label: What it is called in tables: the name, without what all experiments
      of the grid have in common.
  """

  name: str
  argv: tuple[str, ...]
  workdir: str
  label: str


def points(
    configs: Sequence[str], over: Sequence[str], flags: Sequence[str],
    workdir: str,
) -> list[Point]:
  """All experiments of a grid, in order.

  Args:
    configs: Config files, with their variants.
    over: Fields and their values, as above.
    flags: Flags for all of them, such as '--config.seeds=3'.
    workdir: The folder of their folders.

  Raises:
    UserError: for values that cannot be read, fields that are given twice,
      configs that do not exist, and values that mean the same, as .1 and 0.1.
  """
  axes = dict(_pair(text) for text in over)
  if len(axes) < len(over):
    raise UserError('--over has a field twice; give all its values at once.')
  fixed = {flag.lstrip('-').partition('=')[0] for flag in flags}
  for field in axes:
    if f'config.{field}' in fixed:
      raise UserError(
          f'{field} is set by --config.{field} and varied by --over; leave one '
          'out.'
      )
  found, files = [], dict.fromkeys(configs)
  short = _short(list(axes))
  for config in files:
    # As a run of its own would call its folder.
    first = '-'.join(Path(_workdir(config)).parts[1:])
    for values in itertools.product(*axes.values()):
      chosen = dict(zip(axes, values))
      name = _name([first, *(f'{k}={v}' for k, v in chosen.items())])
      place = str(Path(workdir, name))
      own = [f'--config.{field}={value}' for field, value in chosen.items()]
      argv = 'vfljax', f'--config={config}', *flags, *own, f'--workdir={place}'
      parts = [first] * (len(files) > 1 or not axes)
      parts += [f'{short[k]}={v}' for k, v in chosen.items()]
      found.append(Point(name, argv, place, ', '.join(parts)))
  for i, one in enumerate(found):
    if one.workdir in [other.workdir for other in found[:i]]:
      raise UserError(
          f'Two experiments would be called {one.name}; rename one of the '
          'config files, or run it as a grid of its own.'
      )
  _refuse_twins(found)
  return found


@apart.alone
def _workdir(config: str) -> str:
  """Where a run of its own would write, by default."""
  return arguments.parse(['vfljax', f'--config={config}']).workdir


@apart.alone
def _meaning(argv: Sequence[str]) -> str:
  """What a command line asks for, however its values are spelt.

  Raises:
    UserError: if it cannot be read.
  """
  config = arguments.parse(list(argv)).config
  said = lambda text: str(sorted(options.parse(text, 'options', 'a=1').items()))
  own = config.attack.own.items()
  return repr(dataclasses.replace(
      config,
      attack=dataclasses.replace(config.attack, own={
          name: attackers.group_options(name, given) for name, given in own
      }),
      data=dataclasses.replace(config.data, options=said(config.data.options)),
      model=dataclasses.replace(
          config.model, options=said(config.model.options)
      ),
  ))


def _refuse_twins(found: Sequence[Point]) -> None:
  """Refuses two values of a field that make the same experiment.

  It would run twice, and look like two results that agree.
  """
  known: dict[tuple[str, str], str] = {}
  for one in found:
    try:
      meaning = _meaning(one.argv)
    except UserError:  # It is told, or left out, where all are checked.
      continue
    name = known.setdefault((one.argv[1], meaning), one.name)
    if name != one.name:
      raise UserError(
          f'{name} and {one.name} are the same experiment: leave one out.'
      )


def split(text: str) -> list[str]:
  """Values at commas outside of brackets and quotes, without outer quotes.

  Raises:
    UserError: for brackets or quotes without an end.
  """
  found, open_ones, quote = [''], [], ''
  for c in text:
    if quote:
      quote = '' if c == quote else quote
    elif c in '\'"':
      quote = c
    elif c in _PAIRS:
      open_ones.append(_PAIRS[c])
    elif open_ones and c == open_ones[-1]:
      open_ones.pop()
    elif c == ',' and not open_ones:
      found.append('')
      continue
    found[-1] += c
  if quote or open_ones:
    last = quote or open_ones[-1]
    raise UserError(f'--over: a {last} is missing in {text[:60]!r}.')
  return [_unquoted(value.strip()) for value in found]


def _unquoted(value: str) -> str:
  inner = value[1:-1]
  same = len(value) > 1 and value[0] == value[-1] and value[0] in '\'"'
  return inner if same and value[0] not in inner else value


def _pair(text: str) -> tuple[str, list[str]]:
  """('data.name', ['wine', 'digits']) of 'data.name=wine,digits'."""
  field, equals, values = text.partition('=')
  field = field.lstrip('-').removeprefix('config.')
  if not equals or not field:
    raise UserError(
        f'--over {text[:60]} has no values: --over data.name=wine,digits.'
    )
  found = split(values)
  if len(set(found)) < len(found):
    raise UserError(f'--over {field} has a value twice.')
  return field, found


def _short(fields: Sequence[str]) -> dict[str, str]:
  """The fields' names without their groups, where these still differ."""
  last = [field.rpartition('.')[2] for field in fields]
  return {
      field: name if last.count(name) == 1 else field
      for field, name in zip(fields, last)
  }


def _name(parts: Sequence[str]) -> str:
  """A folder's name of all parts, cut if too long.

  Characters that file systems refuse become '-'. A name that was changed ends
  in a digest, so that it stays unique.
  """
  whole = ','.join(parts)
  name = re.sub(r'[^\w.+=,()-]+', '-', whole)
  if name == whole and len(name) <= _LONGEST:
    return name
  digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
  return f'{name[: _LONGEST - 9]}-{digest}'
