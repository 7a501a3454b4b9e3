"""The experiment behind `vfljax recommend`: a small network on a table."""
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, ModelConfig, TrainConfig,
)


def get_config() -> Config:
  return Config(
      experiment='recommend', seeds=5, alone=False,
      data=DataConfig(name='csv'),
      model=ModelConfig(algorithm='vhnn', bottom=(32, 16), top=(16,)),
      train=TrainConfig(epochs=20, batch_size=32, learning_rate=1e-3),
      attack=AttackConfig(known=5),
  )
