"""What an attack that knows nothing shows: against simulated ones."""
import json

import numpy as np
import pytest
from sklearn import metrics

from tests.report.test_report import workdir
from vfljax.report import advice, asked, chance, ranks, reading, verdict
from vfljax.runner.cli.goals import Goal


def results_of(folder, leak, config, about, attack='norm_scoring'):
  config = dict(
      train=dict(epochs=30), attack=dict(pool='epoch', when='max')
  ) | config
  metric = 'leak_auc' if attack == 'norm_scoring' else 'auc_last'
  cells = {
      ('none', None): {(None, 'auc'): [0.9] * 3, (attack, metric): [1.0] * 3},
      ('iso', 5.0): {(None, 'auc'): [0.9] * 3, (attack, metric): leak},
  }
  work = workdir(folder, cells, config)
  (work.path / 'about.json').write_text(json.dumps(about))
  return reading.read(work.path)[0]


ABOUT = dict(training=35, classes=dict(no=0.7, yes=0.3))


def of_iso(results):
  return next(t for t in ranks.trades(results) if t.cell[0] == 'iso')


def auc(y, scores):
  """Of many rows of scores at once: scikit-learn takes seconds."""
  places = scores.argsort(-1).argsort(-1)
  ones = y.sum()
  below = places[..., y].sum(-1) - ones * (ones - 1) / 2
  return below / (ones * (len(y) - ones))


@pytest.mark.parametrize('rows, share, config', [
    (35, 0.3, {}), (400, 0.05, {}), (60, 0.5, dict(train=dict(epochs=4))),
    (60, 0.5, dict(attack=dict(pool='epoch', when='last'))),
])
def test_noise_shows_what_it_is_said_to_show(rows, share, config, tmp_path):
  about = dict(training=rows, classes=dict(no=1 - share, yes=share))
  results = results_of(tmp_path, [0.7] * 3, config, about)
  count = results.epochs if results.when == 'max' else 1
  y, rng = np.arange(rows) < round(rows * share), np.random.default_rng(0)
  scores = rng.normal(size=(600 // count, count, rows))
  assert auc(y, scores[0, 0]) == pytest.approx(
      metrics.roc_auc_score(y, scores[0, 0])
  )
  shown = abs(auc(y, scores) - 0.5).max(-1)
  assert chance.by_chance(results, of_iso(results)) == pytest.approx(
      100 * np.mean(shown), rel=0.12
  )


@pytest.mark.parametrize('attack, unknown', [
    ('norm_scoring', (100, 300)), ('median_scoring', (50, 150)),
    # 20 rounds of 20 samples, of which all but 0.3 % have a positive one.
    ('direction_scoring', (80.06, 300)), ('nobodys', (100, 300)),
])
def test_what_attackers_are_told_is_not_inferred(attack, unknown, tmp_path):
  results = results_of(
      tmp_path, [0.7] * 3, dict(train=dict(epochs=30, batch_size=20)),
      dict(training=400, classes=dict(no=0.75, yes=0.25)),
  )
  found = chance._unknown(results, attack)
  np.testing.assert_allclose(found, unknown, rtol=1e-3)


def test_a_leakage_as_chance_shows_it_is_in_doubt(tmp_path):
  leak = [0.75, 0.8, 0.7]
  results = results_of(tmp_path, leak, {}, ABOUT)
  said = (
      'An attack that learns nothing would by chance show 25.0 points in the '
      'best of 30 epochs, with about 10 training samples of the rarer class to '
      'infer: a smaller leak cannot be told from none here.'
  )
  assert f'{said} It may leak nothing.' in (
      advice.sentences(results, Goal(budget=2))
  )
  assert f'{said} It may leak nothing.' in (
      verdict.sentences(results, ranks.rank(results))
  )
  # What nobody could see is not there to be had.
  _, last = advice.sentences(results, Goal(max_leak=10))
  assert last == said
  sure = results_of(tmp_path / 'sure', [0.9] * 3, {}, ABOUT)
  assert 'by chance' not in ' '.join(advice.sentences(sure, Goal(budget=2)))


@pytest.mark.parametrize('about, config, attack', [
    ({}, {}, 'norm_scoring'),
    (dict(classes=ABOUT['classes']), {}, 'norm_scoring'),
    (dict(ABOUT, classes=dict(a=0.3, b=0.3, c=0.4)), {}, 'norm_scoring'),
    (dict(ABOUT, training=3, classes=dict(a=0.1, b=0.9)), {}, 'norm_scoring'),
    (ABOUT, dict(attack=dict(pool='round', when='max')), 'norm_scoring'),
    (ABOUT, {}, 'model_completion'),  # Of the test samples, and not folded.
    (dict(ABOUT, training='x', classes=[1]), {}, 'norm_scoring'),
])
def test_what_is_not_known_is_not_said(about, config, attack, tmp_path):
  results = results_of(tmp_path, [0.6] * 3, config, about, attack)
  assert not chance.by_chance(results, of_iso(results))


def test_less_than_nothing_is_nothing(tmp_path):
  # A local model knows more than who completes its network, in either.
  cells = {
      ('none', None): {(None, 'auc'): [0.9, 0.9],
                       ('model_completion', 'auc_last'): [0.79, 0.79],
                       ('local_model', 'auc_last'): [0.8, 0.8]},
      ('iso', 5.0): {(None, 'auc'): [0.9, 0.9],
                     ('model_completion', 'auc_last'): [0.77, 0.77]},
  }
  results, = reading.read(workdir(tmp_path, cells).path)
  first, *_ = advice.sentences(results, Goal(budget=2))
  assert 'no defense leaks less than having none' in first
  first, *_ = verdict.sentences(results, ranks.rank(results))
  assert first.startswith('No defense beats having none')


AGAIN = dict(training=400, classes=dict(no=0.75, yes=0.25))


@pytest.mark.parametrize('attack, stages, who, variants, unknown', [
    # All 400 samples, but for the 6 labels of each class that it is told.
    ('learned_gradient', 2, dict(known=6), (), (94, 294)),
    ('learned_gradient', 1, dict(known=6, replay_rounds=2), (), (4, 24)),
    ('norm_scoring', 2, dict(known=6, replay=True), (), (5, 15)),
    ('norm_scoring@2', 2, dict(replay_rounds=4), (), (20, 60)),
    ('median_scoring', 1, dict(replay_rounds=4), (), (10, 30)),
    ('norm_scoring:a', 2, dict(replay_rounds=4),
     [dict(name='norm_scoring:a', options=dict(replay_rounds=8))], (40, 120)),
])
def test_rounds_played_again_are_seen_at_two_ends(
    attack, stages, who, variants, unknown, tmp_path
):
  """Not once an epoch, and not with all samples."""
  found = {(attack, f'leak_auc_{end}'): [0.6] * 3
           for end in ('start', 'end')[:stages]}
  config = dict(
      train=dict(epochs=30, batch_size=20),
      attack=dict(pool='epoch', when='max') | who, variants=variants,
  )
  work = workdir(tmp_path, {
      cell: {(None, 'auc'): [0.9] * 3} | found
      for cell in (('none', None), ('iso', 5.0))
  }, config)
  (work.path / 'about.json').write_text(json.dumps(AGAIN))
  results, = reading.read(work.path)
  np.testing.assert_allclose(chance._unknown(results, attack), unknown)
  p, n = unknown
  y, rng = np.arange(p + n) < p, np.random.default_rng(0)
  shown = abs(auc(y, rng.normal(size=(3000, stages, p + n))) - 0.5).max(-1)
  least = chance.by_chance(results, of_iso(results))
  assert least == pytest.approx(100 * np.mean(shown), rel=0.06)
  where = ' at the better end of training,' if stages == 2 else ' points,'
  assert where in chance._said(results, of_iso(results), least)


@pytest.mark.parametrize('config, samples', [
    ({}, 0), (dict(train={}), 0), (dict(train=dict(batch_size=32)), 32),
    (dict(train=dict(batch_size='x')), 0), (dict(train=dict(batch_size=-1)), 0),
])
def test_samples_a_round_are_what_a_config_says(config, samples):
  assert asked.batch(config) == samples


def test_what_a_config_says_of_attackers_may_be_damaged():
  damaged = dict(attack=3, variants=[dict(options=1, name=2), 'x'])
  assert asked.attackers(damaged) == {'': {}, '2': {}}
  assert not chance._number(dict(known='x'), 'known')
