"""Functions of one training as calls of programs that play several."""
from collections.abc import Callable
from functools import partial
import re
from typing import Any

import jax
import numpy as np

from vfljax import sweep
from vfljax.nets import pretrained
from vfljax.runner.compiled import families
from vfljax.runner.compiled.bundled import bundled
from vfljax.runner.compiled.cutting import split
from vfljax.runner.compiled.families import Family
from vfljax.runner.experiment.jobs import Job


def shapes(runs: Any) -> Any:
  """Of trainings that are spread over the devices."""
  spread, _ = sweep.shardings()
  return jax.tree.map(
      lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=spread), runs
  )


def called(name: str, fn: Callable) -> Callable:
  """`fn` by a name of its own, so that JAX's cache takes it for no other."""

  def renamed(*arguments):
    return fn(*arguments)

  renamed.__name__ = re.sub(r'\W', '_', name)
  return renamed


def cut(trainings: Any, cells: int, samples: Any) -> list[Any]:
  """On the devices, so many trainings an entry."""
  here = jax.tree.map(np.asarray, trainings)
  return [sweep.place(part, samples)[0] for part in split(here, cells)]


def also(job: Job, shared: Any) -> Any:
  """What trainings share, with what their networks begin with.

  Functions of `over` and `beginning` are given it; without pretrained networks
  it is `shared` alone.
  """
  _, copied = sweep.shardings()
  weights = pretrained.placed(job.setting.vfl.bottoms, copied)
  return (shared, weights) if weights else shared


def over(fn: Callable, job: Job, *static: Any) -> Callable:
  """A function of `compiled.cell`, of many trainings and `also`."""
  return sweep.over_cells(_taking(partial(fn, job, *static), job))


def going_on(fn: Callable, job: Job, *static: Any) -> Callable:
  """The same of one whose cells hold runs: of (runs, cells, `also`)."""

  def moved(run, cell, shared):
    return fn(job, *static, cell | dict(runs=run), shared)

  return sweep.over_runs(_taking(moved, job))


def beginning(fn: Callable, job: Job, *static: Any) -> Callable:
  """The same of one that begins networks: compiled sooner, the same numbers."""
  return sweep.over_cells(_taking(bundled(partial(fn, job, *static)), job))


def _taking(fn: Callable, job: Job) -> Callable:
  begun = pretrained.found(job.setting.vfl.bottoms)
  return pretrained.taking(fn) if begun else fn


def place(family: Family, job: Job):
  """The job's pieces and samples, on the devices."""
  whole, samples = families.cells_of(job, family), job.setting.samples
  pieces = []
  for part in split(whole, family.cells or len(whole['seed'])):
    piece, samples = sweep.place(part, samples)
    pieces.append(piece)
  return pieces, samples


def at_the_end(
    family: Family, cells: Any, runs: Any, begin: Callable[[], Any]
) -> dict[str, Any]:
  """What the programs of the end read.

  If rounds are replayed, that is prepared labels and the federations as they
  began, so that no program of the end begins networks. Without prepared labels
  trainings that only began differently end alike.

  Args:
    begin: Returns the runs before their first epoch.
  """
  if not family.job.setting.replayed:
    return dict(cells=cells, runs=runs._replace(labels=()))
  return dict(cells=cells, runs=runs, began=begin().state)
