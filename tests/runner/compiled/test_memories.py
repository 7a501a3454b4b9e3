"""What a checkpoint holds of trainings whose programs others share."""
import dataclasses
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.devices import of_a_cpu
from tests.runner.compiled.test_families import config, found
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import families, joining, memories
from vfljax.runner.compiled.compiling import Compiler
from vfljax.runner.config import Entry, ModelConfig
from vfljax.runner.experiment import plans
from vfljax.runner.machine.stopping import Stop
from vfljax.train import Run
from vfljax.types import PartyState, State

pytestmark = of_a_cpu
RESIDUAL = Entry(
    'gradient_compression', (0.3,), dict(residual=True), label='GS'
)
MID = Entry('mid', (0.1,), label='MID')
NAMES = 'none', 'alone', 'GS', 'LabelDP', 'MID', 'MID wide', 'dCor'


def experiment(best=False):
  given = config(
      listed=(
          Entry('none'), RESIDUAL, Entry('label_dp', (1.0,), label='LabelDP'),
          MID, dataclasses.replace(
              MID, options=dict(scale=2), label='MID wide'
          ), Entry('dcor', (0.1,), label='dCor'),
      ), seeds=2, listed_attacks=(),
      model=ModelConfig(algorithm='vhnn', bottom=(4,), top=(4,)),
  )
  given.train = dataclasses.replace(
      given.train, epochs=4, best=best, optimizer='momentum'
  )
  return given


@pytest.fixture(scope='module', autouse=True)
def convolving():
  """All share a program, as where networks convolve; these compile sooner."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(joining, '_convolves', lambda setting: True)
    patch.setattr(joining, '_is_small', lambda *_: True)
    yield


@pytest.fixture(scope='module')
def everything():
  return {job.entry.name: job for job in found(experiment(best=True))}


@pytest.fixture(scope='module')
def shared(everything):
  """The family of all, and its trainings before their first epoch."""
  family = families.families([*everything.values()])['none']
  runs = {}
  with Compiler([*everything.values()], [*everything.values()]) as compiler:
    for name, job in everything.items():
      made = compiler.programs(job)
      runs[name], = made.start(*made.place(job))
  return family, runs


def test_all_share_their_programs(everything, shared):
  family, _ = shared
  assert set(family.which) == set(NAMES) and family.which['alone'] == 0
  assert family.memories == ('GS', 'MID', 'MID wide')
  assert family.weights == ('MID', 'MID wide', 'dCor')
  assert family.preparing == ('LabelDP',)
  every = families.families([*everything.values()]).values()
  assert {one.name for one in every} == {family.name}


# LabelDP has labels of its own, GS a memory, MID weights; the others have none.
@pytest.mark.parametrize('name', [
    'GS', 'LabelDP', 'MID wide', *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ('none', 'alone', 'MID', 'dCor')
    ),
])
def test_a_checkpoint_holds_what_programs_of_its_own_would(
    everything, shared, monkeypatch, name
):
  family, runs = shared
  job, run = everything[name], runs[name]
  own = memories.own(family, job, run)
  monkeypatch.setattr(families, '_one_by_one', lambda job: False)
  with Compiler([job], [job]) as compiler:
    made = compiler.programs(job)
    expected, = made.start(*made.place(job))
  assert jax.tree.structure(own) == jax.tree.structure(expected)
  for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(expected)):
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
  back = memories.whole(family, job, own, run)
  assert jax.tree.structure(back) == jax.tree.structure(run)
  assert all(map(
      lambda a, b: a is b, jax.tree.leaves(back), jax.tree.leaves(run)
  ))


def test_a_job_gets_back_its_own_memory(everything, shared):
  """Not that of a fresh start."""
  family, runs = shared
  job, run = everything['GS'], runs['GS']
  moved = jax.tree.map(lambda x: x + 1, run.state.defense)
  run = run._replace(state=run.state._replace(defense=moved))
  own = memories.own(family, job, run)
  plain = memories.own(family._replace(weights=()), job, run)
  assert own.state.defense is plain.state.defense is moved[0]
  back = memories.whole(family, job, own, runs['GS'])
  assert back.state.defense[0][0] is moved[0][0]
  np.testing.assert_array_equal(back.best.state.defense[0][0], 0)


def test_a_job_gets_back_its_own_weights(everything, shared):
  """And what its optimizer keeps of them, not those of a fresh start."""
  family, runs = shared
  job, run = everything['MID wide'], runs['MID wide']
  active = jax.tree.map(lambda x: x + 1, run.state.parties[0])
  parties = active, *run.state.parties[1:]
  moved = run._replace(state=run.state._replace(parties=parties))
  own = memories.own(family, job, moved)
  for tree, all_ in zip(
      (own.state.parties[0].params, own.state.parties[0].opt[0].trace),
      (active.params, active.opt[0].trace), strict=True,
  ):
    assert tree['defense'] is all_['defense'][1] and tree['top'] is all_['top']
  back = memories.whole(family, job, own, run).state.parties[0]
  fresh = run.state.parties[0]
  for tree, all_, other in zip(
      (back.params, back.opt[0].trace), (active.params, active.opt[0].trace),
      (fresh.params, fresh.opt[0].trace), strict=True,
  ):
    first, mine, last = tree['defense']
    assert mine is all_['defense'][1] and last == ()
    assert first is other['defense'][0] and tree['top'] is all_['top']


def test_an_optimizer_of_the_defenses_own_rate(everything, shared):
  """It keeps two trees, and in each nothing of the other's weights."""
  family, _ = shared
  setting = everything['none'].setting
  given = dataclasses.replace(setting.config, train=dataclasses.replace(
      setting.config.train, defense_learning_rate=0.1, optimizer='adam'
  ))
  tx = plans._optimizer(setting._replace(config=given))
  a, b, top = jnp.ones(2), jnp.ones(3), jnp.ones(4)
  state = lambda weights: State((
      PartyState(
          (params := dict(top=top, defense=weights)), tx.init(params)
      ),
  ), ((), (), ()), ())
  run = lambda weights: Run((), state(weights), (), ())
  job = lambda name: Named(Named(name))
  for name, mine in (('MID', a), ('MID wide', b), ('none', ())):
    found = memories.own(family, job(name), run((a, b, ())))
    expected = run(mine)._replace(state=state(mine)._replace(defense=()))
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    back = memories.whole(family, job(name), found, run((a, b, ())))
    assert jax.tree.structure(back) == jax.tree.structure(run((a, b, ())))


class Named:
  """A job's entry, and an entry's name."""

  def __init__(self, name):
    self.entry = self.name = name


@pytest.fixture
def played(tmp_path, monkeypatch):
  """Runs the experiment, up to the first checkpoint of a job if it is named:
  its results.
  """
  monkeypatch.setattr(run, 'LONG_SECONDS', -1)  # A checkpoint a stride.
  monkeypatch.setattr(run, 'WRITES_APART', 0)
  trim = run._trim

  def play(place, until=''):
    stop, given = Stop(), experiment()

    def trimmed(made, job, going):
      if job.entry.name == until:
        stop.since = time.monotonic()
      return trim(made, job, going)

    monkeypatch.setattr(run, '_trim', trimmed)
    work = run.run(
        given, arguments.load_data(given.data), str(tmp_path / place), stop
    )
    lines = (work.path / 'results.jsonl').read_text().splitlines()
    return [json.loads(line) for line in lines]

  return play


@pytest.mark.slow
@pytest.mark.parametrize('name', NAMES)
def test_it_can_be_continued_by_programs_of_its_own(
    played, monkeypatch, capsys, name
):
  """And by shared ones, with the same numbers as without a stop."""
  resumed, loaded = [], run.Workdir.load_checkpoint

  def load(*given):
    resumed.append(loaded(*given))
    return resumed[-1]

  monkeypatch.setattr(run.Workdir, 'load_checkpoint', load)
  whole = played('whole')
  for place in ('here', 'there'):
    with pytest.raises(run.Interrupted):
      played(place, name)
  resumed.clear()
  assert played('here') == whole
  monkeypatch.setattr(families, '_one_by_one', lambda job: False)
  elsewhere = played('there')
  assert sum(found is not None for found in resumed) == 2
  assert 'does not fit' not in capsys.readouterr().err
  for one, other in zip(whole, elsewhere, strict=True):
    assert one | dict(value=0) == other | dict(value=0)
    assert one['value'] == pytest.approx(other['value'], abs=0.01), one
