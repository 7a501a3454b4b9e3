"""The command line in processes that start in no time: to be killed by dozens.

A server has everything imported and forks; JAX starts in the fork. Compiled
programs are found in a cache, so that a run takes two seconds.
"""
import multiprocessing
import os
from pathlib import Path
import signal
import sys
import time

import launch
from vfljax.runner import disk, run, stopping

ROOT = Path(__file__).parents[2]
# Two jobs of one program: half-done work directories at half the cost.
TINY = (
    '--config=experiments/quickstart.py', '--config.seeds=2',
    '--config.seeds_per_chunk=1', '--config.train.epochs=10',
    '--config.defenses=none', '--config.attacks=norm_scoring',
    '--config.model.algorithm=vlr', '--config.alone=False', '--devices=1',
)
_CONTEXT = multiprocessing.get_context('forkserver')
# What the server imports, its forks have.
_CONTEXT.set_forkserver_preload([
    'matplotlib.figure', 'orbax.checkpoint', 'sklearn.datasets',
    'vfljax.report.writing', 'vfljax.runner.arguments', 'vfljax.runner.listing',
    'tests.faults.child',
])


class Child:
  """A run in a process of its own, with what it said and how it ended.

  Args:
    place: The work directory.
    fault: What `disk` is to have go wrong, see there.
    more: Further arguments.
    seconds: Between two checkpoints.
  """

  def __init__(self, place, fault='', more=(), seconds=0.0):
    self.log = Path(f'{place}.log')
    self.log.write_text('')
    argv = ['launch.py', *TINY, f'--workdir={place}', *more]
    self.process = _CONTEXT.Process(
        target=_main, args=(argv, fault, str(self.log), seconds)
    )
    self.process.start()

  def said(self):
    return self.log.read_text()

  def wait_for(self, words):
    """Until it has said that, or is over."""
    while words not in self.said() and self.process.is_alive():
      time.sleep(0.005)

  def ended(self):
    """(exit code, what it said): after its end."""
    self.process.join(300)
    assert self.process.exitcode is not None, 'it hangs'
    assert 'Traceback' not in self.said(), self.said()
    return self.process.exitcode, self.said()

  def signal(self, number):
    if self.process.is_alive():
      os.kill(self.process.pid, number)


def _main(argv, fault, log, seconds):
  # A program listens from its first milliseconds on; a fork, once it is one.
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stopping.leave())
  descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
  os.dup2(descriptor, 1)
  os.dup2(descriptor, 2)
  os.chdir(ROOT)
  os.write(1, b'begun\n')
  disk._FAULT = fault.rsplit(':', 2)
  run.SAVE_SECONDS = seconds
  sys.argv = argv  # Given to `main`, it would not end a process of others.
  code = launch.main()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)
