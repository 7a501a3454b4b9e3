"""MID, Figure 8 in small: direction scoring on two classes, with Marvell.

  python -m experiments.mid.two_classes mnist.npz 3 8 mnist_3_8.npz
  python launch.py --config=experiments/mid/fig8.py \\
      --config.data.path=mnist_3_8.npz

The paper has CIFAR; here two classes of MNIST and a top of one linear layer.
The attacker knows one positive sample of each round; `leak_auc` is folded.
"""
from experiments.mid import common
from vfljax.runner.config import Config, Entry

MARVELL = Entry('marvell', common.POWERS, label='MARVELL')


def get_config() -> Config:
  made = common.config(
      'fig8', (*common.GENERAL, MARVELL),
      ('direction_scoring', 'learned_gradient'),
  )
  return common.on(
      made, data=dict(name='npz', path='mnist_3_8.npz', limit=0),
      model=dict(trainable_top=True, top=()),
      attack=dict(replay_rounds=8),
  )
