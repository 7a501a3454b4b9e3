"""CAFE beside an attacker who knows MID: not in the paper.

  python launch.py --config=experiments/mid/cafe_defended.py \\
      --config.data.path=mnist.npz

Figure 6's attacker does not reckon with the gradient of MID's penalty. Here it
stands beside the same one that does (`cafe:defended`), on the same rounds, with
the same start, by the weights of CAFE's authors. Both attack the untrained
federation, so that its training, one epoch of 640 images, is of no account, nor
is its accuracy. The paper's 10000 steps, but two seeds: about half an hour on
two cores. Each round gives one sum of the pool's gradients, so that fewer
rounds than its 100 samples determine none of them. On CIFAR-10 fewer steps do
(--config.attack.cafe.steps=1500).
"""
import dataclasses

from experiments.mid import cafe, common
from vfljax.runner.config import Config, Variant

STEPS = 10000  # The paper's, on MNIST.
ROUNDS = 150
DEFENDED = 'cafe:defended'


def get_config() -> Config:
  made = cafe.get_config()
  own = dict(made.attack.own['cafe'], steps=STEPS, published=True)
  made = dataclasses.replace(
      made, experiment='mid_cafe_defended', seeds=2, alone=False,
      listed=(cafe.MID,), listed_attacks=('cafe', DEFENDED),
      variants=(Variant(DEFENDED, dict(defended=True)),), paper=(),
  )
  return common.on(
      made, data=dict(limit=640, test_limit=500),
      train=dict(epochs=1, measure_every=1),
      attack=dict(own=dict(cafe=own), replay_rounds=ROUNDS, replay_at='start'),
  )
