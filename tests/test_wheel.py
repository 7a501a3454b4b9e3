"""The wheel: what is in it, what it needs, and that this is enough.

A second environment would be 600 MB. Instead a folder of links has the
packages that an install would bring, and a Python that sees this folder, the
unpacked wheel and its own library, imports and runs what they hold.
"""
from importlib import metadata
import os
from pathlib import Path
import subprocess
import sys
import zipfile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
import pytest

from tests.compiling import QUICK_FLAGS
import vfljax
from vfljax.runner import main

ROOT = Path(vfljax.__file__).parents[1]
CORE = {'jax', 'flax', 'optax', 'numpy'}
# All but the command line and its reports, which need the extra.
# What is compiled is compiled quickly: it is not what is tried here.
QUICKLY = dict(JAX_DISABLE_MOST_OPTIMIZATIONS='1', XLA_FLAGS=QUICK_FLAGS)
IMPORT_ALL = '''
import importlib, pkgutil
import vfljax
assert vfljax.__file__.startswith(sys.path[0]), vfljax.__file__
extra = ('vfljax.runner', 'vfljax.report', 'vfljax.commands')

def import_all(package):
  for module in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):
    if module.name not in extra:
      found = importlib.import_module(module.name)
      if module.ispkg:
        import_all(found)

import_all(vfljax)
assert 'vfljax.nets.modules' in sys.modules
found = {name for name in sys.modules if name.startswith((*extra, 'orbax'))}
assert not found, found
'''
SCRIPT = '''
from importlib import metadata
script, = metadata.entry_points(group='console_scripts', name='vfljax')
sys.exit(script.load()())
'''
CONFIG = '''
from vfljax.runner.config import Config, ModelConfig, TrainConfig
import neighbour

def get_config():
  return Config(
      seeds=neighbour.SEEDS, alone=False, model=ModelConfig('vlr'),
      train=TrainConfig(epochs=1, optimizer='sgd'), defenses='none',
      attacks='norm_scoring',
  )
'''


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
  """The wheel of what lies here."""
  folder = tmp_path_factory.mktemp('dist')
  build = ['-m', 'hatchling', 'build', '-t', 'wheel', '-d', str(folder)]
  done = subprocess.run(
      [sys.executable, *build], cwd=ROOT, capture_output=True, text=True,
      check=False,
  )
  assert done.returncode == 0, done.stderr
  made, = folder.glob('*.whl')
  return made


@pytest.fixture(scope='module')
def unpacked(wheel):
  zipfile.ZipFile(wheel).extractall(wheel.parent / 'unpacked')
  return wheel.parent / 'unpacked'


@pytest.fixture(scope='module')
def requires(unpacked):
  info, = unpacked.glob('*.dist-info')
  return list(map(Requirement, metadata.Distribution.at(info).requires or ()))


def of_extra(requirements, *extras):
  """Those that an install with these extras brings."""
  return [
      r for r in requirements
      if not r.marker
      or any(r.marker.evaluate({'extra': extra}) for extra in ('', *extras))
  ]


def needed(requirements):
  """All distributions that these bring, by name."""
  found, todo, seen = {}, list(requirements), set()
  while todo:
    one = todo.pop()
    if str(one) not in seen:
      seen.add(str(one))
      found[one.name] = here = metadata.distribution(one.name)
      theirs = map(Requirement, here.requires or ())
      todo += of_extra(theirs, *one.extras)
  return found


def linked(distributions, folder):
  """A folder of links to what these have in site-packages."""
  folder.mkdir()
  for one in distributions.values():
    for name in {file.parts[0] for file in one.files or ()}:
      if name not in ('..', '__pycache__') and not (folder / name).exists():
        (folder / name).symlink_to(Path(one.locate_file(name)))
  return folder


def python(code, *arguments, path, cwd):
  """A run of Python that imports from `path` and its own library alone."""
  places = [str(place) for place in path]
  return subprocess.run(
      [sys.executable, '-I', '-S', '-c',
       f'import sys; sys.path[:0] = {places}\n{code}', *arguments],
      cwd=cwd, capture_output=True, text=True, check=False,
      env=QUICKLY | os.environ,
  )


def test_the_package_and_nothing_else(wheel):
  names = set(zipfile.ZipFile(wheel).namelist())
  about = {name for name in names if '.dist-info/' in name}
  here = {
      str(path.relative_to(ROOT).as_posix())
      for path in (ROOT / 'vfljax').rglob('*')
      if path.is_file() and path.suffix != '.pyc'
  }
  assert names - about == here
  assert {'vfljax/report/report.css', 'vfljax/py.typed'} < here
  assert {name.split('/')[0] for name in about} == {
      f'vfljax-{vfljax.__version__}.dist-info'
  }


def test_it_needs_four_packages(requires):
  assert {r.name for r in requires if not r.marker} == CORE


def test_the_script_knows_what_it_needs(requires):
  extra = {
      canonicalize_name(r.name) for r in requires
      if r.marker and r.marker.evaluate({'extra': 'run'})
  } - CORE
  owners = metadata.packages_distributions()
  known = [set(map(canonicalize_name, owners[p])) for p in main.PACKAGES]
  assert extra == {name for names in known for name in names & extra}
  assert all(names & extra for names in known)


@pytest.fixture(scope='module')
def bare(unpacked, requires):
  """Where an install without extras imports from."""
  site = linked(needed(of_extra(requires)), unpacked.parent / 'site')
  return [unpacked, site]


@pytest.mark.slow
def test_the_library_without_extras(bare, tmp_path):
  done = python(IMPORT_ALL, path=bare, cwd=tmp_path)
  assert done.returncode == 0, done.stderr


def test_the_command_line_without_its_extra(bare, tmp_path):
  done = python(SCRIPT, '--list', path=bare, cwd=tmp_path)
  assert done.returncode == 2
  assert done.stderr.splitlines() == [
      "error: the command line needs more packages: pip install 'vfljax[run]'"
  ]


@pytest.mark.slow
def test_the_command_line_in_a_folder(unpacked, requires, tmp_path):
  site = linked(needed(of_extra(requires, 'run')), tmp_path / 'site')
  here = tmp_path / 'here'
  here.mkdir()
  (here / 'my.py').write_text(CONFIG)
  (here / 'neighbour.py').write_text('SEEDS = 1\n')
  arguments = ['--config=my.py', '--cache=', '--devices=1']
  done = python(SCRIPT, *arguments, path=[unpacked, site], cwd=here)
  assert done.returncode == 0, done.stderr
  style = (unpacked / 'vfljax/report/report.css').read_text()
  assert style.strip() in (here / 'out/my/report.html').read_text()
  assert '"auc"' in (here / 'out/my/results.jsonl').read_text()
