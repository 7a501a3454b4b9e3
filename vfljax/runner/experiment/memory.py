"""Decides whether samples are kept in the device's memory or streamed."""
import math

import jax

from vfljax import attacks, target
from vfljax.attack import ROUND, recipe_of
from vfljax.data.files import memory
from vfljax.data.table import Table
from vfljax.runner.config import Config
from vfljax.runner.experiment import federations
from vfljax.runner.experiment.choosing import entries

SHARE = 0.4  # Share of a device's memory that samples may take, unstreamed.
CHUNK = 0.05  # Share for one chunk of the rounds of all its trainings.


def rounds_of(config: Config, table: Table, possible: bool = True) -> int:
  """Rounds in a chunk of streamed samples; 0 to keep all samples in memory.

  `data.stream` sets it. At 0, samples are streamed if that is possible and they
  would take more than `SHARE` of a device's memory: once as loaded, and once as
  floats for each split. A CPU does not report its memory, so there nothing is
  streamed unless asked for.

  Args:
    config: The configuration.
    table: The samples.
    possible: Whether the experiment can work with streamed samples.
  """
  asked = config.data.stream
  room = (jax.local_devices()[0].memory_stats() or {}).get('bytes_limit', 0)
  if asked or not room or not possible:
    return max(asked, 0)
  raw, floats = table.features.nbytes, 4 * table.features.size
  trainings = _trainings(config, len(table.classes))
  splits = trainings if _drawn(config, table) else 1
  if raw + splits * floats < SHARE * room:
    return 0
  round_bytes = config.train.batch_size * raw / len(table.labels)
  return max(1, int(CHUNK * room / (trainings * round_bytes)))


def expected(config: Config, table: Table) -> tuple[int, int, int]:
  """About how much memory a run on CPUs takes for its samples.

  They are there as loaded, once for each device, and as each training's split
  of them, before and after scaling. Networks come on top.

  Returns:
    Bytes on all devices, bytes on a single one, and bytes that there are; zeros
    if devices have memory of their own, or samples are streamed.
  """
  if target.kind() != 'cpu' or config.data.stream:
    return 0, 0, 0
  raw, floats = table.features.nbytes, 4 * table.features.size
  on = lambda devices: raw + devices * (raw + 2 * floats)
  return on(jax.local_device_count()), on(1), memory()


def _drawn(config: Config, table: Table) -> bool:
  """Whether each training has a split of its own."""
  aside = (
      config.data.validation, config.attack.auxiliary, config.auxiliary.samples
  )
  return config.data.resplit and (table.test is None or any(aside))


def _trainings(config: Config, classes: int) -> int:
  """The largest number of trainings at once on a device."""
  seeds = min(config.seeds_per_chunk or config.seeds, config.seeds)
  points = max(
      (len(e.strengths) or 1) * math.prod(map(len, e.grid.values()))
      for e in entries(config, classes)
  )
  points = min(config.strengths_per_chunk or points, points)
  return -(-seeds * points // jax.local_device_count())


def check(
    config: Config, classes: int, running: list[str], others: list[str]
) -> None:
  """Refuses settings that cannot work with streamed samples.

  Args:
    config: The configuration.
    classes: Number of classes.
    running: Attacks on rounds during training.
    others: All other attacks.

  Raises:
    ValueError: says what to leave out or change.
  """
  if others:
    offered = running or _offered(config, classes)
    few = f': --config.attacks={",".join(offered)}' if offered else ''
    raise ValueError(
        f'data.stream does not go with {", ".join(others)}: that needs all '
        f'training samples at hand. Choose attacks during training{few}.'
    )
  if not even(config):
    raise ValueError(
        'data.stream needs rounds of one size, train.remainder=drop or pad, '
        'train.patience=0, and not auxiliary.augment=training.'
    )


def even(config: Config) -> bool:
  """Whether the configuration allows streaming.

  All rounds must have one size, no early stop may end a training, and no
  samples of the defender may be copied from the training samples.
  """
  copied = config.auxiliary.samples and config.auxiliary.augment == 'training'
  own = config.train
  return own.remainder != 'keep' and not own.patience and not copied


def _offered(config: Config, classes: int) -> list[str]:
  """Attacks during training that work on such a federation."""
  scene = federations.scene(config, classes)
  recipes = {n: recipe_of(made) for n, made in attacks.REGISTRY.items()}
  return [
      name for name, made in recipes.items()
      if made.stage == ROUND and not made.why_not(name, scene)
  ]
