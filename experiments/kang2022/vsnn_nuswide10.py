"""Kang et al., Table 15 and Figure 10, VSNN:
NUS-WIDE, ten classes.

  python launch.py --config=experiments/kang2022/vsnn_nuswide10.py \
      --config.data.path=nuswide

Ten concepts as in data/nuswide.py; the paper does not name its own.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vsnn_nuswide10', 'vsnn',
      DataConfig(name='nuswide', path='nuswide', options='only=tag'),
      classes=10,
      paper=paper.vnn('vsnn', 'nuswide10'),
  )
