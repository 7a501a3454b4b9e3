"""What `--list` prints, as somebody reads it on a screen."""
import os
import subprocess
import sys

from tests.command_line import ROOT
from vfljax import defenses
from vfljax.runner.cli import listing


def test_defenses_are_told_in_lines_that_fit_a_screen():
  """One defense's many arguments widened the lines of all to 576 columns."""
  lines = listing.text('defenses').splitlines()
  assert max(map(len, lines)) <= 80
  heads = {
      line.strip().partition('(')[0]: i
      for i, line in enumerate(lines) if line[:3].strip() and i
  }
  assert [*heads] == sorted(defenses.REGISTRY)
  at = heads['iso']
  assert lines[at].strip() == 'iso(amplifier)'
  assert lines[at + 1].startswith('      Adds N(0, ')
  assert lines[at + 1].endswith('  25,10,5,2.75')
  # A word with a hyphen is one word.
  assert listing._folded('x' * 73 + ' cut-layer', 0) == [
      'x' * 73, '    cut-layer'
  ]
  for name in ('vmask(budget, selection', 'gafm(delta=0.05, weight'):
    assert any(line.startswith(f'  {name}') for line in lines)


def test_without_a_clone_it_says_where_experiments_are(tmp_path, monkeypatch):
  monkeypatch.setattr(listing, 'FOLDERS', (tmp_path / 'none',))
  assert listing.text('experiments') == (
      'Experiments (--config=...)\n  none here: they are in a clone of vfljax.'
  )


def test_experiments_are_listed_where_the_system_has_no_utf_8():
  """Their files are UTF-8; it was a traceback."""
  done = subprocess.run(
      [sys.executable, 'launch.py', '--list', 'experiments'], cwd=ROOT,
      capture_output=True, check=False, env=os.environ | dict(
          LC_ALL='C', PYTHONUTF8='0', PYTHONCOERCECLOCALE='0'
      ),
  )
  assert done.returncode == 0, done.stderr
  assert b'experiments/quickstart.py' in done.stdout
