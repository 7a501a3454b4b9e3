"""PlugVFL, Table 3: accuracy before and after quitting on CIFAR-100.

  python launch.py --config=experiments/plugvfl/table3.py

Needs cifar100.npz in the Keras layout in the working directory. MLPs in place
of the ResNet18s.
"""
from vfljax.runner.config import Config, Entry
from experiments.plugvfl import common

PAPER = {
    'plugvfl drop=0': (44.95, 26.65),
    'plugvfl drop=0.05': (44.58, 32.01),
    'plugvfl drop=0.1': (44.29, 32.03),
    'plugvfl drop=0.3': (42.11, 33.05),
    'plugvfl drop=0.5': (40.29, 33.85),
    'multi_head': (39.17, 32.72),
}


def get_config() -> Config:
  listed = (Entry('none'), common.dropout(), Entry('multi_head'))
  return common.config(
      'table3', listed, 'npz', 'cifar100.npz',
      paper=common.quit_paper(PAPER, 'Table 3'),
  )
