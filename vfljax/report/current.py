"""Whether a work directory's report is up to date.

A note beside the pages holds digests of the pages, of the files that they were
made from, and of where vfljax's modules are, how long and of when. Times of the
pages themselves say nothing after a copy, an upgrade or an edit.
"""
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import vfljax
from vfljax.runner.cli.goals import Goal
from vfljax.runner.machine import disk
from vfljax.runner.workdir import about

PAGES = ('summary.md', 'report.html')
_READ = ('config.json', 'results.jsonl', 'timings.json')
_NOTE = '.report.json'


def note(path: str | os.PathLike, goal: Goal = Goal()) -> None:
  """Notes what the pages were made from. Call it after they are written.

  Args:
    path: The work directory.
    goal: The goal whose advice the pages give.

  Raises:
    UserError: if the note cannot be written.
  """
  place = Path(path)
  said = json.dumps(_state(place, goal), indent=1)
  disk.write_text(place / _NOTE, said + '\n')


def is_current(path: str | os.PathLike, goal: Goal = Goal()) -> bool:
  """Whether both pages are unchanged and made from the files there now.

  Args:
    path: The work directory.
    goal: The goal that advice is asked for now.
  """
  place = Path(path)
  if not all((place / name).is_file() for name in PAGES):
    return False
  try:
    noted = json.loads((place / _NOTE).read_text('utf-8'))
    return noted == _state(place, goal)
  except (OSError, ValueError, RecursionError):
    return False


def _state(place: Path, goal: Goal) -> dict[str, Any]:
  """Digests by file name ('' if missing), the program's digest, the goal."""
  found = {name: _digest(place / name) for name in (*PAGES, *_READ, about.FILE)}
  return found | dict(program=_program(), goal=goal._asdict())


def _digest(file: Path) -> str:
  return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ''


def _program() -> str:
  """A digest of vfljax's modules: their paths, sizes and times."""
  lines = []
  for folder, _, names in os.walk(Path(vfljax.__file__).parent):
    for name in names:
      if name.endswith('.py'):
        stat = os.stat(os.path.join(folder, name))
        lines.append(f'{folder}/{name} {stat.st_size} {stat.st_mtime_ns}')
  return hashlib.sha256('\n'.join(sorted(lines)).encode()).hexdigest()
