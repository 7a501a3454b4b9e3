"""GAFM, Table 4, IMDB's block on movie reviews: three parties, words 2:2:1.

  python launch.py --config=experiments/gafm/reviews_multiparty.py \
      --config.data.path=movie_reviews.tsv
"""
from vfljax.runner.config import Config, Entry
from experiments.gafm import common, reviews
from experiments.gafm.common import rows

TABLE = 'Table 4, IMDB'
PAPER = [
    *rows('none', TABLE, (0.88, 0.00),
          ((0.54, 0.02), (0.99, 0.01), (1.00, 0.00))),
    *rows('marvell', TABLE, (0.78, 0.01),
          ((0.51, 0.01), (0.71, 0.02), (0.71, 0.02))),
    *rows('gafm', TABLE, (0.82, 0.00),
          ((0.54, 0.02), (0.65, 0.04), (0.54, 0.02))),
]


def get_config() -> Config:
  listed = (Entry('none'), common.marvell(), reviews.gafm())
  config = reviews.federation(common.spambase(
      'reviews_multiparty', listed, PAPER, name='reviews',
      path='movie_reviews.tsv', test=0.5, parties=4, split='ratios',
      ratios='2:2:1',
  ))
  config.model.aggregation = 'mean'
  config.attack.median = 'class'
  return config
