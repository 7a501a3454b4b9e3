"""Jobs that share their programs, and that nobody's numbers know of it."""
import dataclasses
import json

import jax
import numpy as np
import pytest

from tests.devices import of_a_cpu
from tests.drawing import draws
from tests.sharing import DEEP, config, found, swept
from vfljax import defenses
from vfljax.defense import Method, none
from vfljax.draws import where_asked
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import calls, cell, compiling, families
from vfljax.runner.compiled.cutting import split
from vfljax.runner.config import AttackConfig, Entry
from vfljax.runner.experiment import setting
from vfljax.runner.experiment.jobs import jobs

NAMES = 'none', 'iso', 'dp_laplace', 'dcor'


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
