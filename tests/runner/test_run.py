"""The training loop's checkpoints, on a job that computes next to nothing."""
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from vfljax.runner import run
from vfljax.runner.cli.progress import Progress
from vfljax.runner.compiled.programs import Compiled, Going
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import checkpoints, store
from vfljax.runner.workdir.writer import Writer

EPOCHS = 4


@pytest.fixture
def play(tmp_path, monkeypatch):
  """Runs a job whose epochs are `epoch(done)`; the steps that are saved."""
  job = SimpleNamespace(
      setting=SimpleNamespace(
          config=SimpleNamespace(train=SimpleNamespace(epochs=EPOCHS))
      ), count=1, units=('none',), name='none', seeds=(0,), attacked=False,
  )
  going = Going(
      [dict(w=np.zeros(1))], dict(x=np.zeros((1, EPOCHS))), np.float32(0)
  )
  for module, name, value in [
      (run.compiling, 'begin', going), (run, '_resume', None),
      (run, 'rounds_an_epoch', 1), (run, '_utility', None),
      (run.record, 'finished', []),
  ]:
    monkeypatch.setattr(module, name, lambda *_, value=value: value)
  work = store.open_workdir(tmp_path / 'out', {}, ['none'])
  folder = checkpoints.folder(work.path, 'none')

  def begin(epoch, stop, ready=lambda seconds: True):
    def advance(job, runs, cells, shared):
      epoch(int(shared[1]), folder)
      return [dict(w=runs[0]['w'] + 1)], dict(x=np.ones((1, 1)))

    made = Compiled(
        'none', place=lambda job: (None, None), start=None, advance=advance,
        finish=lambda *_: None, ready=ready, own=lambda job, runs: runs,
        whole=None, shapes=None, stride=1, seconds=0.0, crossing={},
    )
    log = SimpleNamespace(
        begin=lambda *_: None, add=lambda *_: None, close=lambda: None
    )
    with Writer(work, 'none') as writer:
      run._run_job(job, work, Progress(1), made, (stop, writer, log))()

  def disk(monkeypatch, write):
    """Has `write(step)` in place of writing."""
    save = lambda work, unit, step, tree: write(step)
    monkeypatch.setattr(store.Workdir, 'save_checkpoint', save)

  begin.disk = disk
  begin.steps = lambda: checkpoints.steps(folder)
  return begin


def test_who_asks_to_stop_finds_the_last_epoch_saved(play):
  stop = Stop()

  def epoch(done, folder):
    if done == 2:
      stop.since = time.monotonic()

  with pytest.raises(run.Interrupted):
    play(epoch, stop)
  assert play.steps() == [3]


def test_a_long_stride_is_saved_while_the_next_one_is_played(play, monkeypatch):
  """Nobody waits for the end of a stride of minutes, nor needs to."""
  def epoch(done, folder):
    until = time.monotonic() + 30
    while done and done not in checkpoints.steps(folder):
      assert time.monotonic() < until, 'it is not saved'
      time.sleep(0.01)
    time.sleep(0.05)  # For the writer to be done.

  monkeypatch.setattr(run, 'LONG_SECONDS', 0.01)
  monkeypatch.setattr(run, 'WRITES_APART', 0)
  play(epoch, Stop())
  assert play.steps() == [2, 3]


@pytest.mark.parametrize('apart, steps', [(0, [1, 2, 3]), (1e6, [1])])
def test_a_slow_disk_is_left_alone_for_a_while(play, monkeypatch, apart, steps):
  """Though every stride is long."""
  tried = []
  play.disk(monkeypatch, lambda step: tried.append(step))
  monkeypatch.setattr(run, 'LONG_SECONDS', -1)
  monkeypatch.setattr(run, 'WRITES_APART', apart)
  play(lambda done, folder: time.sleep(0.05), Stop())
  assert tried == steps


def full(step):
  raise UserError('The disk is full.')


def test_what_is_computed_to_its_end_needs_no_checkpoint(play, monkeypatch):
  """The last one was not written: that is found only when all is done."""
  saved = []
  play.disk(monkeypatch, lambda step: full(step) if step == 3 else None)
  monkeypatch.setattr(run, 'SAVE_SECONDS', -1)
  monkeypatch.setattr(
      run.record, 'finished', lambda *_: saved.append(True) or []
  )
  play(lambda done, folder: None, Stop())
  assert saved == [True]


def test_a_full_disk_is_told_at_once(play, monkeypatch):
  """And not only when the next checkpoint is due."""
  played, failed = [], threading.Event()

  def fill(step):
    failed.set()
    full(step)

  def epoch(done, folder):
    played.append(done)
    if done == 1:  # The checkpoint of the first stride has been begun.
      monkeypatch.setattr(run, 'SAVE_SECONDS', 1e9)
      assert failed.wait(30)
      time.sleep(0.05)

  play.disk(monkeypatch, fill)
  monkeypatch.setattr(run, 'SAVE_SECONDS', -1)
  with pytest.raises(UserError, match='full'):
    play(epoch, Stop())
  assert played == [0, 1]


def test_a_stop_while_its_end_is_compiled_saves_the_whole_training(play):
  stop, asked = Stop(), []

  def ready(seconds):
    asked.append(play.steps())
    if len(asked) == 2:
      stop.since = time.monotonic()
    return False

  with pytest.raises(run.Interrupted):
    play(lambda done, folder: None, stop, ready)
  assert asked == [[], []] and play.steps() == [EPOCHS]


def test_what_its_end_is_waited_for_is_compiling_and_not_running(
    play, monkeypatch
):
  now, kept, answers, told = [0.0], [], [False, True], []
  clock = SimpleNamespace(perf_counter=lambda: now[0])
  monkeypatch.setattr(run, 'time', clock)
  monkeypatch.setattr(
      run.record, 'finished', lambda *given: kept.append(given) or []
  )

  monkeypatch.setattr(run.Progress, 'trained', lambda _, s: told.append(s))

  def spend(seconds):
    now[0] += seconds

  def ready(seconds):
    spend(3.5)
    return answers.pop(0)

  play(lambda done, folder: spend(1), Stop(), ready)
  (*_, made, spent), = kept
  assert (made.seconds, spent, told) == (7, EPOCHS, [7])


@pytest.fixture
def untrained(tmp_path, monkeypatch):
  """Calls `run.run` with `train(stop)` in place of all the work."""
  setting = SimpleNamespace(
      config=Config(), outside=None, classes=2, vfl=SimpleNamespace(bottoms=())
  )
  monkeypatch.setattr(run.checks, 'assembled', lambda *_: setting)
  monkeypatch.setattr(run.checks, 'rehearse', lambda *_: None)
  monkeypatch.setattr(run.asking.sources, 'of', lambda *_: {})
  for module in (run, run.asking):
    monkeypatch.setattr(module, 'jobs', lambda *_: [])

  def begin(train, *stop):
    monkeypatch.setattr(run, '_run', lambda *given: train(given[2][0]))
    nothing = SimpleNamespace(
        features=np.zeros((2, 1)), labels=np.zeros(2), test=None,
        groups=(),
    )
    run.run(setting.config, nothing, str(tmp_path / 'out'), *stop)

  return begin


@pytest.fixture
def ignored():
  """Signals do nothing, so that a mistake here ends no other test."""
  numbers = (signal.SIGINT, signal.SIGTERM)
  before = {n: signal.signal(n, lambda *_: None) for n in numbers}
  yield
  for number, handler in before.items():
    signal.signal(number, handler)


@pytest.mark.usefixtures('ignored')
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_called_by_itself_it_listens_to_signals(untrained, number):
  """And does not end the process, which is somebody else's."""
  before = signal.getsignal(number)

  def train(stop):
    assert not stop
    os.kill(os.getpid(), number)
    assert stop
    raise run.Interrupted

  with pytest.raises(run.Interrupted):
    untrained(train)
  assert signal.getsignal(number) == before

  def asked_twice(stop):
    os.kill(os.getpid(), number)
    os.kill(os.getpid(), signal.SIGINT)

  with pytest.raises(KeyboardInterrupt):
    untrained(asked_twice)


def test_a_given_stop_is_the_one_that_is_looked_at(untrained):
  """Though it is false as long as nobody has asked."""
  given, seen, before = Stop(), [], signal.getsignal(signal.SIGINT)
  untrained(
      lambda stop: seen.append((stop, signal.getsignal(signal.SIGINT))), given
  )
  assert seen == [(given, before)] and seen[0][0] is given


def test_short_strides_are_saved_now_and_then(play):
  play(lambda done, folder: None, Stop())
  assert play.steps() == []
