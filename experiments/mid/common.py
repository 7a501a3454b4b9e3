"""What MID's experiments share: federation, defenses, their strengths.

Zou et al. (2023), section 5: MNIST, evenly split, a bottom network with one
hidden layer of 32 units at every party. The top has no weights (the softmax of
the sum), except for model completion, direction scoring and CAFE.

Ours, because the paper does not say: the active party has the lower half; Adam
at 0.001; batches of 256, except for batch-level inference; 10 epochs.
"""
import dataclasses
from typing import Any

from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, TrainConfig,
)

# Section 5.3: the ranges, and what we take from them.
LAMBDAS = (0.0, 1e-3, 1e-2, 0.1, 1.0, 100.0, 1e4)
NOISES = (5e-5, 1e-3, 1e-2, 0.1, 1.0)
KEPT = (0.5, 0.1, 0.01, 0.001)  # Drop rates of 50 % to 99.9 %.
BINS = (24, 12, 6, 3)
POWERS = (0.1, 1.0, 10.0)
CONFUSIONS = (0.0, 0.5, 1.0, 2.0)
CLIP = dict(clip_norm=0.2, clip='batch')  # VFLAIR's form of clipping.

NONE = Entry('none')
MID = Entry('mid', LAMBDAS, label='MID')
DP_G = Entry('dp_gaussian', NOISES, CLIP, label='DP-G')
DP_L = Entry('dp_laplace', NOISES, CLIP, label='DP-L')
GS = Entry('gradient_compression', KEPT, dict(residual=True), label='GS')
GS_PLAIN = Entry('gradient_compression', KEPT, label='GS no residual')
CAE = Entry('coae', CONFUSIONS, label='CAE')
BATCH = 256
GENERAL = (NONE, MID, DP_G, DP_L, GS)
RVFR = Entry('rvfr', label='RVFR')
AGAINST_BACKDOORS = (*GENERAL, RVFR)


def discrete(batch_size: int = BATCH) -> Entry:
  """DG in the form of Fu et al., whom the paper cites, with the paper's bins.

  It rounds to multiples of 2 * bound / bins. (Kang et al.'s Eq. 19 sets values
  beyond two deviations to zero, and so loses the largest gradients.) Fu et
  al.'s bound of 0.03 is for the mean loss over batches of 32, where an element
  of a gradient is about 1/32 at most. The paper gives none for its batches.
  Ours is in proportion, as 0.03 would round everything to zero for 256 rows.
  """
  bound = 0.03 * 32 / batch_size
  return Entry('discrete_sgd', BINS, dict(bound=bound), 'DG')


def config(
    name: str, listed: tuple[Entry, ...], attacks: tuple[str, ...],
    attack: AttackConfig | None = None, **fields: Any,
) -> Config:
  """An experiment on the halves of MNIST, 5 seeds.

  20000 training images, which two cores can train on; --config.data.limit=0
  takes all 60000.
  """
  return Config(
      experiment=f'mid_{name}',
      seeds=5,
      listed=listed,
      listed_attacks=attacks,
      data=DataConfig(
          name='mnist', path='mnist.npz', split='bottom_top', scale='none',
          limit=20_000,
      ),
      model=ModelConfig(bottom=(32, 10), trainable_top=False),
      train=TrainConfig(
          epochs=10, batch_size=BATCH, optimizer='adam', learning_rate=1e-3,
          measure_every=10,
      ),
      attack=attack or AttackConfig(),
      **fields,
  )


def on(config: Config, **groups: dict[str, Any]) -> Config:
  """`config` with fields of its groups changed: data=dict(parties=4), ..."""
  changed = {
      group: dataclasses.replace(getattr(config, group), **values)
      for group, values in groups.items()
  }
  return dataclasses.replace(config, **changed)
