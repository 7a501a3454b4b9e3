"""Each field of a configuration has a range and is held to it."""
import dataclasses
import typing

import numpy as np
import pytest

from vfljax.runner.checking import combinations
from vfljax.runner.cli import arguments
from vfljax.runner.config import (
    AttackConfig, AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig,
    Paper, TrainConfig, Variant, ranges,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers

GROUPS = (
    Config, DataConfig, ModelConfig, TrainConfig, AttackConfig, AuxiliaryConfig,
    Entry, Variant, Paper,
)


def kinds_within(kind):
  """A type and the types within it: int of 'tuple[int, ...]'."""
  return {kind}.union(*map(kinds_within, typing.get_args(kind)))


NUMERIC = [
    (group, f) for group in GROUPS for f in dataclasses.fields(group)
    if {int, float} & kinds_within(typing.get_type_hints(group)[f.name])
]


@pytest.mark.parametrize('group, f', NUMERIC, ids=lambda x: getattr(
    x, '__name__', getattr(x, 'name', '')
))
def test_a_field_with_a_number_has_a_range(group, f):
  limits = f.metadata['range']
  assert -np.inf < limits.low < limits.high < np.inf
  if isinstance(f.default, (int, float)):
    assert not limits.why_not(f.default)
  # Both ends of it: what is just outside is refused.
  assert limits.why_not(limits.high + 1) and limits.why_not(limits.low - 1)


def test_all_groups_are_tested():
  found = {Config}
  for group in GROUPS:
    found |= {
        kind for hint in typing.get_type_hints(group).values()
        for kind in kinds_within(hint) if dataclasses.is_dataclass(kind)
    }
  assert found == set(GROUPS)


REFUSED = {
    'seeds=1.0': (dict(seeds=1.0), 'seeds must be a whole number; got 1.0'),
    'seeds=True': (dict(seeds=True), 'seeds must be a whole number'),
    'digits': (dict(seeds=10**400), 'seeds must be a finite number'),
    'more digits': (dict(seeds=10**5000), 'seeds must be a finite number'),
    'seeds': (dict(seeds=10**7), 'seeds must be 100000 or less'),
    'epochs': (dict(train=TrainConfig(epochs=10**9)), '1000000 or less'),
    'a text': (dict(seeds='3'), "seeds must be a whole number; got '3'"),
    'numpy': (dict(seeds=np.int64(3)), 'seeds must be a whole number'),
    'no text': (dict(experiment=3), 'experiment must be a text; got 3'),
    'lines': (dict(experiment='a\nb'), 'one line of printable text'),
    'a long word': (
        dict(experiment='x' * 10_001), 'experiment must have 10000 characters'
    ),
    'a long name': (
        dict(data=DataConfig(named='x' * (10**6 + 1))), '1000000 characters or'
    ),
    'half a character': (dict(experiment='\ud800'), 'printable text'),
    'a list': (
        dict(model=ModelConfig(bottom=[4, 2])),
        'model.bottom must be a tuple',
    ),
    'within': (
        dict(model=ModelConfig(bottom=(4, 'abc'))),
        r"model.bottom\[1\] must be a whole number; got 'abc'",
    ),
    'layers': (dict(model=ModelConfig(top=(1,) * 101)), '100 entries or fewer'),
    'dropout': (dict(model=ModelConfig(dropout=2)), 'dropout must be below 1'),
    'rate': (
        dict(train=TrainConfig(learning_rate=1e300)),
        'train.learning_rate must be 1000 or less; got 1e',
    ),
    'nan': (dict(data=DataConfig(test=float('nan'))), 'data.test must be a fi'),
    'parties': (dict(data=DataConfig(parties=2**31)), 'parties must be 256 or'),
    'choice': (
        dict(train=TrainConfig(optimizer='lion')),
        'train.optimizer must be one of adam, adamw, sgd, momentum',
    ),
    'a group': (dict(data='digits'), 'data must be a DataConfig'),
    'an entry': (dict(listed=('iso',)), r'listed\[0\] must be a Entry'),
    'deep': (
        dict(listed=(Entry('iso', ('a',)),)),
        r'listed\[0\].strengths\[0\] must be a number',
    ),
    'a function': (
        dict(listed=(Entry('iso', (1.0,), dict(a=len)),)),
        r'listed\[0\].options.a must be a number, a text',
    ),
    'endless option': (
        dict(listed=(Entry('iso', (1.0,), dict(a=(float('inf'),))),)),
        r'options.a\[0\] must be a finite number',
    ),
    'a large option': (
        dict(listed=(Entry('iso', (1.0,), dict(a=-2**31)),)),
        'options.a must be between -2147483647 and 2147483647; got -2147483648',
    ),
    'names': (dict(attack=AttackConfig(own={1: {}})), 'a name in attack.own'),
}


@pytest.mark.parametrize('case', REFUSED)
def test_another_type_or_range_is_refused(case):
  changed, message = REFUSED[case]
  with pytest.raises(UserError, match=message) as refused:
    ranges.check(Config(**changed))
  assert len(str(refused.value)) < 300


def test_thousands_of_columns_can_be_named():
  genes = ';'.join(
      ','.join(f'ENSG{i:011d}' for i in range(k, 3000, 2)) for k in (0, 1)
  )
  assert len(genes) > 24_000
  ranges.check(Config(
      data=DataConfig(named=genes, options=f'drop={genes}', path='x' * 20_000),
      model=ModelConfig(options='x' * 20_000),
  ))


def test_a_text_may_have_a_tab():
  ranges.check(Config(data=DataConfig(options="sep='\t'")))


def test_an_integer_is_a_number():
  ranges.check(Config(train=TrainConfig(learning_rate=1)))


def test_a_list_within_itself_is_refused():
  endless: list = []
  endless.append(endless)
  with pytest.raises(UserError, match='groups within groups'):
    ranges.check(Config(listed=(Entry('iso', (1.0,), dict(a=endless)),)))


def test_the_help_has_every_flag():
  """Those of the command line alone, beside absl's own."""
  named = set(arguments._define(['vfljax'])) - {'flagfile', 'undefok'}
  said = arguments.parse(['vfljax', '--help']).help
  assert 'record' in named
  assert not {name for name in named if f'  --{name}: ' not in said}


def test_help_shows_the_ranges():
  said = arguments.parse(['vfljax', '--help']).help
  assert '--config.train.epochs=30  (1 to 1000000)' in said
  assert '--config.first_seed=0  (0 or more)' in said
  assert '--config.data.test=0.3  (above 0 to below 1)' in said
  assert '--config.train.schedule=constant  (constant, cosine)' in said


TOGETHER = {
    'seeds': (dict(first_seed=2**31 - 1), 'below 2147483648'),
    'split seed': (dict(data=DataConfig(split_seed=3)), 'does nothing with'),
    'strength': (
        dict(data=DataConfig(split='random', split_strength=2)), 'does nothing'
    ),
    'held': (dict(data=DataConfig(unheld=True)), 'unheld is for vsnn'),
    'halves': (
        dict(data=DataConfig(unheld=True, split='left_right'),
             model=ModelConfig(algorithm='vsnn')),
        'of two halves of an image one is nobody',
    ),
    'options': (
        dict(model=ModelConfig(options='norm=batch')), 'set --config.model.name'
    ),
    'width': (dict(model=ModelConfig(width=4)), 'set --config.model.name'),
    'dropout': (
        dict(model=ModelConfig(dropout=0.1, channels=(4,))),
        'of multilayer perceptrons',
    ),
    'both': (dict(model=ModelConfig(buckets=9, channels=(4,))), 'set one of'),
    'pools': (dict(model=ModelConfig(pools=2)), 'and there are none'),
    'nobody': (
        dict(auxiliary=AuxiliaryConfig(noise=0.1)), 'auxiliary.samples'
    ),
    'no samples to augment': (
        dict(auxiliary=AuxiliaryConfig(augment='held_out')), 'data or augment'
    ),
    'two sources': (
        dict(auxiliary=AuxiliaryConfig(
            samples=9, augment='training', data='digits'
        )), 'copies of training samples',
    ),
    'no data': (
        dict(auxiliary=AuxiliaryConfig(samples=9, path='x')), 'auxiliary.data'
    ),
    'variant': (dict(variants=(Variant('nope:1'),)), "no attack 'nope'"),
    'variants': (
        dict(variants=(Variant('cafe:a'), Variant('cafe:a'))), 'the same name'
    ),
    "a variant's name": (
        dict(variants=(Variant('norm_scoring:a,b'),)), "no '@' and no ',' in"
    ),
    "a variant's party's name": (
        dict(variants=(Variant('norm_scoring:a@1'),)), "no '@' and no ',' in"
    ),
    "a variant's party": (
        dict(variants=(Variant('norm_scoring:a', dict(party=2)),)),
        'sets party, which is one for all',
    ),
    "a variant's pool": (
        dict(variants=(Variant('norm_scoring:a', dict(pool='round')),)),
        'sets pool, which is one for all',
    ),
    "a variant's when": (
        dict(variants=(Variant('norm_scoring:a', dict(when='last')),)),
        'sets when, which is one for all',
    ),
    "a variant's repeats": (
        dict(variants=(Variant('norm_scoring:a', dict(repeats=3)),)),
        'sets repeats, which is one for all',
    ),
    "a variant's auxiliary": (
        dict(variants=(Variant('norm_scoring:a', dict(auxiliary=9)),)),
        'sets auxiliary, which is one for all',
    ),
    'alone': (dict(listed=(Entry('iso', label='alone'),)), 'another meaning'),
    'the baseline': (
        dict(listed=(Entry('iso', label='none'),)), 'another meaning'
    ),
    'no grid': (dict(listed=(Entry('iso', grid=dict(a=())),)), 'one value'),
    'chained to nothing': (
        dict(listed=(Entry('iso', after=(Entry('gafn'),)),)),
        "no defense 'gafn'. There are: .*gafm",
    ),
    'chained': (
        dict(listed=(Entry('iso', after=(Entry('gafm', (1.0, 2.0)),)),)),
        'one strength at most',
    ),
}


def test_a_variant_may_say_what_all_have_and_what_is_its_own():
  of = lambda name, **options: Variant(name, options)
  few = of('cafe:few', pool=12)  # Its own pool, of samples.
  again = of('norm_scoring:a', replay=True, pool='epoch')
  config = Config(variants=(few, again, of('cafe:one')))
  combinations.check(config)
  made = attackers.attacker(config, 'cafe:few')
  assert made.own.pool == 12 and made.who.pool == 'epoch'


@pytest.mark.parametrize('case', TOGETHER)
def test_what_would_be_ignored_is_refused(case):
  changed, message = TOGETHER[case]
  with pytest.raises(UserError, match=message):
    combinations.check(Config(**changed))
