"""Configurations of earlier versions, which lack newer fields."""
import dataclasses
import functools
import json

import pytest

from experiments import quickstart
from vfljax.completion import Schedule
from vfljax.defenses.shadow import Attacker
from vfljax.runner.checking import combinations
from vfljax.runner.config import (
    AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig,
)
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import saved, store

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


@pytest.mark.parametrize('attacks, replay, kept', [
    ('norm_scoring,model_completion:9', False, 0), ('', False, 0),
    ('norm_scoring, learned_gradient:2', False, 1), ('norm_scoring', True, 1),
    ('one_of_theirs', False, 1), ('norm_scoring|learned_gradient', False, 1),
])
def test_one_round_was_played_again_unless_more_were_set(
    attacks, replay, kept
):
  """Where no round is, that number means nothing, and is today's."""
  now = json.loads(json.dumps(dataclasses.asdict(Config(attacks=attacks))))
  now['attack']['replay'] = replay
  old = now | dict(attack=now['attack'] | dict(replay_rounds=1))
  assert saved.completed(old)['attack']['replay_rounds'] == kept
  listed = old | dict(attacks='', listed_attacks=attacks.split(','))
  if attacks:
    found = saved.completed(listed)['attack']['replay_rounds']
    assert found == kept


def test_rounds_that_no_attack_needs_are_no_other_experiment():
  """So the same command goes on, whatever it says of them."""
  now = Config(listed_attacks=('norm_scoring',))
  now.attack.replay_rounds = 8
  old = json.loads(json.dumps(dataclasses.asdict(now)))
  assert saved.completed(old, now) == old
  now.attack.replay = True
  old['attack'] |= dict(replay=True, replay_rounds=1)
  assert saved.completed(old, now)['attack']['replay_rounds'] == 1


@pytest.mark.parametrize('attacks, classes, goes_on', [
    ('', 2, True), ('', 3, False), ('norm_scoring', 2, True),
    ('model_completion', 3, True),
])
def test_a_list_that_named_no_alternatives_goes_on_if_the_same_attacks_run(
    attacks, classes, goes_on
):
  now = quickstart.get_config()
  now.attacks = attacks
  new = json.loads(json.dumps(dataclasses.asdict(now)))
  old = new | dict(listed_attacks=[
      name.partition('|')[0] for name in now.listed_attacks
  ])
  old['attack'] = old['attack'] | dict(replay_rounds=1)
  assert (saved.continued(old, now, classes) == new) == goes_on
  gone = old | dict(listed_attacks=['an_attack_of_theirs'])
  found = saved.continued(gone, now, classes)
  assert found['listed_attacks'] == ['an_attack_of_theirs']


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


IDLE = {
    'split seed': dict(data=dict(split_seed=3)),
    'strength': dict(data=dict(split='random', split_seed=3, split_strength=2)),
    'held': dict(data=dict(unheld=True)),
    'logistic': dict(model=dict(algorithm='vlr', dropout=0.5)),
    'convolutions': dict(model=dict(channels=[4], dropout=0.5)),
    'pools': dict(model=dict(pools=2)),
    'no name': dict(model=dict(width=4, options='norm=batch')),
    'no samples': dict(auxiliary=dict(noise=0.5, data='digits', path='x')),
    'no data': dict(auxiliary=dict(samples=9, path='x')),
}
# What of these has an effect; the rest is left out of today's command.
USED = {
    'strength': dict(data=dict(split='random', split_seed=3)),
    'logistic': dict(model=dict(algorithm='vlr')),
    'convolutions': dict(model=dict(channels=[4])),
    'no data': dict(auxiliary=dict(samples=9)),
}


def changed(config: dict, groups: dict) -> dict:
  return config | {k: config[k] | given for k, given in groups.items()}


@pytest.mark.parametrize('case', IDLE)
def test_a_directory_with_a_setting_of_no_effect_goes_on(case, tmp_path):
  """Version 0.1 took these settings; now they are refused."""
  plain = json.loads(json.dumps(dataclasses.asdict(quickstart.get_config())))
  old, new = changed(plain, IDLE[case]), changed(plain, USED.get(case, {}))
  store.open_workdir(tmp_path / 'out', old, UNITS)
  store.open_workdir(tmp_path / 'out', new, UNITS, saved.completed)
  # What is in the directory now is what is asked for.
  store.open_workdir(tmp_path / 'out', new, UNITS)


def test_every_setting_of_no_effect_is_at_its_default_then():
  none: dict = dict(data={}, model={}, auxiliary={})
  for groups in IDLE.values():
    found = saved.completed(changed(none, groups))
    combinations.check(Config(
        data=DataConfig(**found['data']), model=ModelConfig(**found['model']),
        auxiliary=AuxiliaryConfig(**found['auxiliary']),
    ))


@pytest.mark.parametrize('groups', [
    dict(data=dict(split='random', split_seed=3)),
    dict(data=dict(split='importance', split_strength=2)),
    dict(model=dict(dropout=0.5)), dict(model=dict(channels=[4], pools=2)),
    dict(auxiliary=dict(samples=9, noise=0.5)),
    dict(train=dict(learning_rate=1e4)),
])
def test_a_setting_that_had_an_effect_is_another_experiment(groups, tmp_path):
  plain = json.loads(json.dumps(dataclasses.asdict(quickstart.get_config())))
  store.open_workdir(tmp_path / 'out', changed(plain, groups), UNITS)
  with pytest.raises(UserError, match='another configuration'):
    store.open_workdir(tmp_path / 'out', plain, UNITS, saved.completed)
