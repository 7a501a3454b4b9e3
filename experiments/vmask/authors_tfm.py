"""VMask, Table II with the authors' settings: column TFM.

  python launch.py --config=experiments/vmask/authors_tfm.py
"""
from vfljax.runner.config import Config
from experiments.vmask.authors import settings


def get_config() -> Config:
  return settings('mlp3', 'fashion_mnist')
