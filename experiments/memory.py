"""Whether the samples fit into the device's memory, or are streamed to it."""
import jax

from experiments import config as configs
from experiments.config import Config
from vfljax.data.table import Table

SHARE = 0.4  # Of a device's memory: what samples may take before they stream.
CHUNK = 0.05  # Of a device's memory: a chunk of all its trainings' rounds.


def rounds_of(config: Config, table: Table) -> int:
  """Rounds a chunk, or 0 for training in memory.

  With data.stream=0 samples are streamed if, as they are and once more as the
  numbers of each of a device's trainings, they would take more than `SHARE` of
  its memory. A CPU does not say what it has: there nothing is streamed unless
  asked for.
  """
  asked = config.data.stream
  memory = (jax.local_devices()[0].memory_stats() or {}).get('bytes_limit', 0)
  if asked or not memory:
    return max(asked, 0)
  raw, floats = table.features.nbytes, 4 * table.features.size
  trainings = _trainings(config, len(table.classes))
  if raw + trainings * floats < SHARE * memory:
    return 0
  round_bytes = config.train.batch_size * raw / len(table.labels)
  return max(1, int(CHUNK * memory / (trainings * round_bytes)))


def _trainings(config: Config, classes: int) -> int:
  """The most trainings that a device has at once."""
  seeds = config.seeds_per_chunk or config.seeds
  points = max(
      len(e.strengths) or 1 for e in configs.entries(config, classes)
  )
  points = min(config.strengths_per_chunk or points, points)
  return -(-seeds * points // jax.local_device_count())


def check(
    config: Config, classes: int, running: list[str], others: list[str]
) -> None:
  """Refuses what needs all training samples at once.

  Args:
    classes: Of the data set.
    running: Attacks on rounds in training.
    others: All other attacks.

  Raises:
    ValueError: naming what to leave out.
  """
  why = 'data.stream' if config.data.stream > 0 else (
      'There are too many samples for the device; streaming them'
  )
  plain = '' if config.data.stream > 0 else (
      ' --config.data.stream=-1 tries without.'
  )
  if others:
    one = 'norm_scoring' if classes == 2 else 'direct_label'
    few = f'--config.attacks={",".join(running or [one])}'
    raise ValueError(
        f'{why} does not go with {", ".join(others)}: they need training '
        f'samples at hand. Choose attacks in training: {few}.{plain}'
    )
  if config.train.remainder == 'keep' or config.train.patience:
    raise ValueError(
        f'{why} needs rounds of one size, train.remainder=drop or pad, and '
        f'train.patience=0.{plain}'
    )
