"""MID, Figure 5: backdoors and missing features on MNIST, two parties.

  python launch.py --config=experiments/mid/fig5.py:replacement \\
      --config.data.path=mnist.npz

replacement (Figure 5a): 1 % of each round carries the trigger, its class is
drawn anew for each seed, and the attacker knows 10 samples of it.
`backdoor_accuracy` is the share of triggered test samples of other classes that
are taken for it.

noisy (Figure 5c): N(0, 2^2) on the attacker's pixels of 1 % of the samples,
clipped to [0, 1]. `drop` is what it costs in accuracy on test samples with such
noise.

missing (Figure 5e): a quarter of the attacker's embeddings is zero throughout
training; `drop` is what it costs in accuracy on test samples whose embedding is
missing. With --config.attack.missing_features.rate=0 all arrive in training, as
in the public code.
"""
from experiments.mid import common
from vfljax.runner import variants
from vfljax.runner.config import Config

ATTACKS = dict(
    replacement='label_replacement', noisy='noisy_sample',
    missing='missing_features',
)
VARIANTS = tuple(ATTACKS)


def get_config(variant: str = '') -> Config:
  attack = ATTACKS[variants.choose(variant, VARIANTS)]
  return common.config(
      f'fig5_{variant}', common.AGAINST_BACKDOORS, (attack,)
  )
