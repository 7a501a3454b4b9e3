"""Vertical splits: every column at exactly one party, as asked."""
from hypothesis import given
from hypothesis import strategies as st
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.data import split
from vfljax.data.table import Table

NAMES = ('age', 'city=Bern', 'city=Oslo', 'city=Rome', 'pay', 'tax')
GROUPS = (0, 1, 1, 1, 2, 3)


def table(names=NAMES, groups=GROUPS):
  x = np.arange(2 * len(names), dtype='f4').reshape(2, -1)
  return Table(x, np.array([0, 1], 'i4'), names, ('a', 'b'), groups)


def plain(columns):
  names = tuple(f'x{i}' for i in range(columns))
  return table(names, tuple(range(columns)))


def lists(parts):
  return [None if p is None else p.tolist() for p in parts]


@pytest.mark.parametrize('options, want', [
    (dict(parties=2), [[0, 1, 2, 3], [4, 5]]),  # 2 original columns each.
    (dict(parties=3), [[0, 1, 2, 3], [4], [5]]),
    (dict(parties=4), [[0], [1, 2, 3], [4], [5]]),
    (dict(parties=3, label_only=True), [None, [0, 1, 2, 3], [4, 5]]),
    (dict(parties=2, how='ratios', ratios='3:1'), [[0, 1, 2, 3, 4], [5]]),
    (dict(parties=2, how='ratios', ratios=(1, 3)), [[0], [1, 2, 3, 4, 5]]),
    (dict(parties=3, how='ratios', ratios='0:1:3'),
     [None, [0], [1, 2, 3, 4, 5]]),
    (dict(parties=3, how='ratios', ratios='1:3', label_only=True),
     [None, [0], [1, 2, 3, 4, 5]]),
    (dict(parties=2, how='ratios', ratios='1:1000'), [[0], [1, 2, 3, 4, 5]]),
    (dict(parties=2, how='named', named='tax,city;age, pay'),
     [[1, 2, 3, 5], [0, 4]]),
    (dict(parties=2, how='named', named='*;city'), [[0, 4, 5], [1, 2, 3]]),
    (dict(parties=2, how='named', named='city=Oslo;*'), [[1, 2, 3], [0, 4, 5]]),
    (dict(parties=2, how='named', named=';*'), [None, [0, 1, 2, 3, 4, 5]]),
    (dict(parties=2, how='named', named='*', label_only=True),
     [None, [0, 1, 2, 3, 4, 5]]),
])
def test_columns(options, want):
  assert lists(split.columns(table(), **options)) == want


@pytest.mark.parametrize('columns, ratios, want', [
    (57, None, [29, 28]), (30, '2:2:1', [12, 12, 6]), (7, '1:1:1', [3, 2, 2]),
    (10, '8:1:1', [8, 1, 1]), (3, '98:1:1', [1, 1, 1]),
    (5, '96:2:2', [3, 1, 1]),
])
def test_sizes_follow_the_ratios(columns, ratios, want):
  parties, how = len(want), 'ratios' if ratios else 'even'
  parts = split.columns(plain(columns), parties, how, ratios)
  assert [0 if p is None else len(p) for p in parts] == want


@given(
    st.integers(2, 10), st.integers(0, 30), st.booleans(),
    st.sampled_from(['even', 'random', 'ratios']), st.integers(0, 99),
    st.data(),
)
def test_every_group_is_at_one_party(
    parties, extra, label_only, how, seed, draw
):
  originals = parties + extra
  widths = draw.draw(st.lists(
      st.integers(1, 4), min_size=originals, max_size=originals
  ))
  groups = tuple(g for g, w in enumerate(widths) for _ in range(w))
  names = tuple(f'x{i}' for i in range(len(groups)))
  ratios = [1 + (k * 7) % 5 for k in range(parties - label_only)]
  parts = split.columns(
      table(names, groups), parties, how, ratios if how == 'ratios' else None,
      label_only=label_only, seed=seed,
  )
  assert len(parts) == parties and (parts[0] is None) == label_only
  held = [set(np.take(groups, p)) for p in parts if p is not None]
  assert all(held) and sum(map(len, held)) == originals  # Disjoint, whole.
  columns = np.concatenate([p for p in parts if p is not None])
  assert sorted(columns) == list(range(len(names)))


@pytest.mark.parametrize('options', [
    dict(), dict(how='ratios', ratios='3:1'), dict(how='random', seed=5),
    dict(how='named', named='*;city'), dict(parties=3),
])
def test_what_the_active_party_would_hold_can_be_nobodys(options):
  spec = split.Spec(**options)
  _, *others = split.apply(table(), spec)
  own, *left = split.apply(table(), spec._replace(label_only=True, unheld=True))
  assert own is None
  for a, b in zip(left, others, strict=True):
    np.testing.assert_array_equal(a, b)
  # Where it has features, nothing changes; images can be split so, too.
  held = split.apply(table(), spec._replace(unheld=True))[0]
  np.testing.assert_array_equal(held, split.apply(table(), spec)[0])


def test_a_strip_of_an_image_can_be_nobodys():
  x = np.arange(2 * 3 * 6 * 1).reshape(2, 3, 6, 1)
  images = table()._replace(features=x)
  spec = split.Spec(3, 'strips', label_only=True, unheld=True)
  none, one, two = split.apply(images, spec)
  assert none is None
  np.testing.assert_array_equal(one, x[:, :, 2:4])
  np.testing.assert_array_equal(two, x[:, :, 4:])


def test_random_depends_on_the_seed_alone():
  spec = split.Spec(2, 'random', seed=3)
  a, b = (split.apply(plain(20), spec) for _ in range(2))
  np.testing.assert_array_equal(a[0], b[0])
  c = split.apply(plain(20), spec._replace(seed=4))
  assert a[0].tolist() != c[0].tolist()
  sizes = [len(p) for p in split.columns(plain(20), 2, 'random', '4:1')]
  assert sizes == [16, 4]


@pytest.mark.parametrize('named', ['city;*', 'city=Oslo;*'])
def test_a_name_with_an_equals_sign_is_not_taken_for_a_category(named):
  """A measured column 'city=Oslo' stands before the categories of 'city'."""
  found = table(('city=Oslo', 'city=Bern', 'city=Oslo', 'pay'), (0, 1, 1, 2))
  with pytest.raises(ValueError, match='may be any of 2 columns'):
    split.columns(found, 2, 'named', named=named)
  _, other = split.columns(found, 2, 'named', named='pay;*')
  assert other.tolist() == [0, 1, 2]


@pytest.mark.parametrize('options, message', [
    (dict(parties=5), '5 parties need 5 or more columns, one each; there'),
    (dict(parties=6, label_only=True), '5 or more columns, .*there are 4'),
    (dict(parties=1), '2 or more parties; got 1'),
    (dict(parties=2, how='odd'), 'known: even, ratios, named, random'),
    (dict(parties=2, how='left_right'), 'of a table; known: even'),
    (dict(parties=2, ratios='1:1'),
     "how='ratios' or 'random': --config.data.split=ratios."),
    (dict(parties=2, how='ratios'), 'needs ratios'),
    (dict(parties=2, how='ratios', ratios='2:2:1'), '2 parties, but 3 ratios'),
    (dict(parties=2, how='ratios', ratios='2:x'), "such as '2:1'; got '2:x'"),
    (dict(parties=2, how='ratios', ratios='2:0'), 'must be above 0'),
    (dict(parties=2, how='ratios', ratios='2:-1'), 'must be above 0'),
    (dict(parties=2, how='ratios', ratios='nan:1'), 'must be above 0'),
    (dict(parties=2, how='ratios', ratios='2:1', label_only=True),
     'labels only, but ratio 2'),
    (dict(parties=2, how='named'), 'need each other'),
    (dict(parties=2, named='age;*'), 'need each other'),
    (dict(parties=2, how='named', named='age'), '2 parties, but 1 lists'),
    (dict(parties=2, how='named', named='agee;*'),
     "no column 'agee'; the columns are age, city, pay, tax"),
    (dict(parties=2, how='named', named='age,pay;city,pay,tax'),
     'one party only: pay'),
    (dict(parties=2, how='named', named='city=Bern;city=Oslo,*'),
     'one party only: city'),
    (dict(parties=2, how='named', named='age;tax'), 'no party: city, pay'),
    (dict(parties=2, how='named', named='*;*'), r'2 parties have .\*., which'),
    (dict(parties=3, how='named', named='age;*;*'), r'2 parties have .\*.'),
    (dict(parties=2, how='named', named='age,city,pay,tax;'),
     'Party 1 would have no column: 4 columns and 2 parties'),
    (dict(parties=2, how='named', named='age;*', label_only=True),
     'labels only, but columns are'),
])
def test_columns_refuses(options, message):
  with pytest.raises(ValueError, match=message) as error:
    split.columns(table(), **options)
  assert '\n' not in str(error.value)


def image(height=4, width=6):
  return np.arange(2 * height * width).reshape(2, height, width, 1)


def test_images_halves_strips_and_quadrants():
  x = image()
  left, right = x[:, :, :3], x[:, :, 3:]
  top, bottom = x[:, :2], x[:, 2:]
  quarters = [top[:, :, :3], top[:, :, 3:], bottom[:, :, :3], bottom[:, :, 3:]]
  for how, want in (
      ('even', [left, right]), ('left_right', [left, right]),
      ('right_left', [right, left]), ('top_bottom', [top, bottom]),
      ('bottom_top', [bottom, top]), ('quadrants', quarters),
      ('strips', [x[:, :, 2 * k:2 * k + 2] for k in range(3)]),
  ):
    parts = split.images(x, len(want), how)
    for got, part in zip(parts, want, strict=True):
      np.testing.assert_array_equal(got, part)


def test_images_of_odd_size_and_labels_only():
  widths = [p.shape[2] for p in split.images(image(width=8), 3, 'strips')]
  assert widths == [3, 3, 2]
  shapes = [p.shape[1:3] for p in split.images(image(5, 7), 4, 'quadrants')]
  assert shapes == [(3, 4), (3, 3), (2, 4), (2, 3)]
  none, left, right = split.images(image(), 3, 'left_right', label_only=True)
  assert none is None and left.shape == right.shape
  part = split.images(jnp.asarray(image()), 2)[1]
  np.testing.assert_array_equal(part, image()[:, :, 3:])


@pytest.mark.parametrize('parties, how, message', [
    (3, 'left_right', 'left_right makes 2 parts; 3 parties'),
    (2, 'quadrants', 'quadrants makes 4 parts; 2 parties'),
    (7, 'strips', '7 parties need 7 or more columns of pixels'),
    (2, 'ratios', 'of images; known: even, left_right'),
    (1, 'even', '2 or more parties'),
])
def test_images_refuses(parties, how, message):
  with pytest.raises(ValueError, match=message):
    split.images(image(), parties, how)


def test_apply_splits_tables_and_images():
  parts = split.apply(table(), split.Spec(3, label_only=True))
  assert parts[0] is None
  np.testing.assert_array_equal(parts[1], table().features[:, :4])
  np.testing.assert_array_equal(parts[2], table().features[:, 4:])
  x = image().astype(np.uint8)
  pictures = Table(x, np.array([0, 1], 'i4'), (), ('a', 'b'), ())
  top, bottom = split.apply(pictures, split.Spec(2, 'top_bottom'))
  np.testing.assert_array_equal(np.concatenate([top, bottom], 1), x)
  with pytest.raises(ValueError, match='not split by ratios'):
    split.apply(pictures, split.Spec(2, ratios='1:1'))


def test_columns_that_are_neighbours_are_not_copied():
  x = np.arange(12, dtype=np.float32).reshape(2, 6)
  found = Table(
      x, np.array([0, 1], np.int32), tuple('abcdef'), ('no', 'yes'),
      tuple(range(6)),
  )
  first, second = split.apply(found, split.Spec(2))
  assert np.shares_memory(first, x) and np.shares_memory(second, x)
  np.testing.assert_array_equal(np.hstack([first, second]), x)
  first, second = split.apply(
      found, split.Spec(2, 'named', named='a,c;*')
  )
  np.testing.assert_array_equal(first, x[:, [0, 2]])
  np.testing.assert_array_equal(second, x[:, [1, 3, 4, 5]])
