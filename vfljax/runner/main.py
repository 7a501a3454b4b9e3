"""Runs an experiment of vfljax and reports on it.

  vfljax --config=experiments/quickstart.py
  vfljax --config=experiments/quickstart.py \\
      --config.data.name=csv --config.data.path=my.csv \\
      --config.data.label=target --config.seeds=5 --workdir=out/mine
  vfljax --list [experiments|data|models|defenses|attacks|audit]
  vfljax recommend my.csv --label=target --budget=2
  vfljax advise|compare|export|merge out/mine ...
  vfljax grid my.py other.py --over data.parties=2,4 --workdir=out/grid
  vfljax from-vflair config.json
  vfljax --version

The same command continues a run that was stopped: by ctrl-C or SIGTERM, after
which it saves and leaves within ten seconds with code 130, or in any other way.
With a larger --config.seeds it adds the new seeds. On several machines it is
the same command with --num_processes and another --process_id on each.
`python -m vfljax` is the same as `vfljax`, and so is, in a clone,
`python launch.py`.
"""
import contextlib
import errno
import gc
from importlib.util import find_spec
import io
import os
import sys
from typing import TYPE_CHECKING

from vfljax.runner.errors import UserError, denied
from vfljax.runner.machine import notebook, stopping
from vfljax.runner.machine.roomy import roomy

if TYPE_CHECKING:
  from vfljax.runner.cli.arguments import Arguments

# What the extra `run` installs, by the names in imports.
PACKAGES = (
    'PIL', 'absl', 'filelock', 'matplotlib', 'ml_collections', 'orbax',
    'pandas', 'pyarrow', 'rich', 'scipy', 'sklearn',
)
_TRAINING = 'grid', 'recommend'  # Commands that run experiments.


def main(argv: list[str] | None = None) -> int:
  """Returns the exit code: 0, 2 for what the user can mend, 130 if stopped.

  Args:
    argv: The command line, the program first, if another program calls this: a
      second signal then raises a KeyboardInterrupt here, which is caught. By
      default this process's: then SIGINT and SIGTERM end the process if there
      is nothing to save, and a second one always does. (Not in IPython, as of
      `%run`: the session would end, too.)
  """
  # Configs import their neighbours; a console script has no folder on its path.
  if os.getcwd() not in sys.path:
    sys.path.insert(0, os.getcwd())
  if argv is not None or notebook.is_shell():
    argv = list(sys.argv if argv is None else argv)
    first = argv[:1] and argv[0].startswith('-')  # It is no program's name.
    return _main(['vfljax', *argv] if first else argv, None)
  _open_what_is_closed()
  # A pipe or file may have an encoding without our tables' lines or '±', as
  # cp1252 and latin-1 have: a '?' is better than a traceback after hours.
  if isinstance(sys.stdout, io.TextIOWrapper):
    sys.stdout.reconfigure(errors='replace')
  # Tracing makes very many long-lived objects, which Python's garbage collector
  # would scan again and again: a tenth of its time.
  gc.set_threshold(50_000, 20, 20)
  code = stopping.heeding(lambda stop: _main(list(sys.argv), stop))
  if code:  # Python would wait for threads whose compiled programs none uses.
    stopping.end(code)
  gc.freeze()  # At exit the collector need not scan all objects once more.
  return code


def _open_what_is_closed() -> None:
  """Lets this process print to nowhere where its output was closed (`>&-`).

  Python then has None in place of a stream. What is for stderr would be printed
  to stdout, and a file that is opened later would get the stream's number, into
  which libraries write.
  """
  for number in range(3):
    try:
      os.fstat(number)
    except OSError:
      os.open(os.devnull, os.O_RDWR)  # It gets the lowest number that is free.
  for name in ('stdout', 'stderr'):
    if getattr(sys, name) is None:
      setattr(sys, name, open(os.devnull, 'w', encoding='utf-8'))


@roomy
def _main(argv: list[str], stop: stopping.Stop | None) -> int:
  try:
    code = _asked(argv, stop)
    sys.stdout.flush()
    return code
  except UserError as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  except KeyboardInterrupt:
    print(stopping.last_words(), file=sys.stderr)
    return stopping.CODE
  except OSError as error:
    if isinstance(error, PermissionError) and error.filename:
      print(f'error: {denied(error)}', file=sys.stderr)
      return 2
    return _unread(error, argv, stop)


def _asked(argv: list[str], stop: stopping.Stop | None) -> int:
  if '--version' in argv[1:]:
    from vfljax import __version__
    print(f'vfljax {__version__}')
    return 0
  _check_packages()
  from vfljax.commands import dispatch
  if command := dispatch.meant(argv):
    return dispatch.run(command, stop)
  from vfljax.runner.cli import arguments
  given = arguments.parse(argv)
  if given.help:
    print(__doc__, given.help, sep='\n')
    return 0
  if given.list:
    from vfljax.runner.cli import listing
    print(listing.text(given.list))
    return 0
  return _run(given, argv, stop)


def _unread(error: OSError, argv: list[str], stop: stopping.Stop | None) -> int:
  """The exit code if standard output cannot be written to any more.

  A reader that closes a list's pipe has read enough, as `| head`; a training is
  stopped, and the exit code is not 0.

  Raises:
    OSError: `error`, if it is another one.
  """
  full = error.errno == errno.ENOSPC and not error.filename
  # Windows calls a pipe without a reader an invalid argument.
  odd = error.errno == errno.EINVAL and not error.filename
  gone = isinstance(error, BrokenPipeError) or odd and sys.platform == 'win32'
  if not full and not gone:
    raise error
  os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
  place = stop.place if stop is not None else ''
  if full:
    print('error: No room for what is printed.', file=sys.stderr)
    return 2
  if not place and not set(argv[1:2]) & set(_TRAINING):
    return 0
  print(f'Nobody reads this. {stopping.last_words(place)}', file=sys.stderr)
  return stopping.CODE


def _check_packages() -> None:
  """Raises UserError without the extra `run`, as every install has the script.
  """
  if not all(map(find_spec, PACKAGES)):
    raise UserError(
        "the command line needs more packages: pip install 'vfljax[run]'"
    )


def _run(
    given: 'Arguments', argv: list[str], stop: stopping.Stop | None
) -> int:
  from vfljax import running
  workdir = running.expanded(given.workdir)
  if stop is not None:
    stop.place = workdir
  # JAX fixes its devices with the first array, so they are set up before.
  from vfljax.runner.machine import device
  device.set_up(given.devices, given.cache)
  from vfljax.report import ending
  from vfljax.runner.checking import lowering
  from vfljax.runner.cli import arguments, aside, forecast
  from vfljax.runner.workdir import epoch_events
  from vfljax.runner import run
  from vfljax.runner.compiled import kept
  from vfljax.runner.workdir import overwriting, recording
  if given.record:
    overwriting.check(given.record, argv, given.config.seeds)
  if given.tensorboard:
    epoch_events.check()
  copies = given.cache and f'{given.cache}/data'
  table = arguments.load_data(given.config.data, copies)
  config, lower = lowering.lowered(given.config, table, argv)
  given = given._replace(config=config)
  print(*lower, sep='\n', end='\n' if lower else '')
  print(forecast.text(given.config, table), flush=True)
  try:
    with kept.within(given.cache), contextlib.ExitStack() as beside:
      if stop is not None and given.share.first:
        beside.enter_context(aside.waiting(_prepare_report))
      work = run.run(
          given.config, table, workdir, stop, share=given.share,
          tensorboard=given.tensorboard,
      )
  except (run.Interrupted, KeyboardInterrupt):
    print(stopping.last_words(workdir), file=sys.stderr)
    return stopping.CODE
  if not given.share.first:
    what = 'the report and the record' if given.record else 'the report'
    print(f'The share of {given.share} is done; process 0 writes {what}.')
    return 0
  running.reported(work.path, given.config, table, argv, given.goal)
  if given.record:
    recording.write(given.record, work.path, argv)
    print(f'Record: {given.record}')
  with contextlib.suppress(BrokenPipeError):  # All results are saved by now.
    print('\n' + ending.text(work.path, given.goal), flush=True)
  return 0


def _prepare_report() -> None:
  """Imports the report's modules, with Matplotlib and SciPy: half a second."""
  with contextlib.suppress(Exception):  # The report itself will say why.
    from scipy import special
    from vfljax.report import writing
    del special, writing


if __name__ == '__main__':
  sys.exit(main())
