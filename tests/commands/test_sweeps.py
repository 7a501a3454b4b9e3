"""The finer sweeps of `recommend`: which folders, and what each is for."""
import pytest

from vfljax.commands import sweeps
from vfljax.runner.config import Config, Entry

COARSE = Config(listed=(Entry('none'), Entry('iso', (5.0,))))


def asked(*strengths):
  return Config(listed=(Entry('none'), Entry('iso', strengths)))


def planned(monkeypatch, place, earlier, again):
  """The sweeps, where earlier goals have begun folders with such strengths."""
  said = {}
  for name, strengths in earlier.items():
    (place / name).mkdir()
    rows = dict(defense='none'), dict(defense='iso', strengths=strengths)
    said[name] = dict(listed=rows)
  monkeypatch.setattr(
      sweeps.identity, 'said', lambda folder: said.get(folder.name)
  )
  found = sweeps.planned(place, COARSE, again)
  return [
      (s.folder.name, s.wanted, [x for e in s.config.listed
                                 for x in e.strengths]) for s in found
  ]


@pytest.mark.parametrize('earlier, strengths, expected', [
    # The first finer sweep, then one with what the first has not measured.
    ({}, (4.0,), [('finer', True, [4.0])]),
    (dict(finer=[4.0]), (4.0, 6.0), [
        ('finer', True, [4.0]), ('finer-2', True, [6.0]),
    ]),
    # The present goal needs nothing of the first, and nothing new.
    (dict(finer=[3.0]), (4.0,), [
        ('finer', False, [3.0]), ('finer-2', True, [4.0]),
    ]),
    (dict(finer=[4.0]), (4.0,), [('finer', True, [4.0])]),
    # In the order of their numbers, and a gap is filled.
    ({'finer-10': [1.0], 'finer-2': [2.0]}, (9.0,), [
        ('finer', True, [9.0]), ('finer-2', False, [2.0]),
        ('finer-10', False, [1.0]),
    ]),
])
def test_a_goal_sweeps_only_what_no_earlier_one_has(
    monkeypatch, tmp_path, earlier, strengths, expected
):
  again = asked(*strengths)
  assert planned(monkeypatch, tmp_path, earlier, again) == expected


def test_without_a_finer_goal_earlier_sweeps_are_not_wanted(
    monkeypatch, tmp_path
):
  found = planned(monkeypatch, tmp_path, dict(finer=[4.0], final=[3.0]), None)
  assert found == [('finer', False, [4.0])]
