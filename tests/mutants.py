"""Mutation testing: faults that somebody could make, and who notices them.

  make mutants ARGS='iso vmask'    # those whose names begin so; all without

mutants.json lists them: a fault that is put into one place of one file, and the
tests that have to fail for it. Each is tried in a copy of the repository, so
that the working tree stays as it is. What tells a fault is a test that passes
without it, so the tests named are first run on the copy as it is.

A mutant has a name, the file, the exact text, its replacement, and what goes to
pytest. `gap` is true for one that no test noticed before its test was written
for it. `equivalent` says in words why a fault changes nothing that anybody
could notice: it is not run.
"""
import argparse
from collections.abc import Sequence
import importlib.util
import json
import multiprocessing
import os
from pathlib import Path
import shutil
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RECORD = ROOT / 'tests' / 'mutants.json'
COPIED = (
    'vfljax', 'tests', 'experiments', 'docs', 'launch.py', 'pyproject.toml',
    'BUILD.md', 'README.md',
)
# A fault may make a loop endless. The slowest test takes a tenth of this.
SECONDS = 600
# What most tests import, but nothing of ours: those are the copy's to import.
PRELOADED = ['flax.linen', 'jax', 'optax', 'scipy.stats']


class Mutant(NamedTuple):
  """One fault, see above."""

  name: str
  file: str
  text: str
  replacement: str
  tests: Sequence[str]
  gap: bool = False
  equivalent: str = ''


def recorded(path: Path = RECORD) -> list[Mutant]:
  return [Mutant(**row) for row in json.loads(path.read_text())]


def applied(mutant: Mutant, root: Path = ROOT) -> str:
  """The file's text with the fault in it.

  Raises:
    ValueError: if the text is not in the file exactly once.
  """
  whole = (root / mutant.file).read_text()
  count = whole.count(mutant.text)
  if count != 1:
    raise ValueError(
        f'{mutant.name}: its text is in {mutant.file} {count} times, not once. '
        'The code has changed: bring tests/mutants.json up to date.'
    )
  return whole.replace(mutant.text, mutant.replacement)


def _test(root: Path, tests: Sequence[str], log: Path, sender) -> None:
  """Runs in a process of its own: pytest's exit code and the first failure."""
  os.chdir(root)
  sys.path[:] = [str(root), *(p for p in sys.path if p != str(ROOT))]
  with log.open('w') as file:
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
  import pytest

  class Listener:
    """A plugin that keeps the names of tests that failed."""

    failed: list[str] = []

    def pytest_runtest_logreport(self, report):
      if report.failed:
        self.failed.append(report.nodeid)

  chosen = '-m', 'not faults'  # The slow ones, too, where they are named.
  code = pytest.main(['-x', '-q', *chosen, *tests], [Listener()])
  sender.send((int(code), Listener.failed))


def tried(
    root: Path, tests: Sequence[str], seconds: float = SECONDS
) -> tuple[int, str]:
  """pytest's exit code (-1: it did not end, -2: it died), the first failure."""
  context = multiprocessing.get_context('forkserver')
  context.set_forkserver_preload(PRELOADED)
  receiver, sender = context.Pipe(duplex=False)
  log = root / 'log'
  child = context.Process(target=_test, args=(root, tests, log, sender))
  child.start()
  sender.close()
  try:
    if not receiver.poll(seconds):
      child.kill()
      return -1, 'it did not end'
    code, failed = receiver.recv()
  except EOFError:
    return -2, 'the process died: ' + log.read_text()[-1500:]
  finally:
    child.join()
  last = log.read_text().strip().splitlines()[-1:]
  return code, failed[0] if failed else ''.join(last)


def verdict(code: int) -> str:
  """In a word, of pytest's exit code: 2 is a module that cannot be imported,
  which any test notices, and 4 a test that is not there."""
  words = {0: 'SURVIVED', 1: 'killed', -1: 'killed', -2: 'killed'}
  return words.get(code, 'BROKEN')


def copied(folder: Path) -> Path:
  """What tests need of the repository, in a folder of its own."""
  root = folder / 'copy'
  root.mkdir(parents=True)
  ignored = shutil.ignore_patterns('__pycache__')
  for name in COPIED:
    if (ROOT / name).is_dir():
      shutil.copytree(ROOT / name, root / name, ignore=ignored)
    else:
      shutil.copy(ROOT / name, root / name)
  compiled = Path('.pytest_cache', 'd', 'jax')
  if (ROOT / compiled).is_dir():  # What is not touched compiles the same.
    shutil.copytree(ROOT / compiled, root / compiled)
  return root


def _put(path: Path, text: str) -> None:
  """Writes a module. Python tells an old compiled one by its size and second,
  which a fault and its mending may share, so it is removed."""
  path.write_text(text)
  compiled = importlib.util.cache_from_source(str(path))
  Path(compiled).unlink(missing_ok=True)


def run(mutants: Sequence[Mutant], root: Path) -> list[dict]:
  """Tries mutants in a copy at `root`: what came of each, as it is printed."""
  found = []
  for mutant in mutants:
    if mutant.equivalent:
      print(f'equivalent  {mutant.name}: {mutant.equivalent}', flush=True)
      continue
    path, start = root / mutant.file, time.monotonic()
    whole = path.read_text()
    _put(path, applied(mutant, root))
    code, by = tried(root, mutant.tests)
    _put(path, whole)
    row = dict(
        name=mutant.name, verdict=verdict(code), by=by,
        seconds=round(time.monotonic() - start, 1),
    )
    print('{verdict:10}  {name}: {by} ({seconds} s)'.format(**row), flush=True)
    found.append(row)
  return found


def main(arguments: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(prog='python -m tests.mutants')
  parser.add_argument('name', nargs='*', help='what names begin with')
  parser.add_argument('--record', type=Path, default=RECORD)
  parser.add_argument(
      '--trust', action='store_true', help='that the tests pass without faults'
  )
  parser.add_argument('--result', type=Path, help='where to write rows as JSON')
  options = parser.parse_args(arguments)
  mutants = [
      m for m in recorded(options.record)
      if m.name.startswith(tuple(options.name) or '')
  ]
  if not mutants:
    print(f'No mutant begins with {" or ".join(options.name)}.')
    return 2
  for mutant in mutants:
    applied(mutant)
  with tempfile.TemporaryDirectory(prefix='mutants-') as folder:
    root = copied(Path(folder))
    tests = sorted({t for m in mutants if not m.equivalent for t in m.tests})
    print(f'{len(mutants)} mutants; {len(tests)} of tests as they are ...',
          flush=True)
    code, by = (0, '') if options.trust else tried(root, tests)
    if code:
      print(f'The tests do not pass without a fault: {by}.')
      return 2
    found = run(mutants, root)
  if options.result:
    options.result.write_text(json.dumps(found, indent=1))
  bad = [row['name'] for row in found if row['verdict'] != 'killed']
  print(f'{len(found) - len(bad)} of {len(found)} killed. ' + ', '.join(bad))
  return bool(bad)


if __name__ == '__main__':
  sys.exit(main())
