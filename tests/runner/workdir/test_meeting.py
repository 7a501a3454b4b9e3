"""Several processes in one work directory: who gets in, and who is awaited."""
import errno
import itertools
import time
import types
from unittest import mock

import filelock
import pytest

from tests.processes import names, start
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import meeting, mending, parts, store
from vfljax.runner.workdir.shares import Share

FIRST, SECOND = Share(0, 2), Share(1, 2)


def test_who_gets_in(tmp_path, monkeypatch):
  monkeypatch.setattr(meeting, '_LOOKED_AT', 0.1)
  with meeting.among(tmp_path, FIRST), meeting.among(tmp_path, SECOND):
    for share, said in [
        (FIRST, 'a process 0 of 2'), (SECOND, 'a process 1 of 2'),
        (Share(), 'Process 0 of 2 is running'),
        (Share(2, 3), 'Process 0 of 2 is running'),
    ]:
      with pytest.raises(UserError, match=said) as error:
        with meeting.among(tmp_path, share):
          pass
      assert len(str(error.value).splitlines()) == 2
  with meeting.among(tmp_path, Share()):
    with pytest.raises(UserError, match='Another process'):
      with meeting.among(tmp_path, Share()):
        pass
  # Whoever was there has left, and left no lock that holds.
  for share in (Share(2, 3), Share(), SECOND):
    with meeting.among(tmp_path, share):
      pass


def test_who_is_alone_is_not_joined(tmp_path, monkeypatch):
  monkeypatch.setattr(meeting, '_COMING', 0.1)
  with meeting.among(tmp_path, Share()):
    with pytest.raises(UserError, match='Another process'):
      with meeting.among(tmp_path, FIRST):
        pass


def test_a_lock_of_a_dead_process_elsewhere_can_be_deleted(
    tmp_path, monkeypatch, capsys
):
  """Where file systems have no locks, filelock's file outlives its process."""
  monkeypatch.setattr(meeting, '_LOOKED_AT', 0.1)
  monkeypatch.setattr(meeting, '_LOOK', 0.01)
  monkeypatch.setattr(filelock, 'FileLock', filelock.SoftFileLock)
  file = meeting._file(tmp_path, SECOND)
  for content, said in ('4242\nnode17\n', f'delete {file}.'), ('', '_id.'):
    file.write_text(content)
    with pytest.raises(UserError) as error:
      with meeting.among(tmp_path, SECOND):
        pass
    told = str(error.value)
    assert told.endswith(said) and len(told.splitlines()) == 2
    assert ('process 4242 on node17' in told) == bool(content)
    with pytest.raises(UserError, match='Process 1 of 2 is') as error:
      with meeting.among(tmp_path, Share()):
        pass
    assert ('delete' in str(error.value)) == bool(content)
    once = mock.Mock(side_effect=[False, True])
    meeting.await_others(tmp_path, FIRST, lambda other: 1, once)
    assert ('delete' in capsys.readouterr().out) == bool(content)
    often = mock.Mock(side_effect=[False, False, True])
    left = mock.Mock(side_effect=[2, 1])
    meeting.await_others(tmp_path, FIRST, left, often)
    assert capsys.readouterr().out.count('delete') == bool(content)
  (tmp_path / '.lock').write_text('4242\nnode17\n')
  with pytest.raises(UserError, match=r'on node17 .*delete .*\.lock\.$'):
    with disk.alone(tmp_path):
      pass


def test_looking_at_a_lock_keeps_nobody_out(tmp_path):
  file = meeting._file(tmp_path, SECOND)
  assert not meeting._held(file) and not file.exists()
  with meeting.among(tmp_path, SECOND):
    assert meeting._held(file)
  assert not meeting._held(file)


def test_a_lock_that_cannot_be_looked_at_is_told(
    tmp_path, monkeypatch, capsys
):
  """As another user's, or a folder; not by a traceback after hours."""
  monkeypatch.setattr(meeting, 'PATIENCE', 0.05)
  monkeypatch.setattr(meeting, '_LOOK', 0.01)
  file = meeting._file(tmp_path, SECOND)
  file.mkdir()
  with pytest.raises(UserError, match='Cannot write to') as error:
    meeting.await_others(tmp_path, FIRST, lambda other: 1, lambda: False)
  assert file.name in str(error.value)
  said = capsys.readouterr().out.splitlines()
  assert len(said) == 1 and said[0].endswith(' Trying again for 0.05 seconds.')
  with pytest.raises(UserError, match='Cannot write to'):
    with meeting.among(tmp_path, Share()):
      pass


def test_without_a_common_folder_nobody_waits_for_ever(
    tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(meeting, 'PATIENCE', 0.05)
  monkeypatch.setattr(meeting, '_LOOK', 0.01)
  with pytest.raises(UserError, match='folder that all of them see'):
    meeting.await_first(SECOND, tmp_path, lambda: False)
  assert 'waiting for process 0' in capsys.readouterr().out
  with pytest.raises(UserError, match='lacks 3 results of process 1') as error:
    meeting.await_others(tmp_path, FIRST, lambda other: 3, lambda: False)
  assert len(str(error.value).splitlines()) == 2
  said = capsys.readouterr().out
  assert said == 'Waiting for process 1 (3 results left, not running).\n'
  # Nobody is given up who is there, nor waited for when somebody stops it.
  counts = iter([2] * 20 + [0])
  with meeting.among(tmp_path, SECOND):
    meeting.await_others(
        tmp_path, FIRST, lambda other: next(counts), lambda: False
    )
  assert not next(counts, 0)
  meeting.await_others(tmp_path, FIRST, lambda other: 1, lambda: True)


def test_a_file_that_cannot_be_looked_at_is_not_missing(tmp_path):
  (tmp_path / 'file').touch()
  assert disk.exists(tmp_path / 'file')
  assert not disk.exists(tmp_path / 'none')
  assert not disk.exists(tmp_path / 'file' / 'none')
  lost = mock.Mock()
  lost.stat.side_effect = OSError(errno.ESTALE, 'Stale file handle')
  with pytest.raises(OSError, match='Stale'):
    disk.exists(lost)


def test_a_file_server_that_pauses_ends_no_waiting(
    tmp_path, monkeypatch, capsys
):
  """Its errors count from the last answer; an error of another kind at once."""
  clock = itertools.count(0, meeting.PATIENCE / 2)
  monkeypatch.setattr(meeting, 'time', types.SimpleNamespace(
      monotonic=lambda: next(clock), sleep=lambda seconds: None
  ))
  pause = OSError(errno.ESTALE, 'Stale file handle', 'parts')

  def wait(*answers):
    given = mock.Mock(side_effect=answers)
    with meeting.among(tmp_path, SECOND):
      meeting.await_others(tmp_path, FIRST, given, lambda: False)

  wait(pause, 2, pause, pause, 1, pause, 0)
  said = capsys.readouterr().out.splitlines()
  kinds = [line.split()[0] for line in said]
  assert kinds == ['Cannot', 'Waiting', 'Cannot', 'Waiting', 'Cannot']
  assert '(1 result left)' in said[3]
  with pytest.raises(UserError, match='Stale file handle'):
    wait(2, pause, pause, pause, 0)
  monkeypatch.setattr(meeting, '_held', lambda file: False)
  wait(1, pause, 1, pause, 1, 0)  # Not absent all the while, for all one knows.
  with pytest.raises(UserError, match='has not run'):
    wait(1, 1, 1, 1, 0)
  with pytest.raises(UserError, match='Not to be tried again'):
    wait(UserError('Not to be tried again.'), 0)


def test_what_others_are_writing_stays(tmp_path):
  (tmp_path / 'parts').mkdir()
  files = {
      name: disk.temporary(tmp_path / name) for name in (
          'results.jsonl', 'parts/a.json', 'parts/b.json', 'parts/c.npz'
      )
  }

  def left(units, share):
    for file in files.values():
      file.write_text('half')
    mending.mend(tmp_path, units, share)
    return {name for name, file in files.items() if file.exists()}

  assert left(['a'], SECOND) == {'results.jsonl', 'parts/b.json', 'parts/c.npz'}
  assert left(['b'], FIRST) == {'parts/a.json', 'parts/c.npz'}
  assert left(['a'], Share()) == set()


def test_the_first_alone_writes_what_is_of_all(tmp_path):
  config, units = dict(seeds=2), ['a', 'b']
  same = lambda saved: saved
  first = store.open_share(tmp_path, config, units, same, FIRST, ['a'])
  before = (tmp_path / 'results.jsonl').read_bytes()
  second = store.open_share(tmp_path, config, units, same, SECOND, ['b'])
  row = dict.fromkeys(parts.FIELDS, 'x') | dict(seed=1, strength=1, value=0.5)
  second.save('b', [row], dict(run_seconds=1))
  assert (tmp_path / 'results.jsonl').read_bytes() == before
  first.collect()
  assert [t['unit'] for t in store.read_timings(tmp_path)] == ['b']
  assert len(store.read_results(tmp_path)) == 1


@pytest.mark.slow
def test_two_processes_one_killed_give_the_bytes_of_one(tmp_path):
  place = tmp_path / 'out'
  two = ['--coordinator=127.0.0.1:1', '--num_processes=2']
  first = start(place, *two, '--process_id=0')
  # Killed when the first of its two results has got its name.
  second = start(
      place, *two, '--process_id=1', fault='*/parts/*.json:3:kill'
  )
  said, _ = second.communicate(timeout=300)
  assert second.returncode == -9, said
  while first.poll() is None and len(names(place)) < 3:
    time.sleep(0.05)
  assert names(place) == [f'none@seeds{i}-{i}.json' for i in (0, 1, 2)]
  assert first.poll() is None  # It waits, and has written its own share only.
  again = start(place, *two, '--process_id=1')
  said, _ = again.communicate(timeout=300)
  assert again.returncode == 0 and 'process 0 writes the report' in said
  said, _ = first.communicate(timeout=300)
  assert first.returncode == 0, said
  assert 'Waiting for process 1 (1 result left' in said
  assert 'Report: ' in said and (place / 'report.html').exists()
  one = start(tmp_path / 'one')
  said, _ = one.communicate(timeout=300)
  assert one.returncode == 0, said
  for name in ('results.jsonl', 'config.json'):
    assert (place / name).read_bytes() == (tmp_path / 'one' / name).read_bytes()
