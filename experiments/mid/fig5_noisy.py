"""MID, Figure 5c: noisy-sample backdoor on MNIST.

  python launch.py --config=experiments/mid/fig5_noisy.py \\
      --config.data.path=mnist.npz

N(0, 2^2) on the attacker's pixels of 1 % of the samples, clipped to [0, 1].
`drop` is what it costs in accuracy on test samples with such noise.
"""
from vfljax.runner.config import Config
from experiments.mid import common


def get_config() -> Config:
  return common.config(
      'fig5_noisy', common.AGAINST_BACKDOORS, ('noisy_sample',)
  )
