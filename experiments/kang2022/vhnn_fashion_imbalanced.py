"""Kang et al., Tables 13 and 15, Figures 7 and 9, VHNN:
a class of Fashion-MNIST against the rest (1 : 9) for NUSWIDE2-imb.

  python launch.py --config=experiments/kang2022/vhnn_fashion_imbalanced.py \
      --config.data.path=fashion_mnist.npz

A stand-in: the paper's NUSWIDE2-imb cannot be had here. Shirts are positive;
party B holds the upper halves.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_fashion_imbalanced', 'vhnn',
      DataConfig(
          name='fashion_mnist_binary', path='fashion_mnist.npz',
          split='bottom_top',
      ),
  )
