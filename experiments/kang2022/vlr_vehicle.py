"""Kang et al., Tables 10-12 and Figures 4-6: vertical logistic regression.

  python launch.py --config=experiments/kang2022/vlr_vehicle.py \
      --config.data.path=vehicle

Vehicle, as Appendix B divides it. Where it cannot be had,
vlr_spambase.py runs the same tables.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vlr


def get_config() -> Config:
  return vlr(
      'kang2022_vlr_vehicle',
      DataConfig(
          name='vehicle', path='vehicle', test=0.1, validation=1 / 9,
      ),
      paper.vlr('vehicle'),
  )
