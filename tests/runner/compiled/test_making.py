"""Compiling in threads: a request to stop is not kept waiting by XLA."""
from concurrent.futures import Future, ThreadPoolExecutor
import threading

import jax
import pytest

from tests.devices import of_a_cpu
from tests.runner.compiled.test_families import config, found
from vfljax.runner.compiled import compiling, making
from vfljax.runner.compiled.compiling import Compiler
from vfljax.runner.machine.stopping import Interrupted, Stop


def lowered():
  return jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((2,), 'float32'))


def test_who_waits_for_a_compiler_is_stopped_and_nothing_more_begins():
  stop, made = Stop(), Future()
  with ThreadPoolExecutor(1) as pool:
    maker = making.Maker(pool, None, stop)
    done = maker.make(lowered())
    maker.wait(done)
    assert done.result()[0]
    timer = threading.Timer(0.1, stop.note)
    late = threading.Timer(5, made.set_result, [None])  # A fault ends, too.
    timer.start()
    late.start()
    with pytest.raises(Interrupted):
      maker.wait(made)
    late.cancel()
    timer.join()
    with pytest.raises(Interrupted):
      maker.make(lowered())
    maker.wait(done)  # What is there is not taken away: a job is measured.


def test_while_threads_are_busy_the_smallest_turn_comes_first(monkeypatch):
  begun, go_on, made = threading.Event(), threading.Event(), []

  def compiled(lowered):
    begun.set()
    assert go_on.wait(60)
    made.append(lowered)

  monkeypatch.setattr(making.alike, 'digest', lambda lowered: lowered)
  monkeypatch.setattr(making.tuning, 'compiled', compiled)
  with ThreadPoolExecutor(1) as pool:
    maker = making.Maker(pool, None)
    turns = dict(  # Of the next family, then of the present one.
        first=(1, 0), next_start=(1, 1), next_advance=(1, 0), start=(0, 1),
        finish=(0, 1), advance=(0, 0),
    )
    for name, turn in turns.items():
      maker.make(name, turn)
      assert begun.wait(60)  # Nothing else waits when the first one comes.
    maker.known('about', lambda: 'attack', (0, 1))
    go_on.set()
  assert made == [
      'first', 'advance', 'start', 'finish', 'attack', 'next_advance',
      'next_start',
  ]


def test_errors_of_a_compiler_are_its_results():
  made: Future = Future()
  made.set_exception(ValueError('no such kernel'))
  with ThreadPoolExecutor(1) as pool:
    making.Maker(pool, None).wait(made)
  with pytest.raises(ValueError, match='no such kernel'):
    made.result()


@of_a_cpu
def test_nothing_is_traced_ahead_after_a_request(monkeypatch):
  """Nor is it found out what crosses in each defense: that takes a while."""
  some = found(config('none', 'iso', 'max_norm', 'dcor'))
  stop, asked = Stop(), []

  def looked(job):
    asked.append(job.entry.name)
    stop.note()

  monkeypatch.setattr(compiling.auditing, 'of_job', looked)
  monkeypatch.setattr(Compiler, '_begin', lambda self, family: None)
  with Compiler(some, some, stop=stop) as compiler, pytest.raises(Interrupted):
    compiler.programs(some[0])
  assert asked == ['iso']
