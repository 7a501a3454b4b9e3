"""VMask's text setting on a stand-in for IMDB.

  python launch.py --config=experiments/large/vmask_movie_reviews.py

10605 sentences of movie reviews, negative or positive; the halves of a text at
two parties, whose bottoms are pretrained encoders (minilm, a folder:
--config.model.options, --config.data.options).
"""
from vfljax.runner.config import Config
from experiments.large import common


def get_config() -> Config:
  return common.texts('vmask_movie_reviews', 'movie_reviews.tsv')
