"""MID, Figures 3 and 7: model completion with 40 and 10 labels.

  python launch.py --config=experiments/mid/fig3.py:pmc \\
      --config.data.path=cifar10.npz

CIFAR-10's left and right halves, ResNet-20 bottoms, a top of four linear
layers. For CIFAR-100: --config.data.name=cifar100 through TensorFlow Datasets.

  pmc            passive completion. `mixmatch` completes the attacker's network
                 as Fu et al. do, with 4 labels a class and (':10') 1; ':frozen'
                 trains the head alone, as their code does; `model_completion`
                 is the plain completion
  amc            active: a passive party that trains by the malicious optimizer
                 of Fu et al. (`active_completion` plain, `mixmatch` with
                 MixMatch)
  pmc,cpu        the same two for two cores: 10000 images, LeNet5 in place of
  amc,cpu        ResNet-20, 15 epochs, and 10 epochs of 50 MixMatch steps for 25
                 of 1024; fewer strengths, and DG for the passive ones alone

With MLPs as bottoms the passive party is worth two points of accuracy, and
there is little to steal. For two cores passive completion has Adam, and both a
softplus shift of 5, as VFLAIR has for images: with momentum, or a shift of 0.5,
the noise of an untrained bottleneck drives the passive party out for good.
"""
import dataclasses

from experiments.mid import common
from vfljax.runner import variants
from vfljax.runner.config import AttackConfig, Config, Variant

VARIANTS = ('pmc', 'amc', 'pmc,cpu', 'amc,cpu')
MIXMATCH = (
    Variant('mixmatch:10', dict(known=1)),
    Variant('mixmatch:frozen', dict(tune=False)),
)
# VFLAIR's softplus shift for images: less noise from an untrained bottleneck.
MID = dataclasses.replace(common.MID, options=dict(shift=5.0))
BATCH = 64
LISTED = (common.NONE, MID, common.DP_L, common.GS, common.discrete(BATCH))
FEWER = (
    common.NONE, dataclasses.replace(MID, strengths=(0.0, 0.01, 0.1, 1.0)),
    dataclasses.replace(common.DP_L, strengths=(5e-5, 1e-3)),
    dataclasses.replace(common.GS, strengths=(0.1, 0.01)),
)


def passive() -> Config:
  """The passive attackers on CIFAR-10."""
  made = common.config(
      'fig3_pmc', LISTED,
      ('mixmatch', 'mixmatch:10', 'mixmatch:frozen', 'model_completion',
       'model_completion:10'),
      AttackConfig(known=4, own=dict(
          completion=dict(epochs=25, stages=5, head=(), learning_rate=2e-3),
          mixmatch=dict(epochs=25, iterations=1024, stages=5),
      )),
      variants=(*MIXMATCH, Variant('model_completion:10', dict(known=1))),
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
          epochs=60, batch_size=BATCH, optimizer='momentum', learning_rate=0.02,
          measure_every=60,
      ),
  )


def active() -> Config:
  """The active attackers in the passive ones' federation."""
  return dataclasses.replace(
      passive(), experiment='mid_fig3_amc',
      listed_attacks=('active_completion', 'active_completion:10', 'mixmatch',
                      'mixmatch:10', 'mixmatch:frozen'),
      variants=(*MIXMATCH, Variant('active_completion:10', dict(known=1))),
  )


def small(made: Config, name: str) -> Config:
  """An experiment of a size for two cores."""
  made.experiment, made.listed, made.seeds = f'mid_{name}', FEWER, 3
  made.attack = made.attack.but(
      completion=dict(epochs=10, stages=2),
      mixmatch=dict(epochs=10, iterations=50, stages=2),
  )
  return common.on(
      made, data=dict(limit=10_000, test_limit=4000),
      model=dict(name='lenet5', width=32),
      train=dict(epochs=15, measure_every=15),
  )


def get_config(variant: str = '') -> Config:
  kind, _, size = variants.choose(variant, VARIANTS).partition(',')
  made = passive() if kind == 'pmc' else active()
  if not size:
    return made
  if kind == 'amc':
    return small(made, 'fig3_amc_cpu')
  made = small(made, 'fig3_cpu')
  made.listed = (*FEWER, common.discrete(BATCH))
  return common.on(made, train=dict(optimizer='adam', learning_rate=1e-3))
