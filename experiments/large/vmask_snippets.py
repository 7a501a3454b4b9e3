"""VMask's text setting on a stand-in for AG's News.

  python launch.py --config=experiments/large/vmask_snippets.py

23703 snippets of four kinds; the halves of a text at two parties, whose
bottoms are pretrained encoders (minilm, a folder: --config.model.options,
--config.data.options).
"""
from vfljax.runner.config import Config
from experiments.large import common


def get_config() -> Config:
  return common.texts('vmask_snippets', 'snippets.tsv')
