"""MID, Figure 4c: batch-level label inference on MNIST, batches of 2048.

  python launch.py --config=experiments/mid/fig4_bli.py \\
      --config.data.path=mnist.npz

Gradient inversion of one round, before the first update and after the last; the
top is the softmax of the sum, as the attacker assumes. 500 steps of Adam (Zou
et al. 2022 take 10000) from two starting points; --config.attack.
inversion_steps=10000 for theirs.
"""
from experiments.config import AttackConfig, Config
from experiments.mid import common


def get_config() -> Config:
  made = common.config(
      'fig4_bli', (*common.GENERAL, common.CAE), ('gradient_inversion',),
      AttackConfig(replay=True, inversion_steps=500, inversion_restarts=2),
  )
  return common.on(
      made, train=dict(batch_size=2048, epochs=30, measure_every=30)
  )
