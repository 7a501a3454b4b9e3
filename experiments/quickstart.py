"""Which defense leaks least at what cost? Kang et al.'s evaluation, in minutes.

  python launch.py --config=experiments/quickstart.py

Two parties hold fifteen features each of scikit-learn's breast cancer data; the
active one also knows the diagnoses. Six defenses at the strengths of Kang et
al. (2022), section 8.1, against gradient attacks in training and model
completion after it, ten seeds. Of three classes or more, gradients are read by
attacks on rounds that are played again. For your own data:

  --config.data.name=csv --config.data.path=my.csv --config.data.label=target
"""
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, ModelConfig, TrainConfig, default_entry,
)

DEFENSES = (
    'none', 'dp_laplace', 'iso', 'max_norm', 'marvell', 'gradient_compression',
    'discrete_sgd',
)


def get_config() -> Config:
  return Config(
      experiment='quickstart',
      seeds=10,
      listed=tuple(default_entry(name) for name in DEFENSES),
      listed_attacks=(
          'norm_scoring|gradient_clustering', 'direction_scoring',
          'mean_scoring|learned_gradient', 'median_scoring', 'model_completion',
      ),
      data=DataConfig(name='breast_cancer'),
      model=ModelConfig(algorithm='vhnn', bottom=(32, 16), top=(16,)),
      train=TrainConfig(epochs=30, batch_size=32, learning_rate=1e-3),
      attack=AttackConfig(known=5),
  )
