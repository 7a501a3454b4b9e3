"""What `vfljax compare` says of two runs: each row's change, seed by seed."""
import math

import numpy as np
import pytest
from scipy import stats

from tests.commands.finished import ISO, MORE, NONE, call, config, made
from tests.fake_results import row
from vfljax.commands import changes, compare
from vfljax.report import reading
from vfljax.runner.workdir import store


def saved(folder, leaks, utilities=(0.9, 0.8, 0.7), seeds=(0, 1, 2)):
  """A finished run of no defense: attack -> its leak AUC by seed."""
  names = sorted(leaks)
  work = store.open_workdir(
      folder, config(defenses='none', seeds=3, listed_attacks=names), ['none']
  )
  work.save('none', [
      row('none', None, who, seed, metric, 'test', value)
      for who, metric, values in (
          (None, 'auc', utilities), *((a, 'leak_auc', leaks[a]) for a in names)
      ) for seed, value in zip(seeds, values)
  ], dict(seeds=3, classes=2))
  return folder


def table(*folders):
  runs = compare.read(folders)
  return changes.tables([r.name for r in runs], [r.results for r in runs])


def texts(found):
  return [[cell.text for cell in row] for row in found.rows]


def test_seeds_are_paired_and_the_second_run_is_the_one_that_has_more(tmp_path):
  """The interval is scipy's of the differences, not of the runs."""
  one = saved(tmp_path / 'one', dict(norm_scoring=(0.9, 0.7, 0.6)))
  two = saved(
      tmp_path / 'two', dict(norm_scoring=(0.95, 0.74, 0.66)), (0.89, 0.8, 0.7)
  )
  found, = table(one, two)
  gaps = 100 * np.array([0.05, 0.04, 0.06])
  low, high = stats.t.interval(0.95, 2, gaps.mean(), stats.sem(gaps))
  half = f'{(high - low) / 2:.1f}'
  assert texts(found) == [
      ['no defense', '', '-0.3 ± 1.4', f'+5.0 ± {half}', 'norm scoring']
  ]
  assert [cell.strong for cell in found.rows[0][2:]] == [False, True, False]
  assert found.title == 'From one to two'
  assert '2 numbers with an interval' in found.note
  back, = table(two, one)
  assert texts(back)[0][2:4] == ['+0.3 ± 1.4', f'-5.0 ± {half}']


def test_the_worst_attack_is_of_those_that_both_met(tmp_path):
  """A new attack is another question; less than nothing is nothing."""
  first = dict(norm_scoring=(0.9, 0.9, 0.9), value_scoring=(0.8, 0.8, 0.8))
  later = dict(
      norm_scoring=(0.4, 0.4, 0.4), value_scoring=(0.7, 0.7, 0.7),
      direction_scoring=(1.0, 1.0, 1.0),
  )
  folders = saved(tmp_path / 'a', first), saved(tmp_path / 'b', later)
  found, = table(*folders)
  change, by = texts(found)[0][3:]
  assert by == 'norm scoring, then value scoring'
  assert change == '-20.0 ± 0.0'  # From .9 above guessing's .5 to .7 above it.
  del later['value_scoring']
  found, = table(folders[0], saved(tmp_path / 'c', later))
  assert texts(found)[0][3:] == ['-40.0 ± 0.0', 'norm scoring']
  none = saved(tmp_path / 'd', dict(residual_scoring=(0.9, 0.9, 0.9)))
  found, = table(folders[0], none)
  assert texts(found)[0][2:] == ['+0.0 ± 0.0', '–', '']


def test_seeds_of_one_run_alone_do_not_count_and_what_diverged_is_said(
    tmp_path
):
  one = saved(tmp_path / 'one', dict(norm_scoring=(0.9, 0.7, math.nan)))
  two = saved(
      tmp_path / 'two', dict(norm_scoring=(0.6, 0.8, 0.9)), seeds=(1, 2, 3)
  )
  found, = table(one, two)
  assert texts(found)[0][2:4] == ['+10.0 ± 0.0', '-10.0 (1 of 2 seeds)']
  assert '0 numbers with an interval' in found.note  # One has no width.


@pytest.mark.parametrize('how', ['baseline', 'epoch'])
def test_an_attack_that_is_measured_otherwise_is_not_compared(
    tmp_path, monkeypatch, how
):
  """Above its baseline, or above guessing; in the worst epoch or the last."""
  own, = reading.read(saved(tmp_path, dict(norm_scoring=(0.9, 0.8, 0.7))))
  one, two = own._replace(when='max'), own._replace(when='last')
  if how == 'epoch':
    one, two = with_epochs(one), with_epochs(two)
  else:
    monkeypatch.setattr(reading, 'is_paired', lambda run, *_: run is two)
  found, = changes.tables('ab', [one, two])
  assert texts(found)[0][3:] == ['–', '']
  alike, = changes.tables('aa', [one, one])
  assert texts(alike)[0][3] == '+0.0 ± 0.0'
  assert not any(cell.strong for cell in alike.rows[0][1:])
  assert '0 numbers with an interval' in alike.note


def with_epochs(run):
  """The attack as one in training: of the last epoch there is a value, too."""
  cell, attack = ('none', None), 'norm_scoring'
  values = dict(run.values)
  for epoch in 'last', 'max':
    values[cell, attack, f'leak_auc_{epoch}', 'test'] = values[
        cell, attack, 'leak_auc', 'test'
    ]
  return run._replace(values=values)


def test_what_diverged_is_not_nothing_where_the_rest_leaks_less_than_nothing(
    tmp_path
):
  below = dict(norm_scoring=(0.4, math.nan, 0.3))
  found, = table(saved(tmp_path / 'a', below), saved(tmp_path / 'b', below))
  assert texts(found)[0][3] == '+0.0 ± 0.0 (2 of 3 seeds)'


def test_a_seed_of_one_run_alone_does_not_choose_the_worst_attack(tmp_path):
  one = dict(norm_scoring=(1.0, 0.6, 0.6), value_scoring=(0.6, 0.7, 0.7))
  two = dict(norm_scoring=(0.6, 0.6, 0.6), value_scoring=(0.7, 0.7, 0.7))
  found, = table(
      saved(tmp_path / 'a', one), saved(tmp_path / 'b', two, seeds=(1, 2, 3))
  )
  assert texts(found)[0][3:] == ['+0.0 ± 0.0', 'value scoring']


def test_there_is_one_for_two_runs_with_a_row_in_common(tmp_path):
  a, b, c = (
      made(tmp_path / name, cells, asked='none,iso(5,7)')
      for name, cells in zip('abc', ([NONE, ISO], [NONE, ISO, MORE], [MORE]))
  )
  found, = table(a, b)
  assert [row[:2] for row in texts(found)] == [['no defense', ''], ['iso', '5']]
  assert not table(a, c) and not table(a, b, c) and not table(a)
  runs = [r.results for r in compare.read((a, b))]
  other = runs[1]._replace(title=('b', 'another data set', 'vhnn'))
  assert not changes.tables('ab', [runs[0], other])


def test_the_command_prints_it_and_the_page_has_it(tmp_path, capsys):
  page = tmp_path / 'page.html'
  folders = [
      made(tmp_path / name, [NONE], value=value)
      for name, value in (('a', 0.8), ('b', 0.9))
  ]
  code, out, _ = call(capsys, 'compare', *folders, '--to', page)
  assert code == 0 and 'From a to b' in out and '+10.0±0.0' in out
  assert 'From a to b' in page.read_text() and '+10.0' in page.read_text()
