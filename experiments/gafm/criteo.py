"""GAFM, Tables 2 and 11, Criteo: Wide & Deep on the raw file.

  python launch.py --config=experiments/gafm/criteo.py \
      --config.data.path=train.txt

Embeddings of 16 and an MLP 16-16 beside a linear model of 39 columns of 1000
categories; an 80/20 split; batch 256, 100 epochs, Adam 1e-4; Delta 0.5. Of the
first 100 000 rows, where the paper takes all (appendix E.1), which
--config.data.options='rows=0' does: its authors need 2.5 hours for a training.
The file is the user's to get, and these numbers were not measured here.
"""
from experiments.gafm import common
from experiments.gafm.common import SPREAD, rows
from vfljax.runner.config import Config, Entry

TABLE = 'Table 2, Criteo'
PAPER = [
    *rows('none', TABLE, (0.72, 0.08 / SPREAD),
          ((0.92, 0.06), (0.91, 0.11), (0.82, 0.00))),
    *rows('max_norm', TABLE, (0.69, 0.07 / SPREAD),
          ((0.92, 0.01), (0.83, 0.09), (0.82, 0.00))),
    *rows('marvell', TABLE, (0.70, 0.11 / SPREAD),
          ((0.76, 0.08), (0.86, 0.08), (0.78, 0.04))),
    *rows('gafm', TABLE, (0.67, 0.09 / SPREAD),
          ((0.68, 0.06), (0.80, 0.09), (0.77, 0.05))),
    *rows('gafm_marvell', 'Table 11, Criteo', (0.64, 0.03 / SPREAD),
          ((0.60, 0.02), (0.66, 0.01), (0.65, 0.01))),
]


def get_config() -> Config:
  gafm = common.gafm(delta=0.5)
  listed = (
      Entry('none'), Entry('max_norm'), common.marvell(), gafm,
      common.marvell('gafm_marvell', after=(gafm,)),
  )
  config = common.spambase(
      'criteo', listed, PAPER, name='criteo', path='train.txt', test=0.2,
      scale='none',
  )
  config.model.buckets = 1000
  config.model.bottom = (16, 16, 1)
  config.model.activation = 'relu'
  config.train.epochs, config.train.batch_size = 100, 256
  return config
