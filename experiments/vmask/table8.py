"""VMask, Table VIII, VGG13: CINIC-10, from a file in the Keras layout.

  python launch.py --config=experiments/vmask/table8.py

Needs cinic10.npz in the working directory, and a GPU.
"""
from experiments.config import Config
from experiments.vmask import table2


def get_config() -> Config:
  found = table2.column('vgg13', 'npz')
  found.data.path, found.train.batch_size = 'cinic10.npz', 256
  found.auxiliary.samples = 9000
  return found
