"""MID, Figure 5e: missing features on MNIST.

  python launch.py --config=experiments/mid/fig5_missing.py \\
      --config.data.path=mnist.npz

A quarter of the attacker's embeddings is zero throughout training; `drop` is
what it costs in accuracy on test samples whose embedding is missing. With
--config.attack.missing=0 all arrive in training, as in the public code.
"""
from vfljax.runner.config import Config
from experiments.mid import common


def get_config() -> Config:
  return common.config(
      'fig5_missing', common.AGAINST_BACKDOORS, ('missing_features',)
  )
