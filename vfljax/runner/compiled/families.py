"""Jobs that share their programs.

Defenses that only act on gradients differ in a hundredth of what is compiled,
so one program has all of them and is told which. It plays as many trainings a
call as divide those of each of its jobs, so that nobody's are padded.

On accelerators a defense keeps its own program: there the trainings of a call
are batched, and each would compute what all defenses do. Nothing depends on
which other defenses there are: each is a branch of its own, also alone.

What attackers do with stolen weights is a program of its own on CPUs, which all
families share whose weights have one structure (`Family.attack_jobs`).
"""
from collections.abc import Callable, Sequence
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import switching
from vfljax.defense import Defense, none
from vfljax.runner.compiled import stolen
from vfljax.runner.experiment.jobs import ALONE, Job
from vfljax.runner.experiment.setting import baselines, without_baselines


class Family(NamedTuple):
  """What jobs are compiled as, and how.

  Attributes:
    name: Families of one name have the same programs.
    job: Whose programs these are.
    which: Which of its defenses an entry's is, by the entry's name; empty where
      other arguments are swept.
    cells: Trainings a call; 0 is all of the job's.
    baselines: A job with the attacks that owe nothing to the federation, where
      some of the jobs have them and others do not.
    attack_cells: Trainings a call of the programs of attacks on stolen weights,
      which many families share; 0 if they are a part of this family's own.
  """

  name: str
  job: Job
  which: dict[str, int]
  cells: int
  baselines: Job | None
  attack_cells: int = 0

  @property
  def attack_jobs(self) -> dict[str, Job]:
    """The jobs of the programs of attacks on stolen weights, by their names."""
    if not self.attack_cells:
      return {}
    found = {'stolen': self.job, 'baselines, stolen': self.baselines}
    return {
        name: job for name, job in found.items()
        if job and stolen.attacks(job.setting)
    }


def families(everything: Sequence[Job]) -> dict[str, Family]:
  """Each job's family, by the job's `program`."""
  some = [
      job for job in everything
      if _one_by_one(job) and stolen.attacks(job.setting)
  ]
  if not some:
    return _sharing(everything)
  found, together = _sharing(everything), _together(some)
  made = {
      family.name: family._replace(attack_cells=together)
      for family in found.values()
  }
  return {name: made[family.name] for name, family in found.items()}


def _sharing(everything: Sequence[Job]) -> dict[str, Family]:
  found = {job.program: alone(job) for job in reversed(everything)}
  shared = [job for job in everything if _can_share(job)]
  if not shared:
    return found
  first = {job.entry.name: job for job in reversed(shared)}
  which = {name: i + 1 for i, name in enumerate(sorted(first))}
  members = [lambda strength: none()]
  members += [_maker(first[name]) for name in sorted(first)]

  def make(strength, which):
    made = [member(strength) for member in members]
    return switching.one_of(which, made, ['none', *sorted(first)])

  job = shared[0]._replace(make=make, others=dict(which=()), strengths=(0.0,))
  cells = _together(shared)
  more = [
      job._replace(setting=baselines(one.setting))
      for one in shared if has_baselines(one)
  ]
  job = job._replace(setting=without_baselines(job.setting))
  name = ' '.join(sorted(first))
  own = Family(name, job, which, cells, more[0] if more else None)
  return found | dict.fromkeys([job.program for job in shared], own)


def needed(
    everything: Sequence[Job], left: Sequence[Job]
) -> dict[str, Family]:
  """The families, without baselines where no job to be done has them."""
  found = families(everything)
  has = {found[job.program].name for job in left if has_baselines(job)}
  return {
      name: family if family.name in has else family._replace(baselines=None)
      for name, family in found.items()
  }


def alone(job: Job) -> Family:
  """Of one that has nobody's programs but by chance.

  It may start or end as those do that share: with the same arguments, of which
  it does not look at `which`, those programs are theirs to the letter.
  """
  which = {} if job.others else {job.entry.name: 0}
  return Family(job.program, job, which, 0, None)


def has_baselines(job: Job) -> bool:
  """Whether there are attacks that owe nothing to the federation."""
  return bool(baselines(job.setting).after_training)


def _one_by_one(job: Job) -> bool:
  """Whether the trainings of a call are played one after the other."""
  return jax.local_devices()[0].platform == 'cpu' and not job.setting.stream


def _together(some: Sequence[Job]) -> int:
  """As many trainings a call as divide those of each job."""
  devices = jax.local_device_count()
  return math.gcd(*(padded(job) // devices for job in some)) * devices


def _can_share(job: Job) -> bool:
  if not _one_by_one(job) or job.entry.name == ALONE or job.others:
    return False
  return switching.gradient_only(job.make(job.strengths[0]))


def _maker(job: Job) -> Callable[..., Defense]:
  if job.constant:
    return lambda strength: job.make(None)
  return job.make


def padded(job: Job) -> int:
  """A job's trainings, padded to a whole chunk and to the devices.

  Of a whole chunk, so that the last one needs no other program.
  """
  devices = jax.local_device_count()
  return -(-job.piece.room * job.room // devices) * devices


def cells_of(job: Job, family: Family) -> dict[str, np.ndarray]:
  """The job's trainings, by strength, then seed; the last one repeated."""
  seeds, points = len(job.seeds), len(job.strengths)
  each = lambda values: np.repeat(np.asarray(values, np.float32), seeds)
  cells: dict[str, Any] = dict(
      seed=np.tile(np.asarray(job.seeds, np.int32), points),
      strength=each([s or 0.0 for s in job.strengths]),
      others={name: each(values) for name, values in job.others.items()},
  )
  if family.which:
    number = np.int32(family.which[job.entry.name])
    cells['others'] = dict(which=np.full(seeds * points, number))
  index = np.minimum(np.arange(padded(job)), seeds * points - 1)
  return jax.tree.map(lambda x: x[index], cells)

