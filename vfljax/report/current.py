"""Whether a work directory's report says what is in it.

Whoever writes the pages notes digests of them, of what they were made of, and
which program that was: times of files say nothing after a copy, an upgrade or
an edit.
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
  """Writes down what the pages, which are written, were made of.

  Args:
    goal: Whose advice is in them.

  Raises:
    UserError: if the disk does not take it.
  """
  place = Path(path)
  said = json.dumps(_state(place, goal), indent=1)
  disk.write_text(place / _NOTE, said + '\n')


def is_current(path: str | os.PathLike, goal: Goal = Goal()) -> bool:
  """Whether both pages are as they were written, of what is there now.

  Args:
    goal: What advice is asked for now.
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
  """Digests by name, '' of what is not there, the program's, and the goal."""
  found = {name: _digest(place / name) for name in (*PAGES, *_READ, about.FILE)}
  return found | dict(program=_program(), goal=goal._asdict())


def _digest(file: Path) -> str:
  return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ''


def _program() -> str:
  """A digest of which files it has, how long and of when."""
  lines = []
  for folder, _, names in os.walk(Path(vfljax.__file__).parent):
    for name in names:
      if name.endswith('.py'):
        stat = os.stat(os.path.join(folder, name))
        lines.append(f'{folder}/{name} {stat.st_size} {stat.st_mtime_ns}')
  return hashlib.sha256('\n'.join(sorted(lines)).encode()).hexdigest()
