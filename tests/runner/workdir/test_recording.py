"""`--record`: what a run measured comes back from its record."""
import errno
import json
import math
import os
from pathlib import Path
import sys
from types import SimpleNamespace

import jax
import pytest

from vfljax.report import reading
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import overwriting, recording, store
from vfljax.runner.workdir import record as of_jobs
from tests import fake_results

ARGV = [
    '/somewhere/launch.py', '--config=experiments/gafm/table2.py',
    '--config.data.path=/home/me/spambase.data', '--config.seeds=2',
    "--config.data.options=concepts='sky,person';ratio=2",
    '--workdir=/tmp/x', '--record=/tmp/r.json', '--cache=',
]


@pytest.fixture(scope='module')
def work(tmp_path_factory):
  place = tmp_path_factory.mktemp('recorded') / 'out'
  made = fake_results.make(place, seeds=3, defenses=('none', 'iso'))
  made.save('iso/3', [
      r | dict(value=math.nan if r['seed'] == 1 else r['value'])
      for r in store.read_results(place)
      if (r['defense'], r['strength']) == ('iso', 25.0)
  ], fake_results.timing(3))
  return made.path


COMMIT = '0123456789abcdef0123456789abcdef01234567'


@pytest.mark.parametrize('files, commit', [
    ({'.git/HEAD': COMMIT}, COMMIT[:12]),
    ({'.git/HEAD': 'ref: refs/heads/main\n', '.git/refs/heads/main': COMMIT},
     COMMIT[:12]),
    ({'.git/HEAD': 'ref: refs/heads/main', '.git/packed-refs': (
        f'# pack-refs\n{"f" * 40} refs/heads/not/main\n{COMMIT} refs/heads/main'
    )}, COMMIT[:12]),
    # A second work tree has its own HEAD, and refs in the first one.
    ({'.git': 'gitdir: first/.git/worktrees/two\n',
      'first/.git/worktrees/two/HEAD': 'ref: refs/heads/main',
      'first/.git/worktrees/two/commondir': '../..\n',
      'first/.git/refs/heads/main': COMMIT}, COMMIT[:12]),
    ({'.git/HEAD': 'ref: refs/heads/main', '.git/packed-refs': ''}, ''),
    ({'.git/HEAD': 'ref: refs/heads/main'}, ''), ({}, ''),
])
def test_the_commit_is_read_from_the_clone(
    tmp_path, monkeypatch, files, commit
):
  for name, text in files.items():
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
  monkeypatch.chdir(tmp_path)  # Git writes absolute paths.
  monkeypatch.setattr(
      recording.vfljax, '__file__', str(tmp_path / 'vfljax/__init__.py')
  )
  assert recording.code.__wrapped__() == commit


def test_the_rows_come_back(work):
  record = json.loads(recording.text(recording.make(work, ARGV)))
  saved = store.read_results(work)
  key = lambda row: tuple(str(row[name]) for name in store.FIELDS)
  assert sorted(map(key, recording.rows(record))) == sorted(map(key, saved))
  assert any(math.isnan(row['value']) for row in recording.rows(record))
  assert 'NaN' not in recording.text(record)
  found = reading.of_rows(recording.rows(record), record['config'])
  assert found[0].cells == reading.read(work)[0].cells


def test_it_says_how_to_make_it_again(work):
  record = recording.make(work, ARGV)
  assert record['command'] == (
      'python launch.py --config=experiments/gafm/table2.py '
      '--config.data.path=spambase.data --config.seeds=2 '
      """'--config.data.options=concepts='"'"'sky,person'"'"';ratio=2'"""
  )
  assert record['seeds'] == [0, 1, 2]
  assert record['title'] == ['quickstart', 'breast_cancer', 'vhnn']
  assert {'jax', 'python', 'vfljax', 'platform'} <= set(record['versions'])
  assert record['seconds'] == dict(compiling=5.0, running=3.25 * 6 + 6 + 1)
  assert record['date'] and record['device']


def test_another_experiments_record_is_not_overwritten(work, tmp_path):
  """With more seeds, in another folder and in another order it is the same."""
  file = tmp_path / 'r.json'
  recording.write(str(file), work, ARGV)
  program, *flags = ARGV
  more = [*flags[::-1], '--config.seeds=9', '--workdir=/tmp/y', '--devices=2']
  overwriting.check(str(file), [program, *more])
  path, = (flag for flag in flags if flag.startswith('--config='))
  whole = f'--config={Path.cwd() / path.removeprefix("--config=")}'
  overwriting.check(str(file), [whole if x == path else x for x in ARGV])
  count = len(recording.read(file)['seeds'])
  overwriting.check(str(file), ARGV, count)
  with pytest.raises(UserError, match='seeds, the command asks for 1'):
    overwriting.check(str(file), ARGV, 1)
  with pytest.raises(UserError, match='remove that file') as error:
    overwriting.check(str(file), [*ARGV, '--config.train.epochs=3'])
  assert 'gafm/table2.py' in str(error.value).splitlines()[1]


def test_another_record_is_one_under_other_settings_of_jax(work, tmp_path):
  file = str(tmp_path / 'r.json')
  with jax.enable_x64(True):
    recording.write(file, work, ARGV)
    overwriting.check(file, ARGV)
  said = recording.read(file)['command']
  assert said.startswith('JAX_ENABLE_X64=True python launch.py --config=')
  with pytest.raises(UserError, match='another command:\nJAX_ENABLE_X64=True'):
    overwriting.check(file, ARGV)


def test_it_names_the_devices_of_all_processes(tmp_path):
  made = fake_results.make(tmp_path / 'out', 1, ('none', 'iso'))
  rows = [r for r in store.read_results(made.path) if r['strength'] == 5.0]
  made.save('iso/2', rows, fake_results.timing(2) | dict(device='1 x H200'))
  assert recording.make(made.path, ARGV)['device'] == '2 x cpu and 1 x H200'


def test_a_value_may_stand_apart_from_its_flag(work):
  apart = [
      'launch.py', '--config=my.py', '--config.data.path', '/home/me/a.csv',
      '--workdir', 'out', '--config.train.learning_rate', '-1', '--record',
      'mine.json', '--tensorboard', '--config.seeds', '2',
  ]
  assert recording.make(work, apart)['command'] == (
      'python launch.py --config=my.py --config.data.path=a.csv '
      '--config.train.learning_rate=-1 --config.seeds=2'
  )
  command = ['recommend', '--redo', '/my.csv']
  assert recording.command(['vfljax', *command]).split()[2:] == command


@pytest.mark.parametrize('typed, joined', [
    (['--a', '1', '2'], ['--a=1', '2']), (['--a=1', '2'], ['--a=1', '2']),
    (['--a', '-1', '--b'], ['--a=-1', '--b']), ([], []), (['-b'], ['-b']),
    (['--a', '--b', '.5'], ['--a', '--b=.5']),
    (['recommend', '--a', '1'], ['recommend', '--a', '1']),
    (['--a', 'x=1', 'y'], ['--a=x=1', 'y']),
])
def test_words_go_to_the_flag_before_them(typed, joined):
  assert recording.joined(typed) == joined


def test_nothing_of_anybodys_is_overwritten(work, tmp_path):
  somebodys = tmp_path / 'mine.json'
  somebodys.write_text('{"a": 1}')
  with pytest.raises(UserError, match='is no record of vfljax'):
    overwriting.check(str(somebodys), ARGV)
  with pytest.raises(UserError, match='there is no folder'):
    overwriting.check(str(tmp_path / 'nowhere' / 'r.json'), ARGV)
  file = tmp_path / 'r.json'
  overwriting.check(str(file), ARGV)
  recording.write(str(file), work, ARGV)
  overwriting.check(str(file), ARGV)
  assert recording.read(file)['command'].startswith('python launch.py')
  empty = tmp_path / 'empty'
  empty.mkdir()
  with pytest.raises(UserError, match='no results'):
    recording.write(str(file), empty, ARGV)


def test_who_looks_later_has_measured_nothing(tmp_path):
  # A record of a finished run had the commit and the versions of the day on
  # which it was written.
  origin = lambda date, code, jax: dict(made=dict(
      date=date, code=code, versions=dict(python='3.11', jax=jax)
  ))
  made = fake_results.make(tmp_path, seeds=1, defenses=('none',))
  rows = [r for r in store.read_results(tmp_path)
          if not r['metric'].startswith('alone')]
  made.save('none/0', rows, origin('2026-01-02', 'aaa', '0.9'))
  found = recording.make(tmp_path, ARGV)
  assert (found['date'], found['code']) == ('2026-01-02', 'aaa')
  assert found['versions'] == dict(python='3.11', jax='0.9')
  made.save('alone', [], origin('2026-01-01', 'bbb', '0.10'))
  found = recording.make(tmp_path, ARGV)
  assert found['date'] == '2026-01-02' and found['code'] == 'bbb and aaa'
  assert found['versions'] == dict(python='3.11', jax='0.10 and 0.9')


def test_what_is_no_ordinary_file_is_no_record(tmp_path, monkeypatch):
  os.mkfifo(tmp_path / 'r.json')  # Who reads it waits for ever.
  record = json.dumps(dict(format=recording.FORMAT))
  monkeypatch.setattr(Path, 'read_text', lambda *_: record)
  with pytest.raises(UserError, match='is no record of vfljax'):
    overwriting.check(str(tmp_path / 'r.json'), ARGV)


def test_another_users_record_is_not_called_none(tmp_path, monkeypatch):
  file = tmp_path / 'r.json'
  file.touch()

  def denied(place, encoding):
    raise PermissionError(errno.EACCES, 'Permission denied', str(place))

  monkeypatch.setattr(Path, 'read_text', denied)
  monkeypatch.setattr(os, 'access', lambda place, how: how != os.R_OK)
  with pytest.raises(UserError, match=f'^Permission denied: {file}'):
    overwriting.check(str(file), ARGV)


def test_a_folder_that_cannot_be_written_is_refused_before_all_is_trained(
    tmp_path, monkeypatch
):
  monkeypatch.setattr(os, 'access', lambda place, how: place != tmp_path)
  with pytest.raises(UserError, match='nothing can be written into'):
    overwriting.check(str(tmp_path / 'r.json'), ARGV)


def test_a_command_of_windows_is_repeated_anywhere(monkeypatch):
  """A config's file may be on another drive than we are."""
  monkeypatch.setattr(os, 'sep', '\\')
  typed = ['launch.py', '--config=experiments\\quickstart.py']
  said = 'python launch.py --config=experiments/quickstart.py'
  assert recording.command(typed) == said

  def relpath(path):
    raise ValueError("path is on mount 'D:', start on mount 'C:'")

  monkeypatch.setattr(os.path, 'relpath', relpath)
  assert overwriting._asked('python launch.py --config=a/../my.py') == {
      f'config={Path.cwd() / "my.py"}'
  }


@pytest.mark.parametrize('system, peak', [
    ('linux', 7 << 10), ('darwin', 7), ('win32', None),
])
def test_the_memory_of_this_process_is_in_bytes(system, peak, monkeypatch):
  said = SimpleNamespace(
      RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_maxrss=7)
  )
  monkeypatch.setitem(sys.modules, 'resource', said if peak else None)
  monkeypatch.setattr(sys, 'platform', system)
  assert of_jobs.peak_memory() == peak
