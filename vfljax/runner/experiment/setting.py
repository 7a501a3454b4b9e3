"""A `Setting`: a federation, its samples and its attackers, ready to train.

`from_config` makes it from a configuration and a table. `checks.make` also
checks that it can work.
"""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import check, data, defenses
from vfljax.attack import REPLAYED, ROUND, TRAINED, Attack
from vfljax.data import split
from vfljax.data.table import Table
from vfljax.defense import Defense, Slots, chain
from vfljax.runner.config import Config, Entry
from vfljax.runner.experiment import (
    attackers, augmenting, choosing, division, federations, grids, memory,
)
from vfljax.runner.experiment.division import Sizes, Splits
from vfljax.types import VFL, Array, Batch, Key


class Setting(NamedTuple):
  """An experiment, checked and ready to be compiled.

  Attributes:
    config: The configuration.
    samples: All samples; an official test set comes last.
    sizes: How many samples are for training, validation, test, ...
    official: Whether the data set has a test set of its own.
    vfl: The federation.
    in_training: Attacks on rounds during training, by name.
    after_training: Attacks on the trained federation, by name.
    replayed: Attacks on rounds played again before and after training, by name.
    backdoor: The name of the attack that changes the training, or ''.
    outside: The defender's samples from another data set; `None` if they are
      from this one, or if there are none.
    stream: Rounds of samples on the device at a time; `samples` are NumPy
      arrays then. 0 if all samples are on the device.
    raised: Earlier numbers of seeds of the work directory, see `pieces`.
  """

  config: Config
  samples: Batch
  sizes: Sizes
  official: bool
  vfl: VFL
  in_training: dict[str, Attack]
  after_training: dict[str, Attack]
  replayed: dict[str, Attack]
  backdoor: str
  outside: Batch | None
  stream: int
  raised: tuple[int, ...] = ()

  @property
  def classes(self) -> int:
    return self.samples.labels.shape[-1]

  @property
  def attackers(self) -> tuple[int, ...]:
    party = self.config.attack.party
    return (party,) if party else tuple(range(1, len(self.vfl.bottoms)))


def from_config(config: Config, table: Table) -> Setting:
  """Makes the setting; only `checks.make` checks that it can work.

  Raises:
    ValueError: if a part cannot be made.
  """
  own, classes = config.data, len(table.classes)
  has_own = config.model.algorithm != 'vsnn'
  spec = split.Spec(
      own.parties, own.split, own.ratios or None, own.named or None,
      label_only=not has_own, seed=own.split_seed,
      strength=own.split_strength, unheld=own.unheld,
  )
  features = split.apply(table, spec)
  order, sizes = division.divide(table, config)
  vfl = federations.federation(config, classes)
  names = choosing.attack_names(config, classes)
  backdoor = attackers.backdoor(names)
  made = attackers.made(config, names, vfl, classes)
  during, again, after = made[ROUND], made[REPLAYED], made[TRAINED]
  possible = memory.even(config) and not (after or again or backdoor)
  chunk = memory.rounds_of(config, table, possible)
  put: Any = np.asarray if chunk else jnp.asarray  # On the host, or the device.
  samples = Batch(
      tuple(None if x is None else put(x[order]) for x in features),
      put(np.eye(classes, dtype=np.float32)[table.labels[order]]),
  )
  return Setting(
      config, samples, sizes, table.test is not None, vfl, during, after, again,
      backdoor, _outside(config, table, spec), chunk,
  )


def split_samples(setting: Setting, key: Key, samples: Batch) -> Splits:
  """One seed's split of the samples, see `division.split`."""
  return with_spare(setting, key, division.split(
      key, samples, setting.sizes, setting.official, setting.config.data.scale
  ))


def with_spare(setting: Setting, key: Key, splits: Splits) -> Splits:
  """The split with the defender's samples, as `config.auxiliary` asks."""
  own = setting.config.auxiliary
  spare = setting.outside if own.data else splits.spare
  if not own.samples or spare is None:
    return splits._replace(spare=None)
  if own.augment == 'training':  # Copies of training samples are augmented.
    spare = jax.tree.map(lambda x: x[:own.samples], splits.train)
  if own.augment != 'none':
    spare = augmenting.augmented(
        jax.random.fold_in(key, 2), spare,
        setting.config.model.name == augmenting.READS_TEXTS,
    )
  distorted = division.distorted(
      jax.random.fold_in(key, 1), spare, own.classes, own.noise
  )
  return splits._replace(spare=distorted)


def _outside(config: Config, table: Table, spec: split.Spec) -> Batch | None:
  """The defender's samples from another data set; `None` if not asked for.

  Raises:
    ValueError: if that data set has samples of another shape.
  """
  if not config.auxiliary.data:
    return None
  other = data.load(config.auxiliary.data, path=config.auxiliary.path)
  if (other.features.shape[1:], len(other.classes)) != (
      table.features.shape[1:], len(table.classes)
  ):
    raise ValueError(
        f'auxiliary.data={config.auxiliary.data} has samples of shape '
        f'{other.features.shape[1:]} in {len(other.classes)} classes; they '
        f'must be as in {config.data.name}: {table.features.shape[1:]} in '
        f'{len(table.classes)}.'
    )
  return division.outside(
      other, table, spec, config.auxiliary.samples, config.data.scale
  )


def build(
    entry: Entry, strength: Array | float | None, **others: Array | float
) -> Defense:
  """Makes an entry's defense at a strength.

  Args:
    entry: The defense and its options.
    strength: Its strength, which may be traced; `None` if it has none.
    **others: Values that replace options, by argument or field of one; they may
      be traced. An argument of the entry's grid that is left out has its first
      value.

  Raises:
    ValueError: if the strength or another argument is out of its range, or the
      factory returns no `Defense`.
  """
  given = () if strength is None else (strength,)
  method = defenses.REGISTRY[entry.defense]
  point = grids.grid(entry)[0] | others
  defense = method(*given, **grids.options(method, entry, point))
  if not isinstance(defense, Defense):
    raise ValueError(
        f'{entry.defense}: its factory must return a Defense; it returned '
        f'{check.kind(defense)}.'
    )
  before = [
      build(e, e.strengths[0] if e.strengths else None) for e in entry.after
  ]
  return chain(*before, defense) if before else defense


def without_baselines(setting: Setting) -> Setting:
  """The setting without baselines among the attacks after training."""
  return _after(setting, False)


def baselines(setting: Setting) -> Setting:
  """The setting with only baselines, which no defense changes."""
  return _after(setting, True)._replace(replayed={}, backdoor='')


def _after(setting: Setting, baselines: bool) -> Setting:
  return setting._replace(after_training={
      name: attack for name, attack in setting.after_training.items()
      if attackers.recipe(name).is_baseline == baselines
  })


def absent(alone: Array | bool = True) -> Defense:
  """A `Defense` that leaves the active party alone.

  The top network gets zeros in place of the passive parties' embeddings, so
  those parties learn nothing.

  Args:
    alone: Whether it does; if not, nothing changes. May be traced.
  """

  def receive(active, state, key, up, labels):
    heard = tuple(jnp.where(alone, jnp.zeros_like(u), u) for u in up)
    return heard, jnp.zeros((), jnp.float32)

  return Defense(
      init=lambda key, spec: Slots((), ((),) * len(spec.embeddings), ()),
      receive=receive,
  )


def quits(setting: Setting) -> dict[str, tuple[int, ...]]:
  """Cases in which passive parties quit: name -> 0 or 1 for each of them.

  1 means that the party is present. In case '' all of them quit, in case '@k'
  only party k. {} unless `config.quitting` is set.
  """
  if not setting.config.quitting:
    return {}
  parties = len(setting.vfl.bottoms) - 1
  found = {'': (0,) * parties} if setting.vfl.bottoms[0] else {}
  if parties > 1:
    found |= {
        f'@{k + 1}': tuple(int(j != k) for j in range(parties))
        for k in range(parties)
    }
  return found
