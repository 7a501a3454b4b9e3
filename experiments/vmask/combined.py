"""VMask with NG, against completion and against attackers who read gradients.

  python launch.py --config=experiments/vmask/combined.py

VMask's paper (section VII) leaves what gradients tell to other defenses that
are to be combined with it. Here VMask alone, NG alone (as in Table II) and both
are attacked, on MNIST's halves with MLP3, by Table II's completion and by two
attackers who keep gradients of 3968 samples, before training and after it.
"""
import dataclasses

from experiments.vmask import common
from vfljax.runner.config import Config, Entry

READERS = ('learned_gradient', 'gradient_clustering')


def get_config() -> Config:
  noise = next(entry for entry in common.compared() if entry.name == 'NG')
  both = dataclasses.replace(
      noise, label='VMask and NG', after=(common.masked(),)
  )
  made = common.config(
      'combined', (Entry('none'), common.masked(), noise, both)
  )
  return dataclasses.replace(
      made, listed_attacks=('model_completion', *READERS),
      attack=dataclasses.replace(made.attack, replay_rounds=31),
  )
