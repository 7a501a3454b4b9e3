"""Jobs that share their programs, and that nobody's numbers know of it."""
import dataclasses
import json

import jax
import numpy as np
import pytest

from tests.devices import of_a_cpu
from tests.drawing import draws
from vfljax import defenses, target
from vfljax.defense import Method, none
from vfljax.completion import Schedule
from vfljax.defenses.layer_selection import SELECTIONS
from vfljax.defenses.shadow import Attacker
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.draws import where_asked
from vfljax.runner.compiled import calls, cell, compiling, families
from vfljax.runner.compiled.cutting import split
from vfljax.runner.config import (
    AttackConfig, AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig,
    TrainConfig, default_entry,
)
from vfljax.runner.experiment import setting
from vfljax.runner.experiment.jobs import jobs

NAMES = 'none', 'iso', 'dp_laplace', 'dcor'
DEEP = ModelConfig(algorithm='vhnn', bottom=(4,), top=(4,))


def config(*names, **changed):
  given = Config(
      experiment='families', seeds=3,
      listed=tuple(
          dataclasses.replace(
              default_entry(name),
              strengths=default_entry(name).strengths[:2],
          ) for name in names
      ),
      listed_attacks=('norm_scoring', 'model_completion'),
      data=DataConfig(name='breast_cancer', limit=120),
      model=ModelConfig(algorithm='vlr'),
      train=TrainConfig(
          epochs=2, batch_size=32, learning_rate=0.1, optimizer='sgd'
      ),  # Adam's step takes as long to compile as all the rest of a round.
      attack=AttackConfig(known=2),
  )
  return dataclasses.replace(given, **changed)


def found(given):
  table = arguments.load_data(given.data)
  return jobs(run.checks.assembled(given, table))


@pytest.fixture(scope='module')
def everything():
  return found(config(*NAMES))


@of_a_cpu
def test_who_shares(everything):
  shared = families.families(everything)
  assert shared['none'] is shared['iso'] is shared['dp_laplace']
  assert shared['dcor'].which == dict(dcor=0)
  assert shared['alone'].name != shared['none'].name
  assert len(set(shared['none'].which.values())) == 3
  assert 0 not in shared['none'].which.values()  # The undefended one's own.


@of_a_cpu
@pytest.mark.parametrize('attacks, shared', [
    ((), True), (('model_completion',), True), (('norm_scoring',), False),
    (('model_completion', 'model_inversion'), False),
    (('missing_features',), False), (('gradient_clustering',), False),
])
def test_the_active_party_alone_shares_where_nothing_is_measured(
    attacks, shared
):
  """Of others' rounds or federations; stolen weights have their own programs.
  """
  everything = found(config(
      'none', 'iso', 'dcor', listed_attacks=attacks, model=DEEP,
      attack=AttackConfig(known=2, auxiliary=20),
  ))
  families_of = families.families(everything)
  assert (families_of['alone'] is families_of['none']) == shared
  family = families_of['none']
  numbers = [family.which[name] for name in ('none', 'iso')]
  assert family.which.get('alone') == (0 if shared else None)
  assert sorted(numbers) == [1, 2]
  cells = families.cells_of(everything[1], families_of['alone'])
  assert everything[1].entry.name == 'alone'
  assert (cells['others']['which'] == 0).all()


def test_who_is_not_alone_hears_all():
  for alone, heard in (True, 0), (np.bool_(True), 0), (np.bool_(False), 3):
    receive = setting.absent(alone).receive
    up, loss = receive((), (), None, (np.full((2, 4), 3.0),), None)
    assert (up[0] == heard).all() and loss == 0


@of_a_cpu
def test_memories_are_in_the_order_of_the_branches():
  """As `one_of` has them, whatever the order of the jobs."""
  residual = lambda label: Entry(
      'gradient_compression', (0.3,), dict(residual=True), label=label
  )
  family = families.families(found(config(
      listed=(Entry('none'), residual('b'), residual('a')), listed_attacks=()
  )))['none']
  assert family.memories == ('a', 'b')
  assert family.which['a'] < family.which['b']


@of_a_cpu
@pytest.mark.slow
def test_the_active_party_hears_as_little_in_programs_of_all(
    tmp_path, monkeypatch
):
  """As in one of its own, up to rounding; it would else learn from the others.
  """
  def results(place):
    given = config('none', 'iso', listed_attacks=(), model=DEEP)
    table = arguments.load_data(given.data)
    work = run.run(given, table, str(tmp_path / place))
    lines = (work.path / 'results.jsonl').read_text().splitlines()
    return [json.loads(line) for line in lines]

  together = results('together')
  monkeypatch.setattr(families, '_can_be_branch', lambda *_: False)
  for one, other in zip(together, results('apart'), strict=True):
    assert one | dict(value=0) == other | dict(value=0)
    assert one['value'] == pytest.approx(other['value'], abs=1e-4), one
  values = {(r['metric'], r['seed']): r['value'] for r in together
            if r['defense'] == 'none'}
  assert values['alone_auc', 0] != values['auc', 0]


def test_no_call_plays_padding_for_another_defense(everything):
  """3 seeds on 2 devices are 2 each; with two strengths 6 trainings, 3 each."""
  shared = families.families(everything)
  devices = jax.local_device_count()
  for job in everything:
    own = shared[job.entry.name]
    cells = families.cells_of(job, own)
    pieces = split(cells, own.cells or len(cells['seed']))
    whole = own.cells or len(cells['seed'])  # What the program takes.
    assert {len(piece['seed']) for piece in pieces} == {whole}
    assert 0 <= len(cells['seed']) - job.count < devices
    if own.which:
      assert (cells['others']['which'] == own.which[job.entry.name]).all()


@of_a_cpu
def test_the_number_chooses_the_defense(everything):
  """At the strength of each cell."""
  family = families.families(everything)['none']
  cut = (np.ones((4, 3), np.float32),)
  labels = np.eye(2, dtype=np.float32)[[0, 1, 1, 0]]
  key = jax.random.key(0)
  for job in everything:
    if job.entry.name not in family.which:
      continue
    which = family.which[job.entry.name]
    for strength in job.strengths:
      made = family.job.make(strength or 0.0, which=which)
      sent, _ = jax.jit(made.gradient)((), key, cut, labels)
      expected, _ = jax.jit(job.make(strength).gradient)((), key, cut, labels)
      np.testing.assert_allclose(sent[0], expected[0], rtol=1e-5)


@of_a_cpu
def test_baselines_are_run_once_and_by_themselves():
  everything = found(config('none', 'iso', model=DEEP))
  family = families.families(everything)['none']
  names = set(everything[0].setting.after_training)
  own = set(family.job.setting.after_training)
  assert family.baselines
  more = set(family.baselines.setting.after_training)
  assert own | more == names and not own & more
  assert own == {'model_completion'} and more
  assert [families.has_baselines(job) for job in everything].count(True) == 1
  quiet = setting.baselines(everything[0].setting)
  assert not quiet.replayed and not quiet.backdoor


@pytest.mark.parametrize('seeds, played', [(0, 3), (2, 2), (3, 3), (50, 3)])
def test_a_chunk_is_no_longer_than_there_are_seeds(seeds, played):
  """50 a chunk would play 47 trainings for nobody."""
  everything = found(config('none', seeds_per_chunk=seeds))
  devices = jax.local_device_count()
  for job in everything:
    assert families.padded(job) == -(-played // devices) * devices


@of_a_cpu
def test_baselines_that_are_done_are_not_compiled():
  everything = found(config('none', 'iso', 'dcor', model=DEEP))
  rest = [job for job in everything if job.entry.name == 'iso']
  assert families.needed(everything, everything)['iso'].baselines
  needed = families.needed(everything, rest)
  assert not any(family.baselines for family in needed.values())
  before = families.families(everything)
  for name, family in needed.items():  # All else is as it was.
    assert family.name == before[name].name
    assert family.cells == before[name].cells


@of_a_cpu
def test_what_is_finished_is_not_put_together(everything, monkeypatch):
  """A defense that a later version refuses leaves its results readable."""
  refused = [job._replace(make=lambda *_: 1 / 0) for job in everything]
  with compiling.Compiler(refused, []):
    pass
  with pytest.raises(ZeroDivisionError):  # What is not finished, is.
    compiling.Compiler(refused, refused)


@pytest.mark.slow
def test_what_comes_next_does_not_end_what_is_there(everything, monkeypatch):
  """A job that cannot be traced says so when it is its turn."""
  two = [job for job in everything if job.entry.name in ('alone', 'dcor')]
  start = cell.start

  def broken(job, *given):
    if job.entry.name == 'dcor':
      raise RuntimeError('not this one')
    return start(job, *given)

  monkeypatch.setattr(cell, 'start', broken)
  with compiling.Compiler(everything, two) as compiler:
    assert compiler.programs(two[0]).name == 'alone'
    with pytest.raises(RuntimeError, match='not this one'):
      compiler.programs(two[1])


def test_baselines_alone_leave_the_utility_to_the_others(monkeypatch):
  found = {'': dict(auc=0.5), 'constant': dict(ssim=0.25)}
  monkeypatch.setattr(cell, 'close', lambda *_: (found, {}))
  left = cell.without_utility(None, {}, None)
  assert left == {'constant': found['constant']}


@pytest.fixture
def results(tmp_path, monkeypatch):
  """(what to call it, configuration) -> lines, of the defended alone."""
  monkeypatch.setattr(run, 'jobs', lambda setting: [
      job for job in jobs(setting) if job.entry.name != 'none'
  ])

  def found(place, given):
    table = arguments.load_data(given.data)
    work = run.run(given, table, str(tmp_path / place))
    lines = (work.path / 'results.jsonl').read_text().splitlines()
    return [json.loads(line) for line in lines]

  return found


@pytest.mark.slow
def test_numbers_do_not_know_who_shares(results, monkeypatch):
  """Of two who share, of one, and up to rounding of one who cannot.

  The first play fewer trainings a call than the others, who play all of them:
  each piece's numbers are in place.
  """
  given = config(
      'none', 'dp_laplace', 'iso', alone=False,
      listed_attacks=('norm_scoring',),
  )
  given.listed[1].strengths = given.listed[1].strengths[:1]
  together = results('all', given)
  given.listed = given.listed[::2]
  apart = results('one', given)
  assert apart == [r for r in together if r['defense'] == 'iso']
  monkeypatch.setattr(families, '_one_by_one', lambda job: False)
  alone = results('own', given)
  assert len({r['value'] for r in alone}) > 20  # Of what differs by cell.
  for one, other in zip(apart, alone, strict=True):
    assert one | dict(value=0) == other | dict(value=0)
    assert one['value'] == pytest.approx(other['value'], abs=0.01), one


def swept(label, *noises, **options):
  return Entry(
      'discrete_sgd', (2,), options, label, grid=dict(noise=noises)
  )


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


@pytest.mark.slow
def test_numbers_of_rows_that_are_swept_are_their_own(results):
  """As without the other row, and, up to rounding, as of a constant."""
  constant = Entry('discrete_sgd', (2,), dict(noise=1e-2), 'constant')
  given = config(
      listed=(
          Entry('none'), swept('low', 1e-4), swept('high', 1e-2), constant
      ), alone=False, listed_attacks=('norm_scoring',),
  )

  def values(place, names):
    lines = results(place, dataclasses.replace(given, defenses=names))
    return {
        name: [r['value'] for r in lines if r['defense'] == name]
        for name in names.split(',')
    }

  together = values('all', 'low,high,constant')
  assert values('one', 'high')['high'] == together['high']
  low, high, fixed = map(np.asarray, together.values())
  assert (np.abs(low - high) > 0.01).any()
  np.testing.assert_allclose(high, fixed, atol=1e-3)


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


def test_programs_of_runs_ask_for_combined_draws():
  own = where_asked(lambda keys: [
      jax.random.normal(key, (i + 1,)) for i, key in enumerate(keys)
  ])
  fn = lambda job, cell, samples: own(jax.random.split(cell['key'], 4))
  begun, = (job for job in found(config('none')) if job.entry.name == 'none')
  cells = dict(key=jax.random.split(jax.random.key(0), jax.device_count()))
  assert draws(calls.over(fn, begun), cells, ()).count('threefry2x32') == 1


def test_an_argument_called_which_is_a_defenses_own(monkeypatch):
  """What tells of a family's defenses which it is, is called so, too."""
  seen = []

  def odd(strength, which=0.0):
    seen.append((strength, which))
    return none()

  monkeypatch.setitem(defenses.REGISTRY, 'odd', Method(odd, (1.0,)))
  listed = Entry('none'), Entry('odd', (1.0,), grid=dict(which=(3.0,)))
  job = found(config(listed=listed))[-1]
  assert job.others == dict(which=(3.0,)) and not families.alone(job).which
  job.make(1.0, which=3.0)
  assert seen[-1] == (1.0, 3.0)
  plain = found(config(listed=(Entry('none'), Entry('odd', (1.0,)))))[-1]
  plain.make(1.0, which=3.0)
  assert seen[-1] == (1.0, 0.0)
