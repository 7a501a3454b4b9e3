"""What a training run is, and what it has at hand between two epochs."""
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from vfljax import check as number
from vfljax.adversary import HONEST, Adversary
from vfljax.defense import Defense
from vfljax.types import VFL, Array, Batch, Key, Round, State, Transforms

REMAINDERS = ('drop', 'keep', 'pad')


def _nothing(key: Key, played: Round) -> Any:
  return ()


class Plan(NamedTuple):
  """A training run without its data: everything here is static but traced
  strengths inside `defense` and `txs`.

  Attributes:
    vfl: Who computes what.
    defense: What protects it.
    txs: One optax transformation per party, the active party's first.
    epochs: Passes over the data, >= 1.
    batch_size: Samples a round, 1..n.
    remainder: What happens to the last n mod batch_size samples of an epoch:
      'drop' leaves them out (they come in another epoch, since each has a new
      order), 'keep' plays one smaller round, 'pad' fills the round with rows
      that have no label, no loss and no gradient.
    adversary: Passive parties that deviate.
    watch: (key, round) -> row; reduces one round to what is worth keeping.
      Attacks on single rounds run here, so that no transcript is ever stored.
    digest: (rows of full rounds[, rows of the smaller round]) -> row; reduces
      an epoch's rows, each leaf with a leading axis over rounds.
    validate: (key, state) -> {name: scalar}; what to measure after an epoch.
    every: Watch and validate each `every`-th epoch, and always the last.
    best: Name of the `validate` entry by which the best epoch's state is kept,
      the larger the better; '' keeps the last. A name that starts with '-'
      means the smaller the better ('-loss').
    auxiliary: The active party's own samples, for defenses that need some.
    patience: With `best`: stop after so many measured epochs without a new
      best; 0 never stops. It saves time where seeds are looped over, as on a
      CPU; under vmap a stopped seed is computed and thrown away. What is not
      played has a loss of NaN, at which `jax_debug_nans` stops; with `best`
      `jax_debug_infs` does outside of `jit`, at the score before the first.
  """

  vfl: VFL
  defense: Defense
  txs: Transforms
  epochs: int
  batch_size: int
  remainder: str = 'drop'
  adversary: Adversary = HONEST
  watch: Callable[[Key, Round], Any] = _nothing
  digest: Callable[..., Any] = lambda *rows: rows[0] if len(rows) == 1 else rows
  validate: Callable[[Key, State], dict[str, Array]] | None = None
  every: int = 1
  best: str = ''
  patience: int = 0
  auxiliary: Batch | None = None


class Options(TypedDict, total=False):
  """The fields of `Plan` that have defaults, as keywords of `train.fit`."""

  remainder: str
  adversary: Adversary
  watch: Callable[[Key, Round], Any]
  digest: Callable[..., Any]
  validate: Callable[[Key, State], dict[str, Array]] | None
  every: int
  best: str
  patience: int
  auxiliary: Batch | None


class Best(NamedTuple):
  """The best epoch so far, by validation."""

  score: Array
  epoch: Array
  state: State


class Run(NamedTuple):
  """A training run between two epochs; a pytree that can be saved.

  Attributes:
    key: Seeds every epoch; never changes.
    state: The federation.
    labels: The training labels as the defense prepared them, or ().
    best: The best epoch so far, or () if the plan keeps none.
  """

  key: Key
  state: State
  labels: Any
  best: Any


def check(plan: Plan, samples: int) -> None:
  """Raises ValueError if `plan` cannot train on so many samples."""
  number.count('epochs', plan.epochs)
  number.count('batch_size', plan.batch_size, 0)
  number.count('every', plan.every)
  number.count('patience', plan.patience, 0)
  if not 1 <= plan.batch_size <= samples:
    raise ValueError(
        f'batch_size must be between 1 and the {samples} training samples, got '
        f'{plan.batch_size}.'
    )
  if plan.remainder not in REMAINDERS:
    raise ValueError(
        f'remainder must be one of {", ".join(REMAINDERS)}; got '
        f'{plan.remainder!r}.'
    )
  if plan.best and plan.validate is None:
    raise ValueError('Keeping the best epoch needs `validate`.')
  if plan.patience and not plan.best:
    raise ValueError(
        f'patience={plan.patience} needs `best`, to wait for a new one.'
    )
