"""VMask, Table II with the authors' settings: column FM.

  python launch.py --config=experiments/vmask/authors_fm.py
"""
from vfljax.runner.config import Config
from experiments.vmask.authors import settings


def get_config() -> Config:
  return settings('lenet5', 'fashion_mnist')
