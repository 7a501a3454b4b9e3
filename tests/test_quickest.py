"""Which tests `make test-fast` runs."""
from tests.quickest import chosen


def test_the_quickest_that_fit_and_what_is_not_known_are_run():
  seconds = dict(a=3.0, b=1.0, c=2.0, gone=0.1)
  tests = ['a', 'b', 'c', 'new']
  assert chosen(seconds, tests, 0.5) == {'new'}
  assert chosen(seconds, tests, 3.0) == {'new', 'b', 'c'}
  assert chosen(seconds, tests, 5.9) == {'new', 'b', 'c'}
  assert chosen(seconds, tests, 6.0) == set(tests)
  assert chosen({}, tests, 1.0) == set(tests)
