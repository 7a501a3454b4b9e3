"""Kang et al., Table 15 and Figure 9, VHNN:
Fashion-MNIST (ten classes) for NUSWIDE10.

  python launch.py --config=experiments/kang2022/vhnn_fashion10.py \
      --config.data.path=fashion_mnist.npz

A stand-in: the paper's NUSWIDE10 cannot be had here. Party B holds the upper
halves.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_fashion10', 'vhnn',
      DataConfig(
          name='fashion_mnist', path='fashion_mnist.npz', split='bottom_top',
      ),
      classes=10,
  )
