"""VMask, Table II, column CF10 of ResNet18: on the halves of CIFAR-10.

  python launch.py --config=experiments/vmask/table2_cf10_resnet18.py

For a GPU.
"""
from vfljax.runner.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  return table2.column('resnet18', 'cifar10')
