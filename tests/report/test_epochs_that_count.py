"""An attacker in training chooses its epoch; the last one stands beside it."""
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vfljax.report import reading, spent, tables, verdict
from vfljax.runner.workdir import record
from tests.fake_results import row


def made(when):
  """Two attacks: one in training, one on the trained federation."""
  values = {
      (None, 'auc'): 0.9,
      ('norm_scoring', 'leak_auc'): 0.9 if when == 'max' else 0.6,
      ('norm_scoring', 'leak_auc_max'): 0.9,
      ('norm_scoring', 'leak_auc_last'): 0.6,
      ('model_completion', 'auc_last'): 0.75,
  }
  rows = [
      row(defense, None, attack, seed, metric, 'test', value)
      for defense in ('none', 'max_norm') for seed in (0, 1)
      for (attack, metric), value in values.items()
  ]
  return reading.of_rows(rows, dict(attack=dict(when=when)))[0]


def test_a_table_of_measurements_is_called_by_what_was_measured():
  results = made('max')
  assert tables.measurements(results, None).title == 'Utility'
  assert tables.measurements(results, 'norm_scoring').title == 'Norm scoring'


def test_seconds_that_a_unit_does_not_tell_are_none():
  told = dict(compile_seconds=2.0, run_seconds=3.0)
  said = spent.timing_sentence([told, dict(compile_seconds=1.0), {}])
  assert said.startswith('In total: compiling 3 s; running 3 s')


@pytest.mark.parametrize('when, points', [('max', 40), ('last', 10)])
def test_the_epoch_that_counts_is_the_configurations(when, points):
  results, cell = made(when), ('none', None)
  found = reading.leakage(results, cell, 'norm_scoring')
  assert found == pytest.approx({0: points, 1: points})
  for epoch, value in (('max', 40), ('last', 10)):
    named = reading.leakage(results, cell, 'norm_scoring', epoch)
    swapped = reading.leakage(
        reading.at_epoch(results, epoch), cell, 'norm_scoring'
    )
    assert named == swapped == pytest.approx({0: value, 1: value})


def test_what_is_attacked_after_training_has_one_epoch_only():
  results, cell = made('max'), ('none', None)
  assert not reading.leakage(results, cell, 'model_completion', 'last')
  assert not reading.in_last_epoch(results, cell, 'model_completion').count
  found = reading.leakage(results, cell, 'model_completion')
  again = reading.at_epoch(results, 'last')
  assert reading.leakage(again, cell, 'model_completion') == found
  assert found == pytest.approx({0: 25, 1: 25})


def test_the_report_says_which_epoch_counts_and_shows_the_last():
  table = tables.overview(made('max'))
  assert 'can choose' in table.note
  assert table.rows[0][-2].text.startswith('40.0')
  assert table.rows[0][-2].text.endswith('last 10.0')
  assert 'last' not in table.rows[0][-1].text
  table = tables.overview(made('last'))
  assert 'counts at the last epoch' in table.note
  assert 'last' not in table.rows[0][-2].text


def test_the_verdict_says_what_the_last_epoch_says():
  from vfljax.report import ranks
  results = made('max')
  said = ' '.join(verdict.sentences(results, ranks.rank(results)))
  assert '(10.0 in the last epoch)' in said


@pytest.mark.parametrize('when, own', [('last', 0.6), ('mean', 0.7)])
def test_a_run_keeps_the_best_and_the_last_whichever_counts(when, own):
  setting: Any = SimpleNamespace(
      config=SimpleNamespace(attack=SimpleNamespace(when=when))
  )
  found = record.in_training(setting, dict(
      measured=np.array([[True, True, True]]), loss=np.ones((1, 3)),
      watch=dict(norm_scoring=dict(leak_auc=np.array([[0.6, 0.9, 0.6]]))),
  ))
  assert {k: v.item() for k, v in found['norm_scoring'].items()} == (
      pytest.approx(dict(leak_auc=own, leak_auc_max=0.9, leak_auc_last=0.6))
  )


@pytest.mark.parametrize('when, own', [('last', 0.7), ('mean', 0.8),
                                       ('max', 0.9)])
def test_an_epoch_with_nothing_to_infer_is_left_out(when, own):
  """Of 1 % positives there may be none in a round but the known one."""
  nan = np.nan
  setting: Any = SimpleNamespace(
      config=SimpleNamespace(attack=SimpleNamespace(when=when))
  )
  curve = np.array([[nan, 0.9, 0.7, nan], [nan] * 4, [0.9, 0.8, 0.7, nan]])
  found = record.in_training(setting, dict(
      measured=np.full((3, 4), True), watch=dict(a=dict(leak_auc=curve)),
      loss=np.array([[1.0] * 4, [1.0] * 4, [1.0, 1.0, 1.0, nan]]),
  ))
  # Nothing at all has no number, nor has a training that diverged.
  np.testing.assert_allclose(found['a']['leak_auc'], [own, nan, nan])


def test_curves_are_reduced_to_the_best_and_the_last_measured_epoch():
  """Of a curve whose last measured epoch is neither the best nor its end."""
  curve = np.array([[0.5, 0.9, 0.6, 0.0], [0.5, np.nan, 0.6, 0.0]])
  measured = np.array([[True, True, True, False]] * 2)
  np.testing.assert_array_equal(
      record.reduce(curve, measured, 'max'), [0.9, np.nan]
  )
  np.testing.assert_array_equal(
      record.reduce(curve, measured, 'last'), [0.6, 0.6]
  )
