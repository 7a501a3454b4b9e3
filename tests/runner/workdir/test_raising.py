"""More seeds than a work directory has: the new ones run, and nothing else."""
import json
from pathlib import Path
import shutil

import jax
import pytest

from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import families
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, ModelConfig, TrainConfig, default_entry,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import jobs, pieces
from vfljax.runner.workdir import raising


def config(seeds, alone=False, **changed):
  """One family, of the undefended and two strengths."""
  entry = default_entry('iso')
  entry.strengths = (1.0, 5.0)
  return Config(
      experiment='raised', seeds=seeds, listed=(entry,), alone=alone,
      listed_attacks=('norm_scoring',),
      data=DataConfig(name='breast_cancer', limit=120),
      model=ModelConfig(algorithm='vlr'),
      train=TrainConfig(epochs=3, batch_size=32, optimizer='sgd'),
      attack=AttackConfig(known=2), **changed,
  )


@pytest.fixture(scope='module')
def table():
  return arguments.load_data(config(1).data)


@pytest.fixture
def trained(monkeypatch):
  """Which jobs were trained, as (name, seeds)."""
  found, original = [], run._run_job
  monkeypatch.setattr(run, '_run_job', lambda job, *rest: (
      found.append((job.name, job.seeds)) or original(job, *rest)
  ))
  return found


def results(place):
  return (Path(place) / 'results.jsonl').read_bytes()


@pytest.fixture(scope='module')
def fresh(table, tmp_path_factory):
  """What a run with five seeds finds."""
  place = tmp_path_factory.mktemp('fresh') / 'out'
  run.run(config(5), table, str(place))
  return results(place)


@pytest.fixture(scope='module')
def three(table, tmp_path_factory):
  """A finished run with three seeds: to be copied, not to be written into."""
  place = tmp_path_factory.mktemp('three') / 'out'
  run.run(config(3), table, str(place))
  return place


@pytest.fixture
def copied(three, tmp_path):
  return shutil.copytree(three, tmp_path / 'out')


def spans(*given, **changed):
  found = pieces.pieces(config(*given[:1], **changed), given[1:])
  return [(p.seeds[0], p.seeds[-1], p.chunk, p.room, p.tail) for p in found]


def test_pieces_are_chunks_of_blocks():
  assert spans(10) == [(0, 9, 0, 10, '')]
  assert spans(10, seeds_per_chunk=4) == [
      (0, 3, 0, 4, '/seeds0-3'), (4, 7, 1, 4, '/seeds4-7'),
      (8, 9, 2, 4, '/seeds8-9'),
  ]
  # What was there keeps its name; a chunk in two blocks is two pieces.
  assert spans(20, 10) == [
      (0, 9, 0, 10, ''), (10, 19, 0, 10, '/seeds10-19')
  ]
  assert spans(14, 10, seeds_per_chunk=4) == [
      *spans(10, seeds_per_chunk=4),
      (10, 11, 2, 2, '/seeds10-11'), (12, 13, 3, 2, '/seeds12-13'),
  ]
  assert spans(6, 2, 3, first_seed=7) == [
      (7, 8, 0, 2, ''), (9, 9, 0, 1, '/seeds9-9'), (10, 12, 0, 3, '/seeds10-12')
  ]
  assert spans(8, 4, seeds_per_chunk=4)[0] == spans(4, seeds_per_chunk=4)[0]


def test_results_are_in_the_order_of_one_run(table):
  def of(**given):
    setting = run.checks.assembled(config(5, **given), table)
    return jobs.jobs(setting), jobs.jobs(setting._replace(raised=(3,)))

  whole, raised = of()
  assert jobs.units_of(whole) == ['none', 'iso/1', 'iso/5']
  assert jobs.units_of(raised) == [
      'none', 'none/seeds3-4', 'iso/1', 'iso/1/seeds3-4', 'iso/5',
      'iso/5/seeds3-4',
  ]
  assert [job.name for job in raised] == [
      'none', 'none/seeds3-4', 'iso', 'iso/seeds3-4'
  ]
  whole, raised = of(seeds_per_chunk=2, strengths_per_chunk=1)
  assert jobs.units_of(whole) == [unit for job in whole for unit in job.units]
  assert jobs.units_of(raised)[:4] == [
      'none/seeds0-1', 'none/seeds2-2', 'none/seeds3-3', 'none/seeds4-4'
  ]


def test_programs_are_made_for_what_a_block_has(table):
  setting = run.checks.assembled(config(5, alone=True), table)
  everything = jobs.jobs(setting._replace(raised=(3,)))
  found = families.families(everything)
  sizes = {job.name: families.padded(job) for job in everything}
  devices = jax.local_device_count()
  assert sizes['alone'] == -(-3 // devices) * devices
  assert sizes['alone/seeds3-4'] == -(-2 // devices) * devices
  assert len({job.program for job in everything if job.count}) == 6
  for job in everything:
    family = found[job.program]
    cells = families.cells_of(job, family)
    assert len(cells['seed']) % (family.cells or len(cells['seed'])) == 0
    assert sorted({*cells['seed'].tolist()}) == list(job.seeds)


def check_raised(before, given, table, trained):
  """Raises a finished run of three seeds to five: its work directory."""
  parts = {p: p.read_bytes() for p in (before / 'parts').iterdir()}
  trained.clear()
  work = run.run(given, table, str(before))
  assert {seed for _, seeds in trained for seed in seeds} == {3, 4}
  assert all(p.read_bytes() == was for p, was in parts.items())
  said = json.loads((work.path / 'config.json').read_text())
  assert said['seeds'] == 5 and said['raised'] == [3]
  trained.clear()
  run.run(given, table, str(before))
  assert not trained
  return work


@pytest.mark.slow
def test_only_new_seeds_run_and_results_are_those_of_one_run(
    copied, table, fresh, trained, tmp_path
):
  """Also when it is killed while the configuration is written: the copy says
  five seeds already, config.json three still."""
  old = (copied / 'config.json').read_text()
  work = check_raised(copied, config(5), table, trained)
  assert results(work.path) == fresh
  copy = shutil.copytree(work.path, tmp_path / 'copy')
  for file in (copy / 'parts').glob('*seeds3-4*'):
    file.unlink()
  (copy / 'config.json').write_text(old)
  again = run.run(config(5), table, str(copy))
  assert results(again.path) == fresh
  assert json.loads((copy / 'config.json').read_text())['raised'] == [3]


@pytest.mark.slow
def test_new_seeds_run_in_chunks(table, fresh, trained, tmp_path):
  sized = dict(seeds_per_chunk=2)
  begun = run.run(config(3, **sized), table, str(tmp_path / 'out'))
  work = check_raised(begun.path, config(5, **sized), table, trained)
  assert sorted(results(work.path).splitlines()) == sorted(fresh.splitlines())


@pytest.mark.slow
def test_raised_twice_and_left_in_between(
    table, fresh, trained, tmp_path, monkeypatch
):
  """Of a run that was left in its middle, and of a raise that was."""
  place, original = str(tmp_path / 'out'), run._run_job

  def leave_at(name):
    def play(job, *rest):
      if job.name == name:
        raise KeyboardInterrupt
      return original(job, *rest)
    return play

  for seeds, name in [(2, 'iso'), (3, 'none/seeds2-2'), (5, 'iso/seeds3-4')]:
    with monkeypatch.context() as patch:
      patch.setattr(run, '_run_job', leave_at(name))
      with pytest.raises(KeyboardInterrupt):
        run.run(config(seeds), table, place)
  work = run.run(config(5), table, place)
  assert results(work.path) == fresh
  assert raising.recorded(work.path, dict(seeds=5))['raised'] == [2, 3]
  # What was done before it was raised was not done again.
  assert [seeds for name, seeds in trained if name.startswith('none')] == [
      (0, 1), (2,), (3, 4)
  ]


def test_a_run_that_finished_meanwhile_is_not_taken_for_ones_own(tmp_path):
  """Between the reading of config.json and the lock: fewer seeds are there."""
  asked = raising.recorded(tmp_path, dict(seeds=4, other=1))
  saved = dict(seeds=2, other=1)
  complete = lambda found: found
  assert raising.completed(tmp_path, asked, complete, saved) == saved
  known = asked | {raising.FIELD: [2]}
  assert raising.completed(tmp_path, known, complete, saved) == known
  # Of the two files one may be older: killed between them, then raised again.
  known = asked | {raising.FIELD: [2, 3]}
  assert raising.completed(tmp_path, known, complete, saved) == known


def test_fewer_seeds_are_refused(copied, table):
  before = {p: p.read_bytes() for p in copied.rglob('*') if p.is_file()}
  with pytest.raises(UserError, match='raised, not lowered') as error:
    run.run(config(2), table, str(copied))
  assert '--config.seeds=3' in str(error.value)
  assert len(str(error.value).splitlines()) == 2
  # Nor more of them, when another field is what differs.
  for seeds in (2, 4):
    with pytest.raises(UserError, match='first_seed is 0 there and 1 here'):
      run.run(config(seeds, first_seed=1), table, str(copied))
  assert before == {
      p: p.read_bytes() for p in copied.rglob('*') if p.is_file()
  }
