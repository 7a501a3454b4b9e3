"""Values as what they are declared: one way, by two rules of how strict."""
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from vfljax import converting
from vfljax.converting import Rule, as_kind
from vfljax.data import options as data_options
from vfljax.runner.config import options
from vfljax.runner.errors import UserError

STRICT = Rule(9, 99.0, {int: 'whole', float: 'finite', bool: 'T', str: 'word'},
              repr)
LENIENT = STRICT._replace(texts=(int, type(None)), lenient=True)


@pytest.mark.parametrize('value, kind, right', [
    (3.0, int, 3), (3, float, 3.0), (True, bool, True), ('a', str, 'a'),
    (np.int64(3), int, 3), (np.float32(0.5), float, 0.5),
    (2, tuple[float, ...], (2.0,)), ([1, 2.0], tuple[int, ...], (1, 2)),
    ('a', str | Sequence[str], 'a'), (['a'], str | Sequence[str], ('a',)),
    (4, int | None, 4),
])
def test_what_is_meant_is_taken(value, kind, right):
  for rule in STRICT, LENIENT:
    found = as_kind(value, kind, 'x', rule)
    assert found == right and type(found) is type(right)


@pytest.mark.parametrize('value, kind', [
    (10, int), (1.5, int), (True, int), ('1', int), (float('nan'), int),
    (100, float), (float('inf'), float), (True, float), (1, bool), ({}, str),
    ((1, 'a'), tuple[int, ...]), (10**400, float),
])
def test_what_is_not_is_refused_in_a_line(value, kind):
  for rule in STRICT, LENIENT:
    with pytest.raises(ValueError, match='^x must be .*; got .*[.]$'):
      as_kind(value, kind, 'x', rule)


def test_how_strict_is_the_rules():
  assert as_kind(5, str, 'x', LENIENT) == '5'
  assert as_kind(None, str, 'x', LENIENT) == 'None'
  assert as_kind({}, dict, 'x', LENIENT) == {}
  for value, kind in (5, str), (None, str), ({}, dict):
    with pytest.raises(ValueError):
      as_kind(value, kind, 'x', STRICT)


class Own(NamedTuple):
  steps: int = 1
  rate: float = 1.0
  word: str = ''
  sizes: tuple[int, ...] = ()
  on: bool = False


def loader(path='', steps: int = 1, rate: float = 1.0, word: str = '',
           sizes: Sequence[int] = (), on: bool = False):
  del path, steps, rate, word, sizes, on


@pytest.mark.parametrize('given, of_attack, of_data', [
    (dict(steps=1.5), 'a whole number of at most 2147483647; got 1.5.',
     'a whole number; got 1.5.'),
    (dict(rate='x'), "a finite number of at most 1e+09; got 'x'.",
     "a finite number; got 'x'."),
    (dict(on=1), 'True or False; got 1.', 'True or False; got 1.'),
    (dict(word={}), 'a word; got {}.', 'a word; got {}.'),
    (dict(sizes=(1, 'a')), "a whole number of at most 2147483647; got 'a'.",
     "a whole number; got 'a'."),
])
def test_attacks_and_data_sets_keep_their_words(given, of_attack, of_data):
  name, = given
  with pytest.raises(UserError) as one:
    options.typed(Own, given, 'attack.x')
  with pytest.raises(ValueError) as other:
    data_options.converted(loader, given, 'csv')
  assert str(one.value) == f'attack.x.{name} must be {of_attack}'
  assert str(other.value) == f'csv: {name} must be {of_data}'


def test_there_is_one_of_it():
  assert options.as_kind is data_options.as_kind is converting.as_kind
