"""GAFM, Tables 2 and 9, ISIC: three convolutions and three linear layers.

  python launch.py --config=experiments/gafm/isic.py --config.data.path=ISIC

Grey images of 64 x 64; convolutions of 6, 16 and 32 channels, 3 x 3 without
padding, each with ReLU and 2 x 2 pooling; 32 x 6 x 6 to 120-84-40 and a
sigmoid. The embedding is 40 numbers wide, over which the cross-entropy is
averaged. An 80/20 split, batch 256, 250 epochs, Adam 1e-6, Delta 0.05, gamma
20. The files are the user's to get, and these numbers were not measured here.
"""
from experiments.gafm import common
from experiments.gafm.common import SPREAD, rows
from vfljax.defenses.gafm import GAN
from vfljax.runner.config import Config, Entry

TABLE = 'Table 2, ISIC'
PAPER = [
    *rows('none', TABLE, (0.77, 0.09 / SPREAD),
          ((0.99, 0.01), (1.00, 0.00), (0.78, 0.00))),
    *rows('max_norm', TABLE, (0.76, 0.10 / SPREAD),
          ((0.99, 0.01), (1.00, 0.00), (0.77, 0.00))),
    *rows('marvell', TABLE, (0.64, 0.18 / SPREAD),
          ((0.65, 0.04), (0.69, 0.01), (0.66, 0.01))),
    *rows('gamma_20', TABLE, (0.68, 0.03 / SPREAD),
          ((0.62, 0.09), (0.66, 0.15), (0.68, 0.11))),
    *rows('gamma_1', 'Table 9', (0.66, 0.03),
          ((0.98, 0.01), (0.97, 0.02), (0.78, 0.00))),
    *rows('gamma_10', 'Table 9', (0.68, 0.01),
          ((0.77, 0.19), (0.80, 0.12), (0.74, 0.04))),
    *rows('gamma_15', 'Table 9', (0.66, 0.05),
          ((0.61, 0.07), (0.66, 0.15), (0.68, 0.09))),
]


def get_config() -> Config:
  gan = GAN(generator_rate=1e-6, critic_rate=1e-6)
  listed = [Entry('none'), Entry('max_norm'), common.marvell()] + [
      common.varied('weight', w, networks=gan)
      for w in (20, 1, 10, 15)
  ]
  config = common.spambase(
      'isic', listed, PAPER, name='isic', path='ISIC', test=0.2,
  )
  config.model.channels, config.model.bottom = (6, 16, 32), (120, 84, 40)
  config.model.pools, config.model.padding = 3, False
  config.model.activation = 'relu'
  config.train.epochs, config.train.batch_size = 250, 256
  config.train.learning_rate = 1e-6
  return config
