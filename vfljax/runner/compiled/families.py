"""Families: jobs that share their compiled programs.

Defenses that only change gradients differ in a hundredth of what is compiled,
and those that change labels before training only in the program that starts it.
So on CPUs one program has all of them as branches, and an argument chooses one.
With large bottom networks, it also has those that change what the active party
receives (`joining`). It also trains the active party alone, if no attack
is measured in it. Results do not depend on which other defenses are in it. The
number of trainings in a call divides that of each job, so no job needs padding.

On accelerators each defense has its own program: there the trainings of a call
are batched, and each would compute every branch.

On CPUs, attacks on stolen weights are separate programs, which all families
share whose weights have the same structure (`Family.attack_jobs`). Attacks that
differ in their start alone, such as a completion and its baselines, are one
program with the attack's number as an argument, also if some know fewer labels.
"""
from collections.abc import Callable, Collection, Mapping, Sequence
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import switching
from vfljax.attack import Attack
from vfljax.defense import Defense, none
from vfljax.runner.compiled import joining, stolen
from vfljax.runner.experiment.jobs import ALONE, Job
from vfljax.runner.experiment.setting import baselines, without_baselines


class Family(NamedTuple):
  """How some jobs are compiled.

  Attributes:
    name: Families with the same name have the same programs.
    job: The job that is compiled for all of them.
    which: Entry's name -> the number of its defense's branch; empty if other
      arguments are swept.
    cells: Trainings in a call; 0 for all of the job's.
    baselines: A job with the baselines among the attacks, if only some of the
      jobs have them; else `None`.
    attack_cells: Trainings in a call of the shared programs of attacks on
      stolen weights; 0 if this family's own programs contain those attacks.
    memories: The names of entries whose defenses have a memory, in its order;
      () if the programs are not shared (`memories`).
    weights: The names of entries whose defenses have a hook `receive`, and so
      may have weights of the active party, likewise.
    preparing: The names of entries whose defenses prepare labels, likewise.
    started: Jobs with attacks on stolen weights that are one program
      (`stolen.by_start`).
  """

  name: str
  job: Job
  which: dict[str, int]
  cells: int
  baselines: Job | None
  attack_cells: int = 0
  memories: tuple[str, ...] = ()
  weights: tuple[str, ...] = ()
  preparing: tuple[str, ...] = ()
  started: tuple[Job, ...] = ()

  @property
  def attack_jobs(self) -> dict[str, Job]:
    """Program name -> job, for the shared attacks on stolen weights."""
    if not self.attack_cells:
      return {}
    elsewhere = {n for job in self.started for n in job.setting.after_training}
    found = {
        name: _but(job, elsewhere)
        for name, job in dict(
            stolen=self.job, baselines_stolen=self.baselines
        ).items() if job
    }
    own = {name: j for name, j in found.items() if stolen.attacks(j.setting)}
    return own | self._started

  @property
  def _started(self) -> dict[str, Job]:
    return {f'started {i}': job for i, job in enumerate(self.started)}

  def attacked(self, job: Job) -> list[tuple[str, str]]:
    """Which programs of `attack_jobs` measure the job's attacks.

    Returns:
      (program, attack) for each call: the name of one of `started`'s attacks,
      '' for all of another program's.
    """
    asked, found = stolen.attacks(job.setting), []
    for name, made in self.attack_jobs.items():
      here = [n for n in stolen.attacks(made.setting) if n in asked]
      if name in self._started:
        found += [(name, attack) for attack in here]
      elif here:
        found.append((name, ''))
    return found


def families(everything: Sequence[Job]) -> dict[str, Family]:
  """`Job.program` -> family, for all jobs."""
  some = [
      job for job in everything
      if _one_by_one(job) and stolen.attacks(job.setting)
  ]
  if not some:
    return _sharing(everything)
  found, together = _sharing(everything), _together(some)
  groups = stolen.by_start(job.setting for job in some)
  attacks = {
      n: a for job in some for n, a in job.setting.after_training.items()
  }
  started = [{name: attacks[name] for name in group} for group in groups]
  made = {
      family.name: family._replace(
          attack_cells=together, started=_started(family, started)
      ) for family in found.values()
  }
  return {name: made[family.name] for name, family in found.items()}


def _started(
    family: Family, groups: Sequence[Mapping[str, Attack]]
) -> tuple[Job, ...]:
  """Jobs with those groups of attacks of which the family has some."""
  jobs = [job for job in (family.job, family.baselines) if job]
  own = {name for job in jobs for name in job.setting.after_training}
  setting = family.job.setting
  return tuple(
      family.job._replace(setting=setting._replace(after_training={**group}))
      for group in groups if own & group.keys()
  )


def _but(job: Job, names: Collection[str]) -> Job:
  """The job without some of its attacks after training."""
  left = {
      name: attack for name, attack in job.setting.after_training.items()
      if name not in names
  }
  return job._replace(setting=job.setting._replace(after_training=left))


def _sharing(everything: Sequence[Job]) -> dict[str, Family]:
  found = {job.program: alone(job) for job in reversed(everything)}
  shared = [job for job in everything if _can_share(job)]
  if not shared:
    return found
  first = {job.entry.name: job for job in reversed(shared)}
  which = {name: i + 1 for i, name in enumerate(sorted(first))}
  members = [lambda strength: none()]
  members += [_maker(first[name]) for name in sorted(first)]
  quiet = [job for job in everything if _can_be_branch(job, shared[0])]
  which |= {job.entry.name: 0 for job in quiet}
  shared += quiet

  def make(strength, which):
    made = [member(strength) for member in members]
    chosen = switching.one_of(which, made, ['none', *sorted(first)])
    return joining.deaf(chosen, which == 0) if quiet else chosen

  job = shared[0]._replace(make=make, others=dict(which=()), strengths=(0.0,))
  cells = _together(shared)
  more = [
      job._replace(setting=baselines(one.setting))
      for one in shared if has_baselines(one)
  ]
  job = job._replace(setting=without_baselines(job.setting))
  name = ' '.join([*sorted(first), *(job.entry.name for job in quiet[:1])])
  those = lambda asked: tuple(n for n in sorted(first) if asked(first[n]))
  own = Family(
      name, job, which, cells, more[0] if more else None,
      memories=those(joining.remembers), weights=those(joining.receives),
      preparing=those(joining.prepares),
  )
  return found | dict.fromkeys([job.program for job in shared], own)


def needed(
    everything: Sequence[Job], left: Sequence[Job]
) -> dict[str, Family]:
  """The families, without baselines that no remaining job has."""
  found = families(everything)
  has = {found[job.program].name for job in left if has_baselines(job)}
  return {
      name: family if family.name in has else family._replace(baselines=None)
      for name, family in found.items()
  }


def alone(job: Job) -> Family:
  """The family of a job that shares its programs with no other defense.

  It has the argument `which` all the same, without reading it: if its first or
  last program is then identical to that of another family, it is compiled only
  once.
  """
  which = {} if job.others else {job.entry.name: 0}
  return Family(job.program, job, which, 0, None)


def has_baselines(job: Job) -> bool:
  """Whether the job has baselines among its attacks."""
  return bool(baselines(job.setting).after_training)


def _one_by_one(job: Job) -> bool:
  """Whether the trainings of a call run one after the other."""
  return jax.local_devices()[0].platform == 'cpu' and not job.setting.stream


def _together(some: Sequence[Job]) -> int:
  """The largest number of trainings in a call that divides each job's."""
  devices = jax.local_device_count()
  return math.gcd(*(padded(job) // devices for job in some)) * devices


def _can_share(job: Job) -> bool:
  if not _one_by_one(job) or job.entry.name == ALONE or job.others:
    return False
  return joining.joins(job)


def _can_be_branch(job: Job, shared: Job) -> bool:
  """Whether the active party alone can be trained by `shared`'s programs, too.

  These must measure nothing that is not measured of the active party alone: no
  attack, except on stolen weights, which have programs of their own.
  """
  own = stolen.without(without_baselines(shared.setting))
  return job.entry.name == ALONE and _one_by_one(job) and not (
      own.in_training or own.after_training or own.replayed or own.backdoor
  )


def _maker(job: Job) -> Callable[..., Defense]:
  if job.constant:
    return lambda strength: job.make(None)
  return job.make


def padded(job: Job) -> int:
  """The number of a job's trainings, padded to a chunk and to the devices.

  A last chunk is padded to a whole one, so that it needs no other program.
  """
  devices = jax.local_device_count()
  return -(-job.piece.room * job.room // devices) * devices


def cells_of(job: Job, family: Family) -> dict[str, np.ndarray]:
  """The job's trainings by strength, then seed; padding repeats the last."""
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

