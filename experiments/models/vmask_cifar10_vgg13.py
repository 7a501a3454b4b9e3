"""VMask, Table II, VGG13 on CIFAR-10's halves: model completion.

  python launch.py --config=experiments/models/vmask_cifar10_vgg13.py
"""
from experiments.config import Config
from experiments.models import common


def get_config() -> Config:
  return common.vmask('vgg13', main=90.74, attacked=73.62)
