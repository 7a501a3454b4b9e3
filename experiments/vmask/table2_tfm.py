"""VMask, Table II, column TFM: MLP3 on Fashion-MNIST's halves.

  python launch.py --config=experiments/vmask/table2_tfm.py
"""
from vfljax.runner.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  return table2.column('mlp3', 'fashion_mnist')
