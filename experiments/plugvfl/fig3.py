"""PlugVFL, Table 1 and Figure 3 on Fashion-MNIST: before and after quitting.

  python launch.py --config=experiments/plugvfl/fig3.py

Party dropout (lambda 0) at p = 0 .. 0.5, all in one program, by sample as in
Algorithm 1 and by round as in section 4.2; multi-head training; and, as
`alone`, the active party by itself. The paper's numbers are on
CIFAR-10 (fig3_cifar10.py). experiments/plugvfl/README.md has ours.
"""
from vfljax.runner.config import Config, Entry
from experiments.plugvfl import common


def get_config() -> Config:
  listed = (
      Entry('none'), common.dropout(), common.dropout('by round', per='round'),
      Entry('multi_head'),
  )
  return common.config('fig3', listed)
