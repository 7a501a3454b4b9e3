"""Which experiment a folder holds, and whether it is a work directory.

config.json says which. .config.json, a copy with a digest, replaces it if it is
lost or damaged. A folder with neither file, but with something that a user may
have made, is refused before anything is written into it.
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
MERGED = 'merged'  # A field of config.json that `vfljax merge` writes.
_ELSE = 'Choose another --workdir, or an empty one.'
# Files into which shells and clusters write a process's output.
_SAID, _SUFFIXES = ('log', 'stdout', 'stderr'), ('.log', '.out', '.err')

Complete = Callable[[dict], dict]


def check(
    path: Path, config: Mapping, complete: Complete = lambda saved: saved
) -> dict[str, str]:
  """Refuses a folder that does not hold this experiment; writes nothing.

  Args:
    path: The folder, which need not exist.
    config: The experiment's configuration.
    complete: Adds the fields that a configuration of an earlier version lacks.

  Returns:
    Name -> reason, for those of the two files that should be set aside.

  Raises:
    UserError: if the folder is no work directory, or another experiment's.
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
      refusals[name] = _strange(path)  # It is no configuration of vfljax.
  # The copy counts, because its digest proves that the results were made with
  # it, even if config.json was edited since.
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
  """Refuses a folder that has results of units other than these.

  Raises:
    UserError: names those units.
  """
  if found := parts.strays(path, units):
    raise UserError(
        f'{path} has results that are not part of this run and would be lost: '
        f'{listing(found, 5)}.\nA folder made by vfljax merge cannot be '
        'continued. Choose another --workdir.'
    )


def is_there(
    path: Path, config: Mapping, complete: Complete = lambda saved: saved
) -> bool:
  """Whether a folder holds this experiment. Arguments as in `check`."""
  try:
    return bool(_found(path)[0]) and not check(path, config, complete)
  except UserError:
    return False


def save(path: Path, config: Mapping, broken: Mapping[str, str]) -> None:
  """Writes config.json and its copy.

  The copy is written first, so that after a kill in between the next start
  recognises the folder.

  Args:
    path: The work directory.
    config: The configuration.
    broken: What `check` returned.
  """
  for name, why in broken.items():
    disk.set_aside(path, path / name, why, 'it is written again')
  text = parts.dumps(config, indent=2, sort_keys=True)
  disk.renew(path / COPY, parts.sealed(dict(config=json.loads(text))))
  disk.renew(path / CONFIG, text)


def read(path: str | os.PathLike) -> dict:
  """The configuration in a work directory; {} if it has none.

  Raises:
    UserError: if config.json and its copy are both damaged.
  """
  place = Path(path)
  found, broken = _found(place)
  if broken and not found:
    raise _refusal(place)
  return next(iter(found.values()), {})


def said(path: Path) -> dict:
  """The configuration that a start would continue; {} if there is none.

  It is that of the copy, because config.json may have been edited.
  """
  try:
    found, _ = _found(path)
  except UserError:  # Another call, which needs it, will report the error.
    return {}
  return found.get(COPY) or found.get(CONFIG) or {}


def _found(path: Path) -> tuple[dict[str, dict], dict[str, str]]:
  """(name -> content, name -> reason) of the whole and the damaged files."""
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
  """The configuration in a copy, which must have a digest."""
  config = copy.get('config')
  if 'sha256' not in copy or not isinstance(config, dict):
    raise Damaged('it is not what was written')
  return config


def _is_new(path: Path) -> bool:
  """Whether a folder does not exist, or holds nothing that a user has made.

  What does not count as a user's: the lock and, in version 0.1, empty folders
  of an earlier start; files that systems put into any folder; logs of this
  process; the compile cache.
  """
  if not path.is_dir():
    return True
  ours = {disk.temporary(path / name).name for name in (CONFIG, COPY)}
  return all(
      entry.name in ours or _is_nobodys(entry) for entry in path.iterdir()
  )


def _is_nobodys(entry: Path) -> bool:
  """Whether an entry of a folder cannot be a user's work."""
  name = entry.name
  if name.startswith('.'):
    # Files that vfljax wrote or would remove do count.
    return name not in (CONFIG, COPY) and not name.startswith('.vfljax-')
  if not entry.is_dir():
    return name in _SAID or entry.suffix in _SUFFIXES
  if name in ('parts', 'checkpoints'):
    return not any(entry.iterdir())
  return name == 'lost+found' or _is_cache(entry)


def _is_cache(folder: Path) -> bool:
  """Whether it is the folder of this process's compile cache."""
  cache = getattr(jax.config, 'jax_compilation_cache_dir', None)
  return bool(cache) and os.path.realpath(cache) == os.path.realpath(folder)


def _refusal(path: Path) -> UserError:
  """The error for a folder that has files but no configuration."""
  _, broken = _found(path)
  if CONFIG in broken:
    return UserError(
        f'{path / CONFIG} {broken[CONFIG]}. So the experiment is unknown.\n'
        f'Delete {path} to start again, or choose another --workdir.'
    )
  own = any((path / name).exists() for name in ('parts', 'results.jsonl'))
  return UserError(
      f'{path} holds {"results" if own else "files"} but no {CONFIG}, so it is '
      f'not a work directory that can be continued.\n{_ELSE}'
  )


def _strange(path: Path) -> UserError:
  return UserError(
      f'{path / CONFIG} was not written by vfljax, so {path} is not a work '
      f'directory.\n{_ELSE}'
  )


def _edited(names: Sequence[str]) -> list[str]:
  """The changed files of code (`sources`); [] if other fields differ too."""
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
        f'{path} was made by vfljax merge, and no run can continue in it.\n'
        'Run what is missing in another --workdir, and merge that too.'
    )
  if edited := _edited(names):
    raise UserError(
        f'{", ".join(edited)} has changed since {path} was made, whose numbers '
        'come from the old code.\nChoose another --workdir for the new code, '
        'or undo the change to continue here.'
    )
  said = '; '.join(
      _difference(k, old.get(k, ...), new.get(k, ...)) for k in names[:3]
  )
  more = f'; and {len(names) - 3} more' if len(names) > 3 else ''
  if changed := ' and '.join(k for k in ('samples', 'weights') if k in names):
    said = f'the {changed} have changed since then: {said}'
  elif 'columns' in names:
    said = 'other columns belong together, to a party or to names in data.named'
  then = 'or choose another --workdir.'
  if MERGED in config:
    raise UserError(
        f'{path} belongs to another configuration: {said}{more}.\nChoose '
        'another folder for what is merged.'
    )
  if mergeable.can_be_merged(saved, config, names):
    then = (
        'or run what is new in another --workdir and join them with vfljax '
        'merge.'
    )
  elif mergeable.FIRST in names and mergeable.one_split(config):
    then = (
        'or choose another --workdir. With data.resplit=False first_seed '
        'decides the split: for more seeds with the same split raise '
        '--config.seeds.'
    )
  raise UserError(
      f'{path} belongs to another configuration: {said}{more}.\n'
      f'Use the same values to continue it, {then}'
  )


def _difference(name: str, there: Any, here: Any) -> str:
  """'train.epochs is 50 there and 20 here'; for lists, what only one has."""
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
  """A value as JSON, shortened; empty entries of a mapping are left out."""
  if isinstance(value, Mapping):
    value = {k: v for k, v in value.items() if v not in ('', [], {})}
  text = 'not set' if value is ... else json.dumps(value, ensure_ascii=False)
  return text if len(text) <= 200 else f'{text[:197]}...'

