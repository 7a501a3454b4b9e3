"""Durations in words; the bars are in test_progress."""
import pytest

from vfljax.runner.cli.bars import duration


@pytest.mark.parametrize('seconds, words', [
    (0, '0 s'), (59.4, '59 s'), (59.6, '1 min 00 s'), (185, '3 min 05 s'),
    (3599, '59 min 59 s'), (3600, '1 h 00 min'), (7620, '2 h 07 min'),
    (-1, '0 s'),
])
def test_durations(seconds, words):
  assert duration(seconds) == words
