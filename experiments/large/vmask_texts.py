"""VMask's text setting on stand-ins for IMDB and AG's News.

  python launch.py --config=experiments/large/vmask_texts.py:movie_reviews

  movie_reviews  for IMDB: 10605 sentences, negative or positive
  snippets       for AG's News: 23703 snippets of four kinds

The halves of a text are at two parties, whose bottoms are pretrained encoders
(minilm, a folder: --config.model.options, --config.data.options).
"""
from experiments.large import common
from vfljax.runner import variants
from vfljax.runner.config import Config

VARIANTS = ('movie_reviews', 'snippets')


def get_config(variant: str = '') -> Config:
  name = variants.choose(variant, VARIANTS)
  return common.texts(f'vmask_{name}', f'{name}.tsv')
