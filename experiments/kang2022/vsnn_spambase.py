"""Kang et al., Tables 14 and 15, Figures 8 and 10, VSNN:
Spambase (1 : 1.5) for NUSWIDE2-bal.

  python launch.py --config=experiments/kang2022/vsnn_spambase.py \
      --config.data.path=spambase.data

A stand-in: the paper's NUSWIDE2-bal cannot be had here.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vsnn_spambase', 'vsnn',
      DataConfig(name='spambase', path='spambase.data', test=0.3),
  )
