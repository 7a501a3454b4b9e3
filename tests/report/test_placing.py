"""Where labels go in a figure: beside their points, and over nothing."""
from matplotlib.figure import Figure
import numpy as np
import pytest

from vfljax.report import placing


def placed(words, paths=(), bars=()):
  """Of a figure of 100 by 100 points: each word and its offset."""
  figure = Figure((100 / 72, 100 / 72), dpi=72)
  axes = figure.add_axes((0, 0, 1, 1))
  axes.set(xlim=(0, 100), ylim=(0, 100))
  arrays = [[np.array(p, float) for p in some] for some in (paths, bars)]
  placing.place(axes, arrays[0], words, arrays[1])
  return {t.get_text(): tuple(t.xyann) for t in axes.texts}


def test_a_label_may_be_on_any_side_alike():
  for signs in (-1, 1), (1, -1):
    assert {tuple(o) for o in np.multiply(placing._OFFSETS, signs)} == {
        *placing._OFFSETS
    }


@pytest.mark.parametrize('offset, left', [
    ((6, 10), 106), ((-6, 10), 94 - 19.4), ((0, 10), 100 - 9.7),
])
def test_a_word_is_as_wide_as_its_letters(offset, left):
  """And goes away from its point: four letters of 4.6 points, and one more."""
  box = placing._word_box('word', np.array([100, 50]), offset)
  np.testing.assert_allclose(box, [left, 56, left + 19.4, 64])


def test_a_line_is_covered_every_three_points():
  """Wherever it is: where two points are the same there is one box."""
  found = np.array(placing._boxes_along(np.array(
      [[100, 50], [130, 50], [130, 50], [130, 20]]
  )))
  assert len(found) == 10 + 1 + 10
  centers = (found[:, :2] + found[:, 2:]) / 2
  np.testing.assert_allclose(centers[:10, 0], np.arange(100, 130, 3))
  np.testing.assert_allclose(centers[11:, 1], np.arange(50, 20, -3))
  np.testing.assert_allclose(found[:, 2:] - found[:, :2], 2)


def test_a_word_goes_where_it_covers_least():
  point = [[(50, 50)]]
  word = ('ab', (50, 50), 'k')
  assert placed([word], point) == dict(ab=(6, 6))
  # An interval to the right of it; one that goes up; the figure's corner.
  assert placed([word], point, [[(50, 56), (90, 56)]]) == dict(ab=(6, -6))
  assert placed([word], point, [[(60, 0), (60, 100)]]) == dict(ab=(-6, 6))
  corner = 'ab', (98, 98), 'k'
  assert placed([corner], [[(98, 98)]]) == dict(ab=(-6, -6))


def test_a_word_that_has_no_room_is_left_out():
  marks = [[(x, y) for x in range(0, 101, 5) for y in range(0, 101, 5)]]
  assert not placed([('ab', (50, 50), 'k')], marks)
  # Two words of one point do not cover each other.
  two = ('ab', (50, 50), 'k'), ('cd', (50, 50), 'k')
  found = placed(two, [[(50, 50)]])
  assert found == dict(ab=(6, 6), cd=(6, -6))
