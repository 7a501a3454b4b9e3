"""Facts of attacks from outside, as a record keeps them for its report."""
import json
from types import SimpleNamespace

import pytest

from tests.toys import toy_scoring
from vfljax import attacks
from vfljax.attack import Recipe
from vfljax.leakage import Known, Score
from vfljax.runner.experiment import told

SCORE = Score(('mine', '{utility}'), (0.25, None), means='what is mine')


@pytest.fixture
def setting(monkeypatch):
  """One attack of ours and two from outside, one with two variants."""
  for name, blind in (('mine', False), ('blind', True)):
    made = Recipe(toy_scoring.factory, score=SCORE, is_baseline=blind)
    monkeypatch.setitem(attacks.REGISTRY, name, made)
  return SimpleNamespace(
      in_training={'norm_scoring': None, 'mine': None, 'mine:twice': None},
      replayed={}, after_training={}, backdoor='blind',
  )


def test_a_record_says_what_a_registry_of_another_process_does_not(setting):
  found = told.of(setting)
  assert {*found} == {'mine', 'blind'}
  unit = {told.FIELD: json.loads(json.dumps(found))}
  read = told.read([{}, {told.FIELD: None}, unit])
  assert {*read} == {'mine', 'blind'}
  assert read['mine'].score == SCORE
  assert read['blind'].is_baseline and not read['mine'].is_baseline
  assert told.of(setting.__class__(**vars(setting) | dict(backdoor=''))) == {
      'mine': found['mine']
  }


def test_the_first_unit_that_says_something_counts_and_damage_does_not():
  said = lambda known: {told.FIELD: dict(mine=told.said(known))}
  damaged = [dict(mine=3), dict(mine=dict(score=3)), dict(mine={})]
  units = [*({told.FIELD: one} for one in damaged), said(Known(SCORE)),
           said(Known(SCORE, True))]
  assert told.read(units) == dict(mine=Known(SCORE))
