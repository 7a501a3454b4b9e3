"""What a work directory's configuration asks for, whether it was run or not."""
from collections.abc import Mapping
from typing import Any

from vfljax.runner.config import Config, Entry
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import choosing
from vfljax.runner.experiment.grids import grid, row_name


def seeds(config: Mapping[str, Any]) -> tuple[int, ...]:
  """The seeds asked for; () if the configuration does not say."""
  first, count = config.get('first_seed', 0), config.get('seeds', 0)
  right = isinstance(first, int) and isinstance(count, int) and count < 1e6
  return tuple(range(first, first + count)) if right else ()


def epochs(config: Mapping[str, Any]) -> int:
  """Most epochs measured in one training; 0 if the configuration is silent."""
  train = config.get('train', {})
  count, every = train.get('epochs', 0), train.get('measure_every', 0)
  if not (isinstance(count, int) and isinstance(every, int) and every >= 0):
    return 0
  return -(-count // (every or max(1, count // 50)))


def batch(config: Mapping[str, Any]) -> int:
  """Samples a round; 0 if the configuration does not say."""
  size = config.get('train', {}).get('batch_size', 0)
  return size if isinstance(size, int) and size > 0 else 0


def pooled(config: Mapping[str, Any]) -> bool:
  """Whether an attack's scores of all rounds of an epoch are pooled."""
  return config.get('attack', {}).get('pool', '') == 'epoch'


def attackers(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
  """Attackers' options: those of all under '', a variant's by its name.

  {} where the configuration does not say.
  """
  plain = lambda x: dict(x) if isinstance(x, Mapping) else {}
  every = plain(config.get('attack'))
  own = config.get('variants') or ()
  return {'': every} | {
      str(one.get('name')): every | plain(one.get('options'))
      for one in own if isinstance(one, Mapping)
  }


def cells(
    config: Mapping[str, Any], classes: int
) -> tuple[tuple[str, float | None], ...]:
  """(defense, strength) of every row asked for, named as in the results.

  () if the configuration does not say, or names something unregistered.

  Args:
    config: The contents of config.json.
    classes: Number of classes; some listed defenses work with two only.
  """
  if 'listed' not in config:
    return ()
  try:
    listed = tuple(
        Entry(e['defense'], tuple(e['strengths']), label=e.get('label', ''),
              grid=e.get('grid', {}))
        for e in config['listed']
    )
    chosen = Config(defenses=config.get('defenses', ''), listed=listed)
    return tuple(
        (row_name(entry, others), s)
        for entry in choosing.entries(chosen, classes)
        for others in grid(entry) for s in entry.strengths or (None,)
    )
  except (UserError, AttributeError, LookupError, TypeError, ValueError):
    return ()
