"""`Plan`, a training run's settings, and `Run`, its state between epochs."""
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from vfljax import check as number
from vfljax import adversary as adversaries
from vfljax.adversary import HONEST, Adversary
from vfljax.defense import Defense
from vfljax.types import VFL, Array, Batch, Key, Round, State, Transforms

REMAINDERS = ('drop', 'keep', 'pad')


def _nothing(key: Key, played: Round) -> Any:
  return ()


class Plan(NamedTuple):
  """A training run without its data.

  Everything here is static, except strengths inside `defense` and `txs`, which
  may be traced, and the auxiliary samples.

  Attributes:
    vfl: The networks, aggregation and loss.
    defense: `none()` for an undefended federation.
    txs: One optax transformation per party, the active party's first.
    epochs: Passes over the data, >= 1.
    batch_size: Samples a round, 1..n.
    remainder: What happens to the last n mod batch_size samples of an epoch:
      'drop' leaves them out (each epoch has a new order, so they occur in
      others), 'keep' plays one smaller round, 'pad' fills the round up with
      rows that have no label, no loss and no gradient.
    adversary: Passive parties that deviate.
    watch: (key, round) -> row; reduces one round to what is worth keeping.
      Attacks on single rounds run here, so that no transcript is ever stored.
    digest: (rows of full rounds[, rows of the smaller round]) -> row; reduces
      an epoch's rows, each leaf with a leading axis over rounds.
    validate: (key, state) -> {name: scalar}; measures the state after an epoch.
    every: Watch and validate each `every`-th epoch, and always the last.
    best: Name of the `validate` entry by which the best epoch's state is kept,
      the larger the better; '' keeps the last. With a leading '-' the smaller
      is the better ('-loss').
    auxiliary: The active party's own samples, for defenses that need some.
    patience: With `best`: stop after so many measured epochs without a new
      best; 0 never stops. It saves time where seeds are looped over, as on a
      CPU; under vmap a stopped seed is computed and thrown away. Epochs that
      are not played have a loss of NaN, which `jax_debug_nans` reports as an
      error; so does `jax_debug_infs`, outside of `jit`, with the score of
      -infinity that `best` starts from.
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
  """The best epoch so far, by validation.

  Attributes:
    score: Its score, the larger the better; -infinity before the first.
    epoch: Its number, from 0; -1 before the first.
    state: The federation after it.
  """

  score: Array
  epoch: Array
  state: State


class Run(NamedTuple):
  """A training run between two epochs; a pytree that can be saved.

  Attributes:
    key: The same from start to end; with an epoch's number it seeds the epoch.
    state: The federation.
    labels: The training labels as the defense prepared them, or ().
    best: The best epoch so far, or () if the plan keeps none.
  """

  key: Key
  state: State
  labels: Any
  best: Any


def check_run(run: Any, plan: Plan | None) -> None:
  """Raises ValueError unless it is a `Run`, and one that `plan` has started.

  A checkpoint that was restored without its structure is a dict. And a best
  epoch that a plan keeps no more would stay what `finish` returns.
  """
  if plan is not None and not isinstance(plan, Plan):
    raise ValueError(
        f'plan must be a Plan, and comes before the run; got '
        f'{number.kind(plan)}.'
    )
  if not isinstance(run, Run):
    raise ValueError(
        'run must be a Run, which `start` makes and `advance` returns before '
        f'the history; got {number.kind(run)}. A checkpoint is restored as one '
        'with its structure, jax.eval_shape(lambda: start(key, plan, data)).'
    )
  if plan is not None and bool(plan.best) != bool(run.best):
    raise ValueError(
        f'The plan has best={plan.best!r}, and the run was started '
        f'{"with" if run.best else "without"} a best: go on with the plan that '
        'it was started with, or start anew.'
    )


def check(plan: Plan, samples: int) -> None:
  """Raises ValueError if `plan` cannot train on so many samples."""
  number.count('epochs', plan.epochs)
  number.count('batch_size', plan.batch_size, 0)
  number.count('every', plan.every)
  number.count('patience', plan.patience, 0)
  adversaries.check(plan.adversary)
  for name in ('watch', 'digest', 'validate'):
    own = getattr(plan, name)
    if not callable(own) and (own is not None or name != 'validate'):
      raise ValueError(
          f'{name} must be a function; got {number.kind(own)}. Leave it out '
          'for none.'
      )
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
    raise ValueError(
        f'best={plan.best!r} needs `validate`, which returns its scores.'
    )
  if plan.patience and not plan.best:
    raise ValueError(
        f'patience={plan.patience} needs `best`, the score that must improve.'
    )
