"""Checks, runs and reports one experiment of a grid, on any machine."""
from collections.abc import Sequence
import traceback

from vfljax.commands import apart
from vfljax.data.table import Table
from vfljax.report import current, writing
from vfljax.runner import run
from vfljax.runner.checking import checks, lowering
from vfljax.runner.cli import arguments, asking
from vfljax.runner.compiled import kept
from vfljax.runner.config import blaming
from vfljax.runner.errors import UserError
from vfljax.runner.machine import device
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import about, identity


@apart.alone
def is_done(argv: Sequence[str]) -> bool:
  """Whether an experiment is finished; if not, checks that it can be run.

  Args:
    argv: Its command line.

  Raises:
    UserError: if it cannot be run.
  """
  given = arguments.parse(list(argv))
  device.set_up(given.devices, given.cache)
  given, table = _loaded(given, argv)
  asked = asking.of(given.config, table, given.workdir)
  identity.check(asked.place, asked.recorded, asked.complete)
  if asking.is_done(asked):
    about.write(asked.place, given.config, table, argv)
    if not current.is_current(asked.place):
      writing.write(asked.place)
    return True
  checks.make(given.config, table)
  return False


@apart.alone
def play(argv: Sequence[str], stop: Stop | None = None) -> str:
  """Runs the rest of an experiment and writes its report.

  Returns:
    Why it could not be finished, or ''.

  Raises:
    run.Interrupted: after `stop` and saving.
  """
  try:
    given = arguments.parse(list(argv))
    device.set_up(given.devices, given.cache)
    given, table = _loaded(given, argv)
    with kept.within(given.cache):
      work = run.run(given.config, table, given.workdir, stop)
    about.write(work.path, given.config, table, argv)
    writing.write(work.path)
  except UserError as error:
    return str(error)
  return ''


def tried(argv: Sequence[str], stop: Stop | None = None) -> str:
  """As `play`, but an error in the code of a config is a reason, too.

  The next experiment can go on, and no other process has to know the error's
  type.

  Raises:
    run.Interrupted: after `stop` and saving.
  """
  try:
    return play(argv, stop)
  except run.Interrupted:
    raise
  except (Exception, SystemExit) as error:  # Of code that ends its program.
    traceback.print_exc()
    return blaming.said(error)


def _loaded(
    given: arguments.Arguments, argv: Sequence[str]
) -> tuple[arguments.Arguments, Table]:
  """The arguments, with numbers that fit the samples, and the samples."""
  copies = given.cache and f'{given.cache}/data'
  table = arguments.load_data(given.config.data, copies)
  config, _ = lowering.lowered(given.config, table, argv)
  return given._replace(config=config), table
