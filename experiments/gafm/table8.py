"""GAFM, Tables 8 and 9: the weight gamma of the GAN's gradient; on Spambase.

  python launch.py --config=experiments/gafm/table8.py \
      --config.data.path=spambase.data

The paper tries 1, 10, 15 and 20 on ISIC (Table 8: a tenth of it, Table 9: all),
where 20 leaks least at an AUC that stays. ISIC's files are the user's to get
(`--config.data.name=isic`); here the same question is put to Spambase.
"""
from vfljax.runner.config import Config
from experiments.gafm import common

WEIGHTS = (0.2, 1.0, 5.0, 10.0, 20.0)


def get_config() -> Config:
  listed = [common.gafm(f'gamma_{w:g}', weight=w) for w in WEIGHTS]
  return common.spambase('table8', listed)
