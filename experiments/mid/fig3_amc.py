"""MID, Figures 3 and 7: active model completion with 40 and 10 labels.

  python launch.py --config=experiments/mid/fig3_amc.py \\
      --config.data.path=cifar10.npz

As fig3_pmc.py, with a passive party that trains by the malicious optimizer of
Fu et al. (`active_completion` plain, `mixmatch` with MixMatch).
"""
import dataclasses

from vfljax.runner.config import Config, Variant
from experiments.mid import fig3_pmc


def active(passive: Config, name: str) -> Config:
  """The active attackers of the passive ones' experiment."""
  return dataclasses.replace(
      passive, experiment=f'mid_{name}',
      listed_attacks=('active_completion', 'active_completion:10', 'mixmatch',
                      'mixmatch:10', 'mixmatch:frozen'),
      variants=tuple(
          v for v in passive.variants if v.name.startswith('mixmatch')
      ) + (Variant('active_completion:10', dict(known=1)),),
  )


def get_config() -> Config:
  return active(fig3_pmc.passive(), 'fig3_amc')
