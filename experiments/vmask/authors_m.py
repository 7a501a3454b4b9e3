"""VMask, Table II with the authors' settings: column M.

  python launch.py --config=experiments/vmask/authors_m.py
"""
from vfljax.runner.config import Config
from experiments.vmask.authors import settings


def get_config() -> Config:
  return settings('lenet5', 'mnist')
