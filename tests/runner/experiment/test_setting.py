"""An experiment's parts: who has what, and when which attack strikes."""
import numpy as np
import pytest

from vfljax import algorithms, nets
from vfljax.attack import REPLAYED, ROUND, TRAINED
from vfljax.data.table import Table
from vfljax.runner.config import AttackConfig, Config, DataConfig, ModelConfig
from vfljax.runner.experiment import attackers
from vfljax.runner.experiment.setting import from_config

TABLE = Table(
    np.arange(80, dtype=np.float32).reshape(20, 4),
    np.arange(20, dtype=np.int32) % 2, tuple('abcd'), ('no', 'yes'),
    (0, 1, 2, 3),
)


@pytest.mark.parametrize('split, widths', [
    (dict(split='ratios', ratios='1:3'), [1, 3]),
    (dict(split='ratios', ratios='3:1'), [3, 1]),
    (dict(split='named', named='a;*'), [1, 3]), ({}, [2, 2]),
])
def test_columns_are_divided_as_asked(split, widths):
  made = from_config(Config(data=DataConfig('mine', **split)), TABLE)
  assert [x.shape[1] for x in made.samples.features] == widths
  assert made.classes == 2 == made.samples.labels.shape[1]


@pytest.mark.parametrize('replay, at', [(False, ROUND), (True, REPLAYED)])
def test_attacks_on_a_round_alone_are_replayed(replay, at):
  vfl = algorithms.vhnn([nets.mlp(4)] * 2, nets.mlp(2))
  config = Config(
      attack=AttackConfig(replay=replay), model=ModelConfig('vhnn')
  )
  found = attackers.made(
      config, ('norm_scoring', 'model_completion', 'label_replacement'), vfl, 2
  )
  assert {stage: [*made] for stage, made in found.items() if made} == {
      at: ['norm_scoring'], TRAINED: ['model_completion']
  }
