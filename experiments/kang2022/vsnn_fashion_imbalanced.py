"""Kang et al., Tables 14 and 15, Figures 8 and 10, VSNN:
a class of Fashion-MNIST against the rest (1 : 9) for NUSWIDE2-imb.

  python launch.py --config=experiments/kang2022/vsnn_fashion_imbalanced.py \
      --config.data.path=fashion_mnist.npz

A stand-in: the paper's NUSWIDE2-imb cannot be had here. Shirts are positive;
party B holds the upper halves.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vsnn_fashion_imbalanced', 'vsnn',
      DataConfig(
          name='fashion_mnist_binary', path='fashion_mnist.npz',
          split='bottom_top',
      ),
  )
