"""MID, Figure 4a: direct label inference on MNIST, softmax of the sum.

  python launch.py --config=experiments/mid/fig4_dli.py \\
      --config.data.path=mnist.npz

`direct_label` reads every round of the first and the last epoch, and, replayed,
the first round of all (what the public code attacks) and one of the trained
federation. `learned_gradient` knows 4 labels a class and stands beside it: it
tells whether a low success of the former is protection or only another network
in the way.
"""
from vfljax.runner.config import AttackConfig, Config, Variant
from experiments.mid import common


def get_config() -> Config:
  return common.config(
      'fig4_dli', (*common.GENERAL, common.DG, common.GS_PLAIN),
      ('direct_label', 'direct_label:replayed', 'learned_gradient'),
      AttackConfig(known=4, replay_rounds=8),
      variants=(
          Variant('direct_label:replayed', dict(replay=True)),
      ),
  )
