"""What GAFM's experiments share: its federation and the paper's numbers.

The passive party has all features and the active party the labels. For Spambase
the passive network is 57-16-1 with LeakyReLU, and a sigmoid on the embedding,
so that f(x) is in (0, 1). The undefended federation, Max-Norm and Marvell have
a head 1-16-1, which GAFM replaces. Batches are of 1028 rows (the rest is kept),
for 300 epochs, with Adam at 1e-4 and ten seeds, each with its own split.
Attacks score the gradients as sent, pooled over each epoch. The paper's numbers
are compared with the last epoch's, which its public code returns.
"""
from collections.abc import Sequence
from typing import Any

from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, Paper, TrainConfig,
)

SOURCE = 'GAFM (ICLR 2023 submission), {}'
ATTACKS = ('norm_scoring', 'mean_scoring', 'median_scoring')
# Ours: what the paper's three leave on the table.
STRONGER = ('value_scoring', 'residual_scoring')
# The extremes of ten draws from a normal distribution are 3.08 deviations
# apart: what becomes of the worst and best AUC that the paper gives.
SPREAD = 3.08

Number = tuple[float, float | None]  # mean, standard deviation


def spambase(
    experiment: str, listed: Sequence[Entry], paper: Sequence[Paper] = (),
    extra_attacks: tuple[str, ...] = (), **data: Any,
) -> Config:
  """An experiment on Spambase in the paper's setting.

  Args:
    experiment: Its name.
    listed: The table's rows.
    paper: The paper's numbers.
    extra_attacks: Attacks besides the paper's three.
    **data: Fields of `DataConfig` that differ.
  """
  source: dict[str, Any] = dict(name='spambase', path='spambase.data', test=0.3)
  return Config(
      experiment=f'gafm_{experiment}',
      seeds=10,
      listed=tuple(listed),
      listed_attacks=(*ATTACKS, *extra_attacks),
      data=DataConfig(**source | data),
      model=ModelConfig(
          algorithm='vsnn', bottom=(16, 1), top=(16,), activation='leaky_relu',
          bottom_final='sigmoid',
      ),
      train=TrainConfig(
          epochs=300, batch_size=1028, learning_rate=1e-4, remainder='keep',
      ),
      attack=AttackConfig(own=dict(median_scoring=dict(center='batch'))),
      paper=tuple(paper),
  )


def gafm(label: str = 'gafm', delta: float = 0.05, **options: Any) -> Entry:
  """A row for GAFM with the paper's settings for Spambase."""
  return Entry('gafm', (delta,), options, label)


def varied(
    argument: str, value: float, delta: float = 0.05, **options: Any
) -> Entry:
  """A row for GAFM at another value of one argument: one program for all."""
  name = dict(weight='gamma').get(argument, argument)
  return Entry(
      'gafm', (delta,), options, f'{name}_{value:g}', grid={argument: (value,)}
  )


def marvell(label: str = 'marvell', after: tuple[Entry, ...] = ()) -> Entry:
  """Marvell as GAFM's authors ran it: the power is the squared gap itself."""
  return Entry('marvell', (1.0,), label=label, after=after)


def rows(
    defense: str, table: str, auc: Number | None, leaks: Sequence[Number] = (),
    strength: float | None = None, attacks: Sequence[str] = ATTACKS,
) -> list[Paper]:
  """One row of one of the paper's tables: utility, then the last leak AUCs."""
  source = SOURCE.format(table)
  found = [] if auc is None else [
      Paper(defense, 'auc', *auc, strength=strength, source=source)
  ]
  return found + [
      Paper(defense, 'leak_auc_last', *leak, attack, strength, source)
      for attack, leak in zip(attacks, leaks)
  ]
