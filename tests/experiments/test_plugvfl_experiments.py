"""What PlugVFL's experiments ask of the runner: grids, variants, quitting."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import evidence
from experiments.plugvfl import (
    claims, common, fig3, fig4, fig5, fig6, fig7, gradients, quits, rivals,
    tables,
)
from vfljax import data
from vfljax.attacks.active_completion import MaliciousState
from vfljax.report import reading
from vfljax.runner.checking import checks
from vfljax.runner.config import Config, Entry, Variant
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import division, jobs, plans, setting
from vfljax.runner.experiment.attackers import attacker


def on_digits(config: Config, **fields) -> setting.Setting:
  """The experiment on scikit-learn's digits, which need no file."""
  config.data.name, config.data.path, config.data.limit = 'digits', '', 0
  config.data.resplit = False
  config.attack.replay_rounds = min(config.attack.replay_rounds, 39)
  for name, value in fields.items():
    setattr(config, name, value)
  return checks.make(config, data.load('digits'))


@pytest.mark.slow
@pytest.mark.parametrize('config', [
    *(fig3.get_config(variant) for variant in fig3.VARIANTS),
    *(module.get_config() for module in (
        fig4, fig5, fig6, fig7, gradients,
    )),
], ids=lambda config: config.experiment)
def test_every_config_can_be_run(config):
  assert jobs.jobs(on_digits(config))


def test_the_baselines_are_in_the_papers_ranges():
  """Section 5: noise of scale 1e-4 to 1e-2, tau 0.001, theta to 0.01."""
  known = {entry.name: entry for entry in common.baselines()}
  scales = (1e-4, 1e-3, 1e-2)
  ppdl, dsgd = known['PPDL'], known['DSGD']
  assert known['NG'].strengths == scales
  assert ppdl.grid == dict(scale=scales) and dsgd.grid == dict(noise=scales)
  assert ppdl.options == dict(tau=1e-3) and max(ppdl.strengths) == 0.01
  assert dsgd.strengths == known['DSGD Eq. 19'].strengths == (1, 2)


@pytest.mark.parametrize('name', ['NG', 'PPDL', 'DSGD', 'DSGD Eq. 19'])
def test_at_their_weakest_the_baselines_keep_the_gradients_sign(name):
  """Of gradients as large as fig4's: with too much noise it is a coin's."""
  entry = {entry.name: entry for entry in common.baselines()}[name]
  d = np.random.default_rng(0).normal(0, 2e-2, (32, 64)).astype(np.float32)
  labels = np.eye(10, dtype=np.float32)[np.arange(32) % 10]
  weakest = {name: values[0] for name, values in entry.grid.items()}
  strength = entry.strengths[0 if name == 'NG' else -1]
  defense = setting.build(entry, strength, **weakest)
  (sent,), _ = jax.jit(lambda key: defense.gradient((), key, (d,), labels))(
      jax.random.key(1)
  )
  # DSGD adds noise to what it made (almost) 0 as well, NG to all.
  sent = np.asarray(sent)
  large = (np.abs(sent) > 9e-4) & (np.abs(d) > 9e-4)
  assert large.sum() >= 15
  assert (np.sign(sent) == np.sign(d))[large].mean() > 0.97


def test_lambda_times_p_is_one_job_with_a_name_for_each():
  found = {job.name: job for job in jobs.jobs(on_digits(fig6.get_config()))}
  job = found['plugvfl']
  drops, lambdas = (0.0, 0.05), fig6.LAMBDAS
  assert job.strengths == lambdas * 2
  each = len(lambdas)
  assert job.others == dict(drop=(0.0,) * each + (0.05,) * each)
  assert job.units == tuple(
      f'plugvfl drop={p:g}/{w:g}' for p in drops for w in lambdas
  )
  assert job.labels[0] == 'plugvfl drop=0'
  assert not job.constant


def test_a_grid_without_strengths():
  made = on_digits(fig3.get_config('fashion_mnist'))
  job = [j for j in jobs.jobs(made) if j.name == 'plugvfl'][0]
  assert job.units == tuple(f'plugvfl drop={p:g}' for p in common.DROPS)
  assert job.strengths == (None,) * len(common.DROPS)
  assert job.constant


def test_a_value_of_a_grid_out_of_range_is_refused_before_training():
  config = common.config(
      'bad', (Entry('plugvfl', (0.5,), grid=dict(drop=(0.0, 1.0))),)
  )
  with pytest.raises(UserError, match='drop must be'):
    on_digits(config)


def test_variants_have_attackers_of_their_own():
  made = on_digits(fig6.get_config())
  training = jax.tree.map(lambda x: x[:1_000], made.samples)
  drawn = jax.jit(division.known, static_argnums=2)
  known = lambda name: drawn(
      jax.random.key(0), training, attacker(made.config, name).who.known
  ).labels
  np.testing.assert_array_equal(known('model_completion').sum(0), [4.0] * 10)
  assert len(known('model_completion:all')) == 1_000
  assert len(known('model_completion:linear')) == 40
  defended = jobs.jobs(made)[-1].setting.after_training
  assert set(defended) == {
      'model_completion', 'model_completion:all', 'model_completion:linear'
  }


def test_an_unknown_variant_is_refused():
  config = fig6.get_config()
  config.attacks = 'model_completion:half'
  with pytest.raises(UserError, match='model_completion:half'):
    on_digits(config)


def test_only_active_attackers_train_with_malice():
  made = on_digits(fig5.get_config())
  blank = division.Splits(*[made.samples] * len(division.Splits._fields))
  plan = plans.training_plan(made, setting.absent(), blank)
  states = [tx.init(dict(w=jnp.zeros(2))) for tx in plan.txs]
  assert [isinstance(s, MaliciousState) for s in states] == [False, True]
  alone = [j for j in jobs.jobs(made) if j.entry.label == jobs.ALONE][0]
  plan = plans.training_plan(alone.setting, setting.absent(), blank)
  states = [tx.init(dict(w=jnp.zeros(2))) for tx in plan.txs]
  assert not any(isinstance(s, MaliciousState) for s in states)


def test_active_completion_needs_sgd_and_a_training_of_its_own():
  config = fig5.get_config()
  config.train.optimizer = 'adam'
  with pytest.raises(UserError, match='SGD'):
    on_digits(config)
  config = fig5.get_config()
  config.variants = (*config.variants, Variant('model_completion:x'))
  config.listed_attacks = (*config.listed_attacks, 'model_completion:x')
  with pytest.raises(UserError, match='apart'):
    on_digits(config)


@pytest.mark.parametrize('algorithm, parties, expected', [
    ('vhnn', 2, {'': (0,)}),
    ('vhnn', 3, {'': (0, 0), '@1': (0, 1), '@2': (1, 0)}),
    ('vsnn', 3, {'@1': (0, 1), '@2': (1, 0)}),
    ('vsnn', 2, {}),
])
def test_who_may_quit(algorithm, parties, expected):
  """Somebody with features must be left."""
  config = common.config('quits', (Entry('none'),))
  config.model.algorithm, config.data.parties = algorithm, parties
  if parties > 2 or algorithm == 'vsnn':
    config.data.split = 'strips'
  assert setting.quits(on_digits(config)) == expected


HEADS = ('', ':linear', ':all')


def kept(rows, alone=0.8):
  """A record: (defense, strength, before, after, what the heads read)."""
  base = dict(experiment='e', dataset='d', algorithm='vhnn', split='test')
  found = [base | dict(defense='none', strength=None, seed=0, attack=None,
                       metric='alone_accuracy', value=alone)]
  for defense, strength, before, after, *read in rows:
    row = base | dict(defense=defense, strength=strength, seed=0)
    values = {(None, 'accuracy'): before, (None, 'quit_accuracy'): after}
    values |= {
        (f'model_completion{head}', 'accuracy_last'): value
        for head, value in zip(HEADS, read)
    }
    values |= {(f'scratch{h}', 'accuracy_last'): 0.5 for h in ('', ':all')}
    found += [row | dict(attack=attack, metric=metric, value=value)
              for (attack, metric), value in values.items()]
  return evidence.Kept({}, reading.of_rows(found, {}, 10)[0])


def use(monkeypatch, **records):
  monkeypatch.setattr(evidence, 'load', lambda paper, name: records[name])


QUIT = [
    ('none', None, 0.90, 0.50), ('plugvfl drop=0', None, 0.90, 0.50),
    ('plugvfl drop=0.05', None, 0.898, 0.70),
    ('plugvfl drop=0.5', None, 0.88, 0.80), ('multi_head', None, 0.90, 0.75),
]


def test_claims_of_quitting(monkeypatch):
  use(monkeypatch, r=kept(QUIT))
  falls, below, some, small, enough, heads = (
      c.judge() for c in quits.claims('r', 'd')
  )
  assert falls.held and '90.0 before, 50.0 after: 40.0 points' in falls.because
  assert below.held and below.because.startswith('50.0 after, alone 8')
  assert some.held
  assert some.because.endswith('p = 0.05 +20.0 for 0.2, p = 0.5 +30.0 for 2.0')
  assert small.held and '0.2 points before, +20.0 after' in small.because
  # p = 0.5 ends where the active party does and costs 2 points.
  assert not enough.held and 'p = 0.05: 70.0' in enough.because
  assert not heads.held and 'no p' in heads.because


@pytest.mark.parametrize('after, falls, below', [
    (0.69, True, True), (0.71, False, True), (0.82, False, False),
])
def test_quitting_may_cost_little_or_leave_more_than_the_active_party_has(
    after, falls, below, monkeypatch
):
  use(monkeypatch, r=kept([('none', None, 0.90, after)]))
  assert quits.falls('r').held is falls
  assert quits.below_alone('r').held is below
  assert '23.3' in quits.falls('r').because  # 74.53 - 51.24
  assert '51.2, 62.8' in quits.below_alone('r').because


def test_claims_of_labels_name_the_best_row_and_what_is_left_of_it(monkeypatch):
  found = [
      ('none', None, 0.90, 0.50, 0.7, 0.72, 0.85),
      ('plugvfl drop=0', 0.1, 0.89, 0.6, 0.12, 0.14, 0.4),
      ('plugvfl drop=0', 0.5, 0.88, 0.8, 0.12, 0.16, 0.3),
      ('5 psi steps', 0.3, 0.80, 0.8, 0.10, 0.10, 0.11),
      ('plugvfl drop=0.05', 0.1, 0.895, 0.6, 0.1, 0.1, 0.12),
  ]
  use(monkeypatch, r=kept(found))
  few, every, quits_too, five, useful = (
      c.judge() for c in claims._labels('r', 'd')
  )
  # Neither is p = 0.05 of section 5.2, nor p = 0 of section 5.3.
  assert few.held and 'lambda 0.1, p = 0: reads 14.0 %' in few.because
  assert not every.held and 'lambda 0.5, p = 0: reads 30.0' in every.because
  assert quits_too.held and 'p = 0.05: reads 12.0' in quits_too.because
  assert five.because == 'no row costs less than 3 points'
  assert useful.held and 'p = 0.05: reads 12.0' in useful.because
  use(monkeypatch, r=kept(found[:-1]))
  *_, quits_too, five, useful = (c.judge() for c in claims._labels('r', 'd'))
  assert quits_too.held is None and five.held is False
  # Five steps are at guessing, for a model that is the active party's own.
  assert not useful.held and '+8.0 points' in useful.because


def test_other_defenses_stand_beside_plugvfls_best_of_their_cost(monkeypatch):
  ours = kept([('none', None, 0.9, 0.5, 0.7, 0.7, 0.8),
               ('plugvfl drop=0', 0.1, 0.89, 0.6, 0.2, 0.2, 0.4)])
  theirs = kept([('none', None, 0.9, 0.5, 0.7, 0.7, 0.8),
                 ('NG', 0.001, 0.9, 0.5, 0.7, 0.7, 0.8),
                 ('NG', 0.01, 0.88, 0.5, 0.6, 0.6, 0.8)])
  use(monkeypatch, theirs=theirs, ours=ours)
  beaten, price, near, untrained = (
      c.judge() for c in rivals.claims('theirs', 'ours', 'd')
  )
  assert price.held is near.held is None
  assert beaten.held and 'NG, 0.01 60 (20); not compared' in beaten.because
  assert beaten.because.endswith('costs so little: NG, 0.001 70')
  assert untrained.held  # 60 over 50


def test_tables_have_a_row_for_each_cell_and_what_needs_no_leak(monkeypatch):
  use(monkeypatch, r=kept([('none', None, 0.9, 0.5, 0.7, 0.6, 0.8)]))
  assert tables.completed('r').splitlines() == [
      '|  | before | after | 40 | 40 linear | all |',
      '|---|---|---|---|---|---|',
      '| no defense | 90.0 | 50.0 | 70.0 | 60.0 | 80.0 |',
      '| untrained extractor |  |  | 50.0 |  | 50.0 |',
      "| party 2's raw half |  |  |  |  |  |",
      '| the active party alone |  | 80.0 |  |  |  |',
  ]


def test_tables_without_a_record_say_what_makes_it(monkeypatch):
  monkeypatch.setattr(evidence, 'exists', lambda paper, name: False)
  for name, command in tables.RUNS.items():
    assert f'--config=experiments/plugvfl/{command} --' in tables.TABLES[name]()
  assert 'no record yet' in tables.TABLES['claims']()
