"""Runs an experiment from a program or a notebook, as the command line does.

  import vfljax
  from vfljax.runner.config import Config

  result = vfljax.run(Config(seeds=5, defenses='none,iso'), workdir='out/mine')

It needs the packages of the extra `run`, and imports them when it is called.
"""
from collections.abc import Sequence
import os
from pathlib import Path
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from vfljax import calling
from vfljax.calling import Page, Stopped as Stopped
from vfljax.need import extra

if TYPE_CHECKING:
  import pandas as pd

  from vfljax.data.table import Table
  from vfljax.runner.cli.goals import Goal
  from vfljax.runner.config import Config


class Result(NamedTuple):
  """What a finished run has found.

  Attributes:
    path: The work directory.
    report: The report, a page of HTML without scripts or other files.
    rows: A measurement each, as a line of results.jsonl; NaN for no number.
    text: The ranking and the verdict, as the command line prints them.
  """

  path: Path
  report: Path
  rows: list[dict[str, Any]]
  text: str

  def __repr__(self) -> str:
    return self.text

  def to_frame(self) -> 'pd.DataFrame':
    """The rows as a data frame, in their order."""
    import pandas as pd
    return pd.DataFrame(self.rows)

  def show(self, height: int = 800) -> 'Page':
    """The report inside of a notebook, so many pixels high."""
    return Page(self.report.read_text('utf-8'), height)


def run(
    config: 'Config', data: 'Table | pd.DataFrame | None' = None,
    workdir: str | os.PathLike = '', *, budget: float | None = None,
    max_leak: float | None = None, devices: int = 0,
    cache: str | os.PathLike = '~/.cache/vfljax',
    record: str | os.PathLike = '',
) -> Result:
  """Runs what is not done yet of an experiment, and reports on all of it.

  It is the command line's run: the same numbers, checks and files. The same
  call continues a run that was stopped in any way, a larger `config.seeds` adds
  seeds, and a finished run is only read. Progress is printed.

  It sets up JAX as the command line does: a CPU becomes a device for each core,
  unless JAX has started, and compiled programs are kept in `cache`. Afterwards
  JAX keeps the calling program's own where it did before.

  Args:
    config: What to run; it stays as it is.
    data: The samples, in place of those that `config.data` names: a data frame,
      with `config.data.label` its label column (its index is not read), or a
      table of `vfljax.data.load`. In results they are called
      `config.data.name`, or 'own' if that is its default.
    workdir: The results' folder; by default out/<config.experiment>.
    budget: The points of utility that a defense may cost, 0 to 100: the report
      says which leaks least within that.
    max_leak: The points that the worst attack may leak: likewise.
    devices: Into how many devices a CPU is divided; 0: one for each core.
    cache: The folder that keeps compiled programs; '' keeps none.
    record: A file, 'mine.json', that gets the results of every seed with the
      command, versions and seeds that repeat them. The command's config file,
      mine.py, is written beside it, so `config` and vfljax must say all: not
      with `data`, nor with methods of the program's own.

  Raises:
    vfljax.runner.errors.UserError: (a ValueError, two lines at most) if the
      configuration or the samples cannot be run, or the folder is in use, has
      another experiment or cannot be written.
    ValueError: if a package of the extra `run` is not installed.
    Stopped: a KeyboardInterrupt, once what is done has been saved; in the main
      thread a second interrupt does not wait for that. (In a process pool's
      worker SIGTERM then ends the process.)
  """
  with extra():
    from vfljax.runner.cli import goals
    from vfljax.runner.machine import device
  with calling.own_words():
    _check_config(config, data)
    calling.check_kinds(
        dict(workdir=workdir, cache=cache, record=record),
        dict(budget=budget, max_leak=max_leak, devices=devices),
    )
    place = _place(config, workdir)
    goal = goals.goal(budget, max_leak)
    with calling.stoppable(place), device.restored():
      places = place, os.fspath(cache), os.fspath(record)
      return _run(config, data, places, goal, devices)


def _check_config(config: Any, data: Any) -> None:
  """Raises UserError for what is no configuration, and files as samples."""
  from vfljax import check
  from vfljax.runner.config import Config
  from vfljax.runner.errors import UserError
  if not isinstance(config, Config):
    raise UserError(
        'config must be a vfljax.runner.config.Config; got '
        f'{check.kind(config)}: type Config(seeds=5).'
    )
  if isinstance(data, (str, os.PathLike)):
    raise UserError(
        f'data is {os.fspath(data)!r}. A folder of results is workdir=..., a '
        'file of samples is config.data.path.'
    )


def _run(
    config: 'Config', samples: Any, places: tuple[str, str, str], goal: 'Goal',
    devices: int,
) -> Result:
  """`places` are the work directory, the cache and the record."""
  with extra():
    from vfljax.runner.machine import device
  workdir, cache, record = places
  device.set_up(devices, cache)  # Before SciPy, which the others load.
  with extra():
    from vfljax.report import ending
    from vfljax.runner import run as running
    from vfljax.runner.checking import checks, lowering
    from vfljax.runner.cli import forecast, wording
    from vfljax.runner.compiled import kept
    from vfljax.runner.workdir import about, beside
  calling.tell_of_cores(devices)
  config = checks.checked(config)
  config, table = _samples(config, samples, cache)
  config, lower = lowering.lowered(config, table)
  print(*lower, sep='\n', end='\n' if lower else '')
  if record:
    beside.check(record, config, table, samples is not None)
  print(wording.in_python(forecast.text(config, table)), flush=True)
  try:
    with kept.within(cache):
      work = running.run(config, table, workdir)
  except running.Interrupted:
    raise KeyboardInterrupt from None
  report = reported(work.path, config, table, about.RUN, goal)
  if record:
    file = beside.write(record, work.path, config, devices)
    print(f'Record: {record}, and its config file {file}', flush=True)
  text = wording.in_python(ending.text(work.path, goal))
  return Result(work.path, report, rows_of(work.path), text)


def reported(
    work: Path, config: 'Config', table: 'Table', argv: Sequence[str],
    goal: 'Goal',
) -> Path:
  """Writes a finished run's report, unless it is up to date: its page.

  Args:
    work: The work directory.
    config: Its configuration.
    table: The samples.
    argv: The command line, as for `about.write`.
    goal: The limits on loss and leakage.

  Raises:
    UserError: if the directory cannot be read or written.
  """
  from vfljax.report import current
  from vfljax.runner.workdir import about
  about.write(work, config, table, argv)
  if not current.is_current(work, goal):
    from vfljax.report import writing
    writing.write(work, goal=goal)
  return work / 'report.html'


def _samples(
    config: 'Config', samples: Any, cache: str
) -> tuple['Config', 'Table']:
  """The samples to train on, and the configuration with their name."""
  from dataclasses import replace

  from vfljax.runner.cli import loading, wording
  tell = lambda said: loading.warn(wording.in_python(said))
  own = config.data
  if samples is None:
    return config, loading.load_data(own, cache and f'{cache}/data', tell)
  table = loading.taken(own, samples, tell)
  if own.name == type(own)().name:
    own = replace(own, name=loading.OWN)
  return replace(config, data=own), table


def rows_of(work: Path) -> list[dict[str, Any]]:
  """A finished run's measurements."""
  from vfljax.runner.workdir import collecting, store
  more = collecting.labels_of(store.read_config(work))
  return [row | more for row in store.read_results(work)]


def _place(config: 'Config', workdir: str | os.PathLike) -> str:
  """The work directory, as given or by default."""
  name = re.sub(r'[^\w.+]+', '-', str(config.experiment)).lstrip('.')
  name = name or 'custom'  # '..' would be this folder.
  return expanded(os.fspath(workdir) or os.path.join('out', name))


def expanded(workdir: str) -> str:
  """`workdir` with '~' expanded, which most shells do not do after '='.

  Raises:
    UserError: if there is no such user.
  """
  from vfljax.runner.errors import UserError
  place = os.path.expanduser(workdir)
  if place.startswith('~'):
    raise UserError(
        f'--workdir={workdir}: nobody here has that home folder.\nWrite '
        f'./{workdir} for a folder of that name.'
    )
  return place
