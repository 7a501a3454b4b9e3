"""VMask, Table II, column FM: LeNet5 on Fashion-MNIST's halves.

  python launch.py --config=experiments/vmask/table2_fm.py
"""
from vfljax.runner.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  return table2.column('lenet5', 'fashion_mnist')
