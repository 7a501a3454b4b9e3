"""Guesses at pixels are measured by formulas for pixels between 0 and 1."""
from types import SimpleNamespace

import pytest

from vfljax.attack import Attack, Wants
from vfljax.runner.checking import trying
from vfljax.views import TrainedTop


def check(scale, name='mean_image', samples=4):
  data = SimpleNamespace(scale=scale)
  setting = SimpleNamespace(config=SimpleNamespace(data=data))
  attack = Attack(TrainedTop, lambda key, view: 0, wants=Wants(samples))
  trying._check_pixels(setting, name, attack)


def test_pixels_are_measured_unscaled():
  with pytest.raises(ValueError, match='--config.data.scale=none'):
    check('standard')
  check('none')
  check('minmax')


def test_who_wants_no_features_may_have_any_scale():
  check('standard', 'model_completion', 0)
