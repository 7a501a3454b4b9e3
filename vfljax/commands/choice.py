"""Chooses what `vfljax recommend` runs: attacks, defenses, finer strengths.

An attack applies if the federation meets the needs of its recipe. Defenses are
tried at a few strengths far apart; the best ones within the budget are then
tried again, around their best strength.
"""
from collections.abc import Sequence
import dataclasses
import math

import numpy as np

from vfljax import attacks, defenses
from vfljax.attack import REPLAYED, TRAINING, recipe_of
from vfljax.data.table import Table
from vfljax.leakage import COMPLETION, LABELS
from vfljax.report import advice, ranks
from vfljax.report.ranks import Trade
from vfljax.report.reading import Results
from vfljax.runner.cli.goals import Goal
from vfljax.runner.compiled import replay
from vfljax.runner.config import Config, Entry, default_entry
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import (
    choosing, division, federations, rounds, setting,
)

# One or two of each kind: noise on gradients, coarser gradients, changed
# labels, embeddings with less information.
DEFENSES = (
    'dp_laplace', 'iso', 'max_norm', 'marvell', 'gradient_compression',
    'discrete_sgd', 'label_dp', 'dcor',
)
COARSE = 3  # Strengths of each in the first sweep.
FINER = 3  # Number of defenses that are tried again.
# These attacks train a large model for every sample or label that they infer.
COSTLY = ('gradient_inversion', 'mixmatch')


def sized(config: Config, table: Table, argv: Sequence[str]) -> Config:
  """The config with epochs, batch size, known labels and replayed rounds that
  suit the table's rows, and its parties where a table says who has what.

  Fields that were typed are not changed. No round is replayed if the training
  samples do not fill one.

  Raises:
    UserError: if the table has no training samples.
  """
  fewest = int(np.bincount(table.labels).min())
  typed = lambda field: any(
      a.lstrip('-').startswith(f'config.{field}') for a in argv
  )
  if table.holders is not None and not typed('data.split'):
    count = max(table.holders) + 1
    if typed('data.parties'):  # Another number is refused, not overruled.
      count = config.data.parties
    own = dataclasses.replace(config.data, split='held', parties=count)
    config = dataclasses.replace(config, data=own)
  train, attack = config.train, config.attack
  if not typed('train.batch_size'):
    train = dataclasses.replace(train, batch_size=rounds.batch_size(table))
  if not typed('train.epochs'):
    suited = rounds.epochs(table, train.batch_size)
    train = dataclasses.replace(train, epochs=suited)
  if not typed('attack.known'):
    known = max(1, min(attack.known, fewest // 2))
    attack = dataclasses.replace(attack, known=known)
  if not attack.replay_rounds:  # As many as suit, typed or not.
    try:
      samples = division.divide(table, config)[1].train
    except ValueError as error:
      raise UserError(str(error)) from None
    again = replay.recorded(samples, train.batch_size)
    attack = dataclasses.replace(attack, replay_rounds=again)
  return dataclasses.replace(config, train=train, attack=attack)


def coarse(config: Config, classes: int) -> Config:
  """The config of the first sweep: defenses at strengths far apart.

  Raises:
    UserError: for an unknown defense or attack.
  """
  names = [
      name for name in DEFENSES
      if classes == 2 or not defenses.REGISTRY[name].binary
  ]
  listed = tuple(_thinned(default_entry(name)) for name in names)
  config = dataclasses.replace(
      config, listed=(Entry('none'), *listed),
      listed_attacks=tuple(applying(config, classes)),
  )
  choosing.entries(config, classes)
  return config


def applying(config: Config, classes: int) -> list[str]:
  """The attacks on labels that such a federation's passive party can run."""
  scene, found = federations.scene(config, classes), []
  for name, factory in sorted(attacks.REGISTRY.items()):
    made = recipe_of(factory)
    watches = made.stage != TRAINING and not made.apart
    if made.stage == REPLAYED:
      watches = watches and replayable(config, classes)
    labels = made.score in (LABELS, COMPLETION) and not made.is_baseline
    if watches and labels and name not in COSTLY:
      if not made.why_not(name, scene):
        found.append(name)
  return found


def replayable(config: Config, classes: int) -> bool:
  """Whether replayed rounds have twice the samples whose labels are known."""
  samples = config.attack.replay_rounds * config.train.batch_size
  return samples >= 2 * classes * config.attack.known


def finer(results: Results, goal: Goal, config: Config) -> Config | None:
  """The defenses that do best within the goal, around their best strength.

  Returns:
    `None` if there is no strength between or beyond those tried.
  """
  known = [t for t in ranks.trades(results) if not t.lost.any]
  entries = {e.name: e for e in choosing.entries(config, 2)}
  best: dict[str, Trade] = {}
  for trade in sorted(known, key=lambda t: _order(t, goal)):
    if trade.cell[1] is not None and trade.cell[0] in entries:
      best.setdefault(trade.cell[0], trade)
  again = []
  for name, trade in list(best.items())[:FINER]:
    tried = [s for d, s in results.cells if d == name and s is not None]
    entry = entries[name]
    fresh = around(tried, trade.cell[1] or 0.0)
    fresh = tuple(s for s in fresh if _possible(entry, s))
    if fresh:
      again.append(dataclasses.replace(entry, strengths=fresh))
  if not again:
    return None
  return dataclasses.replace(
      config, listed=(Entry('none'), *again), defenses='', alone=False
  )


def around(tried: Sequence[float], best: float) -> tuple[float, ...]:
  """Strengths between `best` and its neighbours, or beyond it if it has none.

  Geometric means, rounded to two digits, if all are above 0.
  """
  order = sorted(set(tried))
  at, found = order.index(best), []
  for step in (-1, 1):
    if 0 <= at + step < len(order):
      found.append(_between(best, order[at + step]))
    elif len(order) > 1:
      inner = order[at - step]
      found.append(best**2 / inner if best > 0 < inner else 2 * best - inner)
  fresh = {float(f'{s:.2g}') for s in found}
  return tuple(sorted(fresh - set(order)))


def _between(one: float, other: float) -> float:
  if one > 0 and other > 0:
    return math.sqrt(one * other)
  return (one + other) / 2


def _order(trade: Trade, goal: Goal) -> tuple:
  """The sort key: defenses within the goal first, then as in the advice."""
  return not advice.affordable(trade, goal), *advice.order(trade, goal)


def _possible(entry: Entry, strength: float) -> bool:
  try:
    setting.build(entry, strength)
  except ValueError:
    return False
  return True


def _thinned(entry: Entry) -> Entry:
  """The entry at the first, middle and last of its default strengths."""
  strengths = entry.strengths
  if len(strengths) > COARSE:
    at = np.linspace(0, len(strengths) - 1, COARSE).round().astype(int)
    strengths = tuple(strengths[i] for i in at)
  return dataclasses.replace(entry, strengths=strengths)
