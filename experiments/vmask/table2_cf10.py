"""VMask, Table II, column CF10 of VGG13: on the halves of CIFAR-10.

  python launch.py --config=experiments/vmask/table2_cf10.py

For a GPU: two CPU cores take days.
"""
from vfljax.runner.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  return table2.column('vgg13', 'cifar10')
