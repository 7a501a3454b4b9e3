"""Advice within a budget: what is chosen, how it is said, what is in doubt."""
import pytest

from tests import fake_results
from tests.report.test_lost import cell_of
from tests.report.test_report import workdir
from vfljax.commands import advise
from vfljax.report import (
    advice, ending, ranks, reading, terminal, untested, writing,
)
from vfljax.runner.cli.goals import Goal, goal
from vfljax.runner.errors import UserError
from vfljax.runner.main import main

# Utility 90 %; the names are those of the registry, the numbers made up.
CELLS = {
    ('none', None): cell_of([0.9, 0.9], [0.95, 0.95]),
    ('dp_laplace', 0.01): cell_of([0.897, 0.897], [0.70, 0.70]),
    ('dp_laplace', 0.1): cell_of([0.881, 0.881], [0.523, 0.523]),
    ('dp_laplace', 1.0): cell_of([0.80, 0.80], [0.51, 0.51]),
    ('iso', 25.0): cell_of([0.88, 0.874], [0.52, 0.526]),
    ('iso', 50.0): cell_of([0.87, 0.87], [0.51, 0.51]),
}


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  """A work directory that nothing is written into."""
  place = tmp_path_factory.mktemp('finished')
  fake_results.make(place)
  return place


def said(folder, wanted, cells=None):
  results, = reading.read(workdir(folder, cells or CELLS).path)
  return advice.sentences(results, wanted)


def test_within_a_budget_it_is_what_leaks_least(tmp_path):
  first, *rest = said(tmp_path, Goal(budget=2))
  assert first == (
      'Within 2 points of loss, dp_laplace 0.1 leaks least: 2.3 ± 0.0 points '
      'to the only attack (a), at a cost of 1.9 ± 0.0.'
  )
  # Its strength is between others, and its interval within the budget.
  assert not rest


def test_what_costs_just_the_budget_is_within_it(tmp_path):
  first, *_ = said(tmp_path, Goal(budget=1.9))
  assert 'dp_laplace 0.1 leaks least' in first
  first, *_ = said(tmp_path / 'less', Goal(budget=1.8))
  assert 'dp_laplace 0.01 leaks least' in first


def test_what_comes_next_is_beside_it(tmp_path):
  first, *rest = said(tmp_path, Goal(budget=2.5))
  # iso costs 0.1 and 0.7 more, 0.4 with a deviation of 0.424 over two seeds,
  # and leaks 0.3 less and 0.3 more.
  assert first.endswith(
      'at a cost of 1.9 ± 0.0; iso 25 costs the same (+0.4 ± 3.8) and leaks '
      'the same (+0.0 ± 3.8).'
  )


def test_what_leaks_little_enough_is_taken_at_least_cost(tmp_path):
  first, *_ = said(tmp_path, Goal(max_leak=20))
  assert first.startswith(
      'Within 20 points of leakage, dp_laplace 0.01 costs least: 20.0 ± 0.0'
  )
  first, *_ = said(tmp_path / 'both', Goal(budget=1, max_leak=50))
  assert first.startswith(
      'Within 1 point of loss and 50 points of leakage, dp_laplace 0.01 leaks '
      'least: 20.0'
  )


def test_rivals_that_leak_five_points_more_are_not_named(tmp_path):
  free = {('none', None): cell_of([0.9] * 2, [0.95] * 2)}
  rival = lambda leak: cell_of([0.89] * 2, [leak] * 2)
  cells = free | {
      ('iso', 1.0): rival(0.51), ('max_norm', None): rival(0.56),
      ('marvell', 1.0): rival(0.561),
  }
  first, *_ = said(tmp_path, Goal(budget=2), cells)
  assert 'iso 1 leaks least' in first and 'max_norm costs' in first
  assert 'leaks 5.0 ± 0.0 more' in first and 'marvell' not in first
  # If none is as near, the nearest is named.
  del cells['max_norm', None]
  first, *_ = said(tmp_path / 'far', Goal(budget=2), cells)
  assert 'marvell 1 costs the same and leaks 5.1 ± 0.0 more' in first


def test_who_leaks_nothing_does_not_leak_less_than_nothing(tmp_path):
  rival = lambda utility, last: {
      (None, 'auc'): [utility] * 2,
      ('model_completion', 'auc_last'): [last] * 2,
      ('local_model', 'auc_last'): [0.7] * 2,
  }
  first, *_ = said(tmp_path, Goal(budget=2), {
      ('none', None): rival(0.9, 0.8), ('iso', 1.0): rival(0.899, 0.698),
      ('marvell', 1.0): rival(0.89, 0.62),
  })
  assert 'iso 1 leaks least' in first
  assert first.endswith(
      'marvell 1 costs 0.9 ± 0.0 more and leaks nothing either.'
  )


@pytest.mark.parametrize('leak, shown', [(0.504, 0.4), (0.48, 0.0)])
def test_a_leakage_counts_from_nothing_on(leak, shown):
  loss, points = (
      reading.summarize([100 * x] * 2) for x in (0.012, leak - 0.5)
  )
  trade = ranks.Trade(('iso', 1.0), loss, dict(a=points), 'a', 5)
  assert advice._shown(trade) == (1.2, shown)


def test_where_nothing_keeps_to_it_the_nearest_is_named(tmp_path):
  first, = said(tmp_path, Goal(budget=1, max_leak=5))
  assert 'there is nothing among what was measured' in first
  assert 'Of what costs at most 1, dp_laplace 0.01 leaks least: 20.0' in first
  first, = said(tmp_path / 'leak', Goal(max_leak=0.5))
  assert 'leaks least at any price: 1.0' in first


def test_no_defense_is_an_answer_too(tmp_path):
  cells = {('none', None): cell_of([0.9] * 2, [0.52, 0.54]),
           ('iso', 5.0): cell_of([0.89] * 2, [0.56] * 2)}
  first, *_ = said(tmp_path, Goal(budget=2), cells)
  assert first.startswith(
      'Within 2 points of loss, no defense leaks less than having none'
  )


@pytest.mark.parametrize('goal', [Goal(2), Goal(2, 50), Goal(None, 50)])
@pytest.mark.parametrize('utility', [[0.9, 0.902], [0.904, 0.9]])
def test_what_leaks_as_much_as_none_is_not_advised(goal, utility, tmp_path):
  cells = {('none', None): cell_of([0.9] * 2, [1.0] * 2),
           ('dp_laplace', 1e-4): cell_of(utility, [1.0, 1.0]),
           ('iso', 5.0): cell_of([0.8] * 2, [0.5] * 2)}
  first, *_ = said(tmp_path, goal, cells)
  does = 'leaks' if goal.budget else 'costs'
  assert f'no defense {does} less than having none' in first


def test_what_is_known_of_one_seed_is_said_to_be(tmp_path):
  nan = float('nan')
  cells = {('none', None): cell_of([0.9] * 2, [0.95, nan]),
           ('iso', 5.0): cell_of([0.9] * 2, [0.6, nan])}
  _, *rest = said(tmp_path, Goal(budget=2), cells)
  assert rest == [
      'How much less it leaks than no defense is known of 1 seed alone.'
  ]


def test_what_has_no_number_is_beside_the_advice(tmp_path):
  nan = float('nan')
  cells = {('none', None): cell_of([0.9] * 2, [0.95] * 2),
           ('iso', 5.0): cell_of([0.9] * 2, [0.6, nan])}
  text = advise.text(str(workdir(tmp_path, cells).path), Goal(budget=2))
  assert 'Without a number: a on iso (5) in 1 of 2 seeds' in text


def test_doubts_are_owned_up_to(tmp_path):
  cells = {('none', None): cell_of([0.9] * 2, [0.95] * 2),
           ('iso', 5.0): cell_of([0.884, 0.882], [0.56, 0.54]),
           ('iso', 2.0): cell_of([0.9] * 2, [0.7] * 2)}
  _, *rest = said(tmp_path, Goal(2, 10), cells)
  assert rest == [
      'It is not certain that it costs at most 2: the interval, 1.7 ± 1.3, '
      'reaches beyond --budget.',
      'It is not certain that it leaks at most 10: the interval, 5.0 ± 12.7, '
      'reaches beyond --max_leak.',
      '5 is the largest strength of iso that was tried: a better one may lie '
      'beyond it.',
  ]


def test_what_diverged_is_never_advised(tmp_path):
  lost = cell_of([0.9, float('nan')], [0.5, 0.5])
  cells = {('none', None): cell_of([0.9] * 2, [0.95] * 2), ('iso', 5.0): lost}
  first, = said(tmp_path, Goal(budget=2), cells)
  assert first.startswith('Nothing can be advised')
  results, = reading.read(workdir(tmp_path / 'again', cells).path)
  found = advice.ordered(results, Goal(budget=2))
  assert [trade.cell[0] for trade in found] == ['none', 'iso']


def test_of_the_undefended_federation_alone_nothing_is_chosen(tmp_path):
  """Its own is no advice, as nothing was compared with it."""
  cells = {('none', None): cell_of([0.9] * 2, [0.95] * 2)}
  results, = reading.read(workdir(tmp_path, cells).path)
  assert advice.chosen(results, Goal(budget=2)) is None


def test_what_was_not_tested_is_what_could_have_been(tmp_path):
  work = workdir(tmp_path, {('none', None): {
      (None, 'auc'): [0.9], ('norm_scoring', 'leak_auc'): [0.6]
  }}, fake_results.config())
  results, = reading.read(work.path)
  text = ' '.join(untested.sentences(results, fake_results.config(), 2))
  could, cannot = text.split('do not apply')
  assert 'mean_scoring' in could and 'norm_scoring' not in could
  assert 'local_model' not in text  # A baseline is no attack.
  assert 'residue_reconstruction' in cannot  # For linear bottoms alone.
  assert 'marvell' in text and 'Strengths between' in text
  ten = ' '.join(untested.sentences(results, fake_results.config(), 10))
  assert 'mean_scoring' not in ten.split('do not apply')[0]
  assert 'marvell' not in ten  # For two classes alone.


@pytest.mark.parametrize('config', [dict(model=3), dict(attack=[1])])
def test_a_configuration_that_cannot_be_read_names_no_attack(config):
  assert untested.applying(config, 2) == ([], [])


def test_of_many_that_were_not_run_thirty_are_named(tmp_path, monkeypatch):
  results, = reading.read(workdir(tmp_path, CELLS).path)
  many = {f'own {i}': None for i in range(40)}
  monkeypatch.setattr(untested.defenses, 'REGISTRY', many)
  text = ' '.join(untested.sentences(results, {}, 2))
  assert text.count(' own ') == 30 and ' and 10 more' in text


def test_the_best_of_many_is_said_to_be_flattered(tmp_path):
  """By the seeds that chose it; of one there was no choice."""
  results, = reading.read(workdir(tmp_path, CELLS).path)
  text = ' '.join(untested.sentences(results, {}, 2))
  assert 'the best of 5 rows' in text and 'first_seed=2 in' in text
  alone = {cell: CELLS[cell] for cell in (('none', None), ('iso', 25.0))}
  results, = reading.read(workdir(tmp_path / 'one', alone).path)
  assert 'the best of' not in ' '.join(untested.sentences(results, {}, 2))
  nan = float('nan')
  gone = {cell: cell_of([nan] * 2, [0.5] * 2) for cell in CELLS}
  half = {cell: cell_of([0.9, nan], [0.5] * 2) for cell in [*CELLS][4:]}
  for cells, words in (gone, ''), (CELLS | half, 'the best of 3 rows'):
    place = tmp_path / f'diverged{words}'
    results, = reading.read(workdir(place, cells).path)
    text = ' '.join(untested.sentences(results, {}, 2))
    assert words in text and ('the best of' in text) == bool(words)


def test_a_finished_directory_is_advised_on(finished, capsys, monkeypatch):
  monkeypatch.setenv('COLUMNS', '80')
  assert main(['vfljax', 'advise', str(finished), '--budget=2']) == 0
  out = capsys.readouterr().out
  assert 'Within 2 points of loss, iso 5 leaks least' in out
  assert max(map(len, out.splitlines())) <= 80
  assert 'Not tested' in out and not (finished / 'report.html').exists()


@pytest.mark.parametrize('arguments, message', [
    (['{}'], 'needs a goal, in percentage points: --budget=2'),
    (['{}/none', '--budget=2'], 'is no folder'),
    (['{}', '--budget=-1'], '--budget is in percentage points, 0 to 100'),
    (['{}', '--budget=nan'], '--budget is in percentage points'),
    (['--budget=2'], 'required: folder'),
    (['{}', '--budget=two'], "invalid float value: 'two'"),
])
def test_wrong_commands_are_told_what_is_right(
    tmp_path, capsys, arguments, message
):
  fake_results.make(tmp_path, seeds=2, defenses=('none',))
  given = [a.format(tmp_path) for a in arguments]
  assert main(['vfljax', 'advise', *given]) == 2
  error = capsys.readouterr().err
  assert message in error and len(error.splitlines()) <= 2


@pytest.mark.slow
def test_the_report_has_the_advice_when_there_is_a_goal(tmp_path):
  fake_results.make(tmp_path, defenses=('none', 'iso', 'max_norm'))
  writing.write(tmp_path, goal=Goal(budget=2))
  for file in ('report.html', 'summary.md'):
    text = (tmp_path / file).read_text()
    assert 'Within 2 points of loss' in text and 'Not tested' in text
    # Asked for, it comes first.
    assert text.index('leaks least') < text.index('protects best')
  writing.write(tmp_path)
  assert 'Within 2 points' not in (tmp_path / 'report.html').read_text()


def test_a_run_ends_with_the_verdict_and_the_report(finished, monkeypatch):
  monkeypatch.setenv('COLUMNS', '72')
  lines = ending.text(finished, Goal(budget=2)).splitlines()
  assert max(map(len, lines[:-2])) <= 72  # The last two are paths.
  text = '\n'.join(lines)
  order = ['Optimal PU scores', 'In total: compiling', 'protects best',
           'Within 2 points of loss', 'report.html']
  places = [text.index(words) for words in order]
  assert places == sorted(places)
  assert lines[-1] == f'Report: {finished / "report.html"}'


@pytest.mark.parametrize('columns', [40, 60, 110])
def test_tables_fit_the_terminal(finished, columns):
  results, = reading.read(finished)
  text = terminal.table(advice.evidence(results, Goal(budget=2)), columns)
  assert max(map(len, text.splitlines())) <= columns
  flat = ''.join(text.split())
  assert '…' not in flat and ('27.2±0.5' in flat or columns == 40)


@pytest.mark.parametrize('value', [-1, 101, float('nan'), float('inf')])
def test_goals_out_of_range_are_refused(value):
  with pytest.raises(UserError, match='--max_leak'):
    goal(None, value)
