"""Kang et al., Table 17: model inversion by attackers who guess wrong.

  python launch.py --config=experiments/kang2022/table17.py:vhnn \
      --config.data.path=fashion_mnist.npz

No protection; the shadow has the structure of party B's network, other
convolutions (5x5), or is fully connected. The variants are the
algorithms, vhnn and vsnn.
"""
from experiments.kang2022 import common, paper
from vfljax.runner import variants
from vfljax.runner.config import Config

VARIANTS = ('vhnn', 'vsnn')


def get_config(variant: str = '') -> Config:
  algorithm = variants.choose(variant, VARIANTS)
  return common.inversion(
      f'kang2022_table17_{algorithm}', algorithm,
      (*paper.SHADOWS, 'mean_image'), ('none',), paper.structures(algorithm),
  )
