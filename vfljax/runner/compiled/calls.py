"""Turns functions of one training into programs that run several at once."""
from collections.abc import Callable
from functools import partial
import re
from typing import Any

import jax
import numpy as np

from vfljax import sweep
from vfljax.draws import asking, bundled
from vfljax.nets import pretrained
from vfljax.runner.compiled import families
from vfljax.runner.compiled.cutting import split
from vfljax.runner.compiled.families import Family
from vfljax.runner.experiment.jobs import Job


def shapes(runs: Any) -> Any:
  """The shapes of trainings, with a sharding over all devices."""
  spread, _ = sweep.shardings()
  return jax.tree.map(
      lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=spread), runs
  )


def called(name: str, fn: Callable) -> Callable:
  """`fn` under a name of its own, to keep JAX's caches from mixing it up."""

  def renamed(*arguments):
    return fn(*arguments)

  renamed.__name__ = re.sub(r'\W', '_', name)
  return renamed


def cut(trainings: Any, cells: int, samples: Any) -> list[Any]:
  """Cuts trainings into pieces of `cells` each and puts them on the devices."""
  here = jax.tree.map(np.asarray, trainings)
  return [sweep.place(part, samples)[0] for part in split(here, cells)]


def also(job: Job, shared: Any) -> Any:
  """`shared` together with pretrained weights, for the functions below.

  Without pretrained networks it is `shared` alone.
  """
  _, copied = sweep.shardings()
  weights = pretrained.placed(job.setting.vfl.bottoms, copied)
  return (shared, weights) if weights else shared


def over(fn: Callable, job: Job, *static: Any) -> Callable:
  """A function of `compiled.cell` for many trainings: (cells, `also`)."""
  return sweep.over_cells(_taking(partial(fn, job, *static), job))


def going_on(fn: Callable, job: Job, *static: Any) -> Callable:
  """Like `over`, with the runs as an argument: (runs, cells, `also`)."""

  def moved(run, cell, shared):
    return fn(job, *static, cell | dict(runs=run), shared)

  return sweep.over_runs(_taking(moved, job))


def beginning(fn: Callable, job: Job, *static: Any) -> Callable:
  """Like `over`, for a function that initialises networks.

  `bundled` makes it compile faster, with the same numbers.
  """
  return sweep.over_cells(_taking(bundled(partial(fn, job, *static)), job))


def _taking(fn: Callable, job: Job) -> Callable:
  fn = asking(fn)
  begun = pretrained.found(job.setting.vfl.bottoms)
  return pretrained.taking(fn) if begun else fn


def place(family: Family, job: Job):
  """(pieces of the job's trainings, samples), on the devices."""
  whole, samples = families.cells_of(job, family), job.setting.samples
  pieces = []
  for part in split(whole, family.cells or len(whole['seed'])):
    piece, samples = sweep.place(part, samples)
    pieces.append(piece)
  return pieces, samples


def at_the_end(
    family: Family, cells: Any, runs: Any, begin: Callable[[], Any]
) -> dict[str, Any]:
  """The arguments of the programs that measure after training.

  If rounds are replayed, they include the prepared labels and the initial
  federations, so that these programs need not initialise networks. Otherwise
  prepared labels are left out, so that trainings that differ only in how they
  start can share these programs.

  Args:
    family: The programs' family.
    cells: The trainings' seeds and strengths.
    runs: The trainings after their last epoch.
    begin: Returns the runs before their first epoch.
  """
  if not family.job.setting.replayed:
    return dict(cells=cells, runs=runs._replace(labels=()))
  return dict(cells=cells, runs=runs, began=begin().state)
