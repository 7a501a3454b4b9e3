"""Numbers of categories or words have no mixtures."""
from types import SimpleNamespace

import pytest

from vfljax import attacks
from vfljax.runner.checking import checks
from vfljax.runner.config import Config, Entry, ModelConfig
from vfljax.runner.experiment import federations
from vfljax.scene import Scene

MIXMATCH = attacks.REGISTRY['mixmatch']


@pytest.mark.parametrize('change, numbered', [
    (dict(), False), (dict(buckets=9), True),
    (dict(name='wide_deep'), True), (dict(name='mlp3'), False),
    (dict(name='encoder'), True), (dict(name='lenet5'), False),
    (dict(channels=(4,)), False),
    (dict(name='mlp3', buckets=9), False),
    (dict(name='embedding', algorithm='vlr'), False),
    (dict(name='nobodys'), False),
])
def test_which_networks_read_numbers(change, numbered):
  model = ModelConfig(**(dict(algorithm='vhnn') | change))
  assert federations.numbered(model) == numbered
  if model.name != 'nobodys':
    scene = federations.scene(Config(model=model), 2)
    assert scene.numbered == numbered


@pytest.mark.parametrize('chain', [
    lambda entry: entry, lambda entry: Entry('iso', (1,), after=(entry,)),
    lambda entry: Entry('iso', (1,), after=(Entry('none', after=(entry,)),)),
], ids=['alone', 'chained', 'chained before one that is'])
def test_a_defense_that_mixes_or_is_for_two_classes_is_refused(chain):
  model = ModelConfig(algorithm='vhnn', buckets=9)
  setting = SimpleNamespace(config=SimpleNamespace(model=model), classes=3)
  with pytest.raises(ValueError, match='^mixup mixes samples.*no mixtures'):
    checks._check_entry(setting, chain(Entry('mixup', (2,))))
  with pytest.raises(ValueError, match='^marvell is for two classes.*has 3'):
    checks._check_entry(setting, chain(Entry('marvell', (2,))))


def test_an_attack_that_mixes_is_told_to_mix_embeddings():
  numbers = Scene(2, numbered=True)
  with pytest.raises(ValueError, match='attack.mixmatch.tune=False'):
    MIXMATCH.check(MIXMATCH.options(), numbers, None)
  MIXMATCH.check(MIXMATCH.options(tune=False), numbers, None)
  MIXMATCH.check(MIXMATCH.options(), Scene(2), None)
