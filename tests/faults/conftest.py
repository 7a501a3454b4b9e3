"""Counts what was tried, and says so at the end."""
from collections import Counter

import pytest

TALLY = pytest.StashKey[dict]()


@pytest.fixture
def tally(request):
  """Call it with what kind of fault it was, and how it ended."""
  counts = request.config.stash.setdefault(TALLY, {})

  def count(kind, ending='survived'):
    counts.setdefault(kind, Counter())[ending] += 1

  return count


def pytest_terminal_summary(terminalreporter, config):
  for kind, endings in config.stash.get(TALLY, {}).items():
    words = ', '.join(f'{how} {n}' for how, n in endings.items())
    terminalreporter.write_line(f'{kind}: tried {endings.total()}, {words}')
