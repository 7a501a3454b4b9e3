"""PlugVFL, Figure 5 on Fashion-MNIST: active model completion.

  python launch.py --config=experiments/plugvfl/fig5.py

The passive party trains with an optimizer that scales up its own updates, then
completes its extractor as in fig6.py. Of the paper's baselines only NG stands
beside PlugVFL: GC, PPDL and DSGD were not run against it.
"""
from experiments.plugvfl import common
from vfljax.runner.config import Config, Entry


def get_config() -> Config:
  listed = (
      Entry('none'), Entry('plugvfl', (0.1, 0.5), dict(drop=0.0)),
      *(e for e in common.baselines() if e.label == 'NG'),
  )
  return common.config(
      'fig5', listed, **common.completions('active_completion')
  )
