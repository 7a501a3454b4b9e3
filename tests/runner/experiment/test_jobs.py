"""What a job knows before anything is compiled: also, which share a program."""
import dataclasses
from types import SimpleNamespace

import pytest

from tests.devices import of_a_cpu
from tests.sharing import DEEP, config, found, swept
from vfljax import defenses, target
from vfljax.completion import Schedule
from vfljax.defense import Method, none
from vfljax.defenses.layer_selection import SELECTIONS
from vfljax.defenses.shadow import Attacker
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.config import AuxiliaryConfig, Entry
from vfljax.runner.experiment.jobs import Job, jobs


@pytest.mark.parametrize('after, replayed', [
    ({}, {}), (dict(a=1), {}), ({}, dict(b=2)), (dict(a=1), dict(b=2)),
])
def test_stolen_weights_and_replayed_rounds_are_attacked_after_training(
    after, replayed
):
  setting = SimpleNamespace(after_training=after, replayed=replayed)
  job = Job(**dict.fromkeys(Job._fields) | dict(setting=setting))
  assert job.attacked == bool(after or replayed)


def test_rows_that_differ_in_what_is_swept_share_their_programs():
  """Of one room each: neither more points nor another constant."""
  listed = (
      Entry('none'), swept('low', 1e-4), swept('high', 1e-2),
      swept('three', 1e-4, 1e-3, 1e-2), swept('bound', 1e-4, bound=0.1),
      dataclasses.replace(swept('free', 1e-4), strengths=()),
  )
  given = config(listed=listed)
  programs = {job.entry.name: job.program for job in found(given)}
  assert programs['low'] == programs['high']
  others = [programs[n] for n in ('low', 'three', 'bound', 'free', 'none')]
  assert len(set(others)) == 5
  given.defenses = 'high'  # What is kept of the programs is found again.
  last = found(given)[-1]
  assert (last.labels, last.program) == (('high',), programs['low'])
  given.defenses = 'three'
  assert found(given)[-1].labels[0] == 'three noise=0.0001'


@of_a_cpu
def test_rows_that_differ_in_a_word_share_their_programs():
  """A word for which a number stands."""
  def row(label, **options):
    return Entry('vmask', (0.9,), options, label)

  few = dict(attacker=Attacker(known=2))
  listed = (
      Entry('none'), row('usual'), row('critical', selection='critical'),
      row('random', selection='random'), row('all', selection='all'),
      row('few', selection='random', **few),
  )
  given = config(
      listed=listed, model=DEEP, auxiliary=AuxiliaryConfig(samples=16)
  )
  everything = {job.entry.name: job for job in found(given)}
  programs = {name: job.program for name, job in everything.items()}
  same = 'usual', 'critical', 'random', 'all'
  assert len({programs[n] for n in same}) == 1
  assert len({programs[n] for n in ('usual', 'few', 'none')}) == 3
  numbers = [everything[n].others['selection'] for n in same]
  assert numbers == [(0,), (0,), (2,), (3,)]
  assert everything['random'].labels == ('random',)


@of_a_cpu
def test_sides_whose_networks_have_the_same_places_share_their_programs(
    monkeypatch
):
  """For passports at the active party, and at both, not at the passive."""
  row = lambda label, **options: Entry('fedpass', (0.5,), options, label)
  listed = (
      Entry('none'), row('active', side='active'), row('both'),
      row('passive', side='passive'), row('other', side='active', spread=True),
  )
  everything = {job.entry.name: job for job in found(config(listed=listed))}
  programs = {name: job.program for name, job in everything.items()}
  assert programs['active'] == programs['both'] == 'active, 1 of side'
  assert programs['passive'] == 'passive' and programs['other'] == 'other'
  numbers = [everything[n].others['side'] for n in ('active', 'both')]
  assert numbers == [(1,), (0,)] and not everything['passive'].others
  # An accelerator would compute for the former what it leaves out.
  monkeypatch.setattr(target, 'kind', lambda: 'gpu')
  there = {job.entry.name: job for job in found(config(listed=listed))}
  assert (there['active'].program, there['both'].program) == ('active', 'both')
  monkeypatch.undo()
  listed = [row for row in listed if row.name not in ('active', 'other')]
  alone = {job.entry.name: job for job in found(config(listed=listed))}
  assert alone['both'].program == 'both' and not alone['both'].others


@pytest.mark.parametrize('change', [
    'asked', 'one', 'batched', 'streamed', 'rooms',
])
def test_a_light_word_shares_no_program_that_would_compute_more(
    monkeypatch, change
):
  """All layers hidden, where nobody chooses, or in a batch with who does."""
  budgets = (0.9, 0.8) if change == 'rooms' else (0.9,)
  row = lambda selection, budgets=(0.9,), **options: Entry(
      'vmask', budgets, dict(selection=selection) | options, selection
  )
  imagined = Attacker(Schedule(6, 0, 6), draws=2)  # No size of `all`'s own.
  others = [] if change == 'one' else [
      row('critical', budgets), row('random', budgets, attacker=imagined)
  ]
  given = config(
      listed=(Entry('none'), *others, row('all')), model=DEEP,
      auxiliary=AuxiliaryConfig(samples=16),
      defenses='all' if change == 'asked' else '',
  )
  if change == 'batched':
    monkeypatch.setattr(target, 'kind', lambda: 'gpu')
  setting = run.checks.assembled(given, arguments.load_data(given.data))
  some = jobs(setting._replace(stream=2) if change == 'streamed' else setting)
  everything = {job.entry.name: job for job in some}
  assert not everything['all'].others
  assert everything['all'].program == 'all'
  numbers = [
      j.others['selection'] for n, j in everything.items() if n in SELECTIONS
  ]
  expected = [(0,) * len(budgets), (2,) * len(budgets)]
  assert numbers == ([] if change in ('asked', 'one') else expected)


@pytest.mark.parametrize('others', [(), ('a',)])
def test_light_words_alone_have_programs_of_their_own(monkeypatch, others):
  """What a grid sweeps must not give the programs of two words one name."""
  def method(scale, how='a'):
    return none()._replace(facts=lambda state: dict(how=scale, was=how))

  registered = Method(
      method, (1.0,), words=dict(how=('a', 'b', 'c')), light=('b', 'c')
  )
  monkeypatch.setitem(defenses.REGISTRY, 'method', registered)
  row = lambda how: Entry(
      'method', (), dict(how=how), how, grid=dict(scale=(1.0, 2.0))
  )
  given = config(listed=(Entry('none'), *map(row, (*others, 'b', 'c'))))
  everything = {job.entry.name: job for job in found(given)}
  told = {
      n: (j.program, 'how' in j.others) for n, j in everything.items()
      if n in ('a', 'b', 'c')
  }
  if others and target.kind() == 'cpu':
    assert set(told.values()) == {('a, 2 of scale, how', True)}
  else:
    assert told['b'] == ('b, 2 of scale', False)
    assert told['c'] == ('c, 2 of scale', False)
