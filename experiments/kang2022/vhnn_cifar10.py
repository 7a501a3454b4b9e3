"""Kang et al., Table 15 and Figure 9, VHNN:
CIFAR-10.

  python launch.py --config=experiments/kang2022/vhnn_cifar10.py \
      --config.data.path=cifar10.npz

Bottoms are ResNet18 (Table 9): for a GPU.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_cifar10', 'vhnn',
      DataConfig(
          name='cifar10', path='cifar10.npz', split='top_bottom',
      ),
      classes=10, network='resnet18',
      paper=paper.vnn('vhnn', 'cifar10'),
  )
