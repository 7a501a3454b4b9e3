"""How many epochs a call plays; between calls progress is shown and saved."""
import math

import jax

from vfljax import train
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.experiment.plans import rounds_an_epoch

_CALLS, _FEW_CALLS = 10, 3  # that play a training, and a short one.
SHORT = 1e9  # Operations: of what is over in a tenth of a second ...
_OF_ALL = 2e10  # ... and that for all seeds in a few of them.
_A_ROUND = 1e6  # What a round takes besides, as operations.


def stride_of(job: Job, runs: train.Run) -> int:
  """Epochs a call: a tenth of all, or a third or more of a short training's.

  A call draws and scales its samples anew, of which much of a short training's
  time is made, and nobody sees ten calls of that.

  Args:
    runs: Shapes of trainings, leaves [cells, ...].
  """
  epochs, one = job.setting.config.train.epochs, _operations(job, runs)
  if one >= SHORT or one * len(job.seeds) >= _OF_ALL:
    return -(-epochs // _CALLS)
  least = -(-epochs // _FEW_CALLS)
  # That no call goes past the end, which every epoch would have to ask.
  return next(n for n in range(least, epochs + 1) if epochs % n == 0)


def _operations(job: Job, runs: train.Run) -> float:
  """About how many a training takes; of other than tables nobody can say."""
  setting, epochs = job.setting, job.setting.config.train.epochs
  if any(x is not None and x.ndim > 2 for x in setting.samples.features):
    return math.inf
  weights = sum(
      math.prod(s.shape[1:]) for party in runs.state.parties
      for s in jax.tree.leaves(party.params)
  )
  rounds = epochs * rounds_an_epoch(setting)
  return 6 * weights * setting.sizes.train * epochs + _A_ROUND * rounds
