"""Who waits for which programs, while they are compiled."""
from concurrent.futures import Future
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.devices import of_a_cpu
from tests.runner.compiled.test_families import DEEP, config, found
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import compiling, families
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


class Noting(Maker):
  """Compiles nothing; notes whose turn it would be."""

  def __init__(self, stop):
    idle: Any = SimpleNamespace(submit=lambda fn: None)
    super().__init__(idle, None, stop)
    self.futures, self.turns = [], []

  def make(self, lowered, turn=()):
    self.futures.append(super().make(lowered, turn))
    self.turns.append(turn)
    return self.futures[-1]


@pytest.fixture
def begun(jobs):
  """Programs of all that nobody compiles, their futures, what stops it."""
  stop = Stop()
  maker = Noting(stop)
  family = families.families([*jobs.values()])['none']
  return Programs(family, maker), maker.futures, stop


def test_programs_are_kept_once_all_have_names(begun):
  programs, wrote = begun[0], []
  programs._maker.kept = SimpleNamespace(write=lambda *what: (
      wrote.append(what)
  ))
  for names in ('', ''), ('one', ''), ('one', 'two'):
    futures = [Future() for _ in names]
    made: Any = SimpleNamespace(
        programs=dict(zip('ab', futures)), runs=np.ones(2), history=None,
        stride=3,
    )
    for future, name in zip(futures, names):
      assert not wrote
      future.set_result((None, name))
      programs._keep(made)
  (_, (found, _, stride)), = wrote
  assert (found, stride) == (dict(a='one', b='two'), 3)
  programs._maker.kept = None  # Without a folder nothing is kept.
  programs._keep(made)
  assert len(wrote) == 1


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


def test_advance_is_compiled_first_then_who_came_first(jobs):
  family = families.families([*jobs.values()])['none']
  maker = Noting(Stop())
  Programs(family, maker, 3)
  start, advance, *others = maker.turns
  assert advance < start and {*others} == {start}  # The finish, attacks.
  assert start < (4, 0)  # The next family's `advance`.


def test_who_is_needed_later_is_compiled_later(monkeypatch):
  """By the jobs that are left, whichever family is begun first."""
  some = found(config('none', 'dcor', 'iso', 'mid'))
  left, turns = some[::-1], {}

  def begin(family, maker, turn):
    turns[family.name] = turn

  monkeypatch.setattr(compiling, 'Programs', begin)
  with Compiler(some, left) as compiler:
    shared = families.needed(some, left)
    for job in some:
      compiler._begin(shared[job.program])
  order = [shared[job.program].name for job in left]
  assert len(set(order)) > 2
  assert sorted(turns, key=turns.__getitem__) == list(dict.fromkeys(order))
  assert len({*turns.values()}) == len(turns)


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
    heard.append(given[3])
    raise Interrupted

  monkeypatch.setattr(run, 'Compiler', compiler)
  given = config('none', listed_attacks=())
  with pytest.raises(Interrupted):
    run.run(given, arguments.load_data(given.data), str(tmp_path / 'a'), stop)
  assert heard[0] is stop
