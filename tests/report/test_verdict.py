"""The verdict's words: who wins, by how much, where the seeds do not say."""
import math

import pytest

from tests.report.test_lost import cell_of, verdict_of
from vfljax.report import ranks, reading, tables
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


def mended(utility, last):
  """Model completion; without the federation it has 0.7."""
  return {(None, 'auc'): utility, ('model_completion', 'auc_last'): last,
          ('local_model', 'auc_last'): [0.7] * len(last)}


@pytest.mark.parametrize('leaks, open_', [
    ([0.531, 0.570, 0.545, 0.559], True),  # 1.1, -1, .5 and .3 more.
    ([0.523, 0.583, 0.543, 0.559], False),  # 0.3 more in each seed.
])
def test_a_score_apart_is_no_difference_that_seeds_show(tmp_path, leaks, open_):
  """Leakages of 4.9 and of 5.1 points have two scores."""
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 4, [0.95] * 4),
      ('iso', None): cell_of([0.9] * 4, [0.52, 0.58, 0.54, 0.556]),
      ('marvell', None): cell_of([0.9] * 4, leaks),
  })
  assert said[0].startswith('iso protects best: PU score 5')
  assert open_ == (
      'marvell may be as good: these seeds do not show that it leaks or costs '
      'more.' in said
  )


def test_a_higher_cost_that_seeds_show_is_worse(tmp_path):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 3, [0.95] * 3),
      ('iso', None): cell_of([0.9] * 3, [0.52, 0.54, 0.53]),
      ('marvell', None): cell_of([0.892, 0.893, 0.892], [0.52, 0.54, 0.53]),
  })
  assert said[0].startswith('iso protects best: PU score 5')
  assert 'may be as good' not in ' '.join(said)


def test_of_those_that_help_little_the_first_is_not_sure_either(tmp_path):
  rival = lambda *leaks: cell_of([0.9] * 3, [*leaks])
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): rival(1.0, 1.0, 1.0), ('iso', None): rival(0.8, 0.9, 0.8),
      ('marvell', None): rival(0.9, 0.8, 0.83), ('max_norm', None): rival(
          0.84, 0.85, 0.9),
  })
  assert said[1].startswith('iso helps most.')
  assert (
      'marvell, max norm may be as good: these seeds do not show that they '
      'leak or cost more.' in said
  )


def test_less_than_nothing_does_not_win(tmp_path):
  """A completed network worse than the local model leaks nothing."""
  said, order, text = verdict_of(tmp_path, {
      ('none', None): mended([0.9] * 2, [0.8, 0.82]),
      ('marvell', None): mended([0.896] * 2, [0.62] * 2),
      ('iso', None): mended([0.899] * 2, [0.698] * 2),
  })
  assert order == ['iso', 'marvell', 'none']
  assert said[2] == 'marvell (costs 0.3 ± 0.0 more) has the same score.'
  assert 'A leakage below 0 counts as 0.' in text


@pytest.mark.parametrize('last, said_', [
    ([0.72, 0.75, 0.789], 'marvell may be as good: these seeds do not show that'
     ' it leaks or costs more.'),
    ([0.685, 0.7, 0.724], 'marvell (leaks 0.3 ± 4.9 more, which these seeds '
     'cannot tell from zero) has the same score.'),
])
def test_a_difference_from_less_than_nothing_is_one_from_nothing(
    tmp_path, last, said_
):
  """Not the 35 points between 5.3 and -29.7."""
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): mended([0.9] * 3, [0.95] * 3),
      ('iso', None): mended([0.9] * 3, [0.403] * 3),
      ('marvell', None): mended([0.9] * 3, last),
  })
  assert order[0] == 'iso' and said_ in said


def test_who_leaks_nothing_is_as_good_as_who_leaks_less_than_that(tmp_path):
  """At another score, for a cost of 1.0 that seeds do not tell from none."""
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): mended([0.9] * 3, [0.95] * 3),
      ('iso', None): mended([0.9] * 3, [0.4] * 3),
      ('marvell', None): mended([0.89, 0.895, 0.885], [0.69] * 3),
  })
  assert order[0] == 'iso'
  assert 'marvell may be as good' in ' '.join(said)


def test_a_rival_that_lost_a_seed_is_not_as_good(tmp_path):
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 4, [0.95] * 4),
      ('iso', None): cell_of([0.9] * 4, [0.52, 0.58, 0.54, 0.556]),
      ('marvell', None): cell_of(
          [0.9, math.nan, 0.9, 0.9], [0.531, 0.570, 0.545, 0.559]
      ),
  })
  assert order[0] == 'iso' and 'may be as good' not in ' '.join(said)


def test_nothing_has_no_sign(tmp_path):
  said, _, text = verdict_of(tmp_path, {
      ('none', None): mended([0.9] * 2, [0.8, 0.82]),
      ('iso', None): mended([0.9002] * 2, [0.6998] * 2),
  })
  assert 'leaking 0.0 ± 0.0 points' in said[0]
  assert said[0].endswith('at a cost of 0.0 ± 0.0.')
  assert 'It costs 0.0 ± 0.0 points' in said[1] and '-0.0' not in text
  little = reading.summarize([-0.02, -0.02])
  assert tables.leak_text(little, little).text == '0.0 ± 0.0, last 0.0'


def test_what_leaks_more_than_none_is_not_called_undecided(tmp_path):
  """No defense diverged in the seed in which the defense leaks nothing."""
  nan = math.nan
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9, 0.9, 0.9, nan], [0.55, 0.56, 0.55, nan]),
      ('iso', None): cell_of([0.9] * 4, [0.60, 0.61, 0.60, 0.5]),
  })
  assert said[-1] == (
      'In the 3 seeds of both it leaks 5.0 ± 0.0 points more than no defense.'
  )


@pytest.mark.parametrize('rivals', [1, 2])
def test_the_best_of_several_is_said_to_be_flattered(tmp_path, rivals):
  cells = {('none', None): FREE, ('iso', 5.0): FREE, ('iso', 6.0): FREE}
  _, _, text = verdict_of(tmp_path, dict([*cells.items()][:1 + rivals]))
  words = 'Best: chosen of 2 rows by the numbers that stand beside it.'
  assert (words in text) == (rivals == 2)
  assert ('--config.first_seed=3 in another' in text) == (rivals == 2)
