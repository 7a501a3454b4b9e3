"""Kang et al., Table 15 and Figure 10, VSNN:
CIFAR-10.

  python launch.py --config=experiments/kang2022/vsnn_cifar10.py \
      --config.data.path=cifar10.npz

Bottoms are ResNet18 (Table 9): for a GPU.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vsnn_cifar10', 'vsnn',
      DataConfig(
          name='cifar10', path='cifar10.npz', split='top_bottom',
      ),
      classes=10, network='resnet18',
      paper=paper.vnn('vsnn', 'cifar10'),
  )
