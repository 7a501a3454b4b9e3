"""Kang et al., Tables 14 and 15, Figures 8 and 10, VSNN:
NUS-WIDE, two classes 1 : 2.

  python launch.py --config=experiments/kang2022/vsnn_nuswide2_bal.py \
      --config.data.path=nuswide

Which two concepts the paper took it does not say; these are ours.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vsnn_nuswide2_bal', 'vsnn',
      DataConfig(
          name='nuswide', path='nuswide',
          options="concepts='sky,person';ratio=2;only=tag",
      ),
      paper=paper.vnn('vsnn', 'nuswide2_bal'),
  )
