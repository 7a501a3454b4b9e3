"""The command line as one of several processes of a small experiment.

They are forks of a server that has everything imported, which takes longer than
what they do; JAX starts in the fork. See tests/faults/child.py.
"""
import multiprocessing
import os
from pathlib import Path
import signal
import sys
import tempfile

import jax

import launch
from tests.compiling import QUICK_FLAGS
from vfljax.runner import disk, meeting, stopping

ROOT = Path(__file__).parents[1]
# Four jobs of one program, two a process.
TINY = (
    '--config=experiments/quickstart.py', '--config.seeds=4',
    '--config.seeds_per_chunk=1', '--config.train.epochs=2',
    '--config.defenses=none', '--config.attacks=norm_scoring',
    '--config.model.algorithm=vlr', '--config.alone=False', '--devices=1',
)
_CONTEXT = multiprocessing.get_context('forkserver')
# What the server imports, its forks have.
_CONTEXT.set_forkserver_preload([
    'matplotlib.figure', 'orbax.checkpoint', 'sklearn.datasets',
    'vfljax.report.writing', 'vfljax.runner.arguments', 'vfljax.runner.listing',
    'tests.faults.child', 'tests.processes',
])


class Started:
  """A command line in a process of its own; as `subprocess.Popen`.

  Args:
    arguments: Of the command.
    fault: What `disk` is to have go wrong, see there.
    seconds: Other times than those of the library, by (module, name).
  """

  def __init__(self, arguments, fault='', seconds=()):
    with tempfile.NamedTemporaryFile('w', delete=False) as file:
      self._log = Path(file.name)
    # What one process compiled the next one finds.
    cache = f"--cache={jax.config.jax_compilation_cache_dir or ''}"
    self._process = _CONTEXT.Process(target=_main, args=(
        [*arguments, cache], fault, str(self._log), dict(seconds)
    ))
    self._process.start()

  def poll(self):
    return self._process.exitcode

  @property
  def returncode(self):
    return self._process.exitcode

  def send_signal(self, number):
    if self._process.is_alive():
      os.kill(self._process.pid, number)

  def communicate(self, timeout):
    """(what it said, None): after its end."""
    self._process.join(timeout)
    assert self._process.exitcode is not None, 'it hangs'
    said = self._log.read_text()
    self._log.unlink()
    return said, None


def start(workdir, *more, fault='', patience=300):
  """One of the processes that share a work directory."""
  arguments = [*TINY, f'--workdir={workdir}', *more]
  return Started(arguments, fault, {
      (meeting.__name__, 'PATIENCE'): patience,
      (meeting.__name__, '_LOOK'): 0.05,
  })


def _main(arguments, fault, log, seconds):
  # A program listens from its first milliseconds on; a fork, once it is one.
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stopping.leave())
  descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
  os.dup2(descriptor, 1)
  os.dup2(descriptor, 2)
  os.chdir(ROOT)
  # All runs that are compared alike: see conftest.
  if 'JAX_DISABLE_MOST_OPTIMIZATIONS' not in os.environ:
    jax.config.update('jax_disable_most_optimizations', True)
  os.environ.setdefault('XLA_FLAGS', QUICK_FLAGS)
  disk._FAULT = fault.rsplit(':', 2)
  for (module, name), value in seconds.items():
    setattr(sys.modules[module], name, value)
  sys.argv = ['launch.py', *arguments]
  code = launch.main()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)


def names(place):
  return sorted(p.name for p in (place / 'parts').glob('*.json'))
