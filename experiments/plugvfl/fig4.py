"""PlugVFL, Figure 4 on Fashion-MNIST: the baselines against passive completion.

  python launch.py --config=experiments/plugvfl/fig4.py

NG, GC, PPDL and DSGD in the paper's ranges; PlugVFL itself is in fig6.py.
"""
from experiments.plugvfl import common
from vfljax.runner.config import Config, Entry


def get_config() -> Config:
  listed = (Entry('none'), *common.baselines())
  return common.config('fig4', listed, **common.completions())
