"""MID, Figure 9: label replacement on MNIST by three of four parties.

  python launch.py --config=experiments/mid/fig9.py --config.data.path=mnist.npz

Every party has a quarter of the image; all passive ones collude: they stamp
their triggers on the same samples and share the target class.
"""
from experiments.mid import common
from vfljax.runner.config import Config


def get_config() -> Config:
  made = common.config(
      'fig9', common.AGAINST_BACKDOORS, ('label_replacement',)
  )
  return common.on(
      made, data=dict(parties=4, split='quadrants'), attack=dict(party=0)
  )
