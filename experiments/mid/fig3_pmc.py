"""MID, Figures 3 and 7: passive model completion with 40 and 10 labels.

  python launch.py --config=experiments/mid/fig3_pmc.py \\
      --config.data.path=cifar10.npz

CIFAR-10's left and right halves, ResNet-20 bottoms, a top of four linear
layers. `mixmatch` completes the attacker's network as Fu et al. do, with 4
labels a class and (':10') 1; ':frozen' trains the head alone, as their code
does; `model_completion` is the plain completion. For CIFAR-100:
--config.data.name=cifar100 through TensorFlow Datasets. On two cores: fig3_cpu.
"""
import dataclasses

from vfljax.runner.config import AttackConfig, Config, Variant
from experiments.mid import common

VARIANTS = (
    Variant('mixmatch:10', dict(known=1)),
    Variant('mixmatch:frozen', dict(tune=False)),
    Variant('model_completion:10', dict(known=1)),
)
# VFLAIR's softplus shift for images: less noise from an untrained bottleneck.
MID = dataclasses.replace(common.MID, options=dict(shift=5.0))
LISTED = (common.NONE, MID, common.DP_L, common.GS, common.DG)


def passive() -> Config:
  """The passive attackers on CIFAR-10."""
  made = common.config(
      'fig3_pmc', LISTED,
      ('mixmatch', 'mixmatch:10', 'mixmatch:frozen', 'model_completion',
       'model_completion:10'),
      AttackConfig(
          known=4, epochs=25, iterations=1024, stages=5, head=(),
          learning_rate=2e-3,
      ),
      variants=VARIANTS,
  )
  return common.on(
      made,
      data=dict(
          name='cifar10', path='cifar10.npz', split='left_right',
          scale='standard', limit=0,
      ),
      model=dict(
          name='resnet20', trainable_top=True, top=(64, 64, 64),
          aggregation='concat',
      ),
      train=dict(
          epochs=60, batch_size=64, optimizer='momentum', learning_rate=0.02,
          measure_every=60,
      ),
  )


def get_config() -> Config:
  return passive()
