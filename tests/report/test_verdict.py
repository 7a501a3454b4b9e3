"""The verdict's words: who wins, by how much, where the seeds do not say."""
import math

import pytest

from tests.report.test_lost import cell_of, verdict_of
from vfljax.report import ranks, reading
from tests.report.test_report import workdir

FREE = cell_of([0.90, 0.92, 0.88], [0.96, 0.94, 0.95])


def test_the_headline_carries_its_intervals(tmp_path):
  said, _, text = verdict_of(tmp_path, {
      ('none', None): FREE,
      ('iso', 5.0): cell_of([0.895, 0.914, 0.876], [0.57, 0.55, 0.56]),
  })
  # Leakages 7, 5 and 6, losses 0.5, 0.6 and 0.4; Student's t at 2 degrees of
  # freedom is 4.3027 in printed tables, and sqrt(3) goes under the deviation.
  leak, cost = (4.3027 * std / math.sqrt(3) for std in (1.0, 0.1))
  assert said[0] == (
      f'iso at strength 5 protects best: PU score 4 of 5, leaking 6.0 ± '
      f'{leak:.1f} points to the only attack, at a cost of 0.5 ± '
      f'{cost:.1f}.'
  )
  assert 'against 45.0 ± 2.5 points without a defense' in said[1]
  assert len(said) == 2 and '**iso at strength 5 protects best' in text


def test_an_interval_wider_than_the_effect_is_told(tmp_path):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 3, [0.70, 0.60, 0.65]),
      ('iso', 5.0): cell_of([0.9] * 3, [0.55, 0.64, 0.58]),
  })
  # Seed by seed it leaks 15, -4 and 7 less: 6 with a deviation of 9.54.
  half = 4.3027 * math.sqrt((81 + 100 + 1) / 2) / math.sqrt(3)
  assert said[0].startswith('iso at strength 5 protects best')
  assert said[-1].startswith(
      f'The interval is wider than the effect: it leaks 6.0 ± {half:.1f} points'
      ' less than no defense, which 3 seeds cannot tell from zero.'
  )


def test_one_seed_has_no_interval_and_says_so(tmp_path):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9], [0.95]),
      ('iso', 5.0): cell_of([0.9], [0.55]),
  })
  assert said[0].endswith(
      'leaking 5.0 points to the only attack, at a cost of 0.0.'
  )
  assert said[-1].startswith('One seed has no interval')


def test_where_nothing_is_good_enough_it_names_what_helps_most(tmp_path):
  """The case that was once read as 'No defense beats having none'."""
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 3, [1.0] * 3),
      ('iso', 5.0): cell_of([0.9] * 3, [0.99, 0.98, 1.0]),
      ('marvell', 4.0): cell_of([0.895] * 3, [0.754] * 3),
  })
  assert said[0] == (
      'No defense protects well enough at an acceptable price: every one leaks '
      'more than 25 points or costs more than 6.'
  )
  assert said[1].startswith('marvell at strength 4 helps most.')
  assert '25.4 ± 0.0 points better than guessing' in said[1]
  assert 'It costs 0.5 ± 0.0 points' in said[1]


def test_who_leaks_just_as_much_does_not_beat_no_defense(tmp_path):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.53, 0.54]),
      ('iso', 5.0): cell_of([0.9] * 2, [0.53, 0.54]),
  })
  assert said[0].startswith('No defense beats having none here')


def test_where_nothing_beats_no_defense_it_says_how_that_does(tmp_path):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.53, 0.54]),
      ('iso', 5.0): cell_of([0.8] * 2, [0.51] * 2),
  })
  assert said[0] == (
      'No defense beats having none here: undefended, the worst attack (a) '
      'infers labels 3.5 ± 6.4 points better than guessing (PU score 5 of 5).'
  )
  assert said[1].startswith('The best defense is iso at strength 5.')


def test_a_gain_over_a_local_model_has_chance_beside_it(tmp_path):
  found = {(None, 'auc'): [0.9, 0.9],
           ('model_completion', 'auc_last'): [0.84, 0.80],
           ('local_model', 'auc_last'): [0.70, 0.72]}
  plain = {(None, 'auc'): [0.9, 0.9], ('norm_scoring', 'leak_auc'): [0.9, 0.9]}
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): found | plain,
      ('iso', 5.0): found | {('norm_scoring', 'leak_auc'): [0.5, 0.5]},
  })
  assert (
      'The worst attack on it, model completion, infers labels 11.0 ± 38.1 '
      'points better than a local model trained on the same known labels (32.0 '
      'better than guessing). Without a defense the worst, norm scoring, '
      'infers labels 40.0 ± 0.0 points better than guessing.'
  ) in said[1]


def test_digits_nobody_sees_order_nothing(tmp_path):
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.95] * 2),
      ('marvell', None): cell_of([0.8956] * 2, [0.52041, 0.52042]),
      ('iso', None): cell_of([0.8958] * 2, [0.52039, 0.52038]),
      ('max_norm', None): cell_of([0.8958] * 2, [0.523] * 2),
  })
  assert said[0].startswith(
      'marvell and iso protect best, alike: PU score 5 of 5, leaking 2.0'
  )
  assert said[2] == 'max norm (leaks 0.3 ± 0.0 more) has the same score.'
  assert order == ['marvell', 'iso', 'max_norm', 'none']
  results, = reading.read(tmp_path)
  assert ranks.places(ranks.rank(results)) == [1, 1, 3, 4]


def test_a_rival_that_the_seeds_do_not_tell_apart_is_named(tmp_path):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 3, [0.95] * 3),
      ('iso', None): cell_of([0.9] * 3, [0.52, 0.54, 0.53]),
      ('marvell', None): cell_of([0.9] * 3, [0.55, 0.51, 0.54]),
  })
  # 3, -3 and 1 more: 0.33 with a deviation of 3.06.
  assert said[2] == (
      'marvell (leaks 0.3 ± 7.6 more, which these seeds cannot tell from zero) '
      'has the same score.'
  )


@pytest.mark.parametrize('digits, first', [(0.001, 'iso'), (0.0001, 'marvell')])
def test_a_tenth_of_a_point_does_order(tmp_path, digits, first):
  """Leakages of 2.0 and 1.9 are two, those of 2.00 and 1.99 one."""
  folder = workdir(tmp_path, {
      ('none', None): cell_of([0.9], [0.95]),
      ('marvell', None): cell_of([0.9], [0.52]),
      ('iso', None): cell_of([0.9], [0.52 - digits]),
  })
  results, = reading.read(folder.path)
  assert ranks.rank(results)[0].defense == first
