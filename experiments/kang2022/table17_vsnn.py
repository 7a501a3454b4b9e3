"""Kang et al., Table 17, VSNN: model inversion by attackers who guess wrong.

  python launch.py --config=experiments/kang2022/table17_vsnn.py \
      --config.data.path=fashion_mnist.npz

No protection; the shadow has the structure of party B's network, other
convolutions (5x5), or is fully connected.
"""
from vfljax.runner.config import Config
from experiments.kang2022 import paper
from experiments.kang2022.common import inversion


def get_config() -> Config:
  return inversion(
      'kang2022_table17_vsnn', 'vsnn', (*paper.SHADOWS, 'mean_image'),
      ('none',), paper.structures('vsnn'),
  )
