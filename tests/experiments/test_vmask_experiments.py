"""What VMask's experiments ask of the runner, and the studies beside it."""
import argparse
from functools import partial
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import threadpoolctl

from experiments.vmask import (
    authors, common, fig5, fig8, paper, pictures, study, table1, table2,
    table3, variations,
)
from vfljax import data
from vfljax.runner.checking import checks
from vfljax.runner.compiled import cell
from vfljax.runner.config import Config, Entry
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import division, jobs
from vfljax.runner.experiment.choosing import entries
from vfljax.runner.experiment.setting import split_samples
from vfljax.runner.machine import device

KEY = jax.random.key(0)


def small(config: Config) -> Config:
  """The experiment on scikit-learn's digits, which need no file."""
  config.data.name, config.data.path, config.data.limit = 'digits', '', 0
  config.data.resplit, config.seeds = False, 1
  config.auxiliary.samples = 160
  config.attack = config.attack.but(completion=dict(epochs=20, stages=2))
  config.attack.repeats = 2
  config.train.epochs, config.train.batch_size = 2, 16
  return config


@pytest.fixture(scope='module')
def setting():
  return study.prepare(small(common.config('test', ())))


@pytest.fixture(scope='module')
def looked():
  """The authors' settings, with every look that is not an attack.

  Compiling VMask's imagined attack takes longest: two tests share one.
  """
  config = small(authors.apply(common.config('test', ())))
  config.train.learning_rate = 0.05
  made = study.prepare(config)
  entry = authors.masked('mlp3', budgets=(1.0,), epochs=4)
  looks = dict(
      main=study.main_accuracy, masked=partial(study.memory, 'masked'),
      norms=partial(study.memory, 'norms'), facts=study.facts,
      shadow=study.shadow_accuracy, u=pictures.embedded,
  )
  return made, study.run(made, entry, looks, every_epoch=True)


def quick(selection='critical', budgets=(0.25,)):
  who = common.attacker(epochs=4)
  return common.masked(selection, budgets, attacker=who)


@pytest.mark.parametrize('made', [
    table2.column('mlp3', 'mnist'), table2.column('vgg13', 'cifar10'),
    authors.settings('lenet5', 'mnist'), fig8.get_config('lenet5'),
], ids=lambda config: config.experiment)
def test_the_best_of_every_epoch_counts(made):
  """Algorithm 3, of the attacker and of the one whom the defender imagines."""
  own = made.attack.own['completion']
  assert own['stages'] == own['epochs'] == 50
  imagined = [
      entry.options['attacker'].schedule for entry in entries(made, 10)
      if entry.defense == 'vmask'
  ]
  assert {s.epochs for s in imagined} >= {20}
  assert all(s.stages == s.epochs for s in imagined)


def test_every_row_of_table_ii_has_the_papers_numbers():
  for model, columns in common.ABBREVIATIONS.items():
    for dataset, short in columns.items():
      config = table2.column(model, dataset)
      listed = {e.name for e in entries(config, 10)}
      ours = {'VMask 50x5', 'FedPass both'}  # The paper has no such rows.
      assert listed == set(paper.ROWS) | ours
      rows = listed - ours
      told = {p.defense for p in config.paper if p.attack is None}
      assert told == rows and len(config.paper) == 2 * len(rows) + 2, short


@pytest.mark.parametrize('columns, attack, main', [
    # Averages that the paper prints (its "Avg. Diff." columns), %.
    (('VGG13 CN10',), dict(VMask=-0.32, NG=40.88), dict(VMask=-0.04)),
    (('ResNet18 CN10',), dict(VMask=2.96, KDk=35.09), dict(VMask=-0.07)),
])
def test_the_papers_numbers_are_as_far_apart_as_it_says(columns, attack, main):
  for column in columns:
    at = lambda table, row, c=column: table[c][paper.ROWS.index(row)]
    for row, gap in attack.items():
      scratch = paper.BASELINES[column][1]
      np.testing.assert_allclose(
          at(paper.ATTACK, row) - scratch, gap, atol=1e-9
      )
    for row, gap in main.items():
      vanilla = at(paper.MAIN, 'none')
      np.testing.assert_allclose(
          at(paper.MAIN, row) - vanilla, gap, atol=1e-9
      )


def test_the_defenders_samples_are_not_the_federations(setting):
  split = jax.jit(partial(split_samples, setting, KEY))
  splits = split(setting.samples)
  assert splits.spare is not None
  assert len(splits.spare.labels) == setting.sizes.spare == 160
  flat = lambda b: {x.tobytes() for x in np.asarray(b.features[0])}
  rest = flat(splits.train) | flat(splits.test)
  assert len(flat(splits.spare) & rest) < 4  # Digits that are alike.


def test_they_are_none_unless_asked_for():
  config = small(common.config('test', ()))
  config.auxiliary.samples = 0
  made = study.prepare(config)
  split = partial(split_samples, made, KEY)
  assert jax.eval_shape(split, made.samples).spare is None


def test_labels_and_features_that_are_not_as_the_others(setting):
  batch = jax.tree.map(lambda x: x[:200], setting.samples)
  some = division.distorted(KEY, batch, 3, 0.0)
  classes = np.asarray(batch.labels).argmax(-1)
  np.testing.assert_array_equal(some.labels.sum(-1) > 0, classes < 3)
  noisy = division.distorted(KEY, batch, 0, 2.0)
  added = [np.asarray(a - b) for a, b in zip(noisy.features, batch.features)]
  assert all(abs(a.std() - 2) < 0.1 for a in added)
  assert abs(np.corrcoef(added[0].ravel(), added[1].ravel())[0, 1]) < 0.1
  np.testing.assert_array_equal(noisy.labels, batch.labels)


def test_samples_of_another_data_set():
  config = small(common.config('test', ()))
  config.auxiliary.data, config.auxiliary.samples = 'digits', 50
  made = study.prepare(config)
  assert made.sizes.spare == 0 and made.outside is not None
  assert made.outside.features[1].shape == (50, 8, 4, 1)
  assert abs(float(made.outside.features[0].mean())) < 1e-5  # Its own scale.
  spare = jax.jit(lambda x: split_samples(made, KEY, x).spare)(made.samples)
  np.testing.assert_array_equal(spare.labels, made.outside.labels)
  config.auxiliary.data = 'breast_cancer'
  with pytest.raises(UserError, match=r'must be as in digits: \(8, 8, 1\)'):
    study.prepare(config)


@pytest.mark.parametrize('change, match', [
    (dict(strengths=(0.5, 0.05)), 'chance meets at 1/10'),
    (dict(options=dict(among=('conv9',))), "no layer 'conv9'"),
    (dict(samples=0), r'set --config.auxiliary.samples'),
    (dict(samples=5000), 'auxiliary.samples must be 0 or more and leave'),
])
def test_what_is_refused_before_training(change, match):
  config = small(common.config('test', ()))
  config.auxiliary.samples = change.pop('samples', 160)
  config.listed = (
      Entry('vmask', **(dict(strengths=(0.5,)) | change)),  # pyright: ignore
  )
  with pytest.raises(UserError, match=match):
    checks.make(config, data.load('digits'))


def test_a_budget_is_a_strength_of_one_program():
  config = small(fig8.budgets('mlp3'))
  made = checks.make(config, data.load('digits'))
  found = {job.name: job for job in jobs.jobs(made)}
  assert found['20 epochs'].strengths == fig8.BUDGETS
  assert not found['20 epochs'].constant
  imagined = config.listed[2].options['attacker']
  assert (imagined.schedule.epochs, imagined.draws) == (50, 5)
  assert found['20 epochs'].program == found['VMask 50x5'].program


def test_the_runner_records_what_vmask_knows_of_itself(setting):
  job = [
      job for job in jobs.jobs(setting._replace(config=small(
          common.config('test', (quick(),))
      ))) if job.name == 'VMask'
  ][0]
  job = job._replace(setting=job.setting._replace(after_training={}))
  one = dict(seed=jnp.int32(0), strength=jnp.float32(0.25), others={})

  def program(samples):
    run = cell.start(job, one, samples)
    run, history = cell.advance(
        job, 2, dict(cells=one, runs=run), (samples, 0)
    )
    return cell.finish(job, dict(cells=one, runs=run), samples), history

  found, history = jax.eval_shape(program, setting.samples)
  known = {'mask_ratio', 'masked', 'simulated_leakage'}
  assert known <= set(found['']) and known <= set(history['validation'])


@pytest.fixture(scope='module')
def recovered(setting):
  """What is left of VMask where a party has kept its transcript.

  The attack on its true weights, with none and with all of them hidden, is one
  program for both; beside it that on what VMask shows.
  """
  sets = [study.hiding(setting, chosen) for chosen in ((), (1, 2, 3))]
  hidden = np.stack([look.keywords['hidden'] for look in sets])

  def of_all(key, seen):
    one = lambda own: study.attack(key, seen, hidden=own, recovered=True)
    return jax.lax.map(one, hidden)

  looks = dict(
      kept=of_all, shown=study.attack, main=study.main_accuracy,
      hidden=partial(study.memory, 'masked'),
  )
  return study.run(setting, quick('all', (0.15,)), looks)


@pytest.mark.slow
def test_hiding_all_layers_of_a_trained_bottom_is_scratch(recovered):
  none, every = recovered['kept'][0, 0]
  assert none.shape == every.shape == (2,) and recovered['main'].shape == (1, 1)
  assert recovered['main'][0, 0] > 0.8
  assert none.mean() > every.mean() + 0.1


@pytest.mark.slow
def test_a_study_looks_after_every_epoch(looked):
  made, found = looked
  assert found['masked'].shape == (1, 2, 3)
  assert found['facts']['mask_ratio'].shape == (1, 2)
  np.testing.assert_allclose(found['facts']['mask_ratio'][0, 0], 1 / 3)
  assert found['u'].shape == (1, 2, made.sizes.test, 128)
  assert 0 <= found['shadow'].min() <= found['shadow'].max() < 1


@pytest.mark.slow
def test_who_has_kept_its_transcript_is_not_held_back(recovered):
  assert recovered['hidden'].all()
  gain = recovered['kept'][0, 0, 0] - recovered['shown'][0, 0]
  assert gain.mean() > 0.1


@pytest.mark.slow
def test_the_settings_of_the_authors_code(looked):
  """VMask hides a layer after the first epoch, budget or not; all learn."""
  _, found = looked
  assert found['masked'].sum(-1).tolist() == [[1, 1]]
  largest = found['norms'].argmax(-1)
  assert found['masked'][0, np.arange(2), largest[0]].all()
  assert found['main'][0, -1] > 0.8


def test_the_authors_settings_are_for_two_networks():
  config = common.config('test', (), 'vgg13', 'cifar10')
  with pytest.raises(UserError, match='mlp3 and lenet5 here; got vgg13'):
    authors.apply(config)


def test_the_sets_of_layers_of_table_i_and_figure_2():
  assert table1.sets(3) == [
      (), (1,), (2,), (3,), (1, 2), (1, 2, 3), (1, 3), (2, 3)
  ]
  assert {(1, 2), (1, 3), (2, 3), (5,), (1, 2, 3, 4, 5)} <= set(table1.sets(5))
  for row in table1.PAPER.values():
    # LeNet5 has two single layers besides, of the paper's text.
    assert set(row) - {'1', '5'} == {'1,2', '1,3', '2,3'}


@pytest.mark.parametrize('name, row, path, value', [
    ('sizes', '64 a class', ('auxiliary', 'samples'), 640),
    ('classes', '4 classes', ('auxiliary', 'classes'), 4),
    ('noise', 'noise 10', ('auxiliary', 'noise'), 10.0),
    ('augmented', 'training', ('auxiliary', 'augment'), 'training'),
    ('outside', 'other', ('auxiliary', 'path'), 'file.npz'),
    ('parties', '10 parties', ('data', 'parties'), 10),
    ('attackers', '4 parties', ('data', 'parties'), 4),
    ('transcript', 'as in Table II', ('auxiliary', 'samples'), 640),
])
def test_variations_change_one_thing(name, row, path, value):
  args = argparse.Namespace(other='other', other_path='file.npz')
  config = common.config('test', ())
  before = json.dumps(vars(config.train))
  variations.variations(name, args)[row](config)
  assert getattr(getattr(config, path[0]), path[1]) == value
  assert json.dumps(vars(config.train)) == before


def test_every_curve_of_figure_5_is_a_row_of_table_iii():
  for model, rows in table3.PAPER.items():
    assert set(fig5.entries(model)) == set(rows) == set(paper.ROWS)


def test_pictures_of_records(tmp_path):
  curve = dict(attack=[[[0.1, 0.2], [0.3, 0.3]]], scratch=[[[0.2], [0.2]]])
  masked = dict(attack=[[[0.1], [0.1]]], norms=[[[1, 2, 3], [2, 3, 4]]])
  record = dict(curves=dict(none=curve, VMask=masked))
  one, other = tmp_path / 'fig5.json', tmp_path / 'table1.json'
  one.write_text(json.dumps(record))
  other.write_text(json.dumps(dict(attack_accuracy={'1': [[0.5, 0.4]]})))
  for what, source in (('curves', one), ('norms', one), ('layers', other)):
    out = tmp_path / f'{what}.png'
    pictures.main([what, str(source), f'--out={out}'])
    assert out.stat().st_size > 4000
  embedded = {'a': np.random.default_rng(0).normal(size=(40, 3))}
  # Its threads wait for each other in a loop: 25 s where cores are shared.
  with threadpoolctl.threadpool_limits(1):
    figure = pictures.tsne(embedded, np.arange(40) % 10)
  assert [axes.get_title() for axes in figure.axes] == ['a']


@pytest.mark.parametrize('main, arguments, message', [
    (table1.main, ['mlp3', 'nowhere.npz'], 'nowhere.npz'),
    (table1.main, ['vgg13', '', '--dataset=digits', '--authors'], 'mlp3 and'),
    (fig5.main, ['mlp3', 'nowhere.npz'], 'nowhere.npz'),
    (variations.main, ['sizes', 'mlp3', 'x', '--out=no/x.json'], 'no folder'),
])
def test_what_a_study_cannot_do_is_said(
    main, arguments, message, capsys, monkeypatch
):
  monkeypatch.setattr(device, 'set_up', lambda *_: None)  # JAX has started.
  with pytest.raises(SystemExit) as stopped:
    main(arguments)
  assert stopped.value.code == 2
  said = capsys.readouterr().err
  assert message in said and 'Traceback' not in said
