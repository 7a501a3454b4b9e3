"""Kang et al., Tables 10-12 and Figures 4-6: vertical logistic regression.

  python launch.py --config=experiments/kang2022/vlr.py:spambase \
      --config.data.path=spambase.data

Evaluation settings 1 to 3 in one training: five defenses at section 8.1's
strengths, attacks on the cut-layer gradients (NS, DS, DL), on the bottom's
gradients (RR, GI) and on the trained bottom (MC), 10 seeds.

  credit    --config.data.path=credit.csv, as Appendix B divides it
  vehicle   --config.data.path=vehicle, likewise
  spambase  --config.data.path=spambase.data, 1 : 1.5: stands in for both where
            they cannot be had, see README.md
"""
from experiments.kang2022 import common, paper
from vfljax.data import credit
from vfljax.runner import variants
from vfljax.runner.config import Config, DataConfig

VARIANTS = ('credit', 'vehicle', 'spambase')


def get_config(variant: str = '') -> Config:
  name = variants.choose(variant, VARIANTS)
  data = dict(
      credit=DataConfig(
          name='credit', path='credit.csv', test=0.3, split='named',
          named=','.join(credit.PARTY_A) + ';*',
      ),
      vehicle=DataConfig(
          name='vehicle', path='vehicle', test=0.1, validation=1 / 9,
      ),
      spambase=DataConfig(name='spambase', path='spambase.data', test=0.3),
  )
  theirs = paper.vlr(name) if name in paper.GRADIENTS else ()
  return common.vlr(f'kang2022_vlr_{name}', data[name], theirs)
