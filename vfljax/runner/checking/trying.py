"""Traces trainings and attacks before anything is compiled."""
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from vfljax.data.table import listing
from vfljax.leakage import AttackName
from vfljax.runner.compiled import cell
from vfljax.runner.config import outside
from vfljax.runner.errors import UserError, brief
from vfljax.runner.experiment import attackers
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.experiment.plans import main_metric
from vfljax.runner.experiment.setting import Setting

_STAGES = '', '_start', '_end'  # What ends a metric of rounds played again.


def attacks(job: Job, runs: Any) -> None:
  """Traces the attacks that have options, on rounds and after training.

  Also those from outside of vfljax, each by itself. Others are not traced, as
  large networks take seconds.

  Args:
    job: Whose attacks they are.
    runs: Shapes of the job's run at its start, which attacks do not change.

  Raises:
    UserError, ValueError: for options with which an attack fails.
  """
  # A streamed job is traced as one in memory, for attacks from outside only.
  names = set() if job.setting.stream else _with_options(job.setting)
  epochs = job.setting.config.train.epochs
  ours = [name for name in names if outside.is_ours(attackers.recipe(name))]
  try:
    if ours:
      traced(job, runs, ours, epochs)
  except (UserError, ValueError):
    raise
  except Exception as error:
    said = brief(str(error)).partition('\n')[0]
    raise UserError(
        'The attacks cannot have these options: '
        f'{type(error).__name__}: {said}'
    ) from None
  for name in _from_outside(job.setting):
    with outside.explained(name, True):
      found = traced(job, runs, [name], epochs)
      _check_counted(job.setting, name, found.get(name, set()))


def traced(
    job: Job, runs: Any, names: Sequence[str], epochs: int
) -> dict[str, set[str]]:
  """Traces a training and its end: {attack: names of its metrics}.

  If several parties attack, those of the first one.
  """
  some = lambda given: {k: v for k, v in given.items() if k in names}
  setting = job.setting._replace(
      in_training=some(job.setting.in_training),
      after_training=some(job.setting.after_training),
      replayed=some(job.setting.replayed),
  )
  left = {*job.setting.after_training} - {*setting.after_training}
  job = job._replace(setting=setting)
  if any(attackers.recipe(name).optimizer for name in left):
    # Without that attacker its party trains as the others do.
    runs = jax.eval_shape(
        partial(cell.start, job), shapes(job), setting.samples
    )
  both, found = dict(cells=shapes(job), runs=runs), {}
  if setting.in_training or not names:
    _, history = jax.eval_shape(
        partial(cell.advance, job, epochs), both, (setting.samples, np.int32(0))
    )
    found = dict(history['watch'] or {})
  found |= jax.eval_shape(partial(cell.finish, job), both, setting.samples)
  return {name: {*metrics} for name, metrics in found.items()}


def _from_outside(setting: Setting) -> list[str]:
  names = (
      *setting.in_training, *setting.replayed, *setting.after_training,
      *filter(None, [setting.backdoor]),
  )
  return [n for n in names if not outside.is_ours(attackers.recipe(n))]


def _check_counted(setting: Setting, name: str, found: set[str]) -> None:
  """Raises ValueError if an attack's score uses none of its metrics.

  The report could not count the attack then.
  """
  attack = {
      **setting.in_training, **setting.replayed, **setting.after_training
  }.get(name)
  known = attackers.recipe(name).known(attack)
  wanted = [
      metric.format(utility=main_metric(setting))
      for metric in known.score.metrics
  ]
  seen = {metric.removesuffix(end) for metric in found for end in _STAGES}
  if not (known.is_baseline or seen & {*wanted}):
    raise ValueError(
        f'{name} measures {listing(sorted(found))}, and its score looks at '
        f'{listing(dict.fromkeys(wanted))}: nobody could count '
        'it.\nGive its recipe score=leakage.Score(metrics, chance) with one '
        'that it measures.'
    )


def _with_options(setting: Setting) -> set[str]:
  """Attacks with options that are not defaults; of equal ones the first."""
  found: dict[Any, str] = {}
  for name in (
      *setting.in_training, *setting.replayed, *setting.after_training
  ):
    _, own, recipe = attackers.attacker(setting.config, name)
    if own != recipe.options():
      found.setdefault((AttackName.parse(name).base, own), name)
  return set(found.values())


def shapes(job: Job) -> dict[str, Any]:
  """A cell's."""
  scalar = partial(jax.ShapeDtypeStruct, ())
  return dict(
      seed=scalar(np.int32), strength=scalar(np.float32),
      others={name: scalar(np.float32) for name in job.others},
  )
