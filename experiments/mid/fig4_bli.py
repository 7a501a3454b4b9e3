"""MID, Figure 4c: batch-level label inference on MNIST, batches of 2048.

  python launch.py --config=experiments/mid/fig4_bli.py \\
      --config.data.path=mnist.npz

Gradient inversion of one round, before the first update and after the last; the
top is the softmax of the sum, as the attacker assumes. 500 steps of Adam from
one starting point; Zou et al. (2022) take 10000:
--config.attack.inversion_steps, and inversion_restarts for more starting points
side by side.
"""
from vfljax.runner.config import AttackConfig, Config
from experiments.mid import common


def get_config() -> Config:
  made = common.config(
      'fig4_bli', (*common.GENERAL, common.CAE), ('gradient_inversion',),
      AttackConfig(replay=True, inversion_steps=500, inversion_restarts=1),
  )
  return common.on(
      made, train=dict(batch_size=2048, epochs=40, measure_every=40)
  )
