"""Which named networks, and norms, go with which model and features."""
from types import SimpleNamespace

import numpy as np
import pytest

from vfljax.runner.checking import suiting
from vfljax.runner.config import Config, DataConfig, ModelConfig

TABLE, IMAGES = (5, 3), (5, 8, 8, 1)


def check(shape=TABLE, scale='none', **model):
  config = Config(
      data=DataConfig(scale=scale), model=ModelConfig(**model)
  )
  features = (None, np.zeros(shape))  # The first party may have none.
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
