"""Raises the number of seeds of a work directory: only the new ones run.

A seed's keys come from its number alone, so old results stay valid. A directory
whose seeds were raised has other files in parts/ than one that had all seeds
from the start. So config.json keeps the earlier numbers of seeds, as 'raised'.
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
  """The configuration as config.json will have it, perhaps with 'raised'.

  Args:
    place: The work directory, which need not exist.
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
  """The numbers of seeds of a work directory over time; [] if it is new."""
  said = identity.said(place)
  had: list[Any] = [*said.get(FIELD, []), said.get('seeds')]
  return [count for count in had if _is_count(count)]


def completed(
    place: Path, now: Mapping[str, Any], complete: identity.Complete,
    saved: dict,
) -> dict[str, Any]:
  """A saved configuration with the seeds of `now`, if `now` has more.

  Args:
    place: The work directory.
    now: What `recorded` returned.
    complete: Adds the fields that a configuration of an earlier version lacks.
    saved: The saved configuration.

  Raises:
    UserError: if `now` differs only in having fewer seeds.
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
        f'{place} has {had} seeds and {now["seeds"]} are asked for: the number '
        f'can be raised, not lowered.\nUse --config.seeds={had}, or choose '
        'another --workdir.'
    )
  return found


def _is_count(x: Any) -> bool:
  return type(x) is int and x > 0
