"""GAFM, Table 11: Marvell's noise on GAFM's gradients (G-M); on Spambase.

  python launch.py --config=experiments/gafm/table11.py \
      --config.data.path=spambase.data

The paper's table is on Criteo: G-M leaks least, .60, .66 and .65, at an AUC of
.64 beside GAFM's .67 and Marvell's .70.
"""
from vfljax.runner.config import Config
from experiments.gafm import common


def get_config() -> Config:
  listed = (
      common.gafm(), common.marvell(),
      common.marvell('gafm_marvell', after=(common.gafm(),)),
  )
  return common.spambase('table11', listed, (), common.STRONGER)
