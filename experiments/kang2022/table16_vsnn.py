"""Kang et al., Table 16, VSNN: model inversion against MixUp and PRECODE.

  python launch.py --config=experiments/kang2022/table16_vsnn.py \
      --config.data.path=fashion_mnist.npz

Fashion-MNIST in halves, the attacker knows the structure of party B's network.
"""
from vfljax.runner.config import Config
from experiments.kang2022 import paper
from experiments.kang2022.common import inversion


def get_config() -> Config:
  return inversion(
      'kang2022_table16_vsnn', 'vsnn', paper=paper.inversion('vsnn')
  )
