"""`make test-fast`: as many of the quickest tests as fit into a time.

How long each took is kept from run to run, so that nobody marks tests by hand;
a test of which nothing is known is run.
"""
import collections
import os

import pytest

KEPT = 'vfljax/seconds'  # Below .pytest_cache/v.


def chosen(
    seconds: dict[str, float], tests: list[str], budget: float
) -> set[str]:
  """The quickest of `tests` whose times sum to no more than the budget."""
  kept, total = set(), 0.0
  for test in sorted(tests, key=lambda test: seconds.get(test, 0.0)):
    total += seconds.get(test, 0.0)
    if total > budget:
      break
    kept.add(test)
  return kept


class Quickest:
  """A plugin of pytest that keeps times and, if asked to, chooses by them."""

  def __init__(self, config):
    self.config = config
    self.took = collections.Counter()

  def pytest_collection_modifyitems(self, config, items):
    limit = config.getoption('quickest')
    if limit is None:
      return
    own = getattr(config, 'workerinput', {})
    budget = limit * own.get('workercount', 1)
    known = config.cache.get(KEPT, {})
    kept = chosen(known, [item.nodeid for item in items], budget)
    left_out = [item for item in items if item.nodeid not in kept]
    items[:] = [item for item in items if item.nodeid in kept]
    config.hook.pytest_deselected(items=left_out)

  def pytest_runtest_logreport(self, report):
    self.took[report.nodeid] += report.duration

  def pytest_sessionfinish(self):
    # Workers tell the main process.
    if 'PYTEST_XDIST_WORKER' not in os.environ:
      known = self.config.cache.get(KEPT, {})
      self.config.cache.set(KEPT, known | self.took)


def add_option(parser: pytest.Parser) -> None:
  parser.addoption(
      '--quickest', type=float, metavar='SECONDS', default=None,
      help='only the quickest tests, so many seconds of them a worker',
  )
