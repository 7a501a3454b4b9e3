"""What is a job's own in trainings by programs that it shares with others.

In shared programs the defense's memory is a tuple, with an entry for each
defense that has one (`switching.one_of`); so are the active party's weights for
the defense, and what its optimizer keeps of them. All trainings have prepared
labels if a defense prepares some. A checkpoint holds only what the job's own
defense has, as if its programs were its own. So it can be continued where
nothing is shared, as on a GPU, and by a version that shares among others.
"""
from collections.abc import Callable, Sequence
from typing import Any

import jax

from vfljax.runner.compiled.families import Family
from vfljax.runner.experiment.jobs import Job
from vfljax.train import Run
from vfljax.types import State


def own(family: Family, job: Job, run: Run) -> Run:
  """Trainings without what belongs to other defenses than the job's own."""
  picked = lambda place: lambda all_, _: () if place is None else all_[place]
  run = _changed(family, job, run, run, picked)
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
      defenses' memories and weights are taken from it; the job never reads
      them.
  """
  def joined(place):
    def both(mine, others):
      if place is None:
        return others
      return *others[:place], mine, *others[place + 1 :]

    return both

  run = _changed(family, job, run, fresh, joined)
  if family.preparing and job.entry.name not in family.preparing:
    run = run._replace(labels=fresh.labels)
  return run


def _changed(
    family: Family, job: Job, run: Run, other: Run,
    change: Callable[[int | None], Callable[[Any, Any], Any]],
) -> Run:
  """The trainings with parts made of their own and of those of `other`.

  So are those of the best epoch.

  Args:
    change: The place of the job's own part, `None` if it has none -> (that of
      `run`, that of `other`) -> the new one. The latter is a tuple with the
      parts of all of the family's defenses.
  """
  if not (family.memories or family.weights):
    return run

  def state(own: State, others: State) -> State:
    if family.memories:
      memory = change(_place(family.memories, job))
      own = own._replace(defense=memory(own.defense, others.defense))
    if family.weights:
      weights = _slotted(change(_place(family.weights, job)))
      active = jax.tree.map(
          weights, own.parties[0], others.parties[0], is_leaf=_has_slot
      )
      own = own._replace(parties=(active, *own.parties[1:]))
    return own

  best = run.best and run.best._replace(
      state=state(run.best.state, other.best.state)
  )
  return run._replace(state=state(run.state, other.state), best=best)


def _place(names: Sequence[str], job: Job) -> int | None:
  name = job.entry.name
  return names.index(name) if name in names else None


def _has_slot(tree: Any) -> bool:
  """Whether these are a party's weights, or what an optimizer keeps of them."""
  return isinstance(tree, dict) and 'defense' in tree


def _slotted(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
  """`change` for the part 'defense' of such trees; all else stays.

  It stays, too, where an optimizer keeps nothing of the defense's weights, as
  one for those of another learning rate (`optax.partition`).
  """
  def changed(mine: Any, other: Any) -> Any:
    if not _has_slot(mine) or type(other['defense']) is not tuple:
      return mine  # Not `isinstance`: a `MaskedNode` is a tuple without fields.
    return mine | dict(defense=change(mine['defense'], other['defense']))

  return changed
