"""GAFM on IMDB itself: the rows of `reviews.py`, with the paper's schedule.

  python launch.py --config=experiments/gafm/imdb.py \
      --config.data.path=FOLDER

FOLDER is TFDS's imdb_reviews, which is not had here: not run.
"""
from vfljax.runner.config import Config
from experiments.gafm import reviews


def get_config() -> Config:
  config = reviews.get_config()
  config.experiment = 'gafm_imdb'
  config.data.name = 'imdb'
  config.data.path = ''
  config.data.options = ''
  config.train.epochs = 300
  config.train.batch_size = 1028
  config.train.remainder = 'keep'
  config.train.measure_every = 30
  return config
