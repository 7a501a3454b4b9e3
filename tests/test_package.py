"""What importing does and what may import what."""
import ast
import functools
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
import subprocess
import sys

import pytest

import vfljax

PACKAGE = Path(vfljax.__file__).parent
# From the bottom up, what lies in vfljax/: nothing imports from above. Whatever
# is new there gets its place here.
LAYERS = (
    {'ahead', 'cells', 'check', 'converting', 'crossing', 'descent', 'draws',
     'flow', 'fusing', 'importing', 'leakage', 'ledger', 'likeness', 'need',
     'numerics', 'passed', 'permuting', 'rows', 'samples', 'sampling', 'shards',
     'target', 'telling', 'types'},
    {'adversary', 'algorithms', 'attack', 'backdoor', 'chaining', 'club',
     'completion', 'defense', 'evaluation', 'federation', 'hooks', 'measure',
     'metrics', 'nets', 'protocol', 'returned', 'scene', 'switching', 'views'},
    {'attacks', 'data', 'defenses', 'he', 'masked', 'mpc'},
    {'audit', 'contracts', 'epochs', 'plan', 'stream', 'sweep', 'train',
     'tuning'},
    {'__init__'},
    {'runner'},
    {'report'},
    {'calling'},
    {'running'},
    {'commands'},
    {'recommending'},
    {'__main__'},
)
# The runner's rooms: each may look into those before it.
ROOMS = (
    {'errors'}, {'machine'}, {'config', 'variants'}, {'experiment'},
    {'compiled'}, {'checking'}, {'workdir'}, {'cli'}, {'run'}, {'main'},
)
APART = LAYERS[2]  # These do not import each other: masked alone needs mpc.
OF_THE_RUNNER = {
    'PIL', 'absl', 'filelock', 'matplotlib', 'ml_collections', 'orbax',
    'pandas', 'pyarrow', 'rich', 'sklearn',
}


def name_of(path):
  """'vfljax.nets' of vfljax/nets/__init__.py."""
  parts = path.relative_to(PACKAGE.parent).with_suffix('').parts
  return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob('*.py'))}


def of_each(names):
  """A check of a name as one test of all names: what is wrong with which.

  As one test each they would be a seventh of all that there are, and take
  longer to be handed to workers than to be run.
  """
  def made(check):
    @functools.wraps(check)
    def test():
      wrong = {}
      for name in names:
        try:
          check(name)
        except AssertionError as error:
          wrong[name] = str(error)
      assert not wrong, wrong

    del test.__wrapped__  # Of which pytest would take the parameters.
    return test

  return made


@functools.cache
def tree_of(name):
  return ast.parse(FILES[name].read_text('utf-8'))


def test_names_are_imported_when_they_are_asked_for_and_change_no_jax_setting():
  """Nor the environment, and no device is started."""
  code = (
      'import os, sys\n'
      'environment = dict(os.environ)\n'
      'import vfljax\n'
      'assert not {"jax", "numpy"} & {*sys.modules}, "not lazy"\n'
      'import vfljax.data, vfljax.running, vfljax.recommending\n'
      'assert "jax" not in sys.modules, "tables and pages need no JAX"\n'
      'assert environment == dict(os.environ), "a variable changed"\n'
      'import jax\n'
      'before = dict(jax.config.values)\n'
      'assert vfljax.fit is vfljax.train.fit\n'
      'assert vfljax.data.load and {*vfljax.__all__} < {*dir(vfljax)}\n'
      'assert {"data", "types", "fit"} < {*dir(vfljax)}, "not completed"\n'
      'assert not {"Any", "importlib", "_HOMES"} & {*dir(vfljax)}\n'
      'assert all(hasattr(vfljax, name) for name in dir(vfljax))\n'
      'from vfljax import *\n'
      'assert VFL is vfljax.types.VFL and none is vfljax.defense.none\n'
      'assert not hasattr(vfljax, "nothing")\n'
      'import vfljax.data, vfljax.mpc\n'
      'after = dict(jax.config.values)\n'
      'assert before == {k: after[k] for k in before}, "a setting changed"\n'
      'from jax._src import xla_bridge\n'
      'assert not xla_bridge._backends, "a device was started"\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr


def test_every_public_name_is_there():
  for name in vfljax.__all__:
    assert getattr(vfljax, name) is not None
  assert {'run', 'nets', '__version__', *vfljax.__all__} <= {*dir(vfljax)}


def nodes(tree, inside=True):
  """All of a syntax tree; without `inside`, only what an import runs: neither
  what functions do nor what is there for type checkers."""
  waiting = [tree]
  while waiting:
    for node in ast.iter_child_nodes(waiting.pop()):
      yield node
      later = isinstance(node, (ast.FunctionDef, ast.Lambda)) or (
          isinstance(node, ast.If)
          and getattr(node.test, 'id', '') == 'TYPE_CHECKING'
      )
      if inside or not later:
        waiting.append(node)


@functools.cache
def imports(name, inside=True):
  """Dotted names of the modules that are imported, anywhere by default."""
  found = set()
  for node in nodes(tree_of(name), inside):
    if isinstance(node, ast.Import):
      found |= {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
      assert node.module and not node.level, 'Imports are absolute here.'
      names = [f'{node.module}.{alias.name}' for alias in node.names]
      found |= {name if name in FILES else node.module for name in names}
  return found


def place(name):
  """The package or module right in vfljax/ that a module is or belongs to."""
  return (*name.split('.'), '__init__')[1]


def layer(name):
  return next(i for i, some in enumerate(LAYERS) if place(name) in some)


def test_whatever_lies_here_has_its_layer():
  assert {place(name) for name in FILES} == set().union(*LAYERS)


@of_each(FILES)
def test_imports_run_one_way(name):
  own = {n for n in imports(name) if n.split('.')[0] == 'vfljax'}
  assert not {n for n in own if n not in FILES}
  for other in own:
    if name != 'vfljax.runner.main':
      assert layer(other) <= layer(name), other
    here, there = place(name), place(other)
    if {here, there} <= APART and here != there:
      assert (here, there) == ('masked', 'mpc')
    assert here != 'mpc' or there in ('mpc', 'check', 'target'), other
  roots = {n.split('.')[0] for n in imports(name)}
  assert 'experiments' not in roots
  assert place(name) == 'nets' or 'flax' not in roots
  if place(name) not in ('runner', 'report', 'commands'):
    first = {n.split('.')[0] for n in imports(name, inside=False)}
    assert not first & OF_THE_RUNNER


def room(name):
  """How far up in the runner a module is; `None` outside of it."""
  parts = [*name.split('.'), '__init__'][1:3]
  if parts[0] != 'runner' or parts[1] == '__init__':
    return None
  return next(i for i, some in enumerate(ROOMS) if parts[1] in some)


@of_each([n for n in FILES if room(n) is not None])
def test_the_runners_rooms_know_those_before_them(name):
  above = {n: room(n) for n in imports(name) if n in FILES and room(n)}
  assert not {n for n, there in above.items() if there > room(name)}


def test_no_import_comes_back():
  """Nor would it if functions imported at once what they import when run."""
  graph = {}
  for name in FILES:
    found = imports(name)
    # What lies in a package runs the package's own file first.
    parts = [one.split('.') for one in found]
    outer = {'.'.join(p[:i]) for p in parts for i in range(2, len(p))}
    outer = {n for n in outer if not f'{name}.'.startswith(f'{n}.')}
    graph[name] = {n for n in found | outer if n in FILES}
  try:
    TopologicalSorter(graph).prepare()
  except CycleError as error:
    pytest.fail(' imports '.join(reversed(error.args[1])))


# What runs what it reads, starts programs, or opens connections.
DANGEROUS = {
    'cloudpickle', 'dill', 'ftplib', 'http', 'joblib', 'marshal',
    'multiprocessing', 'pickle', 'ray', 'requests', 'shelve', 'socket',
    'subprocess', 'urllib', 'urllib3',
}
# What Windows lacks.
UNIX = {'curses', 'fcntl', 'grp', 'pty', 'pwd', 'resource', 'termios', 'tty'}
# What may import one of them, and does so when it is asked to.
ASKED = {
    'vfljax.commands.ray_engine': {'ray'},
    # Compiled programs, in the folder of which that is said.
    'vfljax.runner.compiled.kept': {'pickle'},
}
CALLS = {'eval', 'exec', 'execfile', '__import__', 'system', 'popen', 'Popen',
         'read_pickle', 'urlopen', 'urlretrieve'}
# What imports modules by their names, and only names that stand there.
BY_NAME = {'vfljax', 'vfljax.commands.dispatch', 'vfljax.runner.cli.listing'}


@of_each(FILES)
def test_nothing_that_is_read_runs_and_nothing_is_sent(name):
  """SECURITY.md says so. Config files alone are executed."""
  # What quotes a name is no connection.
  found = {n for n in imports(name) if n != 'urllib.parse'}
  roots = {n.split('.')[0] for n in found} & DANGEROUS
  assert roots == ASKED.get(name, set())
  at_once = {n.split('.')[0] for n in imports(name, inside=False)}
  assert not roots & at_once
  assert not UNIX & at_once
  for node in nodes(tree_of(name)):
    if isinstance(node, ast.Call):
      called = getattr(node.func, 'id', getattr(node.func, 'attr', ''))
      assert called not in CALLS, f'line {node.lineno} calls {called}'
    if isinstance(node, ast.keyword) and node.arg == 'allow_pickle':
      assert ast.unparse(node.value) == 'False'
    # Modules by their names: ours, and a config's that lies in a clone.
    if isinstance(node, ast.Attribute) and node.attr == 'import_module':
      assert name in BY_NAME


WORDS = {'read_text': 1, 'write_text': 2}  # An encoding is the last of so many.


@of_each([*FILES, *sorted(PACKAGE.parent.glob('experiments/**/*.py'))])
def test_text_is_in_the_encoding_that_is_named(name):
  """Windows has another one of its own."""
  tree = tree_of(name) if name in FILES else ast.parse(name.read_text('utf-8'))
  for node in nodes(tree):
    if isinstance(node, ast.Call):
      called = getattr(node.func, 'id', getattr(node.func, 'attr', ''))
      given = node.args[hasattr(node.func, 'id'):]
      text = len(given) < WORDS.get(called, 0)
      if called == 'open':  # Archives open what they have, others bytes.
        mode = getattr(given[0], 'value', 'b') if given else 'r'
        text = isinstance(mode, str) and 'b' not in mode
      said = 'encoding' in {word.arg for word in node.keywords}
      assert said or not text, f'line {node.lineno}'


# Their parameters are options of a network or of a file, which people set by
# name, as text.
LONG = {'lenet5', 'csv', 'parties'}


@of_each(FILES)
def test_files_and_functions_fit_on_a_page_or_few(name):
  """300 lines a file, 60 a function with all in it, 8 parameters."""
  assert len(FILES[name].read_text('utf-8').splitlines()) <= 300
  for node in nodes(tree_of(name)):
    if isinstance(node, ast.FunctionDef):
      lines = node.end_lineno - node.lineno + 1
      own = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
      assert lines <= 60, f'{node.name} has {lines} lines'
      few = len(own) <= 8 or node.name in LONG
      assert few, f'{node.name} has {len(own)} parameters'


def test_the_version_is_one():
  """Where a release states it: see BUILD.md."""
  said = vfljax.__version__
  for file, line in (
      ('pyproject.toml', f'version = "{said}"'),
      ('CITATION.cff', f'version: {said}'),
      ('README.md', f'Version {said},'), ('CHANGELOG.md', f'## {said}'),
  ):
    assert line in (Path(__file__).parents[1] / file).read_text('utf-8'), file
