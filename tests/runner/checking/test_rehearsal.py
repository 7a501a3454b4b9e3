"""What cannot start, or cannot fit into memory, is refused before it is run."""
from types import SimpleNamespace

import jax.numpy as jnp
import pytest

from vfljax import attacks, defenses, nets
from vfljax.attack import recipe
from vfljax.attacks.norm_scoring import norm_scoring
from vfljax.defense import Defense, Method
from vfljax.runner.checking import checks, rehearsal, trying
from vfljax.runner.cli import arguments
from vfljax.runner.config import (
    AttackConfig, AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig,
    TrainConfig, Variant,
)
from vfljax.runner.errors import UserError
from vfljax.types import Net


def config(**changed) -> Config:
  return Config(**dict(
      seeds=2, listed=(Entry('none'),), listed_attacks=('norm_scoring',),
      data=DataConfig('synthetic', options='samples=60'),
      model=ModelConfig(bottom=(4,), top=()),
      train=TrainConfig(epochs=2, batch_size=8), attack=AttackConfig(known=2),
  ) | changed)


def make(given: Config):
  return checks.make(given, arguments.load_data(given.data))


@pytest.mark.parametrize('dtype, optimizer, algorithm', [
    ('float16', 'adam', 'vhnn'), ('float16', 'adam', 'vsnn'),
    ('float16', 'sgd', 'vhnn'), ('bfloat16', 'adam', 'vhnn'),
])
def test_adam_on_weights_of_float16_is_refused(
    dtype, optimizer, algorithm, monkeypatch
):
  """Its epsilon is 0 there, and every training would seem to diverge."""
  half = Net(
      lambda key, x: jnp.zeros((x.shape[1], 4), dtype),
      lambda w, x: x.astype(dtype) @ w,
  )
  monkeypatch.setitem(nets.REGISTRY, 'half', nets.Network(lambda: half))
  given = config(
      model=ModelConfig(algorithm, name='half', top=()),
      train=TrainConfig(epochs=2, batch_size=8, optimizer=optimizer),
  )
  if (dtype, optimizer) != ('float16', 'adam'):
    checks.rehearse(make(given))
    return
  with pytest.raises(UserError, match='half has weights of float16.*=sgd'):
    checks.rehearse(make(given))


def own(**options) -> AttackConfig:
  return AttackConfig(known=2, own=options)


REFUSED = {
    'a backdoor that cannot be planted': (
        dict(attacks='noisy_sample', attack=own(noisy_sample=dict(rate=2.0))),
        'noisy_sample: rate must be a number in',
    ),
    'missing features': (
        dict(attacks='missing_features',
             attack=own(missing_features=dict(rate=-1.0))),
        'missing_features: rate must be',
    ),
    "the defender's own file": (
        dict(auxiliary=AuxiliaryConfig(5, data='spambase', path='/no/such')),
        '/no/such',
    ),
    'a rate below 0': (
        dict(attacks='gradient_inversion',
             model=ModelConfig('vlr'),
             attack=own(gradient_inversion=dict(learning_rate=-1.0))),
        'gradient_inversion: learning_rate must be',
    ),
    'weights': (
        dict(model=ModelConfig(bottom=(2**20, 2**20))), 'of memory.\nTrain few'
    ),
    'epochs': (
        dict(seeds=100_000, train=TrainConfig(epochs=10**6, batch_size=8)),
        '100000 trainings at once take',
    ),
    'parts': (
        dict(seeds=100_000, seeds_per_chunk=1), '100000 parts to run'
    ),
    'one name': (
        dict(listed=(Entry('iso', (5.0, 5.0000001)),)), 'differ in six digits'
    ),
    'a long name': (
        dict(listed=(Entry('iso', (5.0,), label='ü' * 60),)), 'shorter label'
    ),
    'too many parties for a defense without options': (
        dict(listed=(Entry('multi_head'),),
             data=DataConfig('synthetic', options='samples=60', parties=8)),
        '7 passive parties need 128 heads; at most 6',
    ),
    'statistics in a defense without options': (
        dict(listed=(Entry('multi_head'),), model=ModelConfig(norm='batch')),
        r'multi_head: top networks cannot keep statistics.*config\.model\.norm',
    ),
    'a grid of shapes': (
        dict(listed=(Entry('kdk', (0.5,), grid=dict(k=(2.0,))),)),
        'kdk: k must be an integer; got 2.0.*a grid cannot sweep it',
    ),
    'an option of another type': (
        dict(listed=(Entry('kdk', (0.5,), dict(k='two')),)), 'kdk: k must be'
    ),
    'an option without its type': (
        dict(listed=(Entry('vmask', (0.5,), dict(attacker=dict(known=2))),),
             auxiliary=AuxiliaryConfig(10)),
        'attacker must be of the type Attacker; got a dict. Write attacker=Att'
        r'acker\(...\) .* after from vfljax.defenses.shadow import Attacker',
    ),
    'a table to flip': (
        dict(data=DataConfig('synthetic', options='samples=60', flips=True)),
        'data.flips and data.shifts are for images; synthetic is a table',
    ),
    'a table to shift': (
        dict(data=DataConfig('synthetic', options='samples=60', shifts=2)),
        'data.flips and data.shifts are for images; synthetic is a table',
    ),
    'images of categories': (
        dict(data=DataConfig('digits'), model=ModelConfig(buckets=9)),
        'buckets are for columns of categories; digits has images',
    ),
    'patience for nothing': (
        dict(train=TrainConfig(epochs=2, batch_size=8, patience=3)),
        'train.patience needs --config.train.best',
    ),
    'a party that there is not': (
        dict(attack=AttackConfig(known=2, party=2)),
        r'passive party, 1\.\.1, or 0 for all; got 2',
    ),
    'labels of all samples, streamed': (
        dict(listed=(Entry('label_dp', (1.0,)),),
             data=DataConfig('synthetic', options='samples=60', stream=2)),
        r'label_dp: This defense prepares .* --config\.data\.stream=-1 trains',
    ),
    'a chained one without its type': (
        dict(listed=(Entry('iso', (5.0,), label='two', after=(
            Entry('gafm', (0.1,), dict(reading=dict(redraw=False))),
        )),)), 'two cannot have these options: reading must be .* Reading',
    ),
}


@pytest.mark.parametrize('case', REFUSED)
def test_what_cannot_start_is_refused(case):
  changed, message = REFUSED[case]
  with pytest.raises(UserError, match=message):
    make(config(**changed))


@pytest.mark.parametrize('party', [0, 1])
def test_what_fits_is_not_refused(party):
  given = config(attack=AttackConfig(known=2, party=party))
  assert make(given).sizes.train == 42


def test_options_that_an_attack_cannot_have_are_told_in_a_line(monkeypatch):
  """Also if they end in an error that nobody has foreseen."""
  def traced(job, runs, names, epochs):
    assert names == ['norm_scoring'] or not names
    raise TypeError('no such shape\nin 20 lines')

  monkeypatch.setattr(trying, 'traced', traced)
  monkeypatch.setattr(trying, '_with_options', lambda _: {'norm_scoring'})
  with pytest.raises(UserError) as found:
    make(config())
  assert str(found.value) == (
      'The attacks cannot have these options: TypeError: no such shape'
  )


def test_ones_own_methods_beside_an_attacker_with_its_own_optimizer(
    monkeypatch
):
  """They are tried without that attack, whose party then has another."""
  monkeypatch.setitem(
      defenses.REGISTRY, 'mine', Method(lambda: Defense(), ())
  )
  monkeypatch.setitem(
      attacks.REGISTRY, 'guess', recipe()(lambda: norm_scoring())
  )
  setting = make(config(
      defenses='none,mine', attacks='guess,active_completion',
      listed_attacks=('guess', 'active_completion'),
      model=ModelConfig('vhnn', bottom=(4,), top=(4,)),
      train=TrainConfig(epochs=1, batch_size=8, optimizer='momentum'),
  ))
  assert 'guess' in setting.in_training
  assert 'active_completion' in setting.after_training
  checks.rehearse(setting)


def test_what_fits_into_this_machine_but_not_the_next(monkeypatch):
  """The bytes of all weights, optimizer states and recorded numbers."""
  setting = make(config())
  monkeypatch.setattr(rehearsal, 'memory', lambda: 1000.0)
  with pytest.raises(UserError, match='there are 0.0 GiB of memory'):
    rehearsal.check(setting)


@pytest.mark.parametrize('fact, said', [
    (jnp.arange(3), r"own: its fact 'which' has the shape \(3,\).*which_0"),
    (jnp.ones(()), None), (0.5, None),
])
def test_a_fact_that_is_no_number_is_refused_by_name(monkeypatch, fact, said):
  made = Method(lambda: Defense(facts=lambda state: dict(which=fact)))
  monkeypatch.setitem(defenses.REGISTRY, 'own', made)
  given = config(listed=(Entry('none'), Entry('own')))
  if said is None:
    make(given)
  else:
    with pytest.raises(UserError, match=said):
      make(given)


def test_attacks_with_options_are_traced_and_equal_ones_once():
  given = config(
      attack=AttackConfig(own=dict(gradient_inversion=dict(steps=7))),
      variants=(
          Variant('norm_scoring:again', {}),
          Variant('gradient_inversion:more', dict(steps=9)),
          Variant('gradient_inversion:same', dict(steps=7)),
      ),
  )
  names = (
      'norm_scoring', 'norm_scoring:again', 'gradient_inversion',
      'gradient_inversion:same', 'gradient_inversion:more',
  )
  setting = SimpleNamespace(
      config=given, in_training=dict.fromkeys(names), replayed={},
      after_training={},
  )
  assert trying._with_options(setting) == {
      'gradient_inversion', 'gradient_inversion:more'
  }
