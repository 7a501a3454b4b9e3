"""The folders of the finer sweeps of `vfljax recommend`: finer, finer-2, ...

Each goal refines around its own best defenses. Strengths that an earlier goal
has measured are not measured again: a new folder has only the new ones.
"""
from collections.abc import Iterable
import dataclasses
from pathlib import Path
import re
from typing import NamedTuple

from vfljax.runner.config import Config, Entry
from vfljax.runner.workdir import identity, mergeable

_FOLDER = re.compile(r'finer(?:-([2-9]|[1-9]\d+))?')


class Sweep(NamedTuple):
  """One finer sweep.

  Attributes:
    folder: Its work directory, which need not exist.
    config: The experiment that is run there.
    wanted: Whether the present goal needs any of it.
  """

  folder: Path
  config: Config
  wanted: bool = True


def planned(place: Path, config: Config, again: Config | None) -> list[Sweep]:
  """The sweeps that earlier goals began and this goal's new one, in order.

  Args:
    place: The work directory of `recommend`.
    config: The coarse sweep.
    again: The finer sweep of this goal; `None` for none.
  """
  new = again.listed if again else ()
  found, last = {}, 0
  for number, folder in _begun(place):
    listed = tuple(mergeable.listed(identity.said(folder)))
    then = dataclasses.replace(
        config, listed=listed, defenses='', alone=False
    )
    rest = _without(new, listed)
    found[number] = Sweep(folder, then, rest != new)
    new, last = rest, max(last, number)
  if again and any(entry.strengths for entry in new):
    free = next(n for n in range(1, last + 2) if n not in found)
    folder = place / ('finer' if free == 1 else f'finer-{free}')
    found[free] = Sweep(folder, dataclasses.replace(again, listed=new))
  return [found[number] for number in sorted(found)]


def _begun(place: Path) -> list[tuple[int, Path]]:
  """Numbers and folders of sweeps that have a configuration, in order."""
  found = []
  for folder in place.glob('finer*'):
    match = _FOLDER.fullmatch(folder.name)
    if match and identity.said(folder):
      found.append((int(match[1] or 1), folder))
  return sorted(found)


def _without(
    new: Iterable[Entry], listed: Iterable[Entry]
) -> tuple[Entry, ...]:
  """Defenses at strengths that are not listed; 'none' stays."""
  tried = {(entry.name, s) for entry in listed for s in entry.strengths}
  left = []
  for entry in new:
    fresh = tuple(s for s in entry.strengths if (entry.name, s) not in tried)
    if fresh or not entry.strengths:
      left.append(dataclasses.replace(entry, strengths=fresh))
  return tuple(left)
