"""Kang et al., Tables 10-12 and Figures 4-6: vertical logistic regression.

  python launch.py --config=experiments/kang2022/vlr_credit.py \
      --config.data.path=credit.csv

Credit, as Appendix B divides it. Where it cannot be had,
vlr_spambase.py runs the same tables.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vlr
from vfljax.data import credit


def get_config() -> Config:
  return vlr(
      'kang2022_vlr_credit',
      DataConfig(
          name='credit', path='credit.csv', test=0.3, split='named',
          named=','.join(credit.PARTY_A) + ';*',
      ),
      paper.vlr('credit'),
  )
