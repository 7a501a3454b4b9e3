"""Kang et al., Table 16: model inversion against MixUp and PRECODE.

  python launch.py --config=experiments/kang2022/table16.py:vhnn \
      --config.data.path=fashion_mnist.npz

Fashion-MNIST in halves, the attacker knows the structure of party B's network.
The variants are the algorithms, vhnn and vsnn.
"""
from experiments.kang2022 import common, paper
from vfljax.runner import variants
from vfljax.runner.config import Config

VARIANTS = ('vhnn', 'vsnn')


def get_config(variant: str = '') -> Config:
  algorithm = variants.choose(variant, VARIANTS)
  return common.inversion(
      f'kang2022_table16_{algorithm}', algorithm,
      paper=paper.inversion(algorithm),
  )
