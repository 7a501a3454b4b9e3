"""Which runs can be compared: those in which party B has the same features.

VHNN and VSNN differ in whether party A has a network. If party B also has more
features in one of them, a comparison cannot tell the two differences apart.
"""
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vfljax.report import reading
from vfljax.report.reading import Results
from vfljax.runner.checking.combinations import HALVES
from vfljax.runner.workdir import store


class Run(NamedTuple):
  """The results of a work directory on one data set, and party B's features.

  Attributes:
    results: The measurements.
    held: The fields that decide party B's features; `None` if unknown.
  """

  results: Results
  held: tuple | None


def read(path: str) -> list[Run]:
  """The runs of a work directory."""
  held = held_by_b(store.read_config(path))
  return [Run(results, held) for results in reading.read(path)]


def held_by_b(config: Mapping | None) -> tuple | None:
  """The fields that decide party B's features: equal for equal features.

  Args:
    config: The contents of config.json; `None` if there is none.
  """
  if not config or 'data' not in config:
    return None
  data = config['data']
  own = tuple(data.get(name) for name in (
      'options', 'split', 'ratios', 'named', 'split_seed', 'split_strength'
  ))
  # In VSNN party B has what it has in VHNN, or what party A had there, too.
  shared = config['model']['algorithm'] == 'vsnn' and not (
      data.get('unheld') or data['split'] in HALVES
  )
  return (*own, shared)


def pairs(
    runs: Sequence[Run],
) -> tuple[list[tuple[Results, Results]], list[str]]:
  """(VHNN's, VSNN's) results of a data set each, and what is left out."""
  found, left_out = [], []
  for whole in (run for run in runs if run.results.title[2] == 'vhnn'):
    dataset = whole.results.title[1]
    others = [
        run for run in runs if run.results.title[1:] == (dataset, 'vsnn')
    ]
    same = [r for r in others if r.held is not None and r.held == whole.held]
    if same:
      found.append((whole.results, same[0].results))
    elif others:
      left_out.append(
          f'{dataset} is left out: by config.json party B does not hold the '
          'same features in both'
      )
  return found, left_out
