"""MID, section 5: passive model completion, ResNet20 on CIFAR-10's halves.

  python launch.py --config=experiments/large/mid_cifar10_resnet20.py

Four linear layers on top, 40 known labels (known=1: 10), as in the paper, which
does not say how it trains: SGD at 0.01 with momentum, batches of 32 and 30
epochs are ours, and so are embeddings and heads of 64 and a completion without
unlabeled samples. Unlike in experiments/mid, DP-G and DP-L clip each sample's
gradient and not a batch's, GS keeps nothing for later rounds, and MID's shift
is its default.
"""
from experiments.large import common
from vfljax.runner.config import (
    AttackConfig, Config, Entry, ModelConfig, TrainConfig,
)


def get_config() -> Config:
  listed = (
      Entry('none'),
      Entry('mid', (0.0, 1e-3, 0.1, 1.0), label='MID'),
      Entry('dp_gaussian', (1e-3, 0.1), dict(clip_norm=0.2), 'DP-G'),
      Entry('dp_laplace', (1e-3, 0.1), dict(clip_norm=0.2), 'DP-L'),
      Entry('gradient_compression', (0.5, 0.01), label='GS'),
      # As Fu et al. have it: Kang's Eq. 19 zeroes the largest, and diverged.
      Entry('discrete_sgd', (24, 6), dict(bound=0.03), 'DG'),
  )
  return common.cifar10(
      'mid_cifar10_resnet20',
      ModelConfig(name='resnet20', width=64, top=(64, 64, 64)),
      TrainConfig(
          epochs=30, batch_size=32, optimizer='momentum', learning_rate=0.01
      ),
      AttackConfig(known=4, own=dict(completion=dict(
          head=(64,), epochs=50, batch_size=8, stages=5
      ))),
      listed,
  )
