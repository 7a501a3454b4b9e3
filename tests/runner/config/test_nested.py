"""Groups within groups as paths."""
import dataclasses

from vfljax.runner.config.nested import flat


def test_paths_in_order_and_what_is_a_leaf():
  tree = {'b': {'y': 1, 'x': {'deep': [{'no': 2}]}}, 'a': {}, 3: None}
  assert list(flat(tree).items()) == [
      ('b.y', 1), ('b.x.deep', [{'no': 2}]), ('a', {}), ('3', None),
  ]


def test_dataclasses_are_groups_too():
  inner = dataclasses.make_dataclass('Inner', ['x'])
  outer = dataclasses.make_dataclass('Outer', ['own', 'several'])
  several = (inner(2),)
  assert flat(outer(inner(1), several)) == {'own.x': 1, 'several': several}
