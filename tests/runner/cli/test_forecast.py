"""What is said to be trained is what is trained."""
import jax
import numpy as np
import pytest

from vfljax import attacks, defenses
from vfljax.attack import recipe
from vfljax.data.table import Table
from vfljax.defense import Defense, Method
from vfljax.runner.cli import forecast
from vfljax.runner.config import Config, DataConfig, Entry, TrainConfig
from vfljax.runner.experiment import memory

TABLE = Table(
    np.zeros((6, 2), np.float32), np.array([0, 1] * 3, np.int32), ('a', 'b'),
    ('no', 'yes'), (0, 1),
)


def test_federations_are_counted_by_strength_and_seed(monkeypatch):
  monkeypatch.setenv('COLUMNS', '60')
  config = Config(
      seeds=4, train=TrainConfig(epochs=7), data=DataConfig('csv'),
      listed=(Entry('iso', (1.0, 2.0), grid={'x': (1.0, 2.0, 3.0)}),
              Entry('max_norm')), listed_attacks=('norm_scoring',),
  )
  text = forecast.text(config, TABLE)
  # None, max_norm, and iso at two strengths by three: 8 of 4 seeds.
  assert ' '.join(text.split()) == (
      '32 federations of 2 parties on 6 rows of csv, 7 epochs each: 4 seeds of '
      'none, iso (6 strengths), max_norm. Attacks: norm_scoring. '
      'Classes: no 50.0%, yes 50.0%. Party 0, which has the labels: a. '
      'Party 1: b.'
  )
  assert max(map(len, text.splitlines())) <= 60


def test_methods_of_ones_own_under_our_names_are_said(monkeypatch):
  """A report would compare them with papers' numbers for ours."""
  def own(*strength):
    return Defense()

  mine = recipe()(attacks.norm_scoring.factory)
  mine.score = attacks.norm_scoring.score._replace()  # Still ours.
  config = Config(
      data=DataConfig('wine'), listed=(
          Entry('iso', (1.0,), after=(Entry('max_norm'),)), Entry('own'),
      ), listed_attacks=('norm_scoring', 'mean_scoring', 'theirs'),
  )
  monkeypatch.setitem(defenses.REGISTRY, 'own', Method(own))
  monkeypatch.setitem(
      attacks.REGISTRY, 'theirs', recipe()(lambda: attacks.norm_scoring())
  )
  monkeypatch.setitem(attacks.REGISTRY, 'norm_scoring', mine)
  said = lambda: ' '.join(forecast.text(config, TABLE).split())
  assert 'Your own methods' not in said()
  monkeypatch.setitem(defenses.REGISTRY, 'max_norm', Method(own))
  told = 'Your own methods, not those of vfljax by these names: '
  assert f'{told}max_norm.' in said()
  monkeypatch.setitem(
      attacks.REGISTRY, 'mean_scoring', recipe()(lambda: attacks.norm_scoring())
  )
  assert f'{told}max_norm, mean_scoring.' in said()


def test_one_of_each_is_no_plural():
  config = Config(
      seeds=1, train=TrainConfig(epochs=1), data=DataConfig('csv'),
      listed=(Entry('none'),), listed_attacks=('norm_scoring',),
  )
  assert ' '.join(forecast.text(config, TABLE).split()).startswith(
      '1 federation of 2 parties on 6 rows of csv, 1 epoch each: 1 seed of '
  )


def test_how_an_own_table_is_read_is_said():
  config = Config(
      seeds=1, data=DataConfig('csv', parties=2, split='named', named='*;z'),
      listed=(Entry('none'),),
  )
  assert 'Classes: no 50.0%' in forecast.text(config, TABLE)
  assert 'Party' not in forecast.text(config, TABLE)  # There is no column z.
  ours = Config(data=DataConfig('wine'), listed=(Entry('none'),))
  assert 'Classes' not in forecast.text(ours, TABLE)


@pytest.mark.parametrize('listed, said', [
    (('norm_scoring', 'model_completion'),
     'Attacks: model_completion, local_model, scratch. Left out, as they do '
     'not apply here: norm_scoring. So no attack reads gradients. These would: '
     'gradient_clustering, learned_gradient (--config.attacks='
     'model_completion,gradient_clustering,learned_gradient).'),
    (('norm_scoring', 'gradient_clustering'),
     'Attacks: gradient_clustering. Left out, as they do not apply here: '
     'norm_scoring.'),
    (('norm_scoring|gradient_clustering',), 'Attacks: gradient_clustering.'),
    (('model_completion',), 'Attacks: model_completion, local_model, scratch.'),
])
def test_attacks_that_are_left_out_are_named(listed, said):
  table = Table(
      np.zeros((6, 2), np.float32), np.array([0, 1, 2] * 2, np.int32),
      ('a', 'b'), ('no', 'perhaps', 'yes'), (0, 1),
  )
  config = Config(
      data=DataConfig('wine'), listed=(Entry('none'),), listed_attacks=listed
  )
  assert ' '.join(forecast.text(config, table).split()).endswith(said)


def test_much_memory_is_said_and_too_much_with_what_takes_less(monkeypatch):
  """Six rows of two floats are 48 bytes: as loaded, and thrice a device."""
  config = Config(seeds=1, data=DataConfig('csv'), listed=(Entry('none'),))
  counts = jax.local_device_count()
  assert memory.expected(config, TABLE)[:2] == (48 * (1 + 3 * counts), 48 * 4)

  def said(there):
    monkeypatch.setattr(memory, 'memory', lambda: there)
    text = ' '.join(forecast.text(config, TABLE).split())
    return text.partition('Memory')[2]

  needed = 48 * (1 + 3 * counts)
  assert said(4 * needed) == ''
  assert said(2 * needed).endswith('GiB.')
  assert '--devices' not in said(2 * needed)
  assert '--devices=1 (about ' in said(needed - 1)
  assert '--config.data.limit=2 for' in said(needed - 1)
  streamed = Config(data=DataConfig('csv', stream=1), listed=(Entry('none'),))
  assert memory.expected(streamed, TABLE) == (0, 0, 0)


def test_far_more_rounds_than_suit_a_table_are_told():
  rng = np.random.default_rng(0)
  table = TABLE._replace(
      features=np.zeros((10_000, 2), np.float32),
      labels=rng.permutation(np.arange(10_000) % 2).astype(np.int32),
  )
  suited = TrainConfig(epochs=13, batch_size=128)
  config = Config(
      data=DataConfig('csv'), listed=(Entry('none'),), train=suited
  )
  assert 'Rounds' not in forecast.text(config, table)
  # 700 rounds, 55 an epoch of 128: 13 epochs. 30 epochs of 32 have 6563.
  config.train = TrainConfig(epochs=30, batch_size=32)
  assert 'Rounds' not in forecast.text(config, table)
  config.train = TrainConfig(epochs=60, batch_size=32)
  said = ' '.join(forecast.text(config, table).split())
  assert 'Rounds: 18 times as many as `recommend` takes' in said
  assert said.endswith(
      '--config.train.batch_size=128 --config.train.epochs=13.'
  )


@pytest.mark.parametrize('times, told', [(9.9, False), (10.0, True)])
def test_ten_times_as_many_are_a_word_worth(monkeypatch, times, told):
  monkeypatch.setattr(forecast.rounds, 'times', lambda *_: times)
  config = Config(data=DataConfig('csv'), listed=(Entry('none'),))
  assert ('Rounds: 10 times' in forecast.text(config, TABLE)) == told
