"""`vfljax recommend my.csv --label=target --budget=2`: what protects my data?

A file of each party, the active one's first, is joined by a column of ids:
`vfljax recommend bank.csv telecom.csv --ids=customer --label=churn`.

Chooses attacks that apply, sweeps defenses coarsely, refines around the budget,
and ends with advice, its evidence, and what was not tested. Any field of a
config can be set: --config.data.missing=impute --config.seeds=10. The same
command continues a run that was stopped; a larger --config.seeds adds seeds,
another --budget or --max_leak adds the refinement for it.
"""
import argparse
from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
from functools import partial
from pathlib import Path
import re
import sys
from typing import Any

from vfljax.commands import (
    advise, as_flags, choice, given, merge, recommended, sweeps,
)
from vfljax.data import files
from vfljax.data.parties import BETWEEN
from vfljax.data.table import Table
from vfljax.report import reading, writing
from vfljax.report.reading import Results
from vfljax.runner import run as running
from vfljax.runner.cli import arguments, forecast, goals
from vfljax.runner.cli.goals import Goal
from vfljax.runner.compiled import kept
from vfljax.runner.config import Config
from vfljax.runner.config.ranges import shown
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import told
from vfljax.runner.machine import device, stopping
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import about, epoch_events, raising, store

BUDGET = 2.0  # Percentage points of utility, by default.
# Messages name fields of a config; a user who typed our arguments needs those.
_WORDS = {
    '--config.data.split=named ': '', '--config.data.named=': '--named=',
    '--config.data.label=': '--label=', ' --config.data.split=held': '',
} | {  # This argument is no way to other files than tables.
    f'--config.data.name={name}': (
        f"a program: vfljax.recommend(vfljax.data.load('{name}', path))"
    ) for name in ('reviews', 'npz')
}


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Runs the experiments and prints the advice.

  Raises:
    UserError: for a file that cannot be trained on, wrong flags, and all that
      an experiment refuses.
  """
  asked, rest = _parsed(argv)
  wanted = goals.goal(asked.budget, asked.max_leak)
  if not wanted.asked:
    wanted = Goal(budget=BUDGET)
  place = asked.workdir or default_workdir(asked.file)
  if stop is not None:
    stop.place = place
  parsed, typed = settings(asked, rest)
  train = partial(running.run, stop=stop, tensorboard=parsed.tensorboard)
  try:
    with own_words(), kept.within(parsed.cache):
      table = arguments.load_data(
          parsed.config.data, parsed.cache and f'{parsed.cache}/data'
      )
      config = choice.sized(parsed.config, table, typed)
      command = 'vfljax', 'recommend', *argv
      report = measured(config, table, Path(place), wanted, train, command)
  except (running.Interrupted, KeyboardInterrupt):
    print(stopping.last_words(place), file=sys.stderr)
    return stopping.CODE
  print('\n' + advised(report, wanted))
  return 0


def settings(
    asked: argparse.Namespace, rest: Sequence[str]
) -> tuple[arguments.Arguments, list[str]]:
  """What the arguments mean, with JAX set up for it, and their flags.

  Args:
    asked: Our arguments. `file` is '' for samples that a program has.
    rest: The fields of a config that were typed.

  Raises:
    UserError: for a field that does not exist, does not take its value, or is
      set by an argument, too.
  """
  typed = [*as_flags.of(asked, rest), *rest]
  parsed = arguments.parse([
      'vfljax', f'--config={recommended.__file__}', *typed,
  ])
  device.set_up(parsed.devices, parsed.cache)
  if parsed.tensorboard:
    epoch_events.check()
  return parsed, typed


def measured(
    config: Config, table: Table, place: Path, wanted: Goal,
    train: Callable[..., Any], argv: Sequence[str],
    said: Callable[[str], str] = str,
) -> Path:
  """Runs the coarse sweep and the finer ones, and merges them: the report.

  Args:
    config: Of `settings`, in a size that suits the table.
    table: The samples.
    place: The work directory.
    wanted: The limits on loss and leakage.
    train: `runner.run.run`.
    argv: The command line, as for `about.write`.
    said: Turns what is printed into the caller's words.
  """
  classes = len(table.classes)
  config = choice.coarse(config, classes)
  print(said(forecast.text(config, table)), flush=True)
  done = [train(config, table, str(place / 'coarse')).path]
  had = raising.counts(done[0])
  # Refinement is chosen by the seeds of the first start: with more seeds it
  # might choose other strengths, and would abandon what was measured.
  results = _with_seeds(done[0], classes, had[0])
  again = choice.finer(results, wanted, config)
  for sweep in sweeps.planned(place, config, again):
    why = 'the budget' if sweep.wanted else 'what was asked for earlier'
    coming = said(forecast.text(sweep.config, table))
    print(f'Around {why}:\n{coming}', flush=True)
    begun = raising.counts(sweep.folder)
    # The undefended federation is the same in both if seeds were added equally.
    for count in [n for n in had[:-1] if n > max(begun, default=0)] + had[-1:]:
      asked = dataclasses.replace(sweep.config, seeds=count)
      train(asked, table, str(sweep.folder), before=done[0])
    done.append(sweep.folder)
  whole = merge.merge(done, str(place / 'report'))
  about.write(whole, config, table, argv)
  return writing.write(whole, goal=wanted)


def advised(report: Path, wanted: Goal) -> str:
  """The advice, and where the report is."""
  return f'{advise.text(str(report.parent), wanted)}\n\nReport: {report}'


def _with_seeds(place: Path, classes: int, count: int) -> Results:
  """A work directory's results for its first `count` seeds."""
  config = store.read_config(place) | dict(seeds=count)
  seeds = range(config['first_seed'], config['first_seed'] + count)
  rows = [r for r in store.read_results(place) if r['seed'] in seeds]
  known = told.read(store.read_timings(place))
  found, = reading.of_rows(rows, config, classes, (), known)
  return found


def _parsed(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
  """Our arguments, and the fields of a config.

  Raises:
    UserError: for what is neither, and for several files.
  """
  parser = given.Parser(
      prog='vfljax recommend', description=__doc__,
      formatter_class=given.AsWritten,
  )
  parser.add_argument('file', help='a CSV or Parquet file with a header')
  parser.add_argument(
      'more', nargs='*', help='files of the passive parties, if each has one'
  )
  parser.add_argument(
      '--ids', default='', help='the column by which such files are joined'
  )
  parser.add_argument('--label', default='', help='the label column')
  parser.add_argument(
      '--named', default='', help="columns of the parties: 'age,sex;*'"
  )
  advise.add_goal(parser)
  parser.add_argument('--workdir', default='', help='where results go')
  parser.add_argument(
      '--devices', default='', help='into how many devices a CPU is divided'
  )
  parser.add_argument(
      '--cache', help='the folder that keeps compiled programs'
  )
  parser.add_argument(
      '--tensorboard', action='store_true',
      help='write event files of each epoch, too',
  )
  asked, fields = parser.with_config(argv)
  every = [asked.file, *asked.more] if asked.more else files.parted(asked.file)
  if asked.more and (odd := [one for one in every if BETWEEN in one]):
    raise UserError(
        f'{parser.prog}: {BETWEEN!r} parts names of files, and {shown(odd[0])} '
        'has one: rename it.'
    )
  if asked.ids and len(every) < 2:
    raise UserError(
        f'{parser.prog}: --ids joins several files; got {shown(asked.file)}.\n'
        'Leave it out. --config.data.options=drop=... leaves out a column.'
    )
  if every[1:] and not (asked.ids or any('ids=' in one for one in fields)):
    raise UserError(
        f'{parser.prog}: type --ids=<column>: by which ids are rows of '
        f'{shown(every[0])} and {shown(every[1])} the same person?'
    )
  asked.file = BETWEEN.join([asked.file, *asked.more])
  return asked, fields


@contextlib.contextmanager
def own_words() -> Iterator[None]:
  """A context where messages name our arguments, not the config's fields."""
  try:
    yield
  except UserError as error:
    text = str(error)
    for theirs, ours in _WORDS.items():
      text = text.replace(theirs, ours)
    raise UserError(text) from error


def default_workdir(file: str) -> str:
  """Where results of a file, or of a program's samples, go by default."""
  name = re.sub(r'[^\w.+]+', '-', Path(files.bare(file)).stem)
  return str(Path('out', 'recommend', name))
