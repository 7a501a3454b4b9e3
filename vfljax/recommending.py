"""Recommends a defense from a program or a notebook, as the command line does.

  import vfljax

  advice = vfljax.recommend('my.csv', 'target', budget=2)
  advice = vfljax.recommend(frame, 'target', config={'seeds': 10})

It needs the packages of the extra `run`, and imports them when it is called.
"""
import argparse
from collections.abc import Mapping, Sequence
import dataclasses
import difflib
import inspect
import os
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from vfljax import calling, running
from vfljax.calling import Page
from vfljax.need import extra

if TYPE_CHECKING:
  import pandas as pd

  from vfljax.data.table import Table
  from vfljax.report.ranks import Trade
  from vfljax.report.reading import Results
  from vfljax.runner.cli.arguments import Arguments
  from vfljax.runner.cli.goals import Goal


# Of what was measured, also where all has diverged and no row is left.
COLUMNS = (
    'defense', 'strength', 'utility_loss', 'utility_loss_half',
    'worst_leakage', 'worst_leakage_half', 'attack', 'remark',
)


class Rarely(TypedDict, total=False):
  """Arguments of `recommend` that few need."""

  devices: int
  cache: str | os.PathLike
  tensorboard: bool


class Chosen(NamedTuple):
  """The defense that is advised, in percentage points.

  Attributes:
    defense: Its name; 'none' if no defense is better than having none.
    strength: `None` for a defense without one.
    loss: The test AUC that it costs; of three classes and more, the accuracy.
    leakage: What the worst attack learns.
    attack: That attack.
  """

  defense: str
  strength: float | None
  loss: float
  leakage: float
  attack: str

  def __str__(self) -> str:
    """As a configuration's `defenses` takes it: 'iso(5)'."""
    if self.strength is None:
      return self.defense
    return f'{self.defense}({self.strength:.12g})'


class Advice(NamedTuple):
  """What is advised, and what was measured for it.

  Attributes:
    path: The work directory with all measurements.
    report: The report, a page of HTML without scripts or other files.
    rows: A measurement each, as a line of results.jsonl; NaN for no number.
    text: The evidence, what was not tested, and the advice.
    chosen: The advised defense; `None` if nothing is within the limits, or
      nothing can be advised: the text says why.
    trades: What each defense costs and leaks at each strength, those within the
      limits first, by the names of the columns of `measured`.
  """

  path: Path
  report: Path
  rows: list[dict[str, Any]]
  text: str
  chosen: Chosen | None
  trades: list[dict[str, Any]]

  def __repr__(self) -> str:
    return self.text

  def measured(self) -> 'pd.DataFrame':
    """A defense at a strength each, with what it costs and leaks, in points.

    The columns `..._half` are half of a 95 % interval over seeds. `remark` is
    'within' the limits, or says why a defense is not.
    """
    import pandas as pd
    return pd.DataFrame(self.trades, columns=[*COLUMNS])

  def to_frame(self) -> 'pd.DataFrame':
    """The rows as a data frame, in their order."""
    import pandas as pd
    return pd.DataFrame(self.rows)

  def show(self, height: int = 800) -> Page:
    """The report inside of a notebook, so many pixels high."""
    return Page(self.report.read_text('utf-8'), height)


def recommend(
    data: 'str | os.PathLike | pd.DataFrame | Table', label: str = '', *,
    named: str = '', budget: float | None = None,
    max_leak: float | None = None, workdir: str | os.PathLike = '',
    config: Mapping[str, Any] = MappingProxyType({}), **more: Unpack[Rarely],
) -> Advice:
  """Says which defense protects a table's labels, at which price.

  It is the command `vfljax recommend`: the same numbers, checks and files.
  Defenses are tried at a few strengths, the best ones again around their best
  strength. The same call, or the command, continues one that was stopped; more
  seeds are added, and another limit adds strengths. Progress is printed.

  Args:
    data: A CSV or Parquet file with a header, a data frame (its index is not
      read), or a table of `vfljax.data.load` or of `joined`, several parties'.
    label: The label column; not for a table, which has labels.
    named: The parties' columns: 'age,sex;*'. By default two parties have half
      each.
    budget: The points of utility that a defense may cost, 0 to 100. By default
      2, if there is no `max_leak`.
    max_leak: The points that the worst attack may leak, 0 to 100.
    workdir: The results' folder; by default out/recommend/<the file's name>.
    config: Fields of a configuration by their names, as after `--config.` on
      the command line: {'seeds': 10, 'data.missing': 'impute'}.
    **more: `devices` and `cache`, as in `vfljax.run`; `tensorboard=True` writes
      event files of each epoch, too.

  Raises:
    vfljax.runner.errors.UserError: (a ValueError, two lines at most) for what
      cannot be run, an argument or a field that does not exist, or a folder
      that is in use, has something else or cannot be written.
    ValueError: if a package of the extra `run` is not installed.
    vfljax.calling.Stopped: a KeyboardInterrupt, once what is done is saved.
  """
  with extra():
    from vfljax.commands import recommend as command
    from vfljax.runner.cli import goals
    from vfljax.runner.machine import device
  with calling.own_words(keys=True):
    devices, cache, tensorboard = _rarely(dict(more))
    calling.check_kinds(
        dict(workdir=workdir) | ({} if cache is None else dict(cache=cache)),
        dict(budget=budget, max_leak=max_leak, devices=devices),
    )
    file = os.fspath(data) if isinstance(data, (str, os.PathLike)) else ''
    asked = argparse.Namespace(
        file=file, label=_word('label', label), named=_word('named', named),
        devices=devices, cache=cache, tensorboard=tensorboard, ids='',
    )
    wanted = goals.goal(budget, max_leak)
    wanted = wanted if wanted.asked else goals.Goal(budget=command.BUDGET)
    place = running.expanded(
        os.fspath(workdir) or command.default_workdir(file or _name(config))
    )
    with calling.stoppable(place), device.restored():
      parsed, typed = command.settings(asked, _flags(config))
      own = _name(config), None if file else data
      with command.own_words():
        return _recommend(parsed, typed, own, place, wanted)


def _recommend(
    parsed: 'Arguments', typed: Sequence[str], own: tuple[str, Any],
    place: str, wanted: 'Goal',
) -> Advice:
  """`own` are a program's samples' name and they; `None` for a file's."""
  from functools import partial

  from vfljax.commands import choice, recommend as command
  from vfljax.report import advice, reading
  from vfljax.runner import run
  from vfljax.runner.cli import loading, wording
  from vfljax.runner.compiled import kept
  from vfljax.runner.workdir import about
  said = partial(wording.in_python, keys=True)
  calling.tell_of_cores(parsed.devices, 'vfljax.recommend')
  tell = lambda text: loading.warn(said(text))
  config, (name, samples) = parsed.config, own
  if samples is None:
    copies = parsed.cache and f'{parsed.cache}/data'
    table = loading.load_data(config.data, copies, tell)
  else:
    table = loading.taken(config.data, samples, tell)
    config = dataclasses.replace(
        config, data=dataclasses.replace(config.data, name=name)
    )
  config = choice.sized(config, table, typed)
  train = partial(run.run, tensorboard=parsed.tensorboard)
  try:
    with kept.within(parsed.cache):
      report = command.measured(
          config, table, Path(place).absolute(), wanted, train,
          about.RECOMMEND, said,
      )
  except run.Interrupted:
    raise KeyboardInterrupt from None
  results, *_ = reading.read(report.parent, len(table.classes))
  text = said(command.advised(report, wanted))
  best = advice.chosen(results, wanted)
  return Advice(
      report.parent, report, running.rows_of(report.parent), text,
      best and _chosen(best), _trades(results, wanted),
  )


def _rarely(more: dict[str, Any]) -> tuple[Any, Any, bool]:
  """(devices, cache or `None` for the default, tensorboard).

  Raises:
    UserError: for any other argument.
  """
  from vfljax.runner.errors import UserError
  from vfljax.runner.machine import device
  found = devices, *_ = (
      more.pop('devices', 0), more.pop('cache', None),
      bool(more.pop('tensorboard', False)),
  )
  if isinstance(devices, int):  # Before absl refuses it in its own words.
    device.check(devices)
  if more:
    name, value = next(iter(more.items()))
    known = [*inspect.signature(recommend).parameters, *Rarely.__annotations__]
    close = difflib.get_close_matches(name, known, n=1)
    raise UserError(f'vfljax.recommend has no argument {name!r}. ' + (
        f'Did you mean {close[0]}?' if close else 'Is it a field of a '
        f'configuration? Type config={{{name!r}: {value!r}}}.'
    ))
  return found


def _word(name: str, given: Any) -> str:
  from vfljax.runner.errors import UserError
  if not isinstance(given, str):
    raise UserError(f'{name} must be text; got {given!r}.')
  return given


def _name(fields: Mapping[str, Any]) -> str:
  """What samples of a program are called in results."""
  from vfljax.runner.cli import loading
  return str(fields.get('data.name', loading.OWN))


def _flags(fields: Mapping[str, Any]) -> list[str]:
  """Fields of a configuration as the command line has them.

  Raises:
    UserError: for what is no mapping of names to values.
  """
  from vfljax import check
  from vfljax.runner.errors import UserError
  how = "a dictionary of fields, as {'seeds': 10, 'train.epochs': 20}"
  if not isinstance(fields, Mapping):
    raise UserError(f'config must be {how}; got {check.kind(fields)}.')
  flags = []
  for name, value in fields.items():
    if isinstance(value, Mapping) or not isinstance(name, str):
      raise UserError(f'config must be {how}; got {name!r}: {value!r}.')
    if not isinstance(value, str) and isinstance(value, Sequence):
      words = all(isinstance(v, str) for v in value)
      value = ','.join(value) if words and value else repr(tuple(value))
    flags.append(f'--config.{name}={value}')
  return flags


def _chosen(best: 'Trade') -> Chosen:
  (defense, strength), worst = best.cell, best.leakage[best.worst]
  return Chosen(defense, strength, best.loss.mean, worst.mean, best.worst)


def _trades(results: 'Results', wanted: 'Goal') -> list[dict[str, Any]]:
  from vfljax.report import advice
  found = []
  for trade in advice.ordered(results, wanted):
    leak, (defense, strength) = trade.leakage[trade.worst], trade.cell
    found.append(dict(
        defense=defense, strength=strength, utility_loss=trade.loss.mean,
        utility_loss_half=trade.loss.half, worst_leakage=leak.mean,
        worst_leakage_half=leak.half, attack=trade.worst,
        remark=advice.remark(trade, wanted),
    ))
  return found
