"""PlugVFL, Tables 1 and 3 and Figure 3: before and after quitting.

  python launch.py --config=experiments/plugvfl/fig3.py:fashion_mnist

Party dropout (lambda 0) at p = 0 .. 0.5, all in one program, by sample as in
Algorithm 1; multi-head training; and, as `alone`, the active party by itself.

  fashion_mnist  also by round, as in section 4.2
  cifar10        Table 1 and Figure 3
  cifar100       Table 3; needs cifar100.npz in the Keras layout in the working
                 directory

The paper's accuracies are of ResNet18s, for which MLPs stand here: what can be
compared is what quitting costs and what p gives back.
experiments/plugvfl/README.md has ours.
"""
from experiments.plugvfl import common
from vfljax.runner import variants
from vfljax.runner.config import Config, Entry

VARIANTS = ('fashion_mnist', 'cifar10', 'cifar100')
# Accuracy before and after party 2 quits. Table 1: without a defense.
TABLE_1 = {'none': (74.53, 51.24)}
ALONE_1 = 62.84  # Table 1: party 1 standalone.
TABLE_3 = {
    'plugvfl drop=0': (44.95, 26.65),
    'plugvfl drop=0.05': (44.58, 32.01),
    'plugvfl drop=0.1': (44.29, 32.03),
    'plugvfl drop=0.3': (42.11, 33.05),
    'plugvfl drop=0.5': (40.29, 33.85),
    'multi_head': (39.17, 32.72),
}


def get_config(variant: str = '') -> Config:
  name = variants.choose(variant, VARIANTS)
  listed = (Entry('none'), common.dropout(), Entry('multi_head'))
  if name == 'cifar10':
    paper = common.quit_paper(TABLE_1, 'Table 1')
    return common.config('fig3_cifar10', listed, 'cifar10', paper=paper)
  if name == 'cifar100':
    paper = common.quit_paper(TABLE_3, 'Table 3')
    return common.config('table3', listed, 'npz', 'cifar100.npz', paper=paper)
  none, by_sample, heads = listed
  by_round = common.dropout('by round', per='round')
  return common.config('fig3', (none, by_sample, by_round, heads))
