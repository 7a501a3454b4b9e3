"""The work directory: results in order, kills, resumption and refusals."""
import errno
import fcntl
import json
import multiprocessing
import os
from pathlib import Path
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import jax.numpy as jnp
import numpy as np
import pytest

from tests import processes
from tests.workdirs import CONFIG, MANY, UNITS, rows, run_all, save_many
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import store


def test_lines_have_the_fixed_form(tmp_path):
  work = store.open_workdir(tmp_path / 'out', CONFIG, UNITS)
  work.save('iso/1', rows('iso/1', (1 / 3, float('nan'))), {})
  work.save('none', rows('none', (np.float32(0.1), jnp.float32(-0.0))), {})
  start = '{"experiment": "tiny", "dataset": "digits", "algorithm": "vsnn", '
  assert (tmp_path / 'out/results.jsonl').read_text().splitlines() == [
      start + '"defense": "none", "strength": null, "attack": null, "seed": 0,'
      ' "metric": "auc", "split": "test", "value": 0.1}',
      start + '"defense": "none", "strength": null, "attack": null, "seed": 1,'
      ' "metric": "auc", "split": "test", "value": 0.0}',
      start + '"defense": "iso", "strength": 1.0, "attack": null, "seed": 0,'
      ' "metric": "auc", "split": "test", "value": 0.3333333}',
      start + '"defense": "iso", "strength": 1.0, "attack": null, "seed": 1,'
      ' "metric": "auc", "split": "test", "value": null}',
  ]
  read = store.read_results(work.path)
  assert [r['value'] for r in read[:3]] == [0.1, 0.0, 0.3333333]
  assert np.isnan(read[3]['value'])


def test_order_and_interruption_do_not_change_the_results(tmp_path):
  straight = store.open_workdir(tmp_path / 'a', CONFIG, UNITS)
  run_all(straight)
  first = store.open_workdir(tmp_path / 'b', CONFIG, UNITS)
  first.save('iso/1', rows('iso/1'), {'run_seconds': 1.5})
  first.save('none', rows('none'), {'run_seconds': 1.5})
  # A kill between the unit's rename and the rewriting of the results.
  (first.path / 'results.jsonl').unlink()
  unfinished = first.path / 'parts' / '.vfljax-iso@0.json.tmp'
  unfinished.write_text('{"unit": "iso/0"')
  second = store.open_workdir(tmp_path / 'b', CONFIG, UNITS)
  assert [second.done(u) for u in UNITS] == [True, False, True, False]
  assert len(store.read_results(second.path)) == 4
  run_all(second)
  for name in ('results.jsonl', 'timings.json', 'config.json'):
    assert (tmp_path / 'a' / name).read_bytes() == (
        tmp_path / 'b' / name
    ).read_bytes()
  assert [t['unit'] for t in store.read_timings(second.path)] == UNITS
  assert not list(second.path.rglob('*.tmp'))


def test_results_alone_are_believed_and_cut_ones_written_anew(tmp_path):
  """Without their parts nothing says how many they have to be."""
  work = store.open_workdir(tmp_path / 'out', CONFIG, UNITS)
  run_all(work)
  file = work.path / 'results.jsonl'
  whole = file.read_bytes()
  file.write_bytes(b''.join(whole.splitlines(keepends=True)[:-1]))
  with pytest.raises(UserError, match='lost its end: 7 of 8 lines'):
    store.read_results(work.path)
  store.open_workdir(work.path, CONFIG, UNITS)
  assert file.read_bytes() == whole
  assert len(store.read_results(work.path)) == 8
  shutil.rmtree(work.path / 'parts')
  file.write_bytes(b''.join(whole.splitlines(keepends=True)[:-1]))
  assert len(store.read_results(work.path)) == 7


@pytest.mark.slow
def test_results_survive_kill_minus_nine(tmp_path):
  """A child saves many units and is killed somewhere in the middle."""
  for _ in range(2):
    here, there = multiprocessing.Pipe(duplex=False)
    child = processes.forked(save_many, tmp_path / 'out', there)
    there.close()
    assert here.recv() in MANY
    time.sleep(0.05)
    child.kill()
    child.join()
    lines = (tmp_path / 'out/results.jsonl').read_text().splitlines()
    seen = [json.loads(line)['strength'] for line in lines]
    assert child.exitcode == -signal.SIGKILL and 0 < len(seen) < 20000
    assert seen == [u for u in MANY[:len(seen) // 50] for _ in range(50)]


def test_curves_come_back_with_their_owner(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  curve = np.arange(6, dtype=np.float32).reshape(2, 3)
  work.save('iso/0', rows('iso/0'), {}, {'norm_scoring/leak_auc': curve})
  work.save('none', rows('none'), {})
  (owner, curves), = store.read_curves(tmp_path)
  assert (owner['defense'], owner['strength']) == ('iso', 0.0)
  np.testing.assert_array_equal(curves['norm_scoring/leak_auc'], curve)


def test_a_row_with_other_fields_is_refused(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  with pytest.raises(ValueError, match='attack'):
    row, = rows('none', (1.0,))
    del row['attack']
    work.save('none', [row], {})
  assert not work.done('none')


@pytest.mark.parametrize('units', [['a', 'b', 'a'], ['a', '']])
def test_units_need_names_of_their_own(tmp_path, units):
  with pytest.raises(ValueError):
    store.open_workdir(tmp_path / 'out', CONFIG, units)
  assert not (tmp_path / 'out').exists()


def test_odd_unit_names_stay_apart_and_inside(tmp_path):
  units = ['..', '../x', '/etc', 'a/b', 'a@b', 'GAFM (no CE)', 'x.tmp', '%2E']
  work = store.open_workdir(tmp_path / 'out', CONFIG, units)
  for i, unit in enumerate(units):
    work.save_checkpoint(unit, i, [jnp.full(2, i)])
    work = store.open_workdir(tmp_path / 'out', CONFIG, units)
  for i, unit in enumerate(units):
    loaded = work.load_checkpoint(unit, [jnp.zeros(2, int)])
    assert loaded is not None and loaded[0] == i
    work.save(unit, rows('none', (float(i),)), {})
  assert [r['value'] for r in store.read_results(work.path)] == [*range(8)]
  assert [p.name for p in tmp_path.iterdir()] == ['out']
  assert len(list((work.path / 'parts').iterdir())) == len(units)


def test_a_file_in_the_way_is_refused(tmp_path):
  (tmp_path / 'out').write_text('mine')
  with pytest.raises(UserError, match='--workdir'):
    store.open_workdir(tmp_path / 'out', CONFIG, UNITS)
  with pytest.raises(UserError, match='--workdir'):
    store.open_workdir(tmp_path / 'out' / 'deeper', CONFIG, UNITS)
  assert (tmp_path / 'out').read_text() == 'mine'


@pytest.mark.parametrize('number, words', [
    (30, 'Read-only file system'), (28, 'No space left on device'),
    (13, 'Permission denied'),
])
def test_a_refusing_disk_is_told_in_two_lines(
    tmp_path, monkeypatch, number, words
):
  """The errors of read-only and full disks, which tests cannot make."""
  work = store.open_workdir(tmp_path / 'a', CONFIG, UNITS)
  work.save('none', rows('none'), {})
  before = (work.path / 'results.jsonl').read_bytes()

  def refuse(*_):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(os, 'fsync', refuse)
  actions = [
      lambda: store.open_workdir(tmp_path / 'b', CONFIG, UNITS),
      lambda: work.save('iso/0', rows('iso/0'), {}),
      lambda: work.save_checkpoint('iso/0', 1, {'w': jnp.ones(2)}),
  ]
  for action in actions:
    with pytest.raises(UserError) as e:
      action()
    assert words in str(e.value) and len(str(e.value).splitlines()) == 2
  assert not work.done('iso/0')
  assert (work.path / 'results.jsonl').read_bytes() == before
  assert not list(tmp_path.rglob('*.tmp'))


def test_a_read_only_directory_is_refused(tmp_path):
  tmp_path.chmod(0o500)
  # Permissions do not stop root, but nobody makes directories in /proc.
  place = Path('/proc/out') if os.geteuid() == 0 else tmp_path / 'out'
  with pytest.raises(UserError, match='Cannot write'):
    store.open_workdir(place, CONFIG, UNITS)


def test_only_what_this_program_left_unfinished_is_removed(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('iso/0', 1, [jnp.ones(2)])
  gone = [
      '.vfljax-config.json.tmp', 'parts/.vfljax-none.json.tmp',
      'checkpoints/iso@0/.vfljax-3.tmp/leaves', 'parts/iso@0.npz.tmp',
      'parts/none.json.tmp', 'checkpoints/iso@0/3.tmp/leaves',
  ]
  stay = [
      'paper.tmp', 'config.json.tmp', 'notes/.vfljax-x.tmp', 'parts/mine.tmp',
      'parts/none.json.tmp.tmp', 'checkpoints/mine/3.tmp/leaves',
      'checkpoints/iso@0/notes.tmp', 'checkpoints/iso@0/best/weights',
      'checkpoints/iso@0/0003/weights', 'checkpoints/7/weights',
  ]
  for name in gone + stay:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('')
  again = store.open_workdir(tmp_path, CONFIG, UNITS)
  again.save_checkpoint('iso/0', 2, [jnp.ones(2)])
  again.save('iso/0', rows('iso/0'), {})
  assert not [name for name in gone if (tmp_path / name).exists()]
  assert not [name for name in stay if not (tmp_path / name).exists()]
  assert not (tmp_path / 'checkpoints/iso@0/1').exists()
  assert not (tmp_path / 'checkpoints/iso@0/2').exists()


def test_two_processes_cannot_share_a_directory(tmp_path):
  with disk.alone(tmp_path / 'out'):
    held = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(f'''
            from vfljax.runner import errors
            from vfljax.runner.machine import disk
            try:
              with disk.alone({str(tmp_path / 'out')!r}):
                print('entered')
            except errors.UserError as e:
              print(e)
        ''')], capture_output=True, text=True, check=True,
    )
    assert 'Another process is running in' in held.stdout
  with disk.alone(tmp_path / 'out'):
    pass  # Free again.


def test_what_was_the_same_elsewhere_is_taken_over(tmp_path):
  """Once, and not if it is damaged there."""
  other = store.open_workdir(tmp_path / 'a', CONFIG, UNITS)
  other.save('none', rows('none'), {'seeds': 2}, {'auc': np.ones((2, 3))})
  work = store.open_workdir(tmp_path / 'b', CONFIG | {'more': 1}, UNITS)
  work.adopt(other.path, 'none')
  work.adopt(other.path, 'iso/0')
  assert work.done('none') and not work.done('iso/0')
  assert store.read_results(work.path) == store.read_results(other.path)
  np.testing.assert_array_equal(
      store.read_curves(work.path)[0][1]['auc'], np.ones((2, 3))
  )
  (tmp_path / 'a' / 'parts' / 'none.json').write_text('{}')
  third = store.open_workdir(tmp_path / 'c', CONFIG, UNITS)
  third.adopt(other.path, 'none')
  assert not third.done('none')


def test_windows_stores_files_and_opens_no_folders(tmp_path, monkeypatch):
  """It stores only what is open for writing."""
  opened, stored, files = os.open, os.fsync, []

  def open_(path, *how):
    if Path(path).is_dir():
      raise PermissionError(errno.EACCES, 'Permission denied', str(path))
    return opened(path, *how)

  def fsync(number):
    if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
      raise OSError(errno.EBADF, 'Bad file descriptor')
    files.append(stored(number))

  monkeypatch.setattr(os, 'open', open_)
  monkeypatch.setattr(os, 'fsync', fsync)
  monkeypatch.setattr(sys, 'platform', 'win32')
  disk.write_text(tmp_path / 'a.txt', 'a')
  disk.sync(tmp_path / 'a.txt')
  assert len(files) == 2 and (tmp_path / 'a.txt').read_bytes() == b'a'


@pytest.mark.parametrize('system, busy', [
    ('win32', 2), ('win32', 99), ('linux', 1),
])
def test_windows_lets_nobody_replace_what_is_read(
    system, busy, tmp_path, monkeypatch
):
  named, tried = os.replace, []

  def replace(old, new):
    tried.append(new)
    if len(tried) <= busy:
      raise PermissionError(
          errno.EACCES, 'Access is denied', str(old), None, str(new)
      )
    named(old, new)

  monkeypatch.setattr(os, 'replace', replace)
  monkeypatch.setattr(disk, '_PAUSES', (0.0,) * 5)
  monkeypatch.setattr(sys, 'platform', system)
  file = tmp_path / 'a.txt'
  if busy == 2:
    disk.write_text(file, 'a')
    assert file.read_bytes() == b'a' and len(tried) == 3
    return
  then = 'a.txt\\).\nClose the' if busy > 2 else 'tmp\\).\nMake room'
  with pytest.raises(UserError, match=then):
    disk.write_text(file, 'a')
  assert len(tried) == (6 if busy > 2 else 1)


@pytest.mark.parametrize('system', ['win32', 'darwin', 'linux'])
def test_names_that_differ_in_case_alone(system, tmp_path, monkeypatch):
  monkeypatch.setattr(sys, 'platform', system)
  units = ['none', 'Mine/1', 'mine/1']
  if system == 'linux':
    assert store.open_workdir(tmp_path, CONFIG, units).units == tuple(units)
    return
  with pytest.raises(UserError, match='of Mine/1 and mine/1 would have one'):
    store.open_workdir(tmp_path, CONFIG, units)
