"""What is a job's own in trainings by programs that it shares with others.

In shared programs the defense's memory is a tuple, with an entry for each
defense that has one (`switching.one_of`), and all trainings have prepared
labels if a defense prepares some. A checkpoint holds only what the job's own
defense has, as if its programs were its own. So it can be continued where
nothing is shared, as on a GPU, and by a version that shares among others.
"""
from vfljax.runner.compiled.families import Family
from vfljax.runner.experiment.jobs import Job
from vfljax.train import Run
from vfljax.types import State


def own(family: Family, job: Job, run: Run) -> Run:
  """Trainings without what belongs to other defenses than the job's own."""
  if family.memories:
    place = _place(family, job)
    run = _changed(
        run, run, lambda state, _: () if place is None else state[place]
    )
  if family.preparing and job.entry.name not in family.preparing:
    run = run._replace(labels=())
  return run


def whole(family: Family, job: Job, run: Run, fresh: Run) -> Run:
  """Trainings as the family's programs take them; the reverse of `own`.

  Args:
    family: The job's.
    job: Whose trainings they are.
    run: What `own` returned.
    fresh: As many trainings of the same job before their first epoch. Other
      defenses' memories are taken from it; the job never reads them.
  """
  if family.memories:
    place = _place(family, job)

    def joined(state, others):
      if place is None:
        return others
      return *others[:place], state, *others[place + 1 :]

    run = _changed(run, fresh, joined)
  if family.preparing and job.entry.name not in family.preparing:
    run = run._replace(labels=fresh.labels)
  return run


def _place(family: Family, job: Job) -> int | None:
  name = job.entry.name
  return family.memories.index(name) if name in family.memories else None


def _changed(run: Run, other: Run, memory) -> Run:
  """The trainings with memories made of their own and of another's.

  So are those of the best epoch.
  """
  def change(state: State, from_: State) -> State:
    return state._replace(defense=memory(state.defense, from_.defense))

  best = run.best and run.best._replace(
      state=change(run.best.state, other.best.state)
  )
  return run._replace(state=change(run.state, other.state), best=best)
