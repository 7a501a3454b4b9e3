"""What recommend chooses to run, and where it looks again."""
import dataclasses

import numpy as np
import pytest

from tests.report.test_lost import cell_of
from tests.report.test_report import workdir
from vfljax.commands import choice, recommended
from vfljax.data.table import Table
from vfljax.report import reading
from vfljax.runner.cli.goals import Goal
from vfljax.runner.config import Config, Entry, ModelConfig


def test_attacks_are_those_whose_needs_are_met():
  config = recommended.get_config()
  two = choice.applying(config, 2)
  assert {'norm_scoring', 'mean_scoring', 'model_completion'} <= {*two}
  # No baselines, none that needs linear bottoms, images or another training.
  assert not {'local_model', 'direct_label', 'model_inversion', 'noisy_sample',
              'active_completion', 'mixmatch'} & {*two}
  ten = choice.applying(config, 10)
  assert 'model_completion' in ten and 'norm_scoring' not in ten
  linear = dataclasses.replace(config, model=ModelConfig('vlr'))
  assert 'direct_label' in choice.applying(linear, 10)


@pytest.mark.parametrize('fewest, typed, known', [
    (9, [], 4), (1, [], 1), (99, [], 5), (9, ['--config.attack.known=5'], 5),
])
def test_attackers_know_at_most_half_of_a_small_class(fewest, typed, known):
  labels = np.array([1] * fewest + [0] * 300, np.int32)
  table = Table(np.zeros((len(labels), 1), np.float32), labels, ('x',),
                ('0', '1'), (0,))
  config = recommended.get_config()
  assert config.attack.known == 5
  assert choice.sized(config, table, typed).attack.known == known


def test_attacks_on_replayed_rounds_need_twice_what_they_know():
  again = {'gradient_clustering', 'learned_gradient'}
  config = recommended.get_config()
  for rounds, found in ((0, set()), (3, set()), (4, again)):
    attack = dataclasses.replace(config.attack, replay_rounds=rounds, known=6)
    one = dataclasses.replace(config, attack=attack)
    assert again & {*choice.applying(one, 10)} == found  # 120 samples in 4.


@pytest.mark.parametrize('rows, typed, rounds', [
    (1500, [], 32), (500_000, [], 4),
    (1500, ['config.attack.replay_rounds=7'], 7),
    (1500, ['--config.attack.replay_rounds=0'], 32),  # As many as it needs.
    (1500, ['--config.train.batch_size=2000'], 0),
])
def test_an_epoch_is_replayed_but_of_a_large_table_a_part(rows, typed, rounds):
  labels = np.arange(rows, dtype=np.int32) % 2
  table = Table(np.zeros((rows, 1), np.float32), labels, ('x',), ('0', '1'),
                (0,))
  config = recommended.get_config()
  if rounds == 0:
    config = dataclasses.replace(
        config, train=dataclasses.replace(config.train, batch_size=2000)
    )
  config.attack.replay_rounds = 7 if rounds == 7 else 0
  found = choice.sized(config, table, typed).attack.replay_rounds
  assert found == rounds


def test_defenses_are_swept_coarsely_and_only_where_they_apply():
  two = choice.coarse(recommended.get_config(), 2)
  strengths = {e.name: e.strengths for e in two.listed}
  assert strengths['dp_laplace'] == (0.0001, 0.01, 0.1)
  assert strengths['max_norm'] == () and 'marvell' in strengths
  assert all(len(s) <= 3 for s in strengths.values())
  ten = choice.coarse(recommended.get_config(), 10)
  assert 'marvell' not in {e.name for e in ten.listed}


@pytest.mark.parametrize('tried, best, finer', [
    ((1, 4, 16), 4, (2, 8)),  # Halves of the way as ratios.
    ((1, 4, 16), 16, (8, 64)),  # One before, one beyond.
    ((1, 4, 16), 1, (0.25, 2)),
    ((0, 2), 0, (-2, 1)), ((5,), 5, ()),
])
def test_where_it_looks_again(tried, best, finer):
  assert choice.around(tried, best) == finer


def test_it_looks_again_around_the_budget(tmp_path):
  cells = {
      ('none', None): cell_of([0.9] * 2, [0.95] * 2),
      ('dp_laplace', 0.01): cell_of([0.897] * 2, [0.70] * 2),
      ('dp_laplace', 1.0): cell_of([0.80] * 2, [0.51] * 2),
      ('iso', 5.0): cell_of([0.89] * 2, [0.6] * 2),
      ('gradient_compression', 0.5): cell_of([0.9] * 2, [0.9] * 2),
      ('gradient_compression', 0.9): cell_of([0.9] * 2, [0.95] * 2),
      ('max_norm', None): cell_of([0.9] * 2, [0.8] * 2),
  }
  results, = reading.read(workdir(tmp_path, cells).path)
  config = Config(listed=(
      Entry('dp_laplace', (0.01, 1.0)), Entry('iso', (5.0,)),
      Entry('gradient_compression', (0.5, 0.9)), Entry('max_norm'),
  ))
  again = choice.finer(results, Goal(budget=2), config)
  assert again
  found = {e.name: e.strengths for e in again.listed}
  # 0.01 is within the budget: between it and 1, and below it. A share of what
  # is kept is at most 1, and iso has no neighbour.
  assert found.pop('none') == ()
  assert found == {'dp_laplace': (0.0001, 0.1),
                   'gradient_compression': (0.28, 0.67)}
  within = choice.finer(results, Goal(budget=50), config)
  assert within
  # Now 1 is the best.
  assert {e.name: e.strengths for e in within.listed}['dp_laplace'] == (
      0.1, 100.0
  )
  lone = Config(listed=(Entry('max_norm'),))
  assert choice.finer(results, Goal(budget=2), lone) is None
  # Nor is more than all looked at where nearly all is best.
  cells['gradient_compression', 0.9] = cell_of([0.9] * 2, [0.85] * 2)
  results, = reading.read(workdir(tmp_path / 'most', cells).path)
  again = choice.finer(results, Goal(budget=2), config)
  assert again and again.listed[-1].strengths == (0.67,)


@pytest.mark.parametrize('rows, epochs, batch', [
    (100, 30, 25), (1500, 21, 32), (15_000, 9, 128), (500_000, 5, 1024),
])
def test_a_training_fits_its_rows(rows, epochs, batch):
  labels = np.arange(rows, dtype=np.int32) % 2
  table = Table(np.zeros((rows, 1), np.float32), labels, ('x',), ('0', '1'),
                (0,))
  config = choice.sized(recommended.get_config(), table, [])
  assert (config.train.epochs, config.train.batch_size) == (epochs, batch)
  typed = ['--config.train.epochs=3', '--config.train.batch_size=7']
  kept = choice.sized(recommended.get_config(), table, typed)
  assert kept.train == recommended.get_config().train


@pytest.mark.parametrize('rows, rare, epochs, batch', [
    (2000, 20, 100, 200), (2000, 600, 16, 32), (20_000, 200, 10, 200),
    (200_000, 2, 41, 8192), (600, 2, 120, 150),
])
def test_a_rare_class_is_in_most_rounds(rows, rare, epochs, batch):
  # Of 1 % in rounds of 32 most attacks have nobody to find.
  labels = (np.arange(rows) < rare).astype(np.int32)
  table = Table(np.zeros((rows, 1), np.float32), labels, ('x',), ('0', '1'),
                (0,))
  sized = choice.sized(recommended.get_config(), table, []).train
  assert (sized.epochs, sized.batch_size) == (epochs, batch)
  three = table._replace(classes=('0', '1', '2'))  # None of them tells apart.
  sized = choice.sized(recommended.get_config(), three, []).train
  assert sized.batch_size <= 512
