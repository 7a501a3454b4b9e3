"""The command line in processes to be killed by dozens.

Compiled programs are found in a cache, so that a run takes two seconds.
"""
import time

from tests.processes import Started
from vfljax.runner import run
from vfljax.runner.compiled import strides

# Two jobs of one program: half-done work directories at half the cost.
TINY = (
    '--config=experiments/quickstart.py', '--config.seeds=2',
    '--config.seeds_per_chunk=1', '--config.train.epochs=10',
    '--config.defenses=none', '--config.attacks=norm_scoring',
    '--config.model.algorithm=vlr', '--config.alone=False', '--devices=1',
)


class Child(Started):
  """A run in a process of its own, with what it said and how it ended.

  Args:
    place: The work directory.
    fault: What `disk` is to have go wrong, see there.
    more: Further arguments.
    seconds: Between two checkpoints.
  """

  def __init__(self, place, fault='', more=(), seconds=0.0):
    # As of a long training: ten calls, nine moments to save at.
    constants = {
        (run.__name__, 'SAVE_SECONDS'): seconds, (strides.__name__, 'SHORT'): 0,
    }
    super().__init__(
        [*TINY, f'--workdir={place}', *more], fault, constants, f'{place}.log',
        quick=False,
    )

  def said(self):
    return self.log.read_text()

  def wait_for(self, words):
    """Until it has said that, or is over."""
    while words not in self.said() and self.poll() is None:
      time.sleep(0.005)

  def ended(self):
    """(exit code, what it said): after its end."""
    said, _ = self.communicate(300)
    assert 'Traceback' not in said, said
    return self.returncode, said
