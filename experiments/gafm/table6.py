"""GAFM, Table 6, Spambase: the deviation sigma of the noise on real labels.

  python launch.py --config=experiments/gafm/table6.py \
      --config.data.path=spambase.data
"""
from vfljax.runner.config import Config
from experiments.gafm import common
from experiments.gafm.common import rows

TABLE = 'Table 6, Spambase'
PAPER = [
    *rows('sigma_0.01', TABLE, (0.93, 0.02),
          ((0.56, 0.04), (0.67, 0.05), (0.66, 0.05))),
    *rows('sigma_0.25', TABLE, (0.93, 0.01),
          ((0.60, 0.06), (0.67, 0.03), (0.67, 0.03))),
    *rows('sigma_1', TABLE, (0.94, 0.01),
          ((0.57, 0.05), (0.68, 0.04), (0.68, 0.04))),
]


def get_config() -> Config:
  listed = [common.gafm(f'sigma_{s:g}', sigma=s) for s in (0.01, 0.25, 1.0)]
  return common.spambase('table6', listed, PAPER)
