"""PlugVFL, Table 1 and Figure 3: ResNet18 on CIFAR-10's halves, and quitting.

  python launch.py --config=experiments/large/plugvfl_cifar10_resnet18.py

SGD at 0.01 and batches of 32, as in the paper, which gives neither epochs nor
sizes: 30 epochs and embeddings of 64 are ours.
experiments/plugvfl/fig3.py:cifar10 is the same with networks for two cores.
"""
from experiments.large.common import cifar10
from experiments.plugvfl import common, fig3
from vfljax.runner.config import (
    AttackConfig, Config, Entry, ModelConfig, TrainConfig,
)


def get_config() -> Config:
  return cifar10(
      'plugvfl_cifar10_resnet18',
      ModelConfig(name='resnet18', width=64, top=(128,)),
      TrainConfig(
          epochs=30, batch_size=32, optimizer='sgd', learning_rate=0.01
      ),
      AttackConfig(known=4, own=dict(completion=common.COMPLETION)),
      (Entry('none'), common.dropout(), Entry('multi_head')), quitting=True,
      paper=common.quit_paper(fig3.TABLE_1, 'Table 1'),
  )
