"""A row's grid: its points, what results call them, and what is swept."""
from typing import NamedTuple

import pytest

from vfljax import data, defenses
from vfljax.defense import Method, none
from vfljax.runner.checking import checks
from vfljax.runner.config import Config, Entry
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import grids, setting


class Inner(NamedTuple):
  rate: float = 0.1
  steps: int = 3


class Outer(NamedTuple):
  inner: Inner = Inner()
  name: str = 'usual'


@pytest.fixture
def told(monkeypatch):
  """What the factory of a defense called 'odd' is given."""
  seen = []

  def odd(strength, how=Outer(), scale=1.0, *, among):
    seen.append((strength, how, scale, among))
    return none()

  monkeypatch.setitem(defenses.REGISTRY, 'odd', Method(odd, (1.0,)))
  return seen


def test_a_grid_has_every_combination_and_rows_are_called_by_what_varies():
  entry = Entry('odd', grid={'scale': (1, 2), 'how.name': (5,)})
  points = grids.grid(entry)
  assert points == [
      {'scale': 1, 'how.name': 5}, {'scale': 2, 'how.name': 5}
  ]
  names = [grids.row_name(entry, point) for point in points]
  assert names == ['odd scale=1', 'odd scale=2']
  assert grids.grid(Entry('odd')) == [{}]


def test_a_part_of_an_argument_is_swept_and_the_rest_of_it_stays(told):
  """Of what the row has, or of the argument's default."""
  own = Outer(Inner(0.5, 7), 'own')
  entry = Entry('odd', options=dict(how=own, among=()))
  setting.build(entry, 2.0, **{'how.inner.rate': 9.0, 'scale': 4.0})
  setting.build(
      Entry('odd', options=dict(among=())), 2.0, **{'how.name': 'other'}
  )
  assert told == [
      (2.0, Outer(Inner(9.0, 7), 'own'), 4.0, ()),
      (2.0, Outer(Inner(), 'other'), 1.0, ()),
  ]


def test_what_is_left_out_of_a_grid_has_its_first_value(told):
  entry = Entry(
      'odd', options=dict(among=()),
      grid={'how.inner.steps': (5, 6), 'scale': (2.0, 3.0)},
  )
  setting.build(entry, 1.0)
  setting.build(entry, 1.0, scale=3.0)
  steps = [how.inner.steps for _, how, _, _ in told]
  assert steps == [5, 5] and [scale for *_, scale, _ in told] == [2.0, 3.0]


def test_those_that_act_before_have_their_own_strength(told):
  first = Entry('odd', (5.0,), dict(among=('first',)))
  bare = Entry('max_norm')
  made = setting.build(
      Entry('odd', options=dict(among=('last',)), after=(first, bare)), 2.0
  )
  assert [(row[0], row[3]) for row in told] == [
      (2.0, ('last',)), (5.0, ('first',))
  ]
  assert made.gradient is not none().gradient  # max_norm's.


@pytest.mark.parametrize('name, match', [
    ('how.rate', "how.rate cannot .*: no part is 'rate'. There are inner"),
    ('how.inner.rate.x', "no part is 'x'. It has no parts"),
    ('scale.x', "odd: scale.x cannot be swept: no part is 'x'"),
    ('among.x', "no part is 'x'"),
])
def test_a_part_that_there_is_not_is_refused(told, name, match):
  entry = Entry('odd', (1.0,), dict(among=()), grid={name: (1.0,)})
  config = Config(listed=(entry,))
  with pytest.raises(UserError, match=match):
    checks.make(config, data.load('digits'))
  assert not told
