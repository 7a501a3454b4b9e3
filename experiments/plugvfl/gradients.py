"""PlugVFL against attackers who read gradients (ours), on Fashion-MNIST.

  python launch.py --config=experiments/plugvfl/gradients.py

The paper's attackers complete the trained extractor. A passive party also
receives the gradient of each of its embeddings, and the defense bounds what
embeddings tell. Two attackers keep the gradients of 4000 samples, before
training (`accuracy_start`) and after it (`accuracy_end`), and know 40 of their
labels: one learns a classifier, one clusters them. Beside them stands the
paper's attacker with the same 40 labels, and defenses of gradients, alone and
together with PlugVFL.
"""
import dataclasses

from experiments.plugvfl import common
from experiments.plugvfl.fig6 import LAMBDAS
from vfljax.runner.config import Config, Entry

READERS = ('learned_gradient', 'gradient_clustering')


def get_config() -> Config:
  noise, compression, *_ = common.baselines()
  listed = (
      Entry('none'), Entry('plugvfl', LAMBDAS),
      Entry('plugvfl', (0.03, 0.1, 0.3), dict(psi_steps=5), '5 psi steps'),
      noise, compression,
      dataclasses.replace(
          noise, label='lambda 0.1 and NG', after=(Entry('plugvfl', (0.1,)),)
      ),
  )
  made = common.config(
      'gradients', listed, listed_attacks=(*READERS, 'model_completion')
  )
  return dataclasses.replace(
      made, attack=dataclasses.replace(made.attack, replay_rounds=125)
  )
