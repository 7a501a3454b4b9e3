"""VMask, Table VIII: VGG13 and ResNet18 on the halves of CINIC-10.

  python launch.py --config=experiments/vmask/table8.py:vgg13

The variants are the networks, vgg13 and resnet18. Needs CINIC-10's folder in
the working directory, and a GPU.
"""
from experiments.vmask import table2
from vfljax.runner import variants
from vfljax.runner.config import Config

VARIANTS = ('vgg13', 'resnet18')


def get_config(variant: str = '') -> Config:
  found = table2.column(variants.choose(variant, VARIANTS), 'cinic10')
  found.data.path, found.train.batch_size = 'CINIC-10', 256
  found.auxiliary.samples = 9000
  return found
