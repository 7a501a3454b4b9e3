"""GAFM, Table 3 and Figure 3, Spambase: without its GAN or cross-entropy term.

  python launch.py --config=experiments/gafm/table3.py \
      --config.data.path=spambase.data

Table 3 gives mean ratios of AUC to leak AUC, median attack: GAFM 1.39, CE only
1.39; mean attack: 1.50, 1.47. `python -m experiments.gafm.tables OUT` prints
ours. Figure 3 gives no numbers.
"""
from vfljax.runner.config import Config
from experiments.gafm import common


def get_config() -> Config:
  listed = (
      common.gafm(), common.gafm('ce_only', part='ce'),
      common.gafm('gan_only', part='gan'),
      common.gafm('gan_only_generator', part='gan', predict='generator'),
  )
  return common.spambase('table3', listed, (), common.STRONGER)
