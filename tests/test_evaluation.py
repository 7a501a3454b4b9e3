"""Scores against the tables of Kang et al. (2022) and worked numbers."""
import math

import numpy as np
import pytest

from vfljax import evaluation

# Rows of Tables 10-15 of Kang et al.: loss, leakages by attack, optimal score.
PUBLISHED = [
    (0.0, (46.9, 50.0, 50.0), 0),  # Table 10, Credit: no protection ...
    (11.2, (10.1, 3.3, 11.6), 0),
    (7.5, (25.9, 24.6, 33.1), 0),
    (0.1, (6.2, 18.1, 19.8), 2),
    (0.9, (1.1, 2.6, 3.7), 4),
    (0.8, (0.8, 2.2, 2.6), 4),
    (2.3, (0.4, 1.3, 4.6), 2),  # Table 10, Vehicle: GC ...
    (2.8, (0.1, 0.3, 0.2), 2),
    (0.3, (0.4, 5.1, 13.9), 3),
    (1.0, (0.4, 1.3, 6.1), 4),
    (1.0, (0.6, 0.8, 3.1), 4),
    (3.5, (14.8, 12.7), 2),  # Table 11, Credit: GC, D-SGD.
    (0.6, (15.5, 16.5), 2),
    (0.3, (14.1, 25.9), 0),  # Table 11, Vehicle: MN.
    (0.0, (6.3, 5.8), 4),  # Table 13, NUSWIDE2-bal: GC, D-SGD.
    (0.3, (0.7, 0.3), 5),
    (1.5, (5.9, 22.3), 1),  # Table 13, Criteo: MN, DP-L.
    (1.8, (0.8, 1.6), 3),
    (0.4, (0.8, 3.8), 5),  # Table 13, BHI: Marvell.
    (13.2, (0.3, 1.8), 0),  # Table 14, Criteo: DP-L, ISO, Marvell.
    (4.6, (13.3, 17.8), 1),
    (4.9, (8.3, 13.3), 1),
    (2.5, (9.8,), 2),  # Table 15: ISO on NUSWIDE2-imb and CIFAR10.
    (4.9, (2.3,), 1),
    (25.1, (14.3,), 0),
]


def test_the_papers_example_of_leakage():
  # Section 8.3: an NS attack of AUC 65.0 against a guess's 50.0.
  assert evaluation.privacy_leakage(0.65) == pytest.approx(15.0)
  assert evaluation.privacy_leakage(0.8, 0.55) == pytest.approx(25.0)
  assert evaluation.utility_loss(0.732, 0.62) == pytest.approx(11.2)


@pytest.mark.parametrize('loss, leakages, score', PUBLISHED)
def test_published_optimal_scores(loss, leakages, score):
  assert evaluation.optimal_pu_score([leakages], [loss]) == score
  assert evaluation.pu_score(max(leakages), loss) == score


def test_rows_of_table_15_that_contradict_table_8():
  """Printed as 1; Table 8 gives 2 for (15, 20], and so do Tables 11 and 12."""
  for loss, leakage in [(0.2, 19.6), (0.7, 19.8), (1.0, 19.9)]:
    assert evaluation.pu_score(leakage, loss) == 2
  assert evaluation.pu_score(19.6, 0.8) == 2  # Table 12, ISO: printed as 2.


@pytest.mark.parametrize('end, score', [(5, 5), (10, 4), (15, 3), (20, 2),
                                        (25, 1)])
def test_leakage_ranges_contain_their_upper_end(end, score):
  assert evaluation.leakage_score(end) == score
  assert evaluation.leakage_score(end + 0.001) == score - 1


@pytest.mark.parametrize('end, score', [(0.5, 5), (1, 4), (2, 3), (4, 2),
                                        (6, 1)])
def test_loss_ranges_contain_their_upper_end(end, score):
  assert evaluation.loss_score(end) == score
  assert evaluation.loss_score(end + 0.001) == score - 1


def test_what_counts_is_four_decimals_of_a_percentage_point():
  assert evaluation.leakage_score(5.00004) == 5
  assert evaluation.leakage_score(5.00006) == 4


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_rounding_does_not_push_a_metric_over_a_boundary(dtype):
  areas = np.array([0.55, 0.6, 0.65, 0.7, 0.75], dtype)
  leakage = evaluation.privacy_leakage(areas)
  np.testing.assert_array_equal(evaluation.leakage_score(leakage),
                                [5, 4, 3, 2, 1])
  kept = np.array([0.945, 0.94, 0.93, 0.91, 0.89], dtype)
  loss = evaluation.utility_loss(dtype(0.95), kept)
  np.testing.assert_array_equal(evaluation.loss_score(loss), [5, 4, 3, 2, 1])


def test_below_zero_counts_as_zero_and_nan_as_worst():
  assert evaluation.pu_score(-3.0, -0.2) == 5
  assert evaluation.pu_score(math.nan, 0.0) == 0
  assert evaluation.pu_score(0.0, math.nan) == 0
  assert evaluation.pu_score(0.0, math.inf) == 0


def test_optimal_score_takes_the_best_strength_against_its_worst_attack():
  leakage = [[1, 26], [9, 3], [0, 0]]  # Scores 0, 4, 5 ...
  loss = [0.1, 1.5, 7.0]  # ... and 5, 3, 0.
  assert evaluation.optimal_pu_score(leakage, loss) == 3
  for bad in (([1, 2], [1, 2]), ([[1], [2]], [1]), (np.zeros((0, 2)), []),
              ([[[1, 2], [3, 4]]], [1])):
    with pytest.raises(ValueError, match='optimal_pu_score needs'):
      evaluation.optimal_pu_score(*bad)


def test_preference_of_tables_13_and_14():
  """Marvell > ISO > DP-L > MN > D-SGD > GC; the curves part DP-L and MN."""
  scores = dict(
      gc=[0, 0, 4, 0, 0, 0, 0, 0], d_sgd=[2, 4, 5, 0, 0, 0, 0, 0],
      mn=[4, 1, 5, 4, 3, 0, 5, 4], dp_l=[3, 3, 5, 4, 3, 0, 5, 3],
      iso=[4, 3, 5, 4, 4, 1, 5, 4], marvell=[4, 3, 5, 5, 4, 1, 5, 4],
  )
  assert evaluation.preference(scores) == (
      ('marvell',), ('iso',), ('dp_l', 'mn'), ('d_sgd',), ('gc',)
  )
  assert evaluation.preference(dict(a=1, b=2)) == (('b',), ('a',))


def test_who_has_no_score_is_the_least_preferred():
  nan = float('nan')
  assert evaluation.preference(dict(d=nan, a=1, c=[2, nan], b=2)) == (
      ('b',), ('a',), ('c', 'd')
  )
  assert evaluation.preference({}) == ()


def test_dcs_by_hand():
  # sqrt(.5 * .3^2 + .5 * .4^2) = .3535534.
  found = evaluation.dcs(0.3, 0.5, 0.0, 0.9)
  assert found == pytest.approx(1 / 1.3535534)
  assert evaluation.dcs(0.3, 0.5, 0.1, 0.9, beta=0) == pytest.approx(1 / 1.2)
  assert evaluation.dcs(0.3, 0.5, 0.1, 0.9, beta=1) == pytest.approx(1 / 1.4)
  assert evaluation.dcs(0.1, 0.95, 0.2, 0.9) == 1  # Better than ideal.
  np.testing.assert_allclose(
      evaluation.dcs(np.array([0.0, 1.0]), 1.0), [1, 1 / (1 + 0.5**0.5)]
  )
  with pytest.raises(ValueError, match='beta must be in'):
    evaluation.dcs(0.1, 0.9, beta=1.5)


def test_dcs_of_types_and_of_all():
  assert evaluation.t_dcs([0.5, 0.7]) == pytest.approx(0.6)
  scores = dict(label=0.6, feature=0.9)
  found = evaluation.c_dcs(scores, dict(label=0.75, feature=0.25))
  assert found == pytest.approx(0.675)
  with pytest.raises(ValueError, match='no scores'):
    evaluation.t_dcs([])
  with pytest.raises(ValueError, match='the sum is 0.9'):
    evaluation.c_dcs(scores, dict(label=0.5, feature=0.4))
  with pytest.raises(ValueError, match='the sum is 0'):
    evaluation.c_dcs({}, {})
  with pytest.raises(ValueError, match='weights of'):
    evaluation.c_dcs(scores, dict(label=1.0))
  with pytest.raises(ValueError, match='0 or more'):
    evaluation.c_dcs(scores, dict(label=1.5, feature=-0.5))


def test_an_attack_that_diverged_is_none_that_was_thwarted():
  assert evaluation.optimal_pu_score([[0.0, np.nan]], [0.0]) == 0
