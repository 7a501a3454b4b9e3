"""VMask's verdicts on altered records: noise and gaps never make one hold."""
import copy
import math

import numpy as np
import pytest

from experiments import claims, evidence
from experiments.vmask import (
    deciding, fig8, judges, judges_costs, judges_samples, judges_studies,
    judges_trades, numbers, older, tables, tables_runs, tables_studies,
)

COLUMNS = ('TM', 'TFM', 'M', 'FM')
NAN = math.nan


@pytest.fixture
def altered(monkeypatch):
  """Records that a test may change."""
  records, real = {}, older.record

  def record(name):
    if name not in records:
      records[name] = copy.deepcopy(real(name))
    return records[name]

  monkeypatch.setattr(older, 'record', record)
  return record


@pytest.fixture
def columns(monkeypatch):
  """The columns of Table II, our settings, which a test may change."""
  found, real = {c: older.column(c) for c in COLUMNS}, older.column
  monkeypatch.setattr(older, 'column', lambda name, of='table2': (
      found[name] if of == 'table2' else real(name, of)
  ))
  return found


def lose(found):
  """Every number in it becomes NaN."""
  if isinstance(found, dict):
    return {key: lose(value) for key, value in found.items()}
  if isinstance(found, list):
    return [lose(value) for value in found]
  return NAN if isinstance(found, (int, float)) else found


@pytest.mark.parametrize('values, limit, found', [
    ([0.1, 0.2, 0.3], 0.34, True),
    ([0.1, 0.2, 0.6], 0.34, None),  # 0.3, but they deviate by 0.26.
    ([1.0, -1.2, 1.7], 0.34, None),  # What was 'held' for its noise.
    ([1.0, 1.1, 1.2], 0.34, False),
    ([0.1, NAN, 0.1], 0.34, None), ([1.0, NAN, 1.0], 0.34, False),
    ([NAN, NAN], 0.34, None), ([], 0.34, None),
    ([0.1], 0.34, None), ([0.5], 0.34, False),  # One training keeps nothing.
])
def test_a_limit_is_kept_by_what_trainings_deviate(values, limit, found):
  assert deciding.within(values, limit) is found


def test_more_noise_never_makes_a_claim_hold():
  values = [0.0, 0.1, 0.2]
  for spread in (1, 2, 4, 8):
    wider = [0.1 + spread * (x - 0.1) for x in values]
    assert deciding.within(wider, 0.34) is (True if spread < 4 else None)
    assert deciding.within(wider, 0.0) is (False if spread < 2 else None)


def test_of_nothing_nothing_holds():
  assert deciding.every([]) is None
  assert deciding.every([True, None]) is None
  assert deciding.every([True, None, False]) is False
  assert deciding.below([0.0, 0.0]) is False
  assert deciding.remarks({}) == '; nothing to compare'


JUDGES = [
    (judges.keeps_main, 'table2'), (judges.at_scratch, 'table2'),
    (judges.within_budget, 'fig8_authors', '20 epochs', False),
    (judges.within_budget, 'fig8_authors', 'VMask 50x5', True),
    (judges.keeps_main, 'table2', 'VMask-AS'),
    (judges.smaller_hides_more, 'fig8', 'fig8_authors'),
    (judges.smaller_leaves_less, 'fig8'), (judges.main_at_budgets, 'fig8'),
    (judges.falling, ('1', '2', '3'), True, 'table1_mlp3'),
    (judges.falling, ('1', '1,2'), False, 'table1_mlp3'),
    (judges.not_adjacent, 'table1_mlp3'),
    (judges_studies.more_parties, 'parties'),
    (judges_studies.more_parties, 'attackers'),
    (judges_samples.within_budget, '_lenet5', 40),
    (judges_samples.other_task, '_lenet5'),
    (judges_samples.trends, ('sizes',), '', judges_samples.MORE),
    (judges_samples.near_the_usual, '_lenet5'),
    (judges_samples.near_the_usual, ''),
    (judges_studies.rises_each_epoch, 'none'),
    (judges_studies.still_rises, ('MID',)), (judges_studies.top_two_apart,),
    (judges_studies.first_is_largest,),
    (judges_studies.close_throughout,), (judges_studies.lowest_throughout,),
    (judges_trades.random_is_worse,), (judges_trades.hardly_help, ('NG',)),
    (judges_trades.best_trade, ('NG', 'dCor')),
    (judges_costs.transcript_is_no_use,), (judges_costs.cheaper,),
]
NAMES = (
    'table1_mlp3', 'parties', 'attackers', 'fig5_tm', *judges_costs.ADAPTIVE,
    *(f'transcript_{c.lower()}' for c in older.AGAIN),
    *(n + s for n in tables_studies.AUXILIARY for s in ('', '_lenet5')),
)


@pytest.mark.parametrize('judge', JUDGES, ids=lambda j: j[0].__name__)
def test_what_is_no_number_never_holds(altered, monkeypatch, judge):
  for name in NAMES:
    found = altered(name)
    found.update(lose(found))
  for reader in ('column', 'budgets', 'bench'):
    monkeypatch.setattr(older, reader, lambda *of, real=getattr(older, reader):
                        lose(real(*of)))
  found = judge[0](*judge[1:])
  assert found.held is not True and found.because


def test_vmask_diverged_is_no_best_trade(columns, monkeypatch):
  """Nor are attacks that ended in no number within a budget."""
  for c in COLUMNS:
    columns[c]['VMask'] = lose(columns[c]['VMask'])
  assert judges_trades.best_trade(('NG',)).held is None
  assert judges.keeps_main('table2').held is None
  monkeypatch.setattr(older, 'budgets', lambda of, real=older.budgets: {
      name: lose(found) if name.startswith('VMask') else found
      for name, found in real(of).items()
  })
  found = judges.within_budget('fig8_authors', 'VMask 50x5', True)
  assert found.held is None and 'not decided: 0.8, 0.7' in found.because
  points = {('none', None): (97.0, 66.0), ('dCor', 0.15): (96.0, 41.0)}
  monkeypatch.setattr(tables_runs, 'points', lambda *_: points)
  found = judges_trades.best_of_strengths()
  assert found.held is None and 'VMask diverged' in found.because


def test_a_missing_row_is_not_decided(altered, columns):
  """Not a comparison that nobody failed."""
  for c in COLUMNS:
    del columns[c]['NG']
    del columns[c]['VMask-RS']
  assert judges_trades.hardly_help(('NG',)).held is None
  assert judges_trades.best_trade(('NG',)).held is None
  found = judges_trades.random_is_worse()
  assert 'not decided: TM (our settings)' in found.because
  for rows in altered('parties')['rows'].values():
    rows['VMask'] = {}
  assert judges_studies.more_parties('parties').held is None
  del altered('table1_mlp3')['attack_accuracy']['2']
  which = ('1', '2', '3')
  assert judges.falling(which, True, 'table1_mlp3').held is None
  altered('crypto')['costs']['ours'] = {}
  assert judges_costs.cheaper().held is None


def test_no_model_measured_is_no_cost_that_is_kept(monkeypatch):
  models = older.bench('vmask')['runs']['default']['models']
  bench = dict(runs=dict(default=dict(models=models)))
  monkeypatch.setattr(older, 'bench', lambda name: bench)
  assert judges_costs.costs().held is False
  bench['runs']['default']['models'] = {}
  assert judges_costs.costs().held is None


@pytest.mark.parametrize('gaps, held', [
    ([3, 4, 5], True), ([-1, 4, -2], None), ([-3, -4, -5], False),
    ([0, 0, 0], False), ([3, 4, math.nan], None),
])
def test_random_layers_are_no_worse_only_if_seeds_tell(
    gaps, held, monkeypatch
):
  one = rows([90, 90, 90], [40, 40, 40])
  other = rows([90, 90, 90], [40 + gap for gap in gaps])
  monkeypatch.setattr(
      older, 'column', lambda *of: {'VMask': one, 'VMask-RS': other}
  )
  assert judges_trades.random_is_worse().held is held


def rows(main, attack):
  return dict(main=main, attack=attack)


@pytest.mark.parametrize('other, found', [
    (rows([95.0, 95.1, 94.9], [40.0] * 3), True),  # Main clearly lower.
    (rows([96.0] * 3, [60.0, 61.0, 62.0]), True),  # Attack clearly higher.
    (rows([95.6, 95.4, 95.7], [40.0, 40.1, 40.2]), False),
    (rows([96.35, 94.8, 95.3], [44.0, 46.1, 44.1]), None),  # By 0.02, of 0.8.
    (rows([95.4, NAN, NAN], [60.0, NAN, NAN]), None), ({}, None),
])
def test_a_trade_is_better_if_it_is_clearly(other, found):
  masked = rows([96.0] * 3, [45.0] * 3)
  assert judges_trades.beaten(masked, other)[0] is found
  masked['main'] = [96.0, NAN, 96.0]
  assert judges_trades.beaten(masked, other)[0] is None


def test_near_misses_are_named():
  found = judges_trades.best_trade(('dCor', 'MID', 'NG'))
  good, near = found.because.split('; not told from it')
  assert found.held is False and 'TM dCor -0.41 / -0.03' in good
  assert 'FM MID' in near and 'NG' not in good
  assert judges_trades.best_of_strengths('fig6_lenet5').held is False


def test_figure_6_is_judged_by_how_trainings_deviate(monkeypatch):
  """Of three trainings a point; of one it can only be over the limit."""
  found = judges_trades.best_of_strengths('fig6')
  assert found.held is None and 'as good: none' in found.because
  unclear = found.because.split('not told from it: ')[1]
  assert 'dCor 0.15 96.07 / 43.14' in unclear and 'FedPass' not in unclear
  rows = {
      ('none', None): dict(main=[97.0] * 2, attack=[66.0] * 2),
      ('VMask', 0.5): dict(main=[97.0, 97.2], attack=[48.0, 47.0]),
      ('dCor', 0.5): dict(main=[92.0, 93.0], attack=[22.0, 23.0]),
  }
  monkeypatch.setattr(older, 'of_cells', lambda name: rows)
  assert judges_trades.best_of_strengths('x').held  # It costs far too much.
  rows['MID', 0.1] = dict(main=[96.9, 97.0], attack=[48.5, 46.0])
  found = judges_trades.best_of_strengths('x')
  assert found.held is False and 'as good: MID 0.1 96.95 / 47.25' in (
      found.because
  )
  rows['MID', 0.1] = dict(main=[math.nan] * 2, attack=[math.nan] * 2)
  assert judges_trades.best_of_strengths('x').held  # What diverged is no rival.
  rows['VMask', 0.1] = dict(main=[math.nan] * 2, attack=[math.nan] * 2)
  found = judges_trades.best_of_strengths('x')
  assert found.held is None and '/ 47.5, diverged; ' in found.because


def test_parties_are_judged_by_training_and_only_where_there_is_a_leak():
  found = judges_studies.more_parties('parties')
  assert found.held is False
  assert '2 parties +9.5, -4.3, +8.6' in found.because
  said, out = found.because.split('left out')
  assert '8 parties' not in said and '8 parties (+0.7' in out
  assert f'tm_full {older.signed(numbers.full_gap())}' in out
  assert 'other attack runs +' in out


def test_what_parties_lose_is_judged_by_the_papers_own_limits(altered):
  """Section V-G: less than 0.1 points with one attacker, 0.5 where all are."""
  for record, lost, held in (
      ('parties', 0.0005, True), ('parties', 0.002, False),
      ('attackers', 0.002, True), ('attackers', 0.006, False),
  ):
    found = altered(record)['rows']
    rows = found['2 parties']
    found.clear()
    found['2 parties'] = rows
    rows['vanilla']['main'], rows['VMask']['main'] = [0.97] * 3, [
        0.97 - lost
    ] * 3
    rows['VMask']['attack 1'] = rows['vanilla']['scratch 1']
    assert judges_studies.more_parties(record).held is held, (record, lost)


def test_figure_5_is_judged_epoch_by_epoch(altered):
  found = judges_studies.close_throughout()
  assert found.held is False
  assert 'after epoch 1: 55.3 against 42.4' in found.because
  assert judges_studies.lowest_throughout().held is False
  curves = altered('fig5_tm')['curves']
  curves['VMask']['attack'] = curves['none']['scratch']
  assert judges_studies.close_throughout().held is True
  curves['VMask']['attack'][0][0] = [NAN, NAN]
  assert judges_studies.close_throughout().held is None


def test_in_figure_5_most_epochs_must_be_clear(altered):
  """Of ten: six, where half of them do not decide."""
  curves = altered('fig5_tm')['curves']
  masked = np.full((3, 10, 2), 0.4)
  curves['VMask']['attack'] = masked.tolist()
  for clear, held in ((4, None), (5, None), (6, True)):
    theirs = masked + 0.1
    theirs[0, clear:] = 0.39
    for name, one in curves.items():
      if 'attack' in one and name != 'none' and not name.startswith('VMask'):
        one['attack'] = theirs.tolist()
    assert judges_studies.lowest_throughout().held is held


def test_budgets_of_a_run_are_read_by_defender_and_budget():
  """As the record's own lines have them, training by training."""
  lines = {
      tuple(line[:4]): line[-1] for line in older.record('fig8')['rows']
  }
  rows = older.budgets('fig8')
  best = 'model_completion', 'accuracy_best'
  for who in ('20 epochs', 'VMask 50x5'):
    for budget in fig8.BUDGETS:
      want = [100 * x for x in lines[who, budget, *best]]
      assert rows[f'{who} {budget}']['attack'] == pytest.approx(want)
  want = [100 * x for x in lines['none', None, 'scratch', 'accuracy_best']]
  assert rows['none None']['scratch'] == pytest.approx(want)


def test_each_record_is_judged_by_its_own_numbers():
  """Of ours an attack imagined for 20 epochs is over two budgets."""
  ours = judges.within_budget('fig8', '20 epochs', False)
  assert ours.held is False and 'at 0.4, 44.0 +- 4.4 at 0.25' in ours.because
  assert judges.within_budget('fig8', 'VMask 50x5', True).held is True
  theirs = judges.within_budget('fig8_authors', '20 epochs', False)
  assert theirs.held is False and '46.3 +- 1.5 at 0.25' in theirs.because
  assert judges.within_budget('fig8_authors', 'VMask 50x5', True).held is True


def test_one_training_can_only_be_over_a_budget(monkeypatch):
  assert judges.recorded_within_budget('fig8_lenet5').held is False
  for value, held in (90.0, False), (10.0, None):
    monkeypatch.setattr(evidence, 'quantity', lambda _, cell, name, x=value: {
        0: 10.0 if name.startswith(tables_runs.SCRATCH) else x
    })
    assert judges.recorded_within_budget('fig8_lenet5').held is held


def test_verdicts_from_records_without_a_commit_are_marked():
  """In CLAIMS.md by a sign; the README lists those of the method as it is."""
  assert claims.unsigned('vmask', 'sizes_lenet5')
  assert not claims.unsigned('vmask', 'tm_full')
  by_records = {c.records: c for c in claims.of('vmask')}
  new = by_records['fig6_lenet5',]
  old = new._replace(records=('sizes_lenet5',))
  assert claims.word('vmask', old, True) == 'held °'
  assert claims.word('vmask', new, None) == 'not decided'
  mixed = new._replace(records=('fig6_lenet5', 'sizes_lenet5'))
  assert claims.word('vmask', mixed, False) == '**did not hold** ¹ °'
  assert claims.word('vmask', new, True) == 'held ¹'  # It is of one seed.
  nothing = claims.untestable('', '', 'why')
  assert claims.word('vmask', nothing, None) == 'not testable here'
  listed = tables.TABLES['as_it_is']()
  assert 'records/tm_full.json' in listed and 'sizes_lenet5.json' not in listed
  assert '°' not in listed and listed.count('\n') == 1 + int(
      tables.NUMBERS['signed_verdicts']().split()[0]
  )
