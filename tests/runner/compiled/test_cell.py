"""A training's streams of random numbers, on which the records rest."""
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.runner.compiled import cell


@pytest.mark.parametrize('resplit', [True, False])
def test_each_use_of_a_seed_has_its_own_stream(monkeypatch, resplit):
  """0 draws the split, 1 trains, 2 attacks and 3 plants a backdoor."""
  split, planted = [], []
  monkeypatch.setattr(
      cell, 'split_samples', lambda setting, key, samples: split.append(key)
  )
  monkeypatch.setattr(
      cell, '_plant', lambda setting, splits, key: planted.append(key)
  )
  monkeypatch.setattr(cell, 'training_plan', lambda *_: None)
  config = SimpleNamespace(
      data=SimpleNamespace(resplit=resplit), first_seed=3
  )
  job: Any = SimpleNamespace(
      setting=SimpleNamespace(config=config, backdoor='own'), constant=True,
      make=lambda strength: None,
  )
  found = cell.prepare(job, dict(seed=7, others={}), None)
  used = *split, found.k_train, found.k_attack, *planted
  own = [jax.random.key(seed) for seed in (7 if resplit else 3, 7, 7, 7)]
  want = [jax.random.fold_in(key, i) for i, key in enumerate(own)]
  np.testing.assert_array_equal(
      *(jax.random.key_data(jnp.stack(keys)) for keys in (used, want))
  )
