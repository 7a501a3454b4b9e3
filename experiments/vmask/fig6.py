"""VMask, Figure 6: utility against privacy, every defense at several strengths.

  python launch.py --config=experiments/vmask/fig6.py:mlp3

mlp3 and lenet5: on MNIST's halves, three trainings a point and one.
"""
import dataclasses

from experiments.vmask import common
from vfljax.runner import variants
from vfljax.runner.config import Config, Entry

# Around the paper's settings, from harmless to harmful.
STRENGTHS = dict(
    NG=(1e-4, 1e-3, 1e-2), CG=(0.5, 0.2, 0.05), DG=(60, 12, 4),
    FedPass=(0.5, 2), LabelDP=(5, 3, 1), KDk=(0.2, 0.45, 0.6),
    dCor=(0.05, 0.15, 0.5), MID=(5e-5, 1e-3, 1e-2),
)
EXPERIMENTS = dict(mlp3='fig6', lenet5='fig6_lenet5')
VARIANTS = tuple(EXPERIMENTS)


def get_config(variant: str = '') -> Config:
  model = variants.choose(variant, VARIANTS)
  listed = (
      Entry('none'),
      common.masked(budgets=(0.6, 0.5, 0.4, 0.25), model=model),
      *(
          dataclasses.replace(entry, strengths=STRENGTHS[entry.name])
          for entry in common.compared()
      ),
  )
  found = common.config(EXPERIMENTS[model], listed, model)
  if model == 'lenet5':  # Hours on two cores.
    found.seeds, found.alone = 1, False
  return found
