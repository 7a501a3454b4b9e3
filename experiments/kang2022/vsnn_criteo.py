"""Kang et al., Tables 14 and 15, Figures 8 and 10, VSNN:
Criteo.

  python launch.py --config=experiments/kang2022/vsnn_criteo.py \
      --config.data.path=criteo

The data set's columns go into two linear layers; the paper embeds the
categorical ones first.
"""
from experiments.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vsnn_criteo', 'vsnn',
      DataConfig(name='criteo', path='criteo'),
      paper=paper.vnn('vsnn', 'criteo'),
  )
