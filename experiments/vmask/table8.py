"""VMask, Table VIII, VGG13: on the halves of CINIC-10.

  python launch.py --config=experiments/vmask/table8.py

Needs CINIC-10's folder in the working directory, and a GPU.
"""
from vfljax.runner.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  found = table2.column('vgg13', 'cinic10')
  found.data.path, found.train.batch_size = 'CINIC-10', 256
  found.auxiliary.samples = 9000
  return found
