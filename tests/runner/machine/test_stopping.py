"""Signals: who listens, how long a run is waited for, and what is said."""
from concurrent import futures
import multiprocessing
import os
from pathlib import Path
import signal
import subprocess
import sys
import threading
import time

import pytest

from vfljax.runner.machine import stopping

ROOT = Path(__file__).parents[3]
LEAVE = stopping.leave


class Left(Exception):
  """Instead of the end of this process."""


@pytest.fixture(autouse=True)
def stay(monkeypatch):
  def leave(place=''):
    raise Left(place)

  monkeypatch.setattr(stopping, 'leave', leave)


def ask(number=signal.SIGTERM):
  os.kill(os.getpid(), number)


def test_what_the_work_returns_or_raises_comes_out():
  before = signal.getsignal(signal.SIGTERM)
  assert stopping.heeding(lambda stop: 3) == 3
  with pytest.raises(ZeroDivisionError):
    stopping.heeding(lambda stop: 1 / 0)
  with pytest.raises(SystemExit):
    stopping.heeding(lambda stop: sys.exit(4))
  assert signal.getsignal(signal.SIGTERM) == before


def test_the_work_has_room_to_recurse():
  """Compilers do, and this is more than a Mac gives a thread."""
  def deep(n):
    return n and 1 + max(map(deep, [n - 1]))

  before = sys.getrecursionlimit()
  sys.setrecursionlimit(20_000)
  try:
    assert stopping.heeding(lambda stop: deep(4000)) == 4000
  finally:
    sys.setrecursionlimit(before)


def test_in_another_thread_it_simply_runs():
  found = []
  thread = threading.Thread(
      target=lambda: found.append(stopping.heeding(lambda stop: bool(stop)))
  )
  thread.start()
  thread.join()
  assert found == [False]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_with_nothing_to_save_it_leaves_at_once(number):
  """Though the work is in the middle of something that nobody interrupts."""
  began, free = time.monotonic(), threading.Event()

  def work(stop):
    stop.place = 'out/mine'
    ask(number)
    free.wait(60)  # As the compiler would.

  with pytest.raises(Left, match='out/mine'):
    stopping.heeding(work)
  assert time.monotonic() - began < 5
  free.set()


def test_what_looks_now_and_then_is_waited_for(capfd):
  def work(stop):
    with stop.awaited():
      ask()
      while not stop:
        time.sleep(0.001)
      time.sleep(0.3)  # It saves.
    return 'saved'

  assert stopping.heeding(work) == 'saved'
  assert 'after saving' in capfd.readouterr().err


def test_it_is_waited_for_so_long_and_no_longer(monkeypatch):
  monkeypatch.setattr(stopping, 'PATIENCE', 0.3)
  free = threading.Event()

  def work(stop):
    with stop.awaited():
      ask()
      free.wait(60)

  with pytest.raises(Left):
    stopping.heeding(work)
  free.set()


def test_a_second_signal_leaves_at_once():
  free = threading.Event()

  def work(stop):
    with stop.awaited():
      ask()
      while not stop:
        time.sleep(0.001)
      ask(signal.SIGINT)
      free.wait(60)

  with pytest.raises(Left):
    stopping.heeding(work)
  free.set()


def catches_signals(process):
  """Whether a process has its handlers; Linux tells."""
  for line in Path(f'/proc/{process.pid}/status').read_text().splitlines():
    if line.startswith('SigCgt:'):
      return int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1
  return False


@pytest.mark.skipif(not Path('/proc').is_dir(), reason='asks Linux')
@pytest.mark.parametrize('program', [
    ['launch.py'],
    ['-c', 'import sys; from vfljax.runner.main import main; sys.exit(main())'],
], ids=['clone', 'installed'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_packages_are_imported(number, program):
  process = subprocess.Popen(
      [sys.executable, *program, '--list'], cwd=ROOT, text=True,
      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
  )
  while not catches_signals(process):
    time.sleep(0.001)
  process.send_signal(number)
  _, error = process.communicate(timeout=60)
  assert process.returncode == 130
  assert error == 'Stopped.\n'


@pytest.mark.parametrize('place, said', [
    ('', 'Stopped.'), ('out/a', 'Stopped. The same command continues out/a.')
])
def test_only_what_can_be_continued_is_promised(
    place, said, capfd, monkeypatch
):
  class Ended(Exception):
    pass

  def end(code):
    assert code == 130
    raise Ended

  monkeypatch.setattr(stopping.os, '_exit', end)
  with pytest.raises(Ended):
    LEAVE(place)
  assert capfd.readouterr().err == said + '\n'


@pytest.mark.parametrize('pools, number, ended', [
    ({__name__}, signal.SIGTERM, [signal.SIGTERM]),
    ({__name__}, signal.SIGINT, []), (stopping._POOLS, signal.SIGTERM, []),
])
def test_a_pools_worker_ends_by_sigterm_once_it_has_saved(
    pools, number, ended, monkeypatch
):
  """The pool took `Stopped` for a result, and such workers outlived it."""
  happened = []
  before = signal.signal(signal.SIGTERM, lambda n, frame: happened.append(n))
  monkeypatch.setattr(stopping, '_POOLS', pools)
  try:
    with pytest.raises(stopping.Interrupted):
      with stopping.listening() as stop:
        ask(number)
        happened.append('saved')
        stop.check()
  finally:
    signal.signal(signal.SIGTERM, before)
  assert happened == ['saved', *ended]


def test_a_pool_is_known_by_who_called():
  found = [stopping._in_pool()]
  with futures.ProcessPoolExecutor(
      1, mp_context=multiprocessing.get_context('spawn')
  ) as pool:
    found.append(pool.submit(stopping._in_pool).result())
  assert found == [False, True]
  loky = pytest.importorskip('joblib.externals.loky.process_executor')
  assert loky.__name__ in stopping._POOLS


def test_in_a_program_of_others_the_second_signal_interrupts(capfd):
  before = signal.getsignal(signal.SIGTERM)
  with pytest.raises(KeyboardInterrupt):
    with stopping.listening() as stop:
      assert not stop
      ask()
      assert stop and 'after saving' in capfd.readouterr().err
      ask(signal.SIGINT)
  assert signal.getsignal(signal.SIGTERM) == before


def test_in_another_thread_of_theirs_nobody_listens():
  def listen():
    with stopping.listening() as stop:
      found.append((bool(stop), signal.getsignal(signal.SIGINT)))

  found = []
  thread = threading.Thread(target=listen)
  thread.start()
  thread.join()
  assert found == [(False, signal.getsignal(signal.SIGINT))]


def test_the_installed_program_listens_before_it_imports_jax():
  """JAX takes seconds, in which somebody may think better of it."""
  code = (
      'import sys; from vfljax.runner import main\n'
      'from vfljax.runner.machine import stopping\n'
      'def heeding(work): sys.exit("jax" in sys.modules)\n'
      'stopping.heeding = heeding\n'
      'main.main()\n'
  )
  done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, check=False)
  assert done.returncode == 0


@pytest.mark.parametrize('code', [2, 130])
def test_nobody_waits_for_what_is_still_compiled(code):
  """A thread of a pool, for which Python would wait, has a program to make."""
  text = (
      'import sys, time\n'
      'from concurrent.futures import ThreadPoolExecutor\n'
      'from vfljax.runner import main\n'
      'def work(argv, stop):\n'
      '  ThreadPoolExecutor(1).submit(time.sleep, 60)\n'
      f'  print("said")\n  return {code}\n'
      'main._main = work\n'
      'sys.exit(main.main())\n'
  )
  began = time.monotonic()
  done = subprocess.run(
      [sys.executable, '-c', text], cwd=ROOT, check=False,
      capture_output=True, text=True,
  )
  assert (done.returncode, done.stdout) == (code, 'said\n')
  assert time.monotonic() - began < 30
