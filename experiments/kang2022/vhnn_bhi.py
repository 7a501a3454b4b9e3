"""Kang et al., Tables 13 and 15, Figures 7 and 9, VHNN:
BHI.

  python launch.py --config=experiments/kang2022/vhnn_bhi.py \
      --config.data.path=bhi

Bottoms are ResNet18 (Table 9): for a GPU.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_bhi', 'vhnn',
      DataConfig(name='bhi', path='bhi', split='left_right'),
      network='resnet18',
      paper=paper.vnn('vhnn', 'bhi'),
  )
