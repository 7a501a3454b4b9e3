"""From a job's arrays to what is kept of it: rows, curves and timings."""
import resource
from typing import Any

import jax
import numpy as np

from vfljax.leakage import AttackName
from vfljax.runner.compiled.programs import Compiled
from vfljax.runner.experiment import told
from vfljax.runner.experiment.jobs import ALONE, Job
from vfljax.runner.experiment.plans import rounds_an_epoch
from vfljax.runner.experiment.setting import Setting
from vfljax.runner.machine import device
from vfljax.runner.workdir import recording
from vfljax.runner.workdir.parts import Finished


def finished(
    job: Job, found: Any, history: Any, made: Compiled, run_seconds: float
) -> list[Finished]:
  """What is to be saved of a finished job, one unit per strength.

  Args:
    found: What `cell.finish` measured, leaves [cells].
    history: Of all epochs, leaves [cells, epochs].
    made: Its programs, for how long they took and what crosses in a round.
    run_seconds: Of the whole job.
  """
  setting, share = job.setting, len(job.strengths)
  found, history = jax.device_get((found, history))
  metrics = in_training(setting, history) | found
  count = share * len(job.seeds)
  rounds = setting.config.train.epochs * rounds_an_epoch(setting) * count
  timing = dict(
      compile_seconds=round(made.seconds / share, 3),
      run_seconds=round(run_seconds / share, 3),
      rounds_per_second=round(rounds / run_seconds, 1),
      seeds=len(job.seeds), classes=setting.classes, device=device.name(),
      peak_memory_bytes=peak_memory(),
  ) | {recording.MADE: recording.made()}
  if made.crossing:
    timing |= dict(crossing=made.crossing)
  if outsiders := told.of(setting):
    timing |= {told.FIELD: outsiders}

  def unit(i: int, name: str) -> Finished:
    first = i * len(job.seeds)
    rows = [
        row
        for j, seed in enumerate(job.seeds)
        for row in _rows(job, i, seed, metrics, first + j)
    ]
    here = slice(first, first + len(job.seeds))
    return Finished(name, rows, timing, curves(history, here))

  return [unit(i, name) for i, name in enumerate(job.units)]


def _rows(job: Job, i: int, seed: int, metrics, cell: int) -> list[dict]:
  config, alone = job.setting.config, job.entry.name == ALONE
  base = dict(
      experiment=config.experiment, dataset=config.data.name,
      algorithm=config.model.algorithm,
      defense='none' if alone else job.labels[i], strength=job.strengths[i],
      seed=seed,
  )
  return [
      base | dict(
          attack=attack or None,
          metric=f'{ALONE}_{metric}' if alone else metric,
          split='train' if _is_in_training(job.setting, attack) else 'test',
          value=float(values[cell]),
      )
      for attack, found in metrics.items()
      for metric, values in sorted(found.items())
  ]


def _is_in_training(setting: Setting, attack: str) -> bool:
  named = AttackName.parse(attack).named
  return named in {**setting.in_training, **setting.replayed}


def in_training(setting: Setting, history) -> dict[str, dict[str, np.ndarray]]:
  """Every attack's metrics over the measured epochs, reduced to [cells].

  As the configuration's `attack.when` says; beside it the largest as
  '<metric>_max' and that of the last epoch as '<metric>_last'.

  Epochs without a number in a training that went on are left out: of a rare
  class there may be no sample in a round but the one that the attacker knows.
  """
  measured, when = history['measured'], setting.config.attack.when
  went_on = np.isfinite(history['loss'])
  found: dict[str, dict[str, np.ndarray]] = {}
  for attack, by_metric in _watched(history).items():
    found[attack] = {}
    for metric, curve in by_metric.items():
      there = measured & ~(went_on & np.isnan(curve))
      found[attack][metric] = reduce(curve, there, when)
      for always in ('max', 'last'):
        found[attack][f'{metric}_{always}'] = reduce(curve, there, always)
  return found


def reduce(curve: np.ndarray, measured: np.ndarray, when: str) -> np.ndarray:
  """A curve [cells, epochs] to one number a cell, [cells].

  What is not a number stays so: a training that diverged has no leakage. Nor
  has a cell of which nothing was measured.

  Args:
    measured: [cells, epochs], False where there is nothing in the curve.
    when: 'last', 'max' or 'mean' of what was measured.
  """
  if when == 'last':
    last = np.where(measured, np.arange(curve.shape[1]), -1).max(1)
    found = curve[np.arange(len(curve)), last]
  elif when == 'max':
    found = np.where(measured, curve, -np.inf).max(1)
  else:
    count = np.maximum(measured.sum(1), 1)
    found = np.where(measured, curve, 0).sum(1) / count
  return np.where(measured.any(1), found, np.nan)


def curves(history: Any, here: slice) -> dict[str, np.ndarray]:
  """Everything measured over the epochs, by the names the report knows.

  Args:
    here: The cells that are wanted.

  Returns:
    Arrays [cells, epochs]; NaN where nothing was measured.
  """
  measured: Any = history['measured']

  def seen(x: Any) -> Any:
    return np.where(measured, x, np.nan)[here]

  by_name = {'train_loss': history['loss'][here]}
  by_name |= {k: seen(v) for k, v in history['validation'].items()}
  for attack, found in _watched(history).items():
    by_name |= {f'{attack}/{k}': seen(v) for k, v in found.items()}
  return by_name


def _watched(history) -> dict:
  return history['watch'] or {}


def peak_memory() -> int:
  """Bytes: of the accelerator where it tells, else of this process."""
  stats = jax.local_devices()[0].memory_stats() or {}
  usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
  return int(stats.get('peak_bytes_in_use', usage))
