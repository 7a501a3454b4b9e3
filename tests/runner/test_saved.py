"""Configurations of earlier versions, which lack newer fields."""
import dataclasses
import functools
import json

import pytest

from experiments import quickstart
from vfljax.completion import Schedule
from vfljax.defenses.shadow import Attacker
from vfljax.runner import saved, store
from vfljax.runner.config import Config, Entry
from vfljax.runner.errors import UserError

UNITS = ['none', 'iso/0']


def test_a_field_that_is_newer_than_the_directory_has_its_default(tmp_path):
  old = json.loads(json.dumps(dataclasses.asdict(quickstart.get_config())))
  del old['attack']['repeats'], old['alone'], old['listed'][0]['after']
  store.open_workdir(tmp_path / 'out', old, UNITS)
  new = dataclasses.asdict(quickstart.get_config())
  with pytest.raises(UserError, match='another configuration'):
    store.open_workdir(tmp_path / 'out', new, UNITS)
  store.open_workdir(tmp_path / 'out', new, UNITS, saved.completed)
  assert store.read_config(tmp_path / 'out')['alone'] is True
  other = dataclasses.asdict(quickstart.get_config()) | dict(alone=False)
  with pytest.raises(UserError, match='alone is true there and false here'):
    store.open_workdir(tmp_path / 'out', other, UNITS, saved.completed)


def test_an_imagined_attacker_that_had_fewer_fields_is_the_same():
  """Options hold NamedTuples, lists in a saved configuration."""
  attacker = Attacker(Schedule(20, 0, 4, 0.1, 'sgd'))
  now = Config(listed=(Entry('none'), Entry('vmask', (0.3,), dict(a=attacker))))
  new = json.loads(json.dumps(dataclasses.asdict(now)))
  old = json.loads(json.dumps(new))
  told = old['listed'][1]['options']
  told['a'] = [told['a'][0][:5], 4, [64], 1]
  assert old != new and saved.completed(old, now) == new
  told['a'][0][3] = 0.2  # Another rate is another experiment.
  assert saved.completed(old, now) != new


def test_attacks_options_were_one_table_before(tmp_path):
  """A directory of version 0.1 goes on, unless an option was another."""
  now = quickstart.get_config()
  now.attack = now.attack.but(completion=dict(epochs=20, head=(16,)))
  new = json.loads(json.dumps(dataclasses.asdict(now)))
  old = json.loads(json.dumps(new))
  del old['attack']['own']
  old['attack'] |= dict(
      epochs=20, head=[16], stages=10, tune=True, iterations=100,
      median='class',
      inversion_steps=500, shadow='same', cafe_pool=200,
  )
  assert saved.completed(old, now) == new
  store.open_workdir(tmp_path / 'out', old, UNITS)
  complete = functools.partial(saved.completed, now=now)
  store.open_workdir(tmp_path / 'out', new, UNITS, complete)
  for change in (dict(epochs=21), dict(stages=5), dict(median='batch')):
    other = old | dict(attack=old['attack'] | change)
    assert saved.completed(other, now) != new
  # What no attack of the experiment looks at is no difference.
  other = old | dict(attack=old['attack'] | dict(inversion_steps=5))
  assert saved.completed(other, now) == new
