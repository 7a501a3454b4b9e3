"""PlugVFL, Figure 5: active model completion, against the baselines, too.

  python launch.py --config=experiments/plugvfl/fig5.py

The passive party trains with an optimizer that scales up its own updates, then
completes its extractor as in fig6.py. The baselines are those of fig4.py. The
paper's data set is CIFAR-10 (--config.data.name=cifar10 and its path).
"""
from experiments.plugvfl import common
from vfljax.runner.config import Config, Entry


def get_config() -> Config:
  listed = (
      Entry('none'), Entry('plugvfl', (0.1, 0.5), dict(drop=0.0)),
      *common.baselines(),
  )
  return common.config(
      'fig5', listed, **common.completions('active_completion')
  )
