"""How many samples a round, and how many epochs, suit a table.

They are what `vfljax recommend` takes by default, and what a run that takes
many more rounds is compared with.
"""
import math

import numpy as np

from vfljax.data.table import Table

# Rows up to which so many samples are a round; of more than those, 1024.
_BATCHES = ((2000, 32), (20_000, 128), (200_000, 512))
# Rounds are up to `_LARGER` times as large, so that each of two classes has
# `_OF_EACH` samples a round on average: of a class of 1 % most rounds would
# have none, to learn from or for attackers to find.
_OF_EACH, _LARGER = 2, 16
# Rounds of a training, about. On a table of 2000 rows 1300 rounds gave the AUC
# of 700, in twice the time.
_ROUNDS = 700
_EPOCHS = (5, 30)  # At least and at most.
_TRAINED_ON = 0.7  # Share of training rows, about; others validate and test.


def batch_size(table: Table) -> int:
  """Samples of a round."""
  rows, fewest = len(table.labels), int(np.bincount(table.labels).min())
  batch = _usual(rows)
  if len(table.classes) == 2:
    of_each = math.ceil(_OF_EACH * rows / max(fewest, 1))
    batch = min(max(batch, of_each), _LARGER * batch)
  return max(2, min(batch, rows // 4))


def epochs(table: Table, batch: int) -> int:
  """Epochs, in rounds of `batch` samples."""
  rows = len(table.labels)
  least, most = _EPOCHS
  most = most * max(batch // _usual(rows), 1)  # As many rounds.
  return int(np.clip(round(_ROUNDS / _an_epoch(rows, batch)), least, most))


def times(table: Table, batch: int, count: int) -> float:
  """Rounds of `count` epochs, divided by those that suit the table."""
  own = batch_size(table)
  suited = epochs(table, own) * _an_epoch(len(table.labels), own)
  return count * _an_epoch(len(table.labels), batch) / suited


def _usual(rows: int) -> int:
  return next((b for most, b in _BATCHES if rows <= most), 1024)


def _an_epoch(rows: int, batch: int) -> float:
  """Rounds of an epoch, about."""
  return max(_TRAINED_ON * rows / batch, 1)
