"""VMask, Table VIII, ResNet18: CINIC-10, as table8.py.

  python launch.py --config=experiments/vmask/table8_resnet18.py

Needs CINIC-10's folder in the working directory, and a GPU.
"""
from vfljax.runner.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  found = table2.column('resnet18', 'cinic10')
  found.data.path, found.train.batch_size = 'CINIC-10', 256
  found.auxiliary.samples = 9000
  return found
