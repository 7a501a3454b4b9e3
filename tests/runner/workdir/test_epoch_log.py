"""Each epoch as it is measured: lines of JSON, and event files."""
import errno
import json
from pathlib import Path
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

import launch
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import epoch_events, parts, record
from vfljax.runner.workdir.epoch_log import EpochLog
from vfljax.runner.workdir.epoch_points import Point, points

ROOT = Path(__file__).parents[3]
NAN = np.nan
JOB = SimpleNamespace(
    units=('iso/1', 'iso/5'), labels=('iso', 'iso'), strengths=(1.0, 5.0),
    seeds=(0, 1), setting=SimpleNamespace(sizes=SimpleNamespace(validation=9)),
)
EPOCHS = 4


def history(done=EPOCHS):
  """Two strengths of two seeds, and a row of padding; every second measured."""
  cells = np.arange(5, dtype=np.float32)[:, None]
  played = np.arange(EPOCHS)[None] < done
  whole = (cells + np.arange(EPOCHS, dtype=np.float32)[None] / 8) * played
  measured = np.tile([False, True, False, True], (5, 1)) & played
  return dict(
      loss=whole, measured=measured, validation=dict(auc=10 * whole * measured),
      watch={'norm_scoring': dict(leak_auc=100 * whole * measured)},
  )


def events(folder):
  """(step, {tag: value}) of every event in the one file of a folder."""
  file, = folder.glob('events.out.tfevents.*')
  raw, at, found = file.read_bytes(), 0, []
  while at < len(raw):  # A record: length, its checksum, bytes, theirs.
    length, = struct.unpack_from('<Q', raw, at)
    event = Event.FromString(raw[at + 12 : at + 12 + length])
    found.append(event)
    at += 12 + length + 4
  assert found[0].file_version == 'brain.Event:2'
  return [
      (e.step, {v.tag: v.simple_value for v in e.summary.value})
      for e in found[1:]
  ]


def lines(place, unit):
  text = (place / 'epochs' / f'{unit}.jsonl').read_text()
  return [json.loads(line) for line in text.splitlines()]


def test_means_are_of_those_that_go_on():
  curves = dict(
      train_loss=np.array([[1, 2, 3], [3, 4, NAN]]),
      auc=np.array([[0.5, NAN, 0.75], [1.0, NAN, NAN]]),
  )
  assert points(curves) == [
      Point(1, 2, dict(train_loss=2.0, auc=0.75)),
      Point(3, 1, dict(train_loss=3.0, auc=0.75)),
  ]
  assert points(curves, first=1) == points(curves)[1:]


def test_a_training_that_diverged_is_no_number_but_is_there():
  curves = dict(
      train_loss=np.array([[1.0], [NAN]]), accuracy=np.array([[0.5], [0.25]]),
      auc=np.array([[0.5], [NAN]]),
  )
  point, = points(curves)
  assert point.seeds == 2 and point.values['accuracy'] == 0.375
  assert np.isnan(point.values['auc'] + point.values['train_loss'])


def test_nothing_measured_is_nothing_written():
  assert points({}) == points(dict(train_loss=np.ones((2, 3)))) == []


def test_what_a_stride_measured_is_there_before_the_next(tmp_path):
  with EpochLog(tmp_path, tensorboard=True) as log:
    log.begin(JOB, history(0), 0)
    assert lines(tmp_path, 'iso@5') == events(board(tmp_path, 'iso@5')) == []
    log.add(JOB, history(2), 0, 2)
    assert lines(tmp_path, 'iso@5') == [{
        'unit': 'iso/5', 'defense': 'iso', 'strength': 5.0,
        'utility': 'validation', 'epoch': 2, 'seeds': 2, 'train_loss': 2.625,
        'auc': 26.25, 'norm_scoring/leak_auc': 262.5,
    }]
    assert events(board(tmp_path, 'iso@1')) == [(2, {
        'train_loss': 0.625, 'auc': 6.25, 'norm_scoring/leak_auc': 62.5,
    })]


@pytest.mark.parametrize('samples, utility', [(9, 'validation'), (0, 'test')])
def test_lines_say_of_which_samples_the_utility_is(samples, utility, tmp_path):
  job = SimpleNamespace(**vars(JOB))
  job.setting = SimpleNamespace(sizes=SimpleNamespace(validation=samples))
  with EpochLog(tmp_path) as log:
    log.begin(job, history(2), 2)
  assert [one['utility'] for one in lines(tmp_path, 'iso@1')] == [utility]


def board(place, unit):
  return place / 'tensorboard' / unit


def play(place, first, end, **options):
  """A process that goes on from a checkpoint after `first` epochs."""
  place.mkdir(exist_ok=True)
  with EpochLog(place, **options) as log:
    log.begin(JOB, history(first), first)
    for done in range(first, end):
      log.add(JOB, history(done + 1), done, done + 1)


def test_a_run_that_went_on_has_every_epoch_once(tmp_path):
  """Killed after the third epoch, of which the last checkpoint knows two."""
  play(tmp_path / 'whole', 0, EPOCHS, tensorboard=True)
  play(tmp_path / 'out', 0, 3, tensorboard=True)
  with (tmp_path / 'out/epochs/iso@1.jsonl').open('a') as file:
    file.write('{"unit": "iso/1", "def')
  play(tmp_path / 'out', 2, EPOCHS, tensorboard=True)
  for unit in ('iso@1', 'iso@5'):
    whole, out = [board(tmp_path / p, unit) for p in ('whole', 'out')]
    assert events(out) == events(whole)
    assert [step for step, _ in events(out)] == [2, 4]
    assert lines(tmp_path / 'out', unit) == lines(tmp_path / 'whole', unit)


def test_asked_for_in_the_middle_there_are_the_epochs_before(tmp_path):
  play(tmp_path, 0, 3)
  assert not (tmp_path / 'tensorboard').exists()
  play(tmp_path, 2, EPOCHS, tensorboard=True)
  assert [step for step, _ in events(board(tmp_path, 'iso@5'))] == [2, 4]


def test_asked_for_at_the_end_there_are_all_epochs_once(tmp_path):
  """Of units that were done before, from their curves."""
  place = tmp_path / 'out'
  (place / 'parts').mkdir(parents=True)
  for i, unit in enumerate(JOB.units):
    own = record.curves(history(), slice(2 * i, 2 * i + 2))
    parts.file(place, unit, '.json').write_text(
        json.dumps(dict(unit=unit, rows=[], timing={}))
    )
    np.savez(parts.file(place, unit, '.npz'), **own)
  for _ in range(2):
    log = EpochLog(place, tensorboard=True)
    log.finished([JOB])
    log.close()
  play(tmp_path / 'whole', 0, EPOCHS, tensorboard=True)
  for unit in ('iso@1', 'iso@5'):
    whole, out = [board(tmp_path / p, unit) for p in ('whole', 'out')]
    assert events(out) == events(whole)
    assert lines(place, unit) == lines(tmp_path / 'whole', unit)


def test_a_disk_that_takes_nothing(tmp_path):
  (tmp_path / 'epochs').write_text('in the way')
  with pytest.raises(UserError, match='Cannot write to'):
    play(tmp_path, 0, 1)


TINY = [
    'launch.py', '--config=experiments/quickstart.py', '--config.seeds=2',
    '--config.train.epochs=3', '--config.model.bottom=4',
    '--config.model.top=4', '--config.train.optimizer=sgd', '--devices=2',
    '--cache=', '--config.defenses=max_norm', '--config.attacks=norm_scoring',
]


@pytest.fixture
def at_home(monkeypatch):
  monkeypatch.chdir(ROOT)


@pytest.mark.slow
def test_a_run_from_the_command_line(tmp_path, at_home, capsys):
  """Asked again, a finished one is completed, and left alone after that."""
  place = tmp_path / 'out'
  asked = [*TINY, f'--workdir={place}']
  assert launch.main(asked) == 0
  first = lines(place, 'max_norm')
  assert {line['utility'] for line in first} == {'test'}
  assert [line['epoch'] for line in first] == [1, 2, 3]
  (place / 'epochs' / 'max_norm.jsonl').write_text('lost')
  assert launch.main([*asked, '--tensorboard']) == 0
  assert lines(place, 'max_norm') == first
  units = {path.name for path in (place / 'tensorboard').iterdir()}
  assert units == {'none', 'alone', 'max_norm'}
  told = events(place / 'tensorboard' / 'max_norm')
  curves = parts.curves(place, 'max_norm')
  assert set(curves) == set(told[0][1])
  for name, curve in curves.items():
    np.testing.assert_allclose(
        [values[name] for _, values in told], curve.mean(0), 1e-6
    )
    np.testing.assert_allclose(
        [line[name] for line in first], curve.mean(0), 1e-5
    )
  before = {p: p.stat().st_mtime_ns for p in place.rglob('events.*')}
  assert launch.main([*asked, '--tensorboard']) == 0
  assert before == {p: p.stat().st_mtime_ns for p in place.rglob('events.*')}
  capsys.readouterr()


def test_without_the_extra_nothing_is_begun(
    tmp_path, at_home, capsys, monkeypatch
):
  for name in [n for n in sys.modules if n.startswith('tensorboardX')]:
    monkeypatch.setitem(sys.modules, name, None)
  asked = [*TINY, f'--workdir={tmp_path}/out', '--tensorboard']
  assert launch.main(asked) == 2
  said = capsys.readouterr().err
  assert "--tensorboard: tensorboardX" in said
  assert "pip install 'vfljax[tensorboard]'" in said
  assert not (tmp_path / 'out').exists()


def test_with_the_extra_it_may_begin():
  epoch_events.check()


def test_a_disk_that_is_full_only_at_the_end_is_the_work_directorys(
    tmp_path, monkeypatch
):
  # Without a file's name it was taken for what is printed.
  def full(self):
    raise OSError(errno.ENOSPC, 'No space left on device')

  monkeypatch.setattr(epoch_events.Events, 'close', full)
  log = EpochLog(tmp_path, tensorboard=True)
  with pytest.raises(UserError, match=f'Cannot write to {tmp_path}'):
    log.close()


def test_lines_end_alike_on_windows(tmp_path, monkeypatch):
  """There text gets other ends of lines, unless its writer says which."""
  plain = Path.open

  def opened(path, mode='r', **how):
    if 'b' not in mode and how.get('newline') is None:
      how['newline'] = '\r\n'
    return plain(path, mode, **how)

  monkeypatch.setattr(Path, 'open', opened)
  with EpochLog(tmp_path) as log:
    log.begin(JOB, history(2), 2)
    log.add(JOB, history(), 2, EPOCHS)
  content = (tmp_path / 'epochs/iso@1.jsonl').read_bytes()
  assert content.count(b'\n') == 2 and b'\r' not in content
