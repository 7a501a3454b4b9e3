"""PlugVFL, Table 1 and Figure 3 on CIFAR-10, with MLPs for the ResNet18s.

  python launch.py --config=experiments/plugvfl/fig3_cifar10.py

As fig3.py. The paper's accuracies are of ResNet18s: what can be compared is
what quitting costs and what p gives back.
"""
from vfljax.runner.config import Config, Entry
from experiments.plugvfl import common

# Table 1: before and after party 2 quits, without a defense.
PAPER = {'none': (74.53, 51.24)}


def get_config() -> Config:
  listed = (Entry('none'), common.dropout(), Entry('multi_head'))
  return common.config(
      'fig3_cifar10', listed, 'cifar10',
      paper=common.quit_paper(PAPER, 'Table 1'),
  )
