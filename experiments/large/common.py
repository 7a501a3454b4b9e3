"""What the experiments on large networks share.

Their settings are the papers', on which a GPU spends hours. Two cores get
through some dozens of rounds: README.md has the flags, and the loss after them.
"""
from typing import Any

from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, TrainConfig,
)


def cifar10(
    name: str, model: ModelConfig, train: TrainConfig, attack: AttackConfig,
    listed: tuple[Entry, ...], **fields: Any,
) -> Config:
  """An experiment on the left and right halves of CIFAR-10's images."""
  return Config(
      experiment=name, seeds=3, listed=listed,
      listed_attacks=('model_completion',),
      data=DataConfig(name='cifar10', path='cifar10.npz', split='left_right'),
      model=model, train=train, attack=attack, **fields,
  )


def texts(name: str, path: str) -> Config:
  """VMask's settings for DistilBERT (Table VII): 5e-5, batches of 6, 20 epochs.

  Not in the paper: AdamW, the fifth of the texts for tests, the attacker's
  batches of 10. Halves of texts, one a party. The encoder is MiniLM (a folder,
  README.md), six blocks as DistilBERT has, half as wide.
  """
  return Config(
      experiment=name, seeds=3, listed=(Entry('none'),),
      listed_attacks=('model_completion',),
      data=DataConfig(
          name='texts', path=path, options='encoder=minilm;length=24',
          scale='none', test=0.2,
      ),
      model=ModelConfig(
          name='encoder', options='path=minilm', width=64, top=(64,),
          aggregation='sum',
      ),
      train=TrainConfig(
          epochs=20, batch_size=6, optimizer='adamw', learning_rate=5e-5
      ),
      attack=AttackConfig(known=10, own=dict(completion=dict(
          head=(64,), epochs=20, batch_size=10, stages=5, learning_rate=5e-5,
      ))),
  )
