"""Compiling in threads: a request to stop is not kept waiting by XLA."""
from concurrent.futures import Future, ThreadPoolExecutor
import threading

import jax
import pytest

from vfljax.runner.compiled import making
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


def test_errors_of_a_compiler_are_its_results():
  made: Future = Future()
  made.set_exception(ValueError('no such kernel'))
  with ThreadPoolExecutor(1) as pool:
    making.Maker(pool, None).wait(made)
  with pytest.raises(ValueError, match='no such kernel'):
    made.result()
