"""The command line in processes that start in no time.

They are forks of a server that has everything imported, which takes longer than
what they do; JAX starts in the fork.
"""
import contextlib
import gc
import importlib
import multiprocessing
import os
from pathlib import Path
import signal
import sys
import tempfile

import jax

import launch
from tests.compiling import QUICK_FLAGS
from vfljax.runner.machine import disk, stopping
from vfljax.runner.workdir import meeting

ROOT = Path(__file__).parents[1]
# Four jobs of one program, two a process.
TINY = (
    '--config=experiments/quickstart.py', '--config.seeds=4',
    '--config.seeds_per_chunk=1', '--config.train.epochs=2',
    '--config.defenses=none', '--config.attacks=norm_scoring',
    '--config.model.algorithm=vlr', '--config.alone=False', '--devices=1',
    '--config.train.optimizer=sgd',
)
_CONTEXT = multiprocessing.get_context('forkserver')
# What the server imports, its forks have.
_CONTEXT.set_forkserver_preload([
    'matplotlib.figure', 'orbax.checkpoint', 'sklearn.datasets',
    'vfljax.report.writing', 'vfljax.runner.cli.arguments',
    'vfljax.runner.cli.listing', 'tests.processes', 'vfljax.runner.run',
])


def forked(target, *arguments):
  """A fork that calls this function of a module; to be joined."""
  process = _CONTEXT.Process(target=target, args=arguments)
  process.start()
  return process


class Started:
  """A command line in a process of its own; as `subprocess.Popen`.

  Args:
    arguments: Of the command.
    fault: What `disk` is to have go wrong, see there.
    seconds: Other times than those of the library, by (module, name).
    log: The file that has what it says; '' for one that is deleted at the end.
    quick: Compiles as conftest has it, for runs that are compared with its.
  """

  def __init__(self, arguments, fault='', seconds=(), log='', quick=True):
    self._passing = not log
    if not log:
      with tempfile.NamedTemporaryFile(delete=False) as file:
        log = file.name
    self.log = Path(log)
    self.log.write_text('')
    self.process = forked(
        _main, list(arguments), fault, str(log), dict(seconds), quick
    )

  def poll(self):
    return self.process.exitcode

  @property
  def returncode(self):
    return self.process.exitcode

  def send_signal(self, number):
    if self.process.is_alive():
      with contextlib.suppress(ProcessLookupError):  # It has ended since.
        os.kill(self.process.pid, number)

  def communicate(self, timeout):
    """(what it said, None): after its end."""
    self.process.join(timeout)
    assert self.process.exitcode is not None, 'it hangs'
    said = self.log.read_text()
    if self._passing:
      self.log.unlink()
    return said, None


def kept():
  """The argument for which one process finds what another one compiled."""
  return f"--cache={jax.config.jax_compilation_cache_dir or ''}"


def start(workdir, *more, fault='', patience=300):
  """One of the processes that share a work directory."""
  arguments = [*TINY, f'--workdir={workdir}', *more, kept()]
  return Started(arguments, fault, {
      (meeting.__name__, 'PATIENCE'): patience,
      (meeting.__name__, '_LOOK'): 0.05,
  })


def _main(arguments, fault, log, seconds, quick):
  # A program listens from its first milliseconds on; a fork, once it is one.
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stopping.leave())
  descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
  os.dup2(descriptor, 1)
  os.dup2(descriptor, 2)
  os.chdir(ROOT)
  os.write(1, b'begun\n')
  # As in conftest.
  os.fsync = lambda descriptor: None
  gc.set_threshold(1_000_000, 10, 10)
  if quick and 'JAX_DISABLE_MOST_OPTIMIZATIONS' not in os.environ:
    jax.config.update('jax_disable_most_optimizations', True)
    os.environ.setdefault('XLA_FLAGS', QUICK_FLAGS)
  disk._FAULT = fault.rsplit(':', 2)
  for (module, name), value in seconds.items():
    setattr(importlib.import_module(module), name, value)
  # Given to `main`, they would not end a process of others.
  sys.argv = ['launch.py', *arguments]
  code = launch.main()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)


def names(place):
  return sorted(p.name for p in (place / 'parts').glob('*.json'))
