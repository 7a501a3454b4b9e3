"""What is asked for, and whether its work directory has it already."""
from collections.abc import Mapping, Sequence
import dataclasses
from functools import partial
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax.data.table import Table
from vfljax.runner import checks, identity, parts, raising, recording, saved
from vfljax.runner import sources
from vfljax.runner.config import Config
from vfljax.runner.jobs import jobs, units_of
from vfljax.runner.setting import Setting


class Asked(NamedTuple):
  """An experiment and its work directory.

  Attributes:
    setting: The experiment.
    place: The work directory, which need not be there.
    recorded: The configuration as config.json will have it.
    complete: Gives a saved configuration what it lacks.
  """

  setting: Setting
  place: Path
  recorded: dict[str, Any]
  complete: identity.Complete


def of(
    config: Config, table: Table, workdir: str, more_seeds: bool = True
) -> Asked:
  """An experiment in a work directory.

  Args:
    more_seeds: Whether a work directory with fewer seeds is given the others.

  Raises:
    UserError: if the configuration cannot be run.
  """
  setting = checks.assembled(config, table)
  place = Path(workdir).absolute()
  recorded = dataclasses.asdict(setting.config)
  recorded |= dict(samples=fingerprint(table, setting.outside))
  if own := recording.settings():
    recorded[recording.FIELD] = own
  if own := sources.of(setting):
    recorded[sources.FIELD] = own
  complete = partial(
      _completed, recorded, partial(saved.completed, now=setting.config)
  )
  if more_seeds or identity.said(place).get('seeds') == config.seeds:
    recorded = raising.recorded(place, recorded)
    complete = partial(raising.completed, place, recorded, complete)
  if raised := recorded.get(raising.FIELD):
    setting = setting._replace(raised=tuple(raised))
  return Asked(setting, place, recorded, complete)


def is_done(asked: Asked) -> bool:
  """Whether nothing is left to run."""
  setting, place, recorded, complete = asked
  # Too many jobs for a list are refused by the rehearsal.
  return identity.is_there(place, recorded, complete) and all(
      parts.done(place, unit) for unit in units_of(jobs(setting))
  )


def fingerprint(table: Table, outside: Any = None) -> str:
  """A digest of the samples: other samples are another experiment.

  Which of them are a data set's own test set, and samples of another data set,
  are a second one behind it.

  Args:
    outside: Those of another data set, a pytree of arrays.
  """
  first = _digest((table.features, table.labels))
  more = [x for x in (table.test, *jax.tree.leaves(outside)) if x is not None]
  return f'{first}-{_digest(more)}' if more else first


def same_samples(one: str, other: str) -> bool:
  """Whether two fingerprints are of the same samples, as far as they tell.

  Earlier versions kept the first digest alone.
  """
  (first, _, more), (again, _, rest) = one.partition('-'), other.partition('-')
  return first == again and (more == rest or not more or not rest)


def _digest(arrays: Sequence[Any]) -> str:
  digest, rows = hashlib.sha256(), 1024  # Of a mapped file a few at a time.
  for part in arrays:
    for i in range(0, len(part), rows):
      digest.update(np.ascontiguousarray(part[i : i + rows]).tobytes())
  return digest.hexdigest()[:16]


def _completed(
    now: Mapping[str, Any], complete: identity.Complete, before: dict
) -> dict[str, Any]:
  found, samples = sources.completed(complete(before), now), now['samples']
  if same_samples(found.get('samples') or '', samples):
    return found | dict(samples=samples)
  return found
