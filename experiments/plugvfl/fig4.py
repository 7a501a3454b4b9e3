"""PlugVFL, Figure 4 on Fashion-MNIST: the baselines against passive completion.

  python launch.py --config=experiments/plugvfl/fig4.py

NG, GC, PPDL and DSGD in the paper's ranges (section 5: Laplace noise of scale
1e-4 to 1e-2 in NG, PPDL and DSGD, 90 to 100 % compression, theta up to 0.01, 1
and 2 levels); PlugVFL itself is in fig6.py. At such a theta, and with 1 level,
next to nothing of a gradient is left, so the main accuracy is about that of the
active party beside a passive one that does not learn.
"""
from experiments.plugvfl import common
from vfljax.runner.config import Config, Entry


def get_config() -> Config:
  listed = (Entry('none'), *common.baselines())
  return common.config('fig4', listed, **common.completions())
