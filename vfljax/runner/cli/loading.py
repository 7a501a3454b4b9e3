"""Reads the samples of a configuration, or takes those that a program has."""
from collections.abc import Callable, Iterator
import contextlib
import inspect
import sys
from typing import Any
import warnings

import numpy as np

from vfljax import check, data
from vfljax.data import frame
from vfljax.data.dialect import FILTERS
from vfljax.data.options import converted, retyped
from vfljax.data.table import Table, listing
from vfljax.runner.cli import reading
from vfljax.runner.config import DataConfig, options, outside
from vfljax.runner.errors import UserError, brief

OWN = 'own'  # The name of a program's own samples, if its config has none.
ODD = 5  # Standard errors; a class's share is off by chance by less.
_FLAGS = {  # Flags for arguments that a data set's function takes itself.
    name: f'--config.data.{name}'
    for name in ('path', 'name', 'label', 'missing')
} | dict(cache='--cache')


def warn(text: str) -> None:
  """Prints on standard error."""
  print(text, file=sys.stderr)


def load_data(
    config: DataConfig, cache: str = '', tell: Callable[[str], None] = warn
) -> Table:
  """The samples of a config, cached as arrays in the folder `cache`.

  Args:
    config: What to load.
    cache: The folder; '' keeps nothing.
    tell: Gets the warnings of a loader.

  Raises:
    UserError: if they cannot be loaded, or cannot be trained on.
  """
  own = _options(config)
  reading.announce(config.path)
  with _refused(config):
    with _warned(config, tell), outside.loading(config.name):
      table = data.load(
          config.name, path=config.path, label=config.label,
          missing=config.missing, cache=cache, **own,
      )
    table = _first(table, config.limit, config.test_limit, tell)
  _tell_of_unseen(table, tell)
  return table


def taken(
    config: DataConfig, samples: Any, tell: Callable[[str], None] = warn
) -> Table:
  """The samples that a program has, in place of those that a config names.

  Args:
    config: How a data frame is read: its `label`, `missing` and `options`, as
      of a CSV file. `limit` and `test_limit` are for tables, too.
    samples: A pandas data frame, which stays as it is, or a `Table`.
    tell: Gets the warnings.

  Raises:
    UserError: if they are neither, or cannot be trained on.
  """
  if config.path:
    raise UserError(
        f'data.path is {config.path!r}, and the samples are given: leave one '
        'of them out.'
    )
  with _refused(config):
    if isinstance(samples, Table):
      _refuse_idle(config)
      table = data.check(samples)
    elif hasattr(samples, 'set_axis') and hasattr(samples, 'columns'):
      with _warned(config, tell):
        table = _of_frame(config, samples)
    else:
      raise UserError(
          'The samples must be a pandas DataFrame or a vfljax.data.Table; got '
          f'{check.kind(samples)}. For arrays type '
          'pandas.DataFrame(x).assign(label=y), for a frame of each party '
          'vfljax.data.joined([first, second], label=..., ids=...).'
      )
    table = _first(table, config.limit, config.test_limit, tell)
  _tell_of_unseen(table, tell)
  return table


def _of_frame(config: DataConfig, samples: Any) -> Table:
  known = list(inspect.signature(frame.table).parameters)[3:]
  own = _options(config)
  for name in own:
    if name not in known:
      raise UserError(
          f'A data frame has no option {name!r}; it has {", ".join(known)}.'
      )
  table = frame.table(
      samples, config.label, config.missing,
      **converted(frame.csv, own, 'A data frame'),  # They are the same.
  )
  return data.check(
      data.impute(table) if config.missing == 'impute' else table
  )


def _refuse_idle(config: DataConfig) -> None:
  """Raises UserError for what says how to read a file that there is not."""
  for name in ('label', 'missing', 'options'):
    if getattr(config, name) != getattr(DataConfig(), name):
      raise UserError(
          f'data.{name} does nothing, as a Table has been read: leave it out.'
      )


def _options(config: DataConfig) -> dict[str, Any]:
  return options.parse(
      config.options, 'data.options', 'samples=500;signal=(1, 0.5)', _FLAGS
  )


@contextlib.contextmanager
def _warned(
    config: DataConfig, tell: Callable[[str], None]
) -> Iterator[None]:
  """A context after which is told what a loader warned of."""
  with FILTERS, warnings.catch_warnings(record=True) as odd:
    for kind in (data.Mismatch, data.Recognised):
      warnings.simplefilter('always', kind)
    yield
  for one in odd:
    said = retyped(str(one.message), config.options)
    tell(f'warning: {said}')


@contextlib.contextmanager
def _refused(config: DataConfig) -> Iterator[None]:
  """A context where errors of samples are told to the user."""
  try:
    yield
  except MemoryError:
    raise UserError(
        f'There is too little memory for the samples of {config.name}.'
    ) from None
  except (OSError, ValueError, TypeError) as error:
    raise UserError(brief(retyped(str(error), config.options))) from None


def _first(
    table: Table, limit: int, test_limit: int, tell: Callable[[str], None]
) -> Table:
  """The first `limit` training rows and `test_limit` test rows; 0 is all.

  Raises:
    UserError: if there are not so many, or they are of one class.
  """
  if not (limit or test_limit):
    return table
  test = np.zeros(len(table.labels), bool) if table.test is None else table.test
  rows, held = np.flatnonzero(~test), np.flatnonzero(test)
  if limit and not 1 < limit <= len(rows):
    raise UserError(
        f'data.limit must be between 2 and the {len(rows)} rows; got {limit}.'
    )
  if not 0 <= test_limit <= len(held):
    raise UserError(
        f'data.test_limit must be between 0 and the {len(held)} rows of the '
        f'official test set; got {test_limit}.'
    )
  _check_order(table, rows, limit, tell)
  rows = np.concatenate([
      rows[: limit or len(rows)], held[: test_limit or len(held)]
  ])
  return data.check(table._replace(
      features=table.features[rows], labels=table.labels[rows],
      test=None if table.test is None else test[rows],
  ))


def _tell_of_unseen(table: Table, tell: Callable[[str], None]) -> None:
  """Warns of classes that the official test set alone has."""
  if table.test is None:
    return
  training, test = (
      np.bincount(table.labels[part], minlength=len(table.classes))
      for part in (~table.test, table.test)
  )
  unseen = np.flatnonzero((training == 0) & (test > 0))
  if len(unseen):
    names = listing(repr(table.classes[i]) for i in unseen)
    tell(
        f'warning: no training row is of class {names}, which the official '
        'test set has.'
    )


def _check_order(
    table: Table, rows: np.ndarray, limit: int, tell: Callable[[str], None]
) -> None:
  """Warns if the first `limit` of `rows` have other classes than all of them.

  As in a file that is sorted by its label: what is left of it is another task.

  Raises:
    UserError: if they have one class alone, and all rows have more.
  """
  if not limit or limit == len(rows):
    return
  classes = len(table.classes)
  every, some = (
      np.bincount(table.labels[part], minlength=classes) / len(part)
      for part in (rows, rows[:limit])
  )
  left = 1 - limit / len(rows)
  error = np.sqrt(every * (1 - every) / limit * left)
  odd = np.abs(some - every) - ODD * error
  worst = int(odd.argmax())
  if some.max() == 1 and every.max() < 1:
    raise UserError(
        f'The first {limit} rows, which data.limit takes, are all of class '
        f'{table.classes[some.argmax()]!r}; at least two classes are needed. '
        'Type a larger --config.data.limit, or shuffle the rows.'
    )
  if odd[worst] > 0:
    tell(
        f'warning: the first {limit} rows, which data.limit takes, are '
        f'{some[worst]:.1%} of class {table.classes[worst]!r}, all '
        f'{len(rows)} rows {every[worst]:.1%}. If they are sorted by the label,'
        ' type a larger --config.data.limit, or shuffle the rows.'
    )
