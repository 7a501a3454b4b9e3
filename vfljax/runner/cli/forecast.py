"""Announces what is about to be trained.

How long it will take is measured, not guessed: `progress` says it after the
first stride of epochs.
"""
from collections.abc import Iterable, Iterator, Sequence
import shutil
import textwrap

import numpy as np

from vfljax import attacks, data, defenses
from vfljax.attack import REPLAYED, ROUND, recipe_of
from vfljax.data.table import Table, counted, listing
from vfljax.leakage import LABELS, AttackName
from vfljax.runner.config import Config, Entry, outside
from vfljax.runner.experiment import (
    attackers, choosing, federations, memory, rounds,
)
from vfljax.runner.experiment.grids import grid
from vfljax.runner.workdir import about

_MANY_TIMES = 10  # So many times the rounds that suit a table are worth a word.


def text(config: Config, table: Table) -> str:
  """The federations that will be trained and attacked, for a terminal.

  Raises:
    UserError: for an unknown defense or attack.
  """
  classes, train = len(table.classes), config.train
  entries = choosing.entries(config, classes)
  chosen = choosing.attack_names(config, classes)
  points = [len(e.strengths or (None,)) * len(grid(e)) for e in entries]
  total = sum(points) * config.seeds
  named = [
      f'{entry.name} ({count} strengths)' if count > 1 else entry.name
      for entry, count in zip(entries, points)
  ]
  said = (
      f'{counted(total, "federation")} of {config.data.parties} parties on '
      f'{counted(len(table.labels), "row")} of {config.data.name}, '
      f'{counted(train.epochs, "epoch")} each: '
      f'{counted(config.seeds, "seed")} of {listing(named, 20)}.',
      f'Attacks: {listing(chosen, 20) or "none"}.',
      *_replaced(entries, chosen),
      *_left_out(config, classes), *_read_as(config, table),
      *_memory(config, table), *_rounds(config, table),
  )
  columns = max(min(shutil.get_terminal_size((100, 24)).columns, 110), 40)
  return '\n'.join(
      textwrap.fill(s, columns, break_on_hyphens=False) for s in said
  )


def _replaced(entries: Sequence[Entry], chosen: Sequence[str]) -> list[str]:
  """Which methods of the run have a name of ours, but are not ours."""
  every = dict.fromkeys(row.defense for row in _chained(entries))
  bases = dict.fromkeys(AttackName.parse(name).base for name in chosen)
  own = [
      name for name in every if name in defenses.__all__
      and not outside.is_ours(defenses.REGISTRY[name])
  ] + [
      name for name in bases if name in attacks.__all__
      and not outside.is_ours(attackers.recipe(name))
  ]
  return own and [
      f'Your own methods, not those of vfljax by these names: '
      f'{listing(own, 20)}.'
  ]


def _chained(entries: Iterable[Entry]) -> Iterator[Entry]:
  for entry in entries:
    yield entry
    yield from _chained(entry.after)


def _left_out(config: Config, classes: int) -> list[str]:
  """Which of a config's attacks do not apply, and what reads gradients instead.

  Attacks on a round's gradients are mostly for two classes. Where all of them
  are left out, a defense may seem to leak nothing that leaks through gradients.
  """
  kept = choosing.attack_names(config, classes)
  left = choosing.left_out(config, classes)
  if not left:
    return []
  said = f'Left out, as they do not apply here: {listing(left, 20)}.'
  during = lambda names: any(
      attackers.recipe(name).stage in (ROUND, REPLAYED) for name in names
  )
  readers = _readers(config, classes)
  if during(left) and not during(kept) and readers:
    typed = ','.join([*_own(kept), *readers])
    said += (
        ' So no attack reads gradients. These would: '
        f'{listing(readers, 20)} (--config.attacks={typed}).'
    )
  return [said]


def _memory(config: Config, table: Table) -> list[str]:
  """How much memory is needed, if that is much of what there is."""
  needed, single, there = memory.expected(config, table)
  if needed <= there / 3:
    return []
  gib = lambda size: f'{size / 2**30:.2g} GiB'
  said = f'Memory: about {gib(needed)}, of {gib(there)}.'
  if needed > there:
    few = f'--devices=1 (about {gib(single)}), or ' if single < needed else ''
    tenth = max(len(table.labels) // 10, 2)
    said += (
        ' The system may end this process. To take less, type'
        f' {few}--config.data.limit={tenth} for the first tenth of the rows, or'
        ' leave columns out.'
    )
  return [said]


def _own(names: Sequence[str]) -> list[str]:
  return [n for n in names if not attackers.recipe(n).is_baseline]


def _readers(config: Config, classes: int) -> list[str]:
  """Attacks on labels that learn from rounds that are played again."""
  scene = federations.scene(config, classes)
  made = {name: recipe_of(attacks.REGISTRY[name]) for name in attacks.REGISTRY}
  return sorted(
      name for name, recipe in made.items()
      if recipe.stage == REPLAYED and recipe.score == LABELS
      and not recipe.why_not(name, scene)
  )


def _rounds(config: Config, table: Table) -> list[str]:
  """What suits a user's own table, if far more rounds are asked for."""
  train = config.train
  if table.features.ndim != 2 or not _is_own(config):
    return []
  times = rounds.times(table, train.batch_size, train.epochs)
  if times < _MANY_TIMES:
    return []
  batch = rounds.batch_size(table)
  return [
      f'Rounds: {times:.0f} times as many as `recommend` takes for so many'
      ' rows; more take longer, and may overfit. To take as few, type'
      f' --config.train.batch_size={batch}'
      f' --config.train.epochs={rounds.epochs(table, batch)}.'
  ]


def _is_own(config: Config) -> bool:
  """Whether the samples are a user's file, or those of a program."""
  source = data.REGISTRY.get(config.data.name)
  return source is None or source.own


def _read_as(config: Config, table: Table) -> list[str]:
  """How the user's own table was read, so that a mistake is noticed in time."""
  if table.features.ndim != 2 or not _is_own(config):
    return []
  counts = np.bincount(table.labels, minlength=len(table.classes))
  shares = counts / len(table.labels)
  said = 'Classes: ' + listing(
      (f'{name} {share:.1%}' for name, share in zip(table.classes, shares)), 20
  ) + '.'
  try:
    held = about.holders(config, table)
  except ValueError:  # The checks before training will say what is wrong.
    return [said]
  return [said, *(
      f'Party {k}{"" if k else ", which has the labels"}: '
      f'{listing(names, 8) or "no column"}.' for k, names in enumerate(held)
  )]
