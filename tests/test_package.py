"""What importing does and what may import what."""
import ast
from pathlib import Path
import subprocess
import sys

import pytest

import vfljax

PACKAGE = Path(vfljax.__file__).parent
FILES = sorted(PACKAGE.rglob('*.py'))


def test_importing_changes_no_jax_setting_and_starts_no_device():
  code = (
      'import jax\n'
      'before = dict(jax.config.values)\n'
      'import vfljax, vfljax.data, vfljax.mpc\n'
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


def imports(path):
  """Dotted names of all that a file imports."""
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      yield from (f'{node.module}.{alias.name}' for alias in node.names)


@pytest.mark.parametrize(
    'path', FILES, ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_run_one_way(path):
  names = set(imports(path))
  place = path.relative_to(PACKAGE).parts[0]
  assert not {n for n in names if n.startswith('experiments')}
  if place != 'nets':
    assert not {n for n in names if n.startswith('flax')}
  if place == 'defenses':
    assert not {n for n in names if n.startswith('vfljax.attacks')}
  if place == 'attacks':
    assert not {n for n in names if n.startswith('vfljax.defenses')}
  if place == 'mpc':
    own = {n for n in names if n.startswith('vfljax')}
    assert all(n.startswith('vfljax.mpc') for n in own)
