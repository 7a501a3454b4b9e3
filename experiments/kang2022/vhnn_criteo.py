"""Kang et al., Tables 13 and 15, Figures 7 and 9, VHNN:
Criteo.

  python launch.py --config=experiments/kang2022/vhnn_criteo.py \
      --config.data.path=criteo

The data set's columns go into two linear layers; the paper embeds the
categorical ones first.
"""
from experiments.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_criteo', 'vhnn',
      DataConfig(name='criteo', path='criteo'),
      paper=paper.vnn('vhnn', 'criteo'),
  )
