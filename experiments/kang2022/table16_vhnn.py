"""Kang et al., Table 16, VHNN: model inversion against MixUp and PRECODE.

  python launch.py --config=experiments/kang2022/table16_vhnn.py \
      --config.data.path=fashion_mnist.npz

Fashion-MNIST in halves, the attacker knows the structure of party B's network.
"""
from vfljax.runner.config import Config
from experiments.kang2022 import paper
from experiments.kang2022.common import inversion


def get_config() -> Config:
  return inversion(
      'kang2022_table16_vhnn', 'vhnn', paper=paper.inversion('vhnn')
  )
