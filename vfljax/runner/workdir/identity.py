"""Which experiment a work directory holds, and whether it is one at all.

config.json says so. A copy of it with a digest, .config.json, mends it when it
is lost or damaged. A folder with neither, and with anything in it that may be
somebody's work, is somebody else's: it is refused before a byte is written into
it.
"""
from collections.abc import Callable, Mapping, Sequence
import json
import os
from pathlib import Path
from typing import Any

import jax

from vfljax.data.table import listing
from vfljax.runner.config.nested import flat
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import mergeable, parts
from vfljax.runner.workdir.parts import Damaged

CONFIG, COPY = 'config.json', '.config.json'
MERGED = 'merged'  # A field of what `vfljax merge` has put together.
_ELSE = 'Choose another --workdir, or an empty one.'
# Files into which shells and clusters write what a process says.
_SAID, _SUFFIXES = ('log', 'stdout', 'stderr'), ('.log', '.out', '.err')

Complete = Callable[[dict], dict]


def check(
    path: Path, config: Mapping, complete: Complete = lambda saved: saved
) -> dict[str, str]:
  """Refuses a folder that does not hold this experiment; writes nothing.

  Args:
    complete: Gives a configuration saved by an earlier version the fields that
      it lacks.

  Returns:
    Which of the two files are to be set aside, and why.

  Raises:
    UserError: if the folder is somebody else's, or another experiment's.
  """
  with disk.writing(path):
    found, broken = _found(path)
    if not found and not _is_new(path):
      # Between the two looks another process may have begun here.
      found, broken = _found(path)
      if not found:
        raise _refusal(path)
  asked, refusals = json.loads(parts.dumps(config)), {}
  for name, saved in found.items():
    try:
      _check_same(path, complete(saved), asked)
    except UserError as error:
      refusals[name] = error
    except (AttributeError, LookupError, TypeError, ValueError):
      refusals[name] = _strange(path)  # Nothing like a configuration of ours.
  # What the copy says has a digest, and so it counts: there are results of it,
  # whatever somebody has made of config.json since.
  if COPY in refusals:
    edited = CONFIG in found and found[CONFIG] != found[COPY]
    note = f'{CONFIG} was edited, which changes no results: ' if edited else ''
    raise UserError(f'{note}{refusals[COPY]}')
  if CONFIG in refusals and COPY not in found:
    raise refusals[CONFIG]
  if CONFIG in refusals:
    broken[CONFIG] = f'is damaged: it is not what {COPY} keeps of it'
  return broken


def check_units(path: Path, units: Sequence[str]) -> None:
  """Refuses a folder with results that a run of `units` would not list.

  Raises:
    UserError: with their names.
  """
  if found := parts.strays(path, units):
    raise UserError(
        f'{path} has results that are no part of this run, which would drop '
        f'them: {listing(found, 5)}.\nvfljax merge makes such folders, and no '
        'run goes on in one: choose another --workdir.'
    )


def is_there(
    path: Path, config: Mapping, complete: Complete = lambda saved: saved
) -> bool:
  """Whether a folder holds this experiment, of which it was made.

  Args: as in `check`.
  """
  try:
    return bool(_found(path)[0]) and not check(path, config, complete)
  except UserError:
    return False


def save(path: Path, config: Mapping, broken: Mapping[str, str]) -> None:
  """Writes config.json and its copy; `broken` is what `check` returned.

  The copy is first: killed after it, the next start knows what this is.
  """
  for name, why in broken.items():
    disk.set_aside(path, path / name, why, 'it is written again')
  text = parts.dumps(config, indent=2, sort_keys=True)
  disk.renew(path / COPY, parts.sealed(dict(config=json.loads(text))))
  disk.renew(path / CONFIG, text)


def read(path: str | os.PathLike) -> dict:
  """The configuration in a work directory; {} if it has none.

  Raises:
    UserError: if it is damaged, and its copy too.
  """
  place = Path(path)
  found, broken = _found(place)
  if broken and not found:
    raise _refusal(place)
  return next(iter(found.values()), {})


def said(path: Path) -> dict:
  """The configuration that a start would go on with; {} if there is none.

  That is the copy's: config.json may have been edited.
  """
  try:
    found, _ = _found(path)
  except UserError:  # It will be said by whoever has to read it.
    return {}
  return found.get(COPY) or found.get(CONFIG) or {}


def _found(path: Path) -> tuple[dict[str, dict], dict[str, str]]:
  """What the two files say, by name, and what is wrong with damaged ones."""
  found, broken = {}, {}
  for name in (CONFIG, COPY):
    if not os.path.lexists(path / name):
      continue
    try:
      content = parts.opened(path / name)
      if name == COPY:
        content = _whole(content)
      found[name] = content
    except Damaged as why:
      broken[name] = f'is damaged: {why}'
  return found, broken


def _whole(copy: dict) -> dict:
  """The configuration in a copy, which counts with its digest only."""
  config = copy.get('config')
  if 'sha256' not in copy or not isinstance(config, dict):
    raise Damaged('it is not what was written')
  return config


def _is_new(path: Path) -> bool:
  """Whether a folder is not there yet, or holds nothing that anybody has made.

  That is what a start left behind, of which there is the lock and, of version
  0.1, folders without anything in them; and what systems put into any folder,
  what is said while this runs, and the compile cache.
  """
  if not path.is_dir():
    return True
  ours = {disk.temporary(path / name).name for name in (CONFIG, COPY)}
  return all(
      entry.name in ours or _is_nobodys(entry) for entry in path.iterdir()
  )


def _is_nobodys(entry: Path) -> bool:
  """Whether an entry of a folder cannot be somebody's work."""
  name = entry.name
  if name.startswith('.'):
    # But a file that this program wrote, or will remove, is not passed over.
    return name not in (CONFIG, COPY) and not name.startswith('.vfljax-')
  if not entry.is_dir():
    return name in _SAID or entry.suffix in _SUFFIXES
  if name in ('parts', 'checkpoints'):
    return not any(entry.iterdir())
  return name == 'lost+found' or _is_cache(entry)


def _is_cache(folder: Path) -> bool:
  """Whether it is where this process keeps its compiled programs."""
  cache = getattr(jax.config, 'jax_compilation_cache_dir', None)
  return bool(cache) and os.path.realpath(cache) == os.path.realpath(folder)


def _refusal(path: Path) -> UserError:
  """Why a folder with something in it, but no configuration, is refused."""
  _, broken = _found(path)
  if CONFIG in broken:
    return UserError(
        f'{path / CONFIG} {broken[CONFIG]}. Nobody can tell which experiment '
        f'this was.\nDelete {path} to start again, or choose another --workdir.'
    )
  own = any((path / name).exists() for name in ('parts', 'results.jsonl'))
  return UserError(
      f'{path} holds {"results" if own else "files"} but no {CONFIG}, so it is '
      f'no work directory that could be continued.\n{_ELSE}'
  )


def _strange(path: Path) -> UserError:
  return UserError(
      f'{path / CONFIG} is not one that vfljax wrote, so {path} is no work '
      f'directory.\n{_ELSE}'
  )


def _edited(names: Sequence[str]) -> list[str]:
  """The files of code that alone differ (`sources`); [] if more does."""
  files = [
      name.partition('.')[2] for name in names if name.startswith('sources.')
  ]
  return files if len(files) == len(names) else []


def _check_same(path: Path, saved: dict, config: dict) -> None:
  """Raises a UserError that names what differs from the config in `path`."""
  if saved and config and not saved.keys() & config.keys():
    raise _strange(path)
  old, new = flat(saved), flat(config)
  names = [k for k in (old | new) if old.get(k, ...) != new.get(k, ...)]
  if not names:
    return
  if MERGED in names and MERGED in old:
    raise UserError(
        f'{path} was put together by vfljax merge, and no run goes on in it.\n'
        'Choose another --workdir for what is missing, and merge that, too.'
    )
  if edited := _edited(names):
    raise UserError(
        f'{", ".join(edited)} has changed since {path} was made, and its '
        'numbers are of the code of then.\nChoose another --workdir for those '
        'of the code of now, or undo the change to go on here.'
    )
  said = '; '.join(
      _difference(k, old.get(k, ...), new.get(k, ...)) for k in names[:3]
  )
  more = f'; and {len(names) - 3} more' if len(names) > 3 else ''
  if 'samples' in names:
    said = f'the samples have changed since then, so has their digest: {said}'
  elif 'columns' in names:
    said = 'the names in data.named stand over other columns since then'
  then = 'or choose another --workdir.'
  if MERGED in config:
    raise UserError(
        f'{path} belongs to another configuration: {said}{more}.\nChoose '
        'another folder for what is merged.'
    )
  if mergeable.can_be_merged(saved, config, names):
    then = (
        'or run what is new in another --workdir: vfljax merge puts them '
        'together.'
    )
  elif mergeable.FIRST in names and mergeable.one_split(config):
    then = (
        'or choose another --workdir. With data.resplit=False the one split is '
        'that of first_seed: for more seeds of it raise --config.seeds.'
    )
  raise UserError(
      f'{path} belongs to another configuration: {said}{more}.\n'
      f'Use the same values to continue it, {then}'
  )


def _difference(name: str, there: Any, here: Any) -> str:
  """'train.epochs is 50 there and 20 here'; of lists what one alone has."""
  if isinstance(there, list) and isinstance(here, list):
    gone, new = ([x for x in some if x not in others] for some, others in (
        (there, here), (here, there)
    ))
    if gone or new:
      return f'{name} has ' + ' and '.join(
          f'{listing(map(_shown, some), 3)} only {where}'
          for some, where in ((gone, 'there'), (new, 'here')) if some
      )
  return f'{name} is {_shown(there)} there and {_shown(here)} here'


def _shown(value: Any) -> str:
  """A value as JSON; of a mapping what is not empty."""
  if isinstance(value, Mapping):
    value = {k: v for k, v in value.items() if v not in ('', [], {})}
  text = 'not set' if value is ... else json.dumps(value, ensure_ascii=False)
  return text if len(text) <= 200 else f'{text[:197]}...'

