"""Turns a job's arrays into the rows, curves and timings that are saved."""
import sys
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
  """The units of a finished job, one for each strength.

  Args:
    job: The job.
    found: What `cell.finish` measured, leaves [cells].
    history: The history of all epochs, leaves [cells, epochs].
    made: The job's programs: how long they took, and what crosses in a round.
    run_seconds: How long the whole job ran.
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

  '<metric>' is reduced as `attack.when` says, '<metric>_max' is the largest
  value and '<metric>_last' that of the last epoch.

  If a metric has no number in an epoch, but the training went on, the epoch is
  left out: all rounds may lack samples of a rare class, except the one that the
  attacker knows.
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
  """Reduces a curve [cells, epochs] to one number for each cell, [cells].

  The result is NaN if a measured value is (the training diverged), or if
  nothing was measured.

  Args:
    curve: The values.
    measured: [cells, epochs], False for values to leave out.
    when: 'last', 'max' or 'mean' of the measured values.
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
  """All curves over the epochs, under the names that the report knows.

  Args:
    history: The history, leaves [cells, epochs].
    here: The cells to take.

  Returns:
    Name -> array [cells, epochs], NaN in epochs that were not measured.
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


def peak_memory() -> int | None:
  """Peak memory in bytes: the device's if it reports it, else the process's.

  `None` if neither is known, as on Windows.
  """
  stats = jax.local_devices()[0].memory_stats() or {}
  if 'peak_bytes_in_use' in stats:
    return int(stats['peak_bytes_in_use'])
  try:
    import resource
  except ImportError:  # Windows has none.
    return None
  unit = 1 if sys.platform == 'darwin' else 1024  # A Mac counts in bytes.
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
