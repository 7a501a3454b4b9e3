"""Who waits for which programs, while they are compiled."""
from concurrent.futures import Future
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.devices import of_a_cpu
from tests.runner.compiled.test_families import DEEP, config, found
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import families
from vfljax.runner.compiled.compiling import Compiler
from vfljax.runner.compiled.making import Maker
from vfljax.runner.compiled.programs import Programs
from vfljax.runner.machine.stopping import Interrupted, Stop

pytestmark = of_a_cpu


@pytest.fixture(scope='module')
def jobs():
  everything = found(
      config('none', 'iso', listed_attacks=('model_completion',), model=DEEP)
  )
  return {job.entry.name: job for job in everything}


@pytest.fixture
def begun(jobs):
  """Programs of all that nobody compiles, their futures, what stops it."""
  futures: list[Future] = []
  idle: Any = SimpleNamespace(
      submit=lambda fn, made, lowered: futures.append(made)
  )
  stop = Stop()
  family = families.families([*jobs.values()])['none']
  return Programs(family, Maker(idle, None, stop)), futures, stop


def test_a_request_to_stop_is_heard_while_a_job_waits(jobs, begun):
  programs, futures, stop = begun
  late = threading.Timer(5, futures[0].cancel)  # So that a fault ends, too.
  late.start()
  stop.note()
  with pytest.raises(Interrupted):
    programs.compiled(jobs['none'])
  late.cancel()


def test_the_active_party_alone_waits_for_nobodys_attacks(jobs, begun):
  programs, futures, _ = begun
  start, advance, finish, *attacks = futures
  for future in (start, advance, finish):
    future.set_result((None, ''))
  assert programs.compiled(jobs['alone']).ready(0)
  of_others = programs.compiled(jobs['none'])
  assert attacks and not of_others.ready(0)
  for future in attacks:
    future.set_result((None, ''))
  assert of_others.ready(0)


def test_after_a_request_to_stop_nothing_is_compiled(jobs):
  stop = Stop()
  stop.note()
  one = jobs['none']  # Nothing comes after it that is looked ahead for.
  with Compiler([*jobs.values()], [one], None, stop) as compiler:
    with pytest.raises(Interrupted):
      compiler.programs(one)


def test_a_run_hands_on_what_stops_it(tmp_path, monkeypatch):
  stop, heard = Stop(), []

  def compiler(*given):
    heard.append(given[-1])
    raise Interrupted

  monkeypatch.setattr(run, 'Compiler', compiler)
  given = config('none', listed_attacks=())
  with pytest.raises(Interrupted):
    run.run(given, arguments.load_data(given.data), str(tmp_path / 'a'), stop)
  assert heard[0] is stop
