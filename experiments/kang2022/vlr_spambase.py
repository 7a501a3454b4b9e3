"""Kang et al., Tables 10-12 and Figures 4-6, with Spambase for their data.

  python launch.py --config=experiments/kang2022/vlr_spambase.py \
      --config.data.path=spambase.data

Evaluation settings 1 to 3 in one training: vertical logistic regression, five
defenses at section 8.1's strengths, attacks on the cut-layer gradients (NS, DS,
DL), on the bottom's gradients (RR, GI) and on the trained bottom (MC), 10
seeds. Spambase (1 : 1.5) stands in for Credit and Vehicle: see README.md.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022.common import vlr


def get_config() -> Config:
  return vlr(
      'kang2022_vlr_spambase',
      DataConfig(name='spambase', path='spambase.data', test=0.3),
  )
