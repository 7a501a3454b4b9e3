"""VMask, Table II, ResNet18 on CIFAR-10's halves: model completion.

  python launch.py --config=experiments/models/vmask_cifar10_resnet18.py
"""
from experiments.config import Config
from experiments.models import common


def get_config() -> Config:
  return common.vmask('resnet18', main=92.11, attacked=72.87)
