"""Runs that a signal ends: the same command goes on, and finds the same."""
import os
from pathlib import Path
import signal
import subprocess
import sys
import threading
import time

import pytest

import launch
from tests import processes
from tests.command_line import ROOT, TINY, main, read
from tests.compiling import QUICK_FLAGS
from vfljax.runner import run
from vfljax.runner.cli import listing
from vfljax.runner.compiled import strides
from vfljax.runner.machine import stopping


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
  monkeypatch.chdir(ROOT)


# What is begun in processes that signals end, and finished in this one: two
# jobs of one program.
LONGER = [
    '--config.train.epochs=40', '--config.defenses=none',
    '--config.attacks=norm_scoring', '--config.alone=False',
    '--config.seeds_per_chunk=1', '--config.model.algorithm=vlr',
]


def forked(workdir):
  """The command line in a fork, saving as often as it can."""
  arguments = [*TINY[:-1], *LONGER, f'--workdir={workdir}', processes.kept()]
  return processes.Started(arguments, seconds={
      (run.__name__, 'SAVE_SECONDS'): 0, (strides.__name__, 'SHORT'): 0,
  })


def start(workdir):
  """The same as a program that Python starts, and that ends as such."""
  code = (
      'import sys, launch; from vfljax.runner import run; '
      'from vfljax.runner.compiled import strides; '
      'run.SAVE_SECONDS = strides.SHORT = 0; '
      'sys.exit(launch.main())'
  )
  arguments = [*TINY[:-1], *LONGER, f'--workdir={workdir}', processes.kept()]
  # All runs that are compared alike: see conftest.
  quick = {'JAX_DISABLE_MOST_OPTIMIZATIONS': '1', 'XLA_FLAGS': QUICK_FLAGS}
  return subprocess.Popen(
      [sys.executable, '-c', code, *arguments], cwd=ROOT,
      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
      env=quick | os.environ,
  )


def interrupted(workdir, number, start):
  """A run stopped by a signal as soon as it has a checkpoint."""
  process = start(workdir)
  saved = Path(workdir) / 'checkpoints'
  while process.poll() is None:
    if list(saved.glob('*/*/digests.json')):
      process.send_signal(number)
      break
    time.sleep(0.01)
  said = process.communicate(timeout=120)
  return process.returncode, said[-1]


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  """What a run that nobody interrupted finds."""
  place = tmp_path_factory.mktemp('whole') / 'out'
  os.chdir(ROOT)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(strides, 'SHORT', 0)  # So all compile the same.
    assert not launch.main(
        ['launch.py', *TINY, *LONGER, f'--workdir={place}']
    )
  return read(place)


@pytest.fixture
def ten_calls(monkeypatch):
  """As of a long training: of fewer, a signal may come after the last save."""
  monkeypatch.setattr(strides, 'SHORT', 0)


@pytest.mark.slow
@pytest.mark.usefixtures('ten_calls')
def test_killed_and_continued_gives_the_same_bytes(whole, capsys, tmp_path):
  code, _ = interrupted(tmp_path / 'killed', signal.SIGKILL, forked)
  assert code == -signal.SIGKILL
  code, said = main(capsys, *LONGER, workdir=tmp_path / 'killed')
  assert code == 0, said
  assert read(tmp_path / 'killed') == whole


@pytest.mark.slow
@pytest.mark.usefixtures('ten_calls')
def test_ctrl_c_saves_and_a_damaged_checkpoint_is_no_end(
    whole, capsys, tmp_path
):
  code, error = interrupted(tmp_path / 'out', signal.SIGINT, start)
  assert code == 130 and 'after saving' in error
  assert f'The same command continues {tmp_path}/out.' in error
  saved = tmp_path / 'out' / 'checkpoints'
  # If it was too slow to save, there is one that it had begun to write.
  whole_ones = [p for p in saved.glob('*/*') if p.name.isdigit()]
  newest = max(whole_ones, key=lambda p: int(p.name))
  files = [f for f in newest.rglob('*') if f.is_file()]
  largest = max(files, key=lambda f: f.stat().st_size)
  largest.write_bytes(largest.read_bytes()[:-7])
  code, said = main(capsys, *LONGER, workdir=tmp_path / 'out')
  assert code == 0 and read(tmp_path / 'out') == whole
  line, = said
  assert f'/{newest.name} is damaged' in line and 'damaged/' in line


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_who_calls_it_keeps_the_process(capsys, monkeypatch, number):
  """As in a notebook: nothing ends it, and no thread stays behind."""
  def never(place=''):
    raise AssertionError('the process would be gone')

  def text(_):
    assert threading.current_thread() is threading.main_thread()
    signal.raise_signal(number)
    return 'it goes on'

  def interrupt(*_):
    raise KeyboardInterrupt

  before = signal.signal(number, interrupt)  # The host's own.
  try:
    monkeypatch.setattr(stopping, 'leave', never)
    monkeypatch.setattr(listing, 'text', text)
    assert launch.main(['launch.py', '--list']) == 130
  finally:
    signal.signal(number, before)
  assert capsys.readouterr() == ('', 'Stopped.\n')
