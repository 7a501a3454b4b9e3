"""Mutants that nobody chose: cosmic-ray's, drawn at random.

  make mutants-drawn ARGS='--count=300'

mutants.json has faults that somebody thought of. Here the place is drawn, every
operator, comparison, number, decorator and loop of the package and of what
reads the records with equal chance, and what cosmic-ray makes of it;
annotations and the sentences of errors are left out. Each mutant is tried in a
copy: against the tests of all numbers' ranges and defaults, then against the
test files that name its module, notice a recorded fault of it or name one that
uses it, its own first, then against the contract tests of that name.

The record, drawn_mutants.json, goes on where it stopped: a seed draws by lot
of what stands at a place, so that a change elsewhere draws nothing else. A
survivor is mended by a test, and run again with --again, which marks it as the
`gap` that it was, or has its reason written into the record as `equivalent`.
"""
import argparse
import ast
from collections.abc import Iterator, Sequence
from concurrent import futures
import difflib
import functools
import hashlib
import importlib.metadata
import json
from pathlib import Path
import queue
import re
import sys
import tempfile
import time
from typing import NamedTuple

from tests import mutants

RECORD = mutants.ROOT / 'tests' / 'drawn_mutants.json'
# Modules of experiments that read records: tables, verdicts, figures in prose.
OF_RECORDS = (
    'again', 'agreed', 'alike', 'by_scripts', 'by_seed', 'claims', 'curves',
    'deciding', 'evidence', 'front', 'judges*', 'knowing', 'measured',
    'numbers', 'older', 'pu_scores', 'quits', 'readers', 'readings',
    'rebuilt', 'redrawn', 'rivalries', 'rows', 'said', 'studies', 'tables*',
    'takeaways', 'verify',
)
OF_RUNNER = (
    'config', 'experiment', 'cli', 'workdir', 'checking', 'compiled', 'machine'
)
# What cosmic-ray offers and we leave out: operators on types that no code of
# ours has there end in TypeErrors, which any test notices.
LEFT_OUT = re.compile(
    r'(_Is|_IsNot|Shift|_Pow|BitXor|BitAnd|BitOr|_Invert|_UAdd)$|Variable'
)
# Tests of what is far from formulas, which name every method: left out except
# for modules of the same folder, and networks that they import by name.
FAR = (
    'faults', 'experiments', 'report', 'commands', 'runner', 'data',
    'test_package.py', 'test_exporting.py', 'test_docs.py',
    'test_docs_blocks.py', 'test_wheel.py', 'test_screens.py',
    'test_mutants.py', 'test_drawn_mutants.py',
)
SECONDS = 600
# Folders whose modules are tested through each other, by all of their tests.
WHOLE = (
    'mpc', 'masked', 'data', 'nets', 'he', 'report', 'commands', *OF_RUNNER,
)
# Far from formulas: tried by the quick tests of their folder, and those outside
# of far ones that import them. What slow tests alone notice is a gap.
ROOMS = ('report', 'data', 'contracts', 'commands', *OF_RUNNER)
QUICK = ('-m', 'not faults and not slow')
# Modules whose own tests have another name.
NAMED_SO = dict(
    passed='misuse', returned='checked', epochs='checked',
    heads='batch_statistics',
    nnx_modules='nnx', encoder_files='encoder', pretrained='encoder',
    spnn='sums', sfa='sums', packing='sums', ckks='sums', encoding='cipher',
    keys='cipher', arrays='cipher', little='contracts', luck='contracts',
    of_attacks='contracts', of_defenses='contracts', **dict.fromkeys((
        'base', 'convolution', 'convolutional', 'dense', 'embedding', 'lenet',
        'mlp3', 'resnet', 'vgg', 'wide_deep',
    ), 'networks')
)
# Of every method's numbers, and quick.
ALWAYS = ('tests/test_defaults.py', 'tests/test_bounds.py')
FILES = 6  # So many of those that name a module.


class Drawn(NamedTuple):
  """A place of a file, and one of the things that can be made of it."""

  file: str
  line: int
  column: int
  operator: str
  occurrence: int


def modules(root: Path = mutants.ROOT) -> list[Path]:
  found = sorted((root / 'vfljax').rglob('*.py'))
  for name in OF_RECORDS:
    found += sorted((root / 'experiments').rglob(f'{name}.py'))
  return [path for path in found if path.parent.name != 'bench']


def _spared(code: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
  """Where annotations and `raise` statements begin and end."""
  spans = []
  for node in ast.walk(ast.parse(code)):
    nodes = [getattr(node, 'annotation', None), getattr(node, 'returns', None)]
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom):
      nodes.append(node)
    for n in nodes:
      if n is not None:
        end = n.end_lineno, n.end_col_offset
        spans.append(((n.lineno, n.col_offset), end))
  return spans


def offered(path: Path, root: Path = mutants.ROOT) -> Iterator[Drawn]:
  """All that cosmic-ray could do to a file, less what is left out."""
  from cosmic_ray import ast as trees
  from cosmic_ray import plugins

  code = path.read_text()
  spared = _spared(code)
  nodes = list(_nodes(trees.get_ast(code)))
  for name in sorted(plugins.operator_names()):
    if LEFT_OUT.search(name):
      continue
    operator = plugins.get_operator(name)()
    places = [p for node in nodes for p in operator.mutation_positions(node)]
    for occurrence, (start, _) in enumerate(places):
      if not any(a <= tuple(start) < b for a, b in spared):
        yield Drawn(
            str(path.relative_to(root)), *start, name, occurrence
        )


def _nodes(tree):
  """In the order in which cosmic-ray counts occurrences."""
  yield tree
  for child in getattr(tree, 'children', ()):
    yield from _nodes(child)


def sample(count: int, seed: int, names: Sequence[str] = ()) -> list[Drawn]:
  """`count` different places, and for each one of what can be made of it.

  By lot of what stands there: a change elsewhere draws nothing else.
  """
  places = {}
  for path in modules():
    if not names or {path.stem, *path.parts[-3:-1]} & {*names}:
      lines = path.read_text().splitlines()
      for mutant in offered(path):
        text = lines[mutant.line - 1]
        place = seed, mutant.file, text, lines[: mutant.line].count(text)
        places.setdefault((*place, mutant.column), []).append(mutant)
  chosen = sorted(places, key=_lot)[:count]
  return [min(places[p], key=lambda m: _lot((p, m.operator))) for p in chosen]


def _lot(thing: tuple) -> bytes:
  return hashlib.sha256(repr(thing).encode()).digest()


def mutated(mutant: Drawn, root: Path = mutants.ROOT) -> str:
  from cosmic_ray import mutating
  from cosmic_ray import plugins

  operator = plugins.get_operator(mutant.operator)()
  code = (root / mutant.file).read_text()
  return mutating.mutate_code(code, operator, mutant.occurrence) or code


def tests_of(file: str, root: Path = mutants.ROOT) -> list[str]:
  """Test files that name a module or one that uses it: its own first, then
  its folder's."""
  path = Path(file)
  if path.parts[0] == 'experiments':
    return _of_experiments(path, root)
  folder, home = path.parent.name, path.parent.parts[1:]
  name = folder if path.stem == '__init__' else path.stem
  imported = re.compile(rf'import\b.*\b{name}\b|\b{name} import')
  users = [  # That of a folder uses all, and its tests are no nearer.
      p.stem for p in sorted((root / path.parent).glob('*.py'))
      if p.stem != '__init__' and imported.search(p.read_text())
  ]
  asks = re.compile(
      rf'from vfljax\.{re.escape(".".join(home))}'
      rf'(\.{name} import| import .*\b{name}\b)'
  )
  word = re.compile(rf"\b({'|'.join([name, *users])})\b")
  own_names = tuple(
      f'test_{n}' for n in (name, folder, NAMED_SO.get(name, name))
  )
  found, all_of, noticed = [], set(), _noticed(file, root)
  for test in sorted((root / 'tests').rglob('test_*.py')):
    where = test.relative_to(root)
    text = test.read_text()
    whole = folder in WHOLE and where.parts[1:-1][:len(home)] == home
    known = str(where) in noticed
    if where.parts[1] in FAR and where.parts[1] != path.parts[1] and not known:
      whole = folder == 'nets' and bool(asks.search(text))
      if not whole:
        continue
    if whole:
      all_of.add(str(where))
    asked = bool((asks if folder in ROOMS else word).search(text))
    if whole or asked or known or test.stem in own_names:
      own = test.stem.startswith(own_names)
      named = bool(re.search(rf'\b{name}\b', text))
      near = where.parts[1] == path.parts[1]
      order = (
          not own, not known, not named, not near, len(text), str(where)
      )
      found.append(order)
  files = [row[-1] for row in sorted(found)]
  kept = {*files[:FILES], *all_of}
  files = [file for file in files if file in kept]
  if folder in ROOMS:  # They have constants and options, too.
    return [*files, *ALWAYS, *QUICK]
  return [*ALWAYS, *files]


def _noticed(file: str, root: Path) -> set[str]:
  """Test files that notice recorded faults of a module."""
  recorded = json.loads((root / 'tests' / 'mutants.json').read_text())
  return {
      test.split('::')[0]
      for row in recorded if row['file'] == file for test in row['tests']
  }


def _of_experiments(path: Path, root: Path) -> list[str]:
  """All quick tests of experiments: those named like it or its paper first."""
  paper = path.parent.name.rstrip('0123456789')
  near = re.compile(rf'{paper}_|{path.stem}|_evidence$')
  far = lambda test: not near.search(test.stem)
  found = sorted((root / 'tests' / 'experiments').glob('test_*.py'), key=far)
  return [*(str(test.relative_to(root)) for test in found), *QUICK]


def contracts_of(file: str, root: Path = mutants.ROOT) -> list[str]:
  if file.startswith('experiments'):
    return []
  tests = [
      str(p.relative_to(root)) for p in sorted((root / 'tests').rglob('*.py'))
      if p.stem == 'test_contract'
  ]
  return [*tests, '-k', Path(file).stem]


def changed(before: str, after: str) -> dict[str, str]:
  rows = list(difflib.unified_diff(
      before.splitlines(), after.splitlines(), n=0, lineterm=''
  ))[3:]
  return dict(
      before=' '.join(r[1:].strip() for r in rows if r[0] == '-'),
      after=' '.join(r[1:].strip() for r in rows if r[0] == '+'),
  )


def described(mutant: Drawn, root: Path = mutants.ROOT) -> dict:
  before = (root / mutant.file).read_text()
  return mutant._asdict() | changed(before, mutated(mutant, root))


def tried(mutant: Drawn, root: Path) -> dict:
  path, start = root / mutant.file, time.monotonic()
  row, whole = described(mutant, root), path.read_text()
  mutants._put(path, mutated(mutant, root))
  for tests in (tests_of(mutant.file, root), contracts_of(mutant.file, root)):
    code, by = mutants.tried(root, tests, SECONDS) if tests else (5, '')
    word = mutants.verdict(code) if code != 5 else 'SURVIVED'
    if word == 'BROKEN':  # Its module cannot be imported.
      word = 'killed'
    if code == -1:  # Endless or only slow: nobody knows.
      word = 'BROKEN'
      break
    if word == 'killed':
      break
  mutants._put(path, whole)
  if '::' in by and not _passes(root, by):
    word = 'BROKEN'
  took = round(time.monotonic() - start, 1)
  return row | dict(verdict=word, by=by, seconds=took)


@functools.cache
def _passes(root: Path, test: str) -> bool:
  """Whether a test passes on the copy as it is: else it tells no fault."""
  return mutants.tried(root, [test], SECONDS)[0] == 0


def _results(
    drawn: Sequence[Drawn], folder: Path, jobs: int
) -> Iterator[dict]:
  """Rows of the record as they come, `jobs` copies of the repository wide."""
  copies = queue.SimpleQueue[Path]()
  for number in range(min(jobs, len(drawn))):
    copies.put(mutants.copied(folder / str(number)))

  def result(mutant: Drawn) -> dict:
    root = copies.get()
    try:
      return tried(mutant, root)
    finally:
      copies.put(root)

  with futures.ThreadPoolExecutor(jobs) as pool:
    for future in futures.as_completed([pool.submit(result, m) for m in drawn]):
      yield future.result()


def _key(row: dict) -> tuple:
  return row['file'], row['before'], row['after']


def main(arguments: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(prog='python -m tests.drawn_mutants')
  parser.add_argument('module', nargs='*', help='of these, or folders, alone')
  parser.add_argument('--count', type=int, default=300)
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument('--record', type=Path, default=RECORD)
  parser.add_argument('--jobs', type=int, default=1, help='at a time')
  parser.add_argument('--again', action='store_true', help='survivors alone')
  options = parser.parse_args(arguments)
  record = dict(rows=[])
  if options.record.exists():
    record = json.loads(options.record.read_text())
  rows = {_key(row): row for row in record['rows']}
  drawn = sample(options.count, options.seed, options.module)
  if not drawn:
    parser.error(f'nothing is named {" or ".join(options.module)}.')
  left = {
      _key(row) for row in rows.values()
      if row['verdict'] != 'killed' and not row.get('equivalent')
  }
  drawn = [
      m for m in drawn if (
          _key(described(m)) in left if options.again
          else _key(described(m)) not in rows
      )
  ]
  with tempfile.TemporaryDirectory(prefix='mutants-') as folder:
    results = _results(drawn, Path(folder), options.jobs)
    for number, row in enumerate(results, 1):
      row['gap'] = _key(row) in rows
      rows[_key(row)] = row
      print(
          '{0}/{1} {verdict} {file}:{line} {before!r} -> {after!r} {by} '
          '({seconds} s)'.format(number, len(drawn), **row), flush=True
      )
      versions = {
          name: importlib.metadata.version(name)
          for name in ('cosmic-ray', 'jax', 'hypothesis')
      }
      record = dict(
          seed=options.seed, versions=versions, rows=list(rows.values())
      )
      options.record.write_text(json.dumps(record, indent=1) + '\n')
  alive = [r for r in rows.values() if r['verdict'] != 'killed']
  same = sum(bool(r.get('equivalent')) for r in alive)
  print(
      f'{len(rows) - len(alive)} of {len(rows)} killed; of {len(alive)} others '
      f'{same} change nothing that anybody could notice.'
  )
  return len(alive) > same


if __name__ == '__main__':
  sys.exit(main())
