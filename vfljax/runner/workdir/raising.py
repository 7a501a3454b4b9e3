"""More seeds than a work directory has: only the new ones run.

A seed's keys come from its number alone, so what was measured stays. The parts
of a raised directory are others than those of one that had all seeds at once,
so config.json keeps, as 'raised', how many seeds there were before each time;
results.jsonl is the same.
"""
from collections.abc import Mapping
import json
from pathlib import Path
from typing import Any

from vfljax.runner.errors import UserError
from vfljax.runner.workdir import identity

FIELD = 'raised'


def recorded(place: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
  """The configuration as config.json will have it.

  Args:
    place: The work directory, which need not be there.
    asked: The configuration.
  """
  said = identity.said(place)
  had, raised = said.get('seeds'), said.get(FIELD, [])
  if not (_is_count(had) and isinstance(raised, list)):
    return dict(asked)
  known = [count for count in raised if _is_count(count)]
  if had < asked['seeds']:
    known = [*known, had]
  return dict(asked) | ({FIELD: known} if known else {})


def counts(place: Path) -> list[int]:
  """How many seeds a work directory has had, in order; [] if none is there."""
  said = identity.said(place)
  had: list[Any] = [*said.get(FIELD, []), said.get('seeds')]
  return [count for count in had if _is_count(count)]


def completed(
    place: Path, now: Mapping[str, Any], complete: identity.Complete,
    saved: dict,
) -> dict[str, Any]:
  """A saved configuration as it is with the seeds of `now`, if that has more.

  Args:
    place: The work directory.
    now: What `recorded` returned.
    complete: Gives a configuration of an earlier version what it lacks.
    saved: The configuration.

  Raises:
    UserError: if fewer seeds are all that `now` has different.
  """
  found, more = complete(saved), {k: now[k] for k in (FIELD,) if k in now}
  kept = {k: v for k, v in found.items() if k != FIELD}
  had = found.get('seeds')
  raised = kept | dict(seeds=now['seeds']) | more
  known = had in more.get(FIELD, [])
  if _is_count(had) and had < now['seeds'] and not known:
    return found  # Another process has been here since `recorded`.
  if not _is_count(had) or had <= now['seeds']:
    return raised
  if raised == json.loads(json.dumps(now)):
    raise UserError(
        f'{place} has {had} seeds and {now["seeds"]} are asked for: seeds can '
        f'be raised, not lowered.\nUse --config.seeds={had}, or choose another '
        '--workdir.'
    )
  return found


def _is_count(x: Any) -> bool:
  return type(x) is int and x > 0
