"""How many epochs a call plays."""
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from vfljax.runner.compiled import strides


def stride(
    epochs, samples=100, weights=1000, batch=10, shape=(5,), seeds=3, more=0
):
  """Of one training of a network of so many weights a party."""
  leaf = jax.ShapeDtypeStruct((4, weights // 2), np.float32)  # 4 trainings.
  own = jax.ShapeDtypeStruct((4, more), np.float32)
  party = SimpleNamespace(params=dict(a=leaf, b=leaf, defense=own))
  runs = SimpleNamespace(state=SimpleNamespace(parties=[party, party]))
  config = SimpleNamespace(train=SimpleNamespace(
      epochs=epochs, batch_size=batch, remainder='drop'
  ))
  features = None, np.zeros((samples, *shape))
  setting = SimpleNamespace(
      config=config, sizes=SimpleNamespace(train=samples),
      samples=SimpleNamespace(features=features),
  )
  job = SimpleNamespace(setting=setting, seeds=range(seeds))
  return strides.stride_of(job, runs)


@pytest.mark.parametrize('epochs, played', [
    (1, 1), (2, 1), (3, 1), (4, 2), (5, 5), (10, 5), (30, 10), (50, 25),
    (31, 31),
])
def test_a_short_training_takes_few_calls_none_past_its_end(epochs, played):
  assert stride(epochs) == played


def test_a_long_one_takes_ten():
  # An epoch of one round: 6 operations for each of 2 x 1000 weights and 100
  # samples, and a million for the round. 455 of them are over a billion.
  assert stride(454, batch=100) == 227
  assert stride(455, batch=100) == 46
  assert stride(400, samples=1000, batch=1000) == 40
  assert stride(400, weights=10_000, batch=100) == 40


def test_a_defenses_weights_do_not_count():
  """They depend on who shares the program, as no checkpoint's place may."""
  assert stride(454, batch=100, more=1000) == 227


def test_many_rounds_are_long():
  assert stride(50, weights=2, batch=100) == 25
  assert stride(50, weights=2, samples=1000, batch=10) == 5


def test_what_images_take_nobody_knows():
  assert stride(30, shape=(5, 5, 1)) == 3


def test_many_seeds_are_long():
  # 30 epochs of 10 rounds are .336e9 operations, of 60 seeds over .2e11.
  assert stride(30, seeds=59) == 10
  assert stride(30, seeds=60) == 3
