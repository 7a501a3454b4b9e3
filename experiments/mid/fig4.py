"""MID, Figure 4: direct and batch-level label inference on MNIST.

  python launch.py --config=experiments/mid/fig4.py:dli \\
      --config.data.path=mnist.npz

The top is the softmax of the sum, as the attackers assume.

dli (Figure 4a): `direct_label` reads every round of the last epoch (of all with
--config.train.measure_every=1), and, replayed, the first round of all (what the
public code attacks) and one of the trained federation. `learned_gradient` knows
4 labels a class and stands beside it: it tells whether a low success of the
former is protection or only another network in the way.

bli (Figure 4c): gradient inversion of one round, before the first update and
after the last, in batches of 2048. 500 steps of Adam from one starting point;
Zou et al. (2022) take 10000: --config.attack.gradient_inversion.steps, and
restarts for more starting points side by side.

bli_linear: the same attacker beside one who knows that something may stand
between its embedding and the sum, and searches for a linear map as well. 1000
steps; of MID, which puts a network in the way, lambdas to 1, CAE, which puts
other labels there, and of the others GS, to 99 %.
"""
import dataclasses

from experiments.mid import common
from vfljax.runner import variants
from vfljax.runner.config import AttackConfig, Config, Variant

VARIANTS = ('dli', 'bli', 'bli_linear')


def direct() -> Config:
  return common.config(
      'fig4_dli', (*common.GENERAL, common.discrete(), common.GS_PLAIN),
      ('direct_label', 'direct_label:replayed', 'learned_gradient'),
      AttackConfig(known=4, replay_rounds=8),
      variants=(
          Variant('direct_label:replayed', dict(replay=True)),
      ),
  )


def of_a_batch() -> Config:
  made = common.config(
      'fig4_bli', (*common.GENERAL, common.CAE), ('gradient_inversion',),
      AttackConfig(replay=True, replay_rounds=1, own=dict(
          gradient_inversion=dict(steps=500, restarts=1)
      )),
  )
  return common.on(
      made, train=dict(batch_size=2048, epochs=40, measure_every=40)
  )


def behind_something() -> Config:
  made = of_a_batch()
  mid = dataclasses.replace(common.MID, strengths=common.LAMBDAS[:5])
  gs = dataclasses.replace(common.GS, strengths=common.KEPT[:3])
  inversion = dict(steps=1000, restarts=1)
  return dataclasses.replace(
      made, experiment='mid_fig4_bli_linear', seeds=3,
      listed=(common.NONE, mid, gs, common.CAE),
      listed_attacks=('gradient_inversion', 'gradient_inversion:linear'),
      attack=dataclasses.replace(
          made.attack, own=dict(gradient_inversion=inversion)
      ),
      variants=(
          Variant('gradient_inversion:linear', dict(between='linear')),
      ),
  )


def get_config(variant: str = '') -> Config:
  made = dict(dli=direct, bli=of_a_batch, bli_linear=behind_something)
  return made[variants.choose(variant, VARIANTS)]()
