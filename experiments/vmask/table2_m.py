"""VMask, Table II, column M: LeNet5 on MNIST's halves.

  python launch.py --config=experiments/vmask/table2_m.py
"""
from vfljax.runner.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  return table2.column('lenet5', 'mnist')
