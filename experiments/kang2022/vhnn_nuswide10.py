"""Kang et al., Table 15 and Figure 9, VHNN:
NUS-WIDE, ten classes.

  python launch.py --config=experiments/kang2022/vhnn_nuswide10.py \
      --config.data.path=nuswide

Ten concepts as in data/nuswide.py; the paper does not name its own.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_nuswide10', 'vhnn',
      DataConfig(
          name='nuswide', path='nuswide', split='ratios', ratios='634:1000',
      ),
      classes=10,
      paper=paper.vnn('vhnn', 'nuswide10'),
  )
