"""GAFM, Table 2, Spambase: GAFM beside vanilla, Max-Norm and Marvell.

  python launch.py --config=experiments/gafm/table2.py \
      --config.data.path=spambase.data

`gafm_generator` is the same training, predicted by G(f(x)) instead of f(x).
experiments/gafm/README.md compares the numbers and says where they differ.
"""
from experiments.gafm import common
from experiments.gafm.common import SPREAD, rows
from vfljax.runner.config import Config, Entry

TABLE = 'Table 2, Spambase'
PAPER = [
    *rows('none', TABLE, (0.95, 0.01 / SPREAD),
          ((0.85, 0.07), (1.00, 0.00), (0.91, 0.00))),
    *rows('max_norm', TABLE, (0.95, 0.00),
          ((0.83, 0.11), (1.00, 0.00), (0.91, 0.00))),
    *rows('marvell', TABLE, (0.71, 0.23 / SPREAD),
          ((0.53, 0.02), (0.70, 0.01), (0.70, 0.01))),
    *rows('gafm', TABLE, (0.93, 0.04 / SPREAD),
          ((0.56, 0.04), (0.67, 0.05), (0.66, 0.05))),
]


def get_config() -> Config:
  listed = (
      Entry('none'), Entry('max_norm'), common.marvell(), common.gafm(),
      common.gafm('gafm_generator', predict='generator'),
  )
  return common.spambase('table2', listed, PAPER, common.STRONGER)
