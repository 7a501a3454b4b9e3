"""Odd configurations and command lines: a setting, or a refusal in three lines.

What is drawn is found in the dataclasses, the registries and the attacks'
options, so that what is new there is drawn from the day it stands. Nothing is
compiled. `pytest -m faults -s` draws some 3000.
"""
import collections
import dataclasses
import inspect
import resource
import sys
import time
import types
import typing

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from vfljax import attacks, defenses, nets
from vfljax.runner.checking import checks
from vfljax.runner.cli import arguments
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, Paper, TrainConfig,
    Variant,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers

SECONDS, MEBIBYTES = 5, 1024  # That no case may take more of.
FILE = """
import sys
def get_config({argument}):
  return sys.modules['fuzzed_config'].made({argument})
"""
ODD = (
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, -(2**70), 10**400,
    -(10**400), 0.0, -0.0, 0.5, 1.0, 1.5, -2.5, 1e-45, 1e300, -1e300,
    float('nan'), float('inf'), -float('inf'), '', ' ', 'abc', 'x' * 20_000,
    'ünïcödé 漢字 🙂', '\ud800', 'a\0b', 'a\nb', '../..', "'; --", (), (1,),
    (0,), (-1,), (1, 2), (2**40,), (1.5,), ('a',), (None,), ((1,),), [], [4],
    {}, {'a': 1}, {1: 2}, set(), b'bytes', 3j, object(), len, int,
    np.int64(3), np.float32(0.5), np.float64(0.5), np.ones(2), (4,) * 200,
    tuple(range(20_000)), Config(), Entry('iso', (1.0,)),
)
TEXTS = (
    '', ' ', '0', '1', '-1', '2', '00', '1e3', '1e300', '-1e300', 'nan', 'inf',
    '9' * 400, '9' * 5000, '2147483648', '0.5', '1.5', 'true', 'False', 'None',
    'abc', '()', '(1,)', '(1,2', '[1]', '{}', '(4,' * 3000, '1,2,3', '8 8',
    'ünïcödé', '\udcff', 'a\nb', "'", '"', '\\', '=', '--', ';', 'a=1;b=(1,2)',
    'a=1;a=2', '*', ':', '1:2', 'x' * 20_000, '/', '/dev/null', '~nobody/x',
)
WORDS = sorted({
    *defenses.REGISTRY, *attacks.REGISTRY, *nets.REGISTRY, 'relu', 'sum',
    'random', 'importance', 'ratios', 'named', 'vlr', 'vsnn', 'cosine', 'sgd',
    'momentum', 'keep', 'pad', 'minmax', 'none', 'round', 'max', 'synthetic',
    'wine',
})


def base(data: str = 'synthetic') -> Config:
  """A small experiment that can be run."""
  own = dict(
      synthetic=DataConfig('synthetic', options='samples=60'),
      table=DataConfig('breast_cancer'),
      images=DataConfig('digits', split='left_right', scale='none', limit=150),
  )[data]
  return Config(
      seeds=2, alone=False, listed_attacks=('model_completion',), data=own,
      model=ModelConfig(bottom=(4,), top=()),
      train=TrainConfig(epochs=2, batch_size=8), attack=AttackConfig(known=1),
  )


def paths(kind=Config, prefix=()):
  """Every field of a configuration, those in its groups included."""
  for f in dataclasses.fields(kind):
    yield *prefix, f.name
    if dataclasses.is_dataclass(f.default_factory):
      yield from paths(f.default_factory, (*prefix, f.name))


FIELDS = tuple(paths())
PARTS = (Entry, Variant, Paper)  # What its tuples have.
likely = st.one_of(
    st.integers(-3, 70), st.floats(-2, 3), st.sampled_from(WORDS),
    st.booleans(), st.lists(st.integers(0, 40), max_size=3).map(tuple),
)
odd = st.one_of(st.sampled_from(ODD), likely, likely, st.text(max_size=9))
own = st.dictionaries(
    st.sampled_from(sorted(attackers.known_groups()) + ['', 'nope']),
    st.one_of(odd, st.dictionaries(
        st.sampled_from(sorted({
            option for kind in attackers.known_groups().values()
            for option in kind._fields
        })), odd, max_size=2,
    )), max_size=2,
)


def arguments_of(name):
  """What a defense's factory takes; 'nope' in the place of none."""
  found = inspect.signature(defenses.REGISTRY[name]).parameters
  return st.sampled_from([*found, 'nope'])


@st.composite
def part(draw, kind):
  """An entry, a variant, ... of which each field is right, or odd."""
  defense = draw(st.sampled_from(sorted(defenses.REGISTRY)))
  usual = defenses.REGISTRY[defense].strengths[:1]
  takes = arguments_of(defense)
  if kind is Variant:
    takes = st.sampled_from(['known', 'epochs', 'head', 'party', 'nope'])
  sensible = {
      'defense': st.just(defense),
      'name': st.sampled_from(['model_completion:a', 'norm_scoring:b', 'x:y']),
      'strengths': st.one_of(
          st.just(usual), st.just(usual),
          st.lists(st.floats(-1, 8), max_size=2).map(tuple),
      ),
      'options': st.one_of(
          st.just({}), st.dictionaries(takes, odd, max_size=2)
      ),
      'label': st.sampled_from(['', 'a', 'alone', 'none', 'ü' * 90, '|<b>']),
      'after': st.sampled_from([(), (Entry('max_norm'),), (Entry('nope'),)]),
      'grid': st.one_of(st.just({}), st.just({}), st.dictionaries(
          takes, st.sampled_from([(1.0, 2.0), (), (0.5,), (2,)]), max_size=1
      )),
      'metric': st.just('auc'), 'mean': st.just(0.5),
  }
  return kind(**{
      f.name: draw(odd if draw(st.integers(0, 9)) == 0 else sensible[f.name])
      for f in dataclasses.fields(kind) if f.name in sensible
  })


def right(f: dataclasses.Field):
  """What the field says that it may be; odd values of a field without a range.
  """
  limits, choices = f.metadata.get('range'), f.metadata.get('choices')
  if choices:
    return st.sampled_from(list(choices))
  if isinstance(f.default, bool):
    return st.booleans()
  if not limits or f.name == 'grid':
    return odd
  low, high = limits.low, limits.high
  few = st.integers(int(low), int(min(high, low + 9)))
  if isinstance(f.default, tuple):
    return st.lists(few, max_size=3).map(tuple)
  whole = st.one_of(few, few, st.sampled_from([int(low), int(high)]))
  if isinstance(f.default, int):
    return whole
  return st.one_of(st.floats(low, min(high, low + 2)), whole)


@st.composite
def attacked(draw, config):
  """Chooses an attack, and options of its own that it has."""
  name = draw(st.sampled_from(sorted(attacks.REGISTRY)))
  recipe = attacks.REGISTRY[name]
  names = recipe.options._fields
  config.attacks, config.listed = name, (Entry('none'),)
  if draw(st.booleans()):  # What some attacks need.
    config.model, config.train.optimizer = ModelConfig('vlr'), 'sgd'
  elif config.data.name == 'digits':
    config.model = ModelConfig(
        name='cafe', options='channels=(2, 2);hidden=(4, 4)', width=4, top=()
    )
    config.attack.auxiliary = 20
  if names:
    config.attack.own = {recipe.group: draw(
        st.dictionaries(st.sampled_from(names), odd, max_size=2)
    )}


@st.composite
def configs(draw):
  """A small experiment with some fields changed, most to what they may be."""
  config = base(draw(st.sampled_from(['synthetic', 'table', 'images'])))
  if draw(st.integers(0, 3)) == 0:
    draw(attacked(config))
  for _ in range(draw(st.integers(1, 3))):
    *groups, name = draw(st.sampled_from(FIELDS))
    group = config
    for above in groups:
      group = getattr(group, above, None)
    if name not in vars(type(group)).get('__dataclass_fields__', {}):
      continue  # Another change has put something odd there.
    kinds = typing.get_type_hints(type(group))
    inner = typing.get_args(kinds.get(name))
    if inner and inner[0] in PARTS and draw(st.integers(0, 9)):
      value = draw(st.lists(part(inner[0]), max_size=2).map(tuple))
    elif name == 'own' and draw(st.integers(0, 9)):
      value = draw(own)
    else:
      field = type(group).__dataclass_fields__[name]
      value = draw(odd if draw(st.booleans()) else right(field))
    setattr(group, name, value)
  return config


@st.composite
def lines(draw):
  """A command line after the program and the config file."""
  texts = st.one_of(
      st.sampled_from(TEXTS), st.sampled_from(WORDS), likely.map(str),
      st.text(max_size=8),
  )
  groups = sorted({*attackers.known_groups(), *attacks.REGISTRY, 'nope'})
  options = sorted({
      option for kind in attackers.known_groups().values()
      for option in kind._fields
  })
  flags = st.one_of(
      st.sampled_from(['config.' + '.'.join(path) for path in FIELDS]),
      st.builds('config.attack.{}.{}'.format, st.sampled_from(groups),
                st.sampled_from(options)),
      st.sampled_from([
          'config.nope', 'config.train.nope', 'config.train.epochs.x', 'config',
          'workdir', 'devices', 'cache', 'list', 'nope', '', 'undefok', 'help',
          'flagfile', 'config.', 'config.attack.', 'noconfig.alone',
      ]),
  )
  found = []
  if draw(st.booleans()):
    name = draw(st.sampled_from(sorted(attacks.REGISTRY)))
    found.append(f'--config.attacks={name}')
    if attacks.REGISTRY[name].options._fields:
      option = draw(st.sampled_from(attacks.REGISTRY[name].options._fields))
      found.append(f'--config.attack.{name}.{option}={draw(texts)}')
  for _ in range(draw(st.integers(1, 3))):
    flag, text = draw(flags), draw(texts)
    form = draw(st.sampled_from(['--{}={}'] * 6 + ['--{} {}', '--{}', '{1}']))
    said = form.format(flag, text)
    found += said.split(' ', 1) if form == '--{} {}' else [said]
  return found


@pytest.fixture(scope='module')
def tried(tmp_path_factory):
  """(config, flags, variant) -> what becomes of it; counts and limits it."""
  folder = tmp_path_factory.mktemp('fuzz')
  plain, varied = folder / 'plain.py', folder / 'varied.py'
  plain.write_text(FILE.format(argument=''))
  varied.write_text(FILE.format(argument='variant'))
  made = types.ModuleType('fuzzed_config')
  counted = collections.Counter()

  def attempt(config, flags=(), variant=''):
    made.made = lambda *given: config
    file = f'{varied}:{variant}' if variant else f'{plain}'
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    outcome = settle(['vfljax', f'--config={file}', *flags])
    counted[outcome] += 1
    assert time.monotonic() - began < SECONDS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown / 1024 < MEBIBYTES  # Of kibibytes, on Linux.
    return outcome

  sys.modules['fuzzed_config'] = made
  yield attempt
  del sys.modules['fuzzed_config']
  print(  # Seen with -s.
      f'\ntried {counted.total()}, refused {counted["refused"]}, '
      f'accepted {counted["accepted"]}'
  )


def settle(argv):
  """'accepted' or 'refused'; all else is raised."""
  try:
    given = arguments.parse(argv)
    if given.help or given.list:
      return 'accepted'
    table = arguments.load_data(given.config.data)
    assert isinstance(checks.make(given.config, table), checks.Setting)
    return 'accepted'
  except UserError as error:
    assert 1 <= len(str(error).splitlines()) <= 3, str(error)
    assert len(str(error)) < 2000
    return 'refused'


def many(examples):
  """More examples than the suite's profile asks for."""
  return hypothesis.settings(
      max_examples=examples,
      suppress_health_check=list(hypothesis.HealthCheck),
  )


def test_what_is_made_odd_is_taken_as_it_is(tried):
  """Else all refusals below would say nothing."""
  assert tried(base()) == 'accepted'
  assert tried(base(), ['--config.seeds=0']) == 'refused'


@pytest.mark.slow
@many(200)
@hypothesis.given(config=configs())
def test_odd_fields(tried, config):
  tried(config)


@pytest.mark.slow
@many(200)
@hypothesis.given(
    flags=lines(), variant=st.sampled_from(['', '', 'a', 'ü,|:b'])
)
def test_odd_command_lines(tried, flags, variant):
  tried(base(), flags, variant)


@pytest.mark.faults
@many(1800)
@hypothesis.given(config=configs())
def test_thousands_of_odd_fields(tried, config):
  tried(config)


@pytest.mark.faults
@many(1200)
@hypothesis.given(
    flags=lines(), variant=st.sampled_from(['', '', 'a', 'ü,|:b'])
)
def test_thousands_of_odd_command_lines(tried, flags, variant):
  tried(base(), flags, variant)


@pytest.mark.parametrize('path', FIELDS, ids='.'.join)
def test_every_field_refuses_what_it_cannot_be(tried, path):
  config = base()
  *groups, name = path
  group = config
  for above in groups:
    group = getattr(group, above)
  setattr(group, name, object())
  with pytest.raises(UserError, match=name):
    checks.ranges.check(config)
