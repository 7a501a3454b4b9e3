"""Whether a work directory's report says what is in it."""
import os
from pathlib import Path

PAGES = ('summary.md', 'report.html')
_READ = ('config.json', 'results.jsonl', 'timings.json')


def is_current(path: str | os.PathLike) -> bool:
  """Whether both pages are newer than what they are made of, and by."""
  place = Path(path)
  makers = Path(__file__).parent.glob('*.py')
  try:
    written = min((place / name).stat().st_mtime_ns for name in PAGES)
    made_of = [*(place / name for name in _READ), *makers]
    return written > max(file.stat().st_mtime_ns for file in made_of)
  except OSError:
    return False
