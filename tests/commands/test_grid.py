"""A grid of experiments: each runs once, whatever becomes of the others."""
import importlib.util
import json
import os
from pathlib import Path
import subprocess
import sys

import jax
import pytest

from tests.commands.finished import ISO, NONE, made
from tests.compiling import QUICK_FLAGS
from vfljax.commands import axes, grid, point, ray_engine
from vfljax.runner import main
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk

ROOT = Path(__file__).parents[2]
CONFIG = '''
from vfljax.runner.config import *
def get_config():
  return Config(
      seeds=1, alone=False, listed=(Entry('none'),),
      listed_attacks=('norm_scoring',),
      data=DataConfig(name='breast_cancer'),
      model=ModelConfig(algorithm='vlr'),
      train=TrainConfig(epochs=1, batch_size=32, optimizer='sgd'),
  )
'''


@pytest.fixture
def start(tmp_path, capsys):
  """Runs `vfljax grid`: (exit code, standard output, standard error)."""
  (tmp_path / 'tiny.py').write_text(CONFIG)
  cache = jax.config.jax_compilation_cache_dir or ''

  def begin(*arguments):
    code = main.main([
        'vfljax', 'grid', str(tmp_path / 'tiny.py'), '--devices=2',
        f'--cache={cache}', f'--workdir={tmp_path}/grid', *arguments,
    ])
    return code, *capsys.readouterr()

  return begin


def folders(place):
  return {
      p.name.partition('attack.known=')[2] or p.name: p
      for p in (place / 'grid').iterdir() if p.is_dir()
  }


@pytest.mark.slow
def test_each_runs_once_and_one_report_is_of_all(
    start, tmp_path, monkeypatch
):
  """What differs is no part of the programs: they are compiled once."""
  played, play = [], point.play
  monkeypatch.setattr(point, 'play', lambda argv, stop=None: (
      played.append(argv[-1]), play(argv, stop)
  )[1])
  code, said, _ = start('--over', 'attack.known=2,3')
  assert code == 0 and '2 experiments, 0 of them done.' in said
  assert 'grid.html' in said and len(played) == 2
  page = (tmp_path / 'grid/grid.html').read_text()
  assert 'attack.known' in page and 'What differs' in page
  found = folders(tmp_path)
  assert set(found) == {'2', '3'}
  before = {p: p.stat().st_mtime_ns for f in found.values()
            for p in f.rglob('*') if p.is_file() and p.name != '.lock'}
  for known, folder in found.items():
    config = json.loads((folder / 'config.json').read_text())
    assert config['attack']['known'] == int(known)
    assert (folder / 'report.html').exists()
  # Another value, and somebody else is at work in its folder.
  busy = tmp_path / 'grid' / found['2'].name.replace('known=2', 'known=4')
  with disk.alone(busy):
    code, said, error = start('--over', 'attack.known=2,3,4')
  assert code == 2 and 'Of 3 experiments, 1 could not be finished' in error
  assert 'Another process' in error and len(error.splitlines()) == 2
  assert '3 experiments, 2 of them done.' in said and 'grid.html' in said
  code, said, _ = start('--over', 'attack.known=2,3,4')
  assert code == 0 and '2 of them done' in said and len(played) == 4
  assert before == {p: p.stat().st_mtime_ns for p in before}
  code, said, _ = start('--over', 'attack.known=2,3,4')
  assert code == 0 and '3 of them done' in said and len(played) == 4


@pytest.mark.parametrize('arguments, said', [
    (['--over', 'data.parties=2,31'], 'parties=31'),
    (['--over', 'data.partys=2'], 'Did you mean data.parties'),
    (['--over', 'data.name=wine,nowhere'], 'nowhere'),
    (['--config.train.epochs=0'], 'epochs must be 1'),
    (['--engine=slurm'], "choose from 'local', 'ray'"),
    (['--cpus=2'], '--engine=ray'), (['--worker=2'], "unknown argument '--wor"),
    (['--engine=ray', '--cpus=-1'], '0 or more'),
    (['no/such.py'], 'There is no config file no/such.py'),
    (['--config.seeds=3', 'no/such.py'], 'There is no config file no/such.py'),
    (['--config.seeds', '3'], 'a space: --config.seeds=3'),
    (['--config=b.py', '--over', 'seeds=1,2'], 'Type: vfljax grid b.py ...'),
    (['--config', 'b.py'], 'takes its config files without --config'),
    (['--config.data.named', 'a;*'], "'--config.data.named=a;*'"),
])
def test_refused_before_anything_runs(start, tmp_path, arguments, said):
  code, _, error = start(*arguments)
  assert code == 2 and said in error and len(error.splitlines()) <= 3
  assert not (tmp_path / 'grid').exists()


def test_what_cannot_be_run_may_be_left_out(start, tmp_path, monkeypatch):
  ran, asked = [], ('--over', 'data.parties=2,31,3')
  monkeypatch.setitem(
      grid.ENGINES, 'local',
      lambda left, resources, stop: ran.extend(p.name for p in left) or {},
  )
  monkeypatch.setattr(grid, '_report', lambda *a: None)
  code, _, error = start(*asked)
  assert code == 2 and not ran
  assert '--skip leaves out combinations' in error
  code, said, _ = start(*asked, '--skip')
  assert code == 0 and '2 experiments, 0 of them done.' in said
  assert said.startswith('Left out: ') and 'parties=31: ' in said
  assert [name[-1] for name in ran] == ['2', '3']
  code, _, error = start('--over', 'data.parties=31', '--skip')
  assert code == 2 and 'parties=31' in error and '--skip' not in error


def test_code_that_fails_when_it_is_asked_may_be_left_out(
    start, tmp_path, monkeypatch
):
  """A method's own error is no end of the grid, either."""
  asked = []

  def is_done(argv):
    asked.append(argv)
    if '--config.seeds=1' in argv:
      raise KeyError('mine')
    return True

  monkeypatch.setattr(point, 'is_done', is_done)
  monkeypatch.setattr(grid, '_report', lambda *a: None)
  code, _, error = start('--over', 'seeds=1,2')
  assert code == 2 and "KeyError: 'mine'" in error.splitlines()[-2]
  assert 'seeds=1' in error.splitlines()[-2] and 'Traceback' in error
  assert len(asked) == 1  # It is refused whatever the others are.
  code, said, _ = start('--over', 'seeds=1,2', '--skip')
  assert code == 0 and said.startswith('Left out: ') and "'mine'" in said


def test_a_page_is_over_all_and_a_single_one_has_its_own(
    tmp_path, capsys, monkeypatch
):
  written = lambda runs: ' and '.join(one.name for one in runs)
  monkeypatch.setattr(grid.compare, 'written', written)
  points = [axes.Point(name, (), str(made(tmp_path / name, [NONE, ISO])), label)
            for name, label in (('of=1', '1'), ('of=2', '2'))]
  grid._report(points[:1], tmp_path)
  report = Path(points[0].workdir, 'report.html')
  assert capsys.readouterr().out == f'\nReport: {report}\n'
  grid._report(points, tmp_path)
  page = tmp_path / 'grid.html'
  assert f'Report: {page}' in capsys.readouterr().out
  assert page.read_text() == '1 and 2'


def test_code_that_ends_the_program_is_not_finished(
    start, tmp_path, monkeypatch
):
  def play(argv, stop):
    if '--config.seeds=1' in argv:
      sys.exit(0)
    # As XLA tells what a callback raised.
    raise RuntimeError('INTERNAL: Traceback (most recent call last):\n'
                       '  File "x.py", line 1, in f\nKeyError: 3')

  monkeypatch.setattr(point, 'play', play)
  code, said, error = start('--over', 'seeds=1,2')
  assert code == 2 and 'Of 2 experiments, 2 could not be finished' in error
  assert 'SystemExit: 0\n' in error and 'Not finished: KeyError: 3\n' in said


def test_a_work_directory_is_no_grid(start, tmp_path):
  (tmp_path / 'grid').mkdir()
  (tmp_path / 'grid/config.json').write_text('{"seeds": 1}')
  code, _, error = start()
  assert code == 2 and 'of one experiment' in error


def test_without_ray(monkeypatch):
  monkeypatch.setitem(sys.modules, 'ray', None)
  with pytest.raises(UserError, match=r"pip install 'vfljax\[run,ray\]'"):
    grid.ENGINES['ray']([], grid.Resources())


def test_a_task_has_as_many_devices_as_cores():
  assert ray_engine._sized(['vfljax'], grid.Resources(3)) == [
      'vfljax', '--devices=3'
  ]
  assert ray_engine._sized(['vfljax'], grid.Resources()) == ['vfljax']


@pytest.mark.skipif(
    not importlib.util.find_spec('ray'), reason='for who has the extra ray'
)
def test_ray_starts_a_task_again_whose_process_died(tmp_path):
  (tmp_path / 'tiny.py').write_text(CONFIG)
  quick = {'JAX_DISABLE_MOST_OPTIMIZATIONS': '1', 'XLA_FLAGS': QUICK_FLAGS}
  # Each process is killed when it has written its first result.
  died = {'VFLJAX_FAULT': '*/parts/*.json:3:kill'}

  def start(place, *more, fault=True):
    return subprocess.run([
        sys.executable, '-m', 'vfljax.runner.main', 'grid',
        str(tmp_path / 'tiny.py'), '--over', 'data.parties=2,3',
        '--config.seeds=2', '--config.seeds_per_chunk=1',
        f'--workdir={tmp_path / place}',
        f'--cache={jax.config.jax_compilation_cache_dir or ""}', *more,
    ], cwd=ROOT, text=True, capture_output=True, check=False,
       env=os.environ | quick | (died if fault else {}))

  done = start('ray', '--engine=ray', '--cpus=1')
  assert done.returncode == 0, done.stdout + done.stderr
  assert '2 of 2: done' in done.stdout
  again = start('ray', '--engine=ray', '--cpus=1', fault=False)
  assert '2 of them done' in again.stdout
  here = start('here', '--devices=1', fault=False)
  assert here.returncode == 0, here.stdout + here.stderr
  for folder in (tmp_path / 'here').glob('tiny*'):
    theirs = tmp_path / 'ray' / folder.name / 'results.jsonl'
    assert theirs.read_bytes() == (folder / 'results.jsonl').read_bytes()
