"""Programs that are the same but for their names, and what makes them so."""
import collections
from concurrent.futures import ThreadPoolExecutor
import re
import threading

import pytest

from tests.devices import of_a_cpu
from tests.runner.compiled.test_families import config, found
from vfljax.runner.compiled import calls, compiling, families, making
from vfljax.runner.machine import tuning
from vfljax.train import Run


@pytest.fixture
def counts(monkeypatch):
  """(configuration) -> how many programs would be compiled, by their parts."""
  def counted(given):
    made = []
    monkeypatch.setattr(tuning, 'compiled', lambda lowered: (
        made.append(lowered), len(made)
    ))
    for entry in given.listed:
      entry.strengths = entry.strengths[:1]
    everything = found(given)
    with compiling.Compiler(everything, everything) as compiler:
      for job in everything:
        assert compiler.programs(job).ready(600)
    return collections.Counter(
        re.search(r'jit_([a-z]+)', x.as_text()).group(1) for x in made
    )

  return counted


@of_a_cpu
@pytest.mark.slow
def test_programs_that_are_alike_are_compiled_once(counts):
  """Who trains one network with a term begins and ends as who does not."""
  given = config('none', 'dcor', alone=False)
  assert counts(given) == dict(start=1, advance=2, finish=1, stolen=1)


@of_a_cpu
@pytest.mark.slow
def test_who_prepares_labels_has_the_programs_of_none(counts):
  """So dcor, which prepares none, begins by a program of its own."""
  given = config('none', 'label_dp', 'kdk', 'dcor', alone=False)
  assert counts(given) == dict(start=2, advance=2, finish=1, stolen=1)


@pytest.mark.slow
@of_a_cpu
def test_trainings_that_start_alike_have_one_program_for_it(counts):
  """The defenses that share one, and the active party without the others."""
  given = config('none', 'iso', listed_attacks=('norm_scoring',))
  assert counts(given) == dict(start=1, advance=2, finish=2)


def test_who_waits_for_one_that_is_alike_leaves_the_thread(monkeypatch):
  """With one thread a third program is made while two wait for the first."""
  begun, go_on = threading.Event(), threading.Event()
  monkeypatch.setattr(making.alike, 'digest', lambda lowered: lowered[0])
  with ThreadPoolExecutor(2) as pool:
    maker = making.Maker(pool, None)

    def compiled(lowered):
      if lowered == 'first':
        begun.set()
        assert go_on.wait(60)
      if lowered == 'broken':
        raise ValueError(lowered)
      return f'made of {lowered}'

    monkeypatch.setattr(tuning, 'compiled', compiled)
    first = maker.make('first')
    assert begun.wait(60)
    alike = [maker.make(name) for name in ('fine', 'fast')]
    assert maker.make('other').result(60) == ('made of other', '')
    assert not any(each.done() for each in alike)
    go_on.set()
    for each in (first, *alike):
      assert each.result(60) == ('made of first', '')
    for name in ('broken', 'bent'):
      with pytest.raises(ValueError, match='broken'):
        maker.make(name).result(60)


def test_where_rounds_are_replayed_labels_and_the_beginning_are_at_hand():
  runs = Run('key', 'state', 'labels', ())
  first = runs._replace(state='first')
  for replayed, labels, more in (
      ({}, (), {}), (dict(attack=None), 'labels', dict(began='first')),
  ):
    job = found(config('none'))[0]
    job = job._replace(setting=job.setting._replace(replayed=replayed))
    begun = []

    def begin(begun=begun):
      begun.append(1)
      return first

    kept = calls.at_the_end(families.alone(job), 'cells', runs, begin)
    own = dict(cells='cells', runs=runs._replace(labels=labels))
    assert kept == own | more
    assert len(begun) == len(more)  # Nothing begins that nobody looks at.
