"""A configuration that is written as Python is the same when it is read."""
import math

import pytest

from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, TrainConfig, Variant,
    as_code,
)

CONFIG = Config(
    experiment='mine', seeds=3, alone=False,
    listed=(
        Entry('none'),
        Entry('iso', (2.5, 5.0), label='both',
              after=(Entry('label_dp', (1.0,)),)),
        Entry('kdk', (0.5,), dict(hidden=(8, 4)), grid=dict(k=(2.0,))),
    ),
    listed_attacks=('norm_scoring', 'mixmatch'),
    variants=(Variant('mixmatch:few', dict(known=1)),),
    data=DataConfig('csv', path="C:\\mine's.csv", parties=3),
    model=ModelConfig(bottom=(4,), top=()),
    attack=AttackConfig(own=dict(mixmatch=dict(epochs=2, tune=False))),
)


def read(text):
  known = {}
  exec(compile(text, 'mine.py', 'exec'), known)
  return known['get_config']()


def test_what_is_written_is_read():
  text = as_code.module(CONFIG, 'Mine.')
  assert text.startswith('"""Mine."""\n')
  assert read(text) == CONFIG
  assert read(as_code.module(Config(), '')) == Config()


def test_only_what_is_no_default_is_written():
  text = as_code.module(Config(train=TrainConfig(epochs=7)), '')
  assert text.partition('return ')[2] == 'Config(train=TrainConfig(epochs=7))\n'
  imported = text.partition(' (\n')[2].partition('\n)')[0]
  assert imported == '    Config, TrainConfig,'


def test_long_lines_are_one_field_each():
  lines = as_code.module(CONFIG, '').splitlines()
  assert '      seeds=3,' in lines
  assert "          Entry(defense='none')," in lines
  assert max(map(len, lines)) < 100


def given(value):
  return Config(listed=(
      Entry('none'), Entry('iso', (1.0,), options=dict(deep=[0, value])),
  ))


@pytest.mark.parametrize('value', [
    math.inf, -math.inf, math.nan, len, {1}, b'', 1j, object(),
])
def test_what_cannot_be_written_is_named(value):
  name, found = as_code.unwritable(given(value))
  assert name == 'listed.1.options.deep.1' and found is value


@pytest.mark.parametrize('value', ['a', True, 2, 2.5, None, (1, 'a'), {}])
def test_all_else_can(value):
  assert as_code.unwritable(given(value)) is None
  assert read(as_code.module(given(value), '')) == given(value)
