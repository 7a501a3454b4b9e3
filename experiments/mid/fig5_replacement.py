"""MID, Figure 5a: label replacement backdoor on MNIST, two parties.

  python launch.py --config=experiments/mid/fig5_replacement.py \\
      --config.data.path=mnist.npz

1 % of each round carries the trigger, its class is drawn anew for each seed,
and the attacker knows 10 samples of it. `backdoor_accuracy` is the share of
triggered test samples of other classes that are taken for it.
"""
from vfljax.runner.config import Config
from experiments.mid import common


def get_config() -> Config:
  return common.config(
      'fig5_replacement', common.AGAINST_BACKDOORS, ('label_replacement',)
  )
