"""Kang et al., Tables 13 and 15, Figures 7 and 9, VHNN:
NUS-WIDE, two classes 1 : 9.

  python launch.py --config=experiments/kang2022/vhnn_nuswide2_imb.py \
      --config.data.path=nuswide

Which two concepts the paper took it does not say; these are ours.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_nuswide2_imb', 'vhnn',
      DataConfig(
          name='nuswide', path='nuswide', split='ratios',
          ratios='634:1000',
          options="concepts='sky,person';ratio=9",
      ),
      paper=paper.vnn('vhnn', 'nuswide2_imb'),
  )
