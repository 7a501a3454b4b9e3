"""How many epochs run in a call; between calls progress is shown and saved."""
import math

import jax

from vfljax import train
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.experiment.plans import rounds_an_epoch

_CALLS, _FEW_CALLS = 10, 3  # Calls in a training, and in a short one.
SHORT = 1e9  # Operations of a training below which it counts as short ...
_OF_ALL = 2e10  # ... if those of all its seeds are also below this.
_A_ROUND = 1e6  # Fixed cost of a round, in operations.


def stride_of(job: Job, runs: train.Run) -> int:
  """Epochs in a call: a tenth of all, or at least a third in a short training.

  Each call draws and scales its samples again, which is much of a short
  training's time, and ten progress lines are of no use there.

  Args:
    job: The job.
    runs: Shapes of its trainings, leaves [cells, ...].
  """
  epochs, one = job.setting.config.train.epochs, _operations(job, runs)
  if one >= SHORT or one * len(job.seeds) >= _OF_ALL:
    return -(-epochs // _CALLS)
  least = -(-epochs // _FEW_CALLS)
  # A divisor, so that no epoch has to test whether it is past the end.
  return next(n for n in range(least, epochs + 1) if epochs % n == 0)


def _operations(job: Job, runs: train.Run) -> float:
  """About how many operations a training takes; infinite except for tables."""
  setting, epochs = job.setting, job.setting.config.train.epochs
  if any(x is not None and x.ndim > 2 for x in setting.samples.features):
    return math.inf
  weights = sum(
      math.prod(s.shape[1:]) for party in runs.state.parties
      for s in jax.tree.leaves(party.params | dict(defense=()))
  )  # Without a defense's, which depend on who shares the program.
  rounds = epochs * rounds_an_epoch(setting)
  return 6 * weights * setting.sizes.train * epochs + _A_ROUND * rounds
