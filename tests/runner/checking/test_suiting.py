"""Which named networks, and norms, go with which model and features."""
from types import SimpleNamespace

import numpy as np
import pytest

from vfljax import nets
from vfljax.attack import Attack, Wants
from vfljax.data.table import Table
from vfljax.runner.checking import checks, suiting
from vfljax.runner.config import (
    AttackConfig, AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig,
    TrainConfig,
)
from vfljax.runner.errors import UserError
from vfljax.views import TrainedTop

TABLE, IMAGES = (5, 3), (5, 8, 8, 1)


def check(shape=TABLE, scale='none', most=0, data=None, **model):
  config = Config(
      data=DataConfig(**dict(scale=scale) | (data or {})),
      model=ModelConfig(**model),
  )
  # The first party may have none.
  features = (None, np.zeros(shape), np.full(shape, most))
  suiting.check(SimpleNamespace(
      config=config, samples=SimpleNamespace(features=features)
  ))


@pytest.mark.parametrize('model', [
    {}, dict(algorithm='vsnn'), dict(name='mlp3'),  # Its top is a perceptron.
    dict(trainable_top=False),  # Its bottoms are.
])
def test_a_norm_goes_where_a_perceptron_is(model):
  check(norm='batch', **model)


@pytest.mark.parametrize('model', [
    dict(algorithm='vlr'), dict(name='mlp3', trainable_top=False),
    dict(channels=(4,)), dict(buckets=10),
])
def test_a_norm_without_a_perceptron_is_refused(model):
  with pytest.raises(ValueError, match='model.norm is for multilayer'):
    check(norm='batch', **model)
  check(**model)


def test_a_network_reads_what_it_is_for():
  with pytest.raises(ValueError, match='lenet5 is for images; breast_cancer'):
    check(name='lenet5')
  check(IMAGES, name='lenet5')
  check(IMAGES, 'standard', name='lenet5')
  check(name='wide_deep')
  with pytest.raises(ValueError, match='wide_deep reads the numbers of'):
    check(scale='standard', name='wide_deep')
  for scale in ('none', 'standard'):
    check(scale=scale, name='mlp3')


def test_a_named_network_is_no_logistic_regression():
  with pytest.raises(ValueError, match='model.name=mlp3 needs .*=vhnn or vsnn'):
    check(algorithm='vlr', name='mlp3')


def pixels(name, x, samples=4, scale='none'):
  config = Config(data=DataConfig(scale=scale))
  attack = Attack(TrainedTop, lambda key, view: 0, wants=Wants(samples))
  suiting.check_pixels(SimpleNamespace(
      config=config, samples=SimpleNamespace(features=(None, x))
  ), {'norm_scoring': None, name: attack})


@pytest.mark.parametrize('name', ['model_inversion', 'mean_image', 'cafe'])
def test_pixels_are_guessed_where_they_are(name):
  x = np.zeros(IMAGES, np.float32)
  pixels(name, x)
  x[0, 0, 0], x[1, 1, 1] = 1, 255
  with pytest.raises(ValueError, match=f'{name} guesses pixels .* 0 to 255'):
    pixels(name, x)
  with pytest.raises(ValueError, match='are from -1 to '):
    pixels(name, -x / 255)
  pixels(name, x / 255)
  pixels(name, x.astype(np.uint8))  # They are divided by 255.
  pixels(name, x[:, 0, 0])  # A table's columns: other checks say so.
  pixels('direction_scoring', x, 0)


def test_scaled_pixels_are_not_compared():
  x = np.zeros(IMAGES, np.float32)
  with pytest.raises(ValueError, match='mean_image .*--config.data.scale=none'):
    pixels('mean_image', x, scale='standard')
  pixels('mean_image', 255 + x, scale='minmax')  # They are divided first.
  pixels('model_completion', x, 0, 'standard')  # It wants no features.


def test_an_experiment_on_such_pixels_is_refused():
  x = np.random.default_rng(0).uniform(0, 255, (40, 8, 16, 1))
  labels = (np.arange(40) % 2).astype(np.int32)
  config = Config(
      data=DataConfig('mine', split='left_right', scale='none'),
      listed=(Entry('none'),), listed_attacks=('mean_image',),
      attack=AttackConfig(
          auxiliary=8, own=dict(model_inversion=dict(samples=4))
      ),
  )
  for unit, fits in ((1, False), (255, True)):
    images = (x / unit).astype(np.float32)
    made = checks.assembled(config, Table(images, labels, (), ('a', 'b'), ()))
    if fits:
      checks._check_attacks(made)
      continue
    with pytest.raises(ValueError, match='mean_image guesses pixels between'):
      checks._check_attacks(made)


@pytest.mark.parametrize('width, fits', [(0, True), (3, True), (4, False)])
def test_a_network_from_outside_has_the_width_that_is_asked_for(
    width, fits, monkeypatch
):
  net = nets.mlp(3)
  monkeypatch.setitem(nets.REGISTRY, 'mine', nets.Network(lambda width: net))
  setting = SimpleNamespace(
      config=Config(model=ModelConfig('vhnn', name='mine', width=width)),
      samples=SimpleNamespace(features=(None, np.zeros((5, 2), np.float32))),
      vfl=SimpleNamespace(bottom=lambda party: net),
  )
  if fits:
    suiting._check_width(setting)
    return
  with pytest.raises(UserError, match='model.width asks for, 4; it makes .3'):
    suiting._check_width(setting)


def test_images_can_be_flipped_and_so_can_no_table_be():
  setting = lambda shape: SimpleNamespace(
      config=Config(
          auxiliary=AuxiliaryConfig(9, augment='held_out'),
          train=TrainConfig(batch_size=4, best=True),
      ),
      sizes=SimpleNamespace(train=4, validation=0, test=4), classes=2,
      official=True,
      samples=SimpleNamespace(
          features=(np.zeros(shape),) * 2, labels=np.eye(2)[np.arange(8) % 2]
      ),
  )
  with pytest.raises(ValueError, match='flips and crops images'):
    checks._check(setting((8, 5)))
  with pytest.raises(ValueError, match='train.best needs held-out samples'):
    checks._check(setting((8, 5, 5, 1)))  # It is asked after that.


@pytest.mark.parametrize('parties, how', [
    (2, {}), (4, dict(options='length=4;parts=4')), (3, dict(split='random')),
    (3, dict(name='reviews')), (3, dict(path='')), (1, {}),
])
def test_texts_go_in_whole_pieces(parties, how):
  check_pieces(parties, **how)


def check_pieces(parties, **how):
  data = dict(name='texts', path='a.tsv', scale='none') | how
  suiting.check(SimpleNamespace(
      config=Config(
          data=DataConfig(**data), model=ModelConfig(name='embedding')
      ),
      samples=SimpleNamespace(features=(None, *[np.zeros((5, 3))] * parties)),
  ))


def test_pieces_of_texts_are_not_cut():
  with pytest.raises(ValueError, match='in 2 pieces .* 3 parties: add parts=3'):
    check_pieces(3)
  with pytest.raises(ValueError, match='in 4 pieces .* 3 parties'):
    check_pieces(2, unheld=True, options='parts=4')  # The third has none.


@pytest.mark.parametrize('model, field', [
    (dict(name='embedding'), 'add buckets=1001 to --config.model.options'),
    (dict(name='wide_deep'), 'add buckets=1001 to --config.model.options'),
    (dict(buckets=1000), 'set --config.model.buckets=1001'),
])
def test_categories_beyond_a_networks_are_refused(model, field):
  """They would all count as its last one."""
  check(most=999, **model)
  with pytest.raises(ValueError, match=f'up to 1000, of .*{field}'):
    check(most=1000, **model)
  more = model | (
      dict(options='buckets=1001') if 'name' in model else dict(buckets=1001)
  )
  check(most=1000.5, **more)
  with pytest.raises(ValueError, match='these are no categories'):
    check(most=np.inf, **more)


def test_a_missing_category_hides_no_other():
  config = Config(
      data=DataConfig(scale='none'), model=ModelConfig(name='embedding')
  )
  with pytest.raises(ValueError, match='up to 5000'):
    suiting.check(SimpleNamespace(config=config, samples=SimpleNamespace(
        features=(None, np.array([[np.nan, 5000.0]]))
    )))


def test_ones_own_network_may_read_words(monkeypatch):
  monkeypatch.setitem(nets.REGISTRY, 'mine', nets.Network(
      lambda width: nets.mlp(width)
  ))
  own = dict(name='texts', path='a.tsv', options='parts=2')
  monkeypatch.setattr(suiting, '_check_width', lambda setting: None)
  check(data=own, name='mine')


def test_numbers_of_words_are_no_quantities():
  own = dict(name='texts', path='a.tsv', options='parts=2')
  check(data=own, name='embedding')
  for model in ({}, dict(name='mlp3'), dict(algorithm='vlr')):
    with pytest.raises(ValueError, match='texts has the numbers of words, whi'):
      check(data=own, **model)


@pytest.mark.parametrize('model', [
    dict(norm='batch'), dict(name='mlp3', options='norm=batch'),
    dict(name='mlp3', options='norm=layer', norm='batch'),  # Of the top.
])
def test_one_sample_has_no_variance(model):
  def rest(samples, remainder, size=8, **own):
    suiting.check(SimpleNamespace(
        config=Config(
            model=ModelConfig(**own),
            train=TrainConfig(batch_size=size, remainder=remainder),
        ), sizes=SimpleNamespace(train=samples),
        samples=SimpleNamespace(features=(None, np.zeros(TABLE))),
    ))

  for remainder in ('keep', 'pad'):
    with pytest.raises(ValueError, match='Of 17 .* batches of 8 one is left'):
      rest(17, remainder, **model)
    rest(18, remainder, **model)
    rest(17, remainder)
  rest(17, 'drop', **model)
  with pytest.raises(ValueError, match='Rounds have one sample, and of one'):
    rest(17, 'drop', size=1, **model)
