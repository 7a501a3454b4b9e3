"""The experiment asked for, and whether its work directory has it already."""
from collections.abc import Mapping, Sequence
import dataclasses
from functools import partial
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax.data import files, naming
from vfljax.data.table import Table
from vfljax.nets import pretrained
from vfljax.runner.checking import checks
from vfljax.runner.config import Config
from vfljax.runner.experiment import sources
from vfljax.runner.experiment.jobs import jobs, units_of
from vfljax.runner.experiment.setting import Setting
from vfljax.runner.workdir import identity, parts, raising, recording, saved
from vfljax.types import Net

COLUMNS = 'columns'  # An entry of config.json, if the samples have columns.
WEIGHTS = 'weights'  # Likewise, if a network starts from pretrained weights.


class Asked(NamedTuple):
  """An experiment and its work directory.

  Attributes:
    setting: The experiment.
    place: The work directory, which need not exist.
    recorded: The configuration as config.json will have it.
    complete: Adds missing fields to a saved configuration.
  """

  setting: Setting
  place: Path
  recorded: dict[str, Any]
  complete: identity.Complete


def of(config: Config, table: Table, workdir: str) -> Asked:
  """An experiment in a work directory, to which missing seeds are added.

  Raises:
    UserError: if the configuration cannot be run.
  """
  setting = checks.assembled(config, table)
  place = Path(workdir).absolute()
  recorded = dataclasses.asdict(setting.config)
  recorded |= dict(samples=fingerprint(table, setting.outside))
  recorded |= whose(config, table) | starts(setting)
  if own := recording.settings():
    recorded[recording.FIELD] = own
  if own := sources.of(setting):
    recorded[sources.FIELD] = own
  complete = partial(_completed, recorded, partial(
      saved.continued, now=setting.config, classes=setting.classes
  ))
  recorded = raising.recorded(place, recorded)
  complete = partial(raising.completed, place, recorded, complete)
  if raised := recorded.get(raising.FIELD):
    setting = setting._replace(raised=tuple(raised))
  return Asked(setting, place, recorded, complete)


def has_begun(asked: Asked) -> bool:
  """Whether another process has begun the same experiment.

  Raises:
    UserError: if the work directory has another experiment.
  """
  said = identity.said(asked.place)
  if not said:
    return False
  identity.check(asked.place, asked.recorded, asked.complete)
  return _placeless(said) == _placeless(asked.recorded)


def _placeless(config: Mapping[str, Any]) -> dict[str, Any]:
  """The configuration as in config.json, without the samples' folder."""
  found = json.loads(parts.dumps(config))
  data = found.get('data', {})
  if 'path' in data:
    found['data'] = data | dict(path=_end(data['path']))
  return found


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


def whose(config: Config, table: Table) -> dict[str, str]:
  """A digest of what decides who holds which column; {} of images.

  The samples' digest is of the numbers alone. With other names for the same
  columns, or with other columns that belong together (0/1 columns that the user
  made are one each, those of a text are one), parties hold other columns, and
  that is another experiment with other programs.
  """
  own = config.data
  if not table.groups:
    return {}
  text = repr([*map(int, table.groups)])
  if own.split == 'named':
    alone = config.model.algorithm == 'vsnn' and not own.unheld
    owners = naming.owners(table, own.parties, own.named, alone)
    text = repr([sorted(some) for some in owners])
  if table.holders is not None:
    text += repr([*map(int, table.holders)])
  return {COLUMNS: hashlib.sha256(text.encode()).hexdigest()[:16]}


def starts(setting: Setting) -> dict[str, str]:
  """A digest of pretrained weights; {} if there are none.

  The folder that a configuration names may hold others another day, as those of
  an encoder that was trained further.
  """
  # What is no network is told of later, in two lines.
  nets = [net for net in setting.vfl.bottoms if isinstance(net, Net)]
  found = {one.name: one for one in pretrained.found(nets)}
  weights = [x for one in found.values() for x in jax.tree.leaves(one.weights)]
  return {WEIGHTS: _digest([*map(np.atleast_1d, weights)])} if weights else {}


def same_path(one: Any, other: Any) -> bool:
  """Whether two paths may be of copies of one file or folder."""
  return _end(one) == _end(other)


def _end(path: Any) -> str:
  return files.bare(str(path))


def same_samples(one: str, other: str) -> bool:
  """Whether two fingerprints may be of the same samples.

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
  for name in {COLUMNS, WEIGHTS} & now.keys():  # Earlier versions did not say.
    found = {name: now[name]} | found
  if not same_samples(found.get('samples') or '', samples):
    return found
  # The digests identify samples; a path differs from machine to machine.
  there, here = (x.get('data', {}).get('path', '') for x in (found, now))
  if there != here and same_path(there, here):
    found = found | dict(data=found.get('data', {}) | dict(path=here))
  return found | dict(samples=samples)
