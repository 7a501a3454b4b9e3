"""VMask's verdicts on made-up rows: whose limit, setting and way decide."""
import math

import pytest

from experiments.vmask import (
    claims, deciding, judges, judges_costs, judges_samples, judges_studies,
    older, paper, table3,
)

COLUMNS = ('TM', 'TFM', 'M', 'FM')
NAN = math.nan


def about(value, off=0.1):
  """Three trainings."""
  return [value - off, value, value + off]


def claim(text):
  """The one whose text has it."""
  found = [c for c in claims.CLAIMS if text in c.text]
  assert len(found) == 1
  return found[0]


@pytest.mark.parametrize('means, up, held', [
    ((5, 4, 4, 3), False, True), ((5, 4, 4, 3), True, False),
    ((3, 4, 4, 5), True, True), ((5, 3, 4, 2), False, False),
    ((4, 4, 4), False, False), ((4,), False, None), ((), False, None),
])
def test_a_trend_goes_one_way_at_every_step(means, up, held):
  assert deciding.trend([about(x) for x in means], up) is held


def test_a_step_back_that_is_not_clear_leaves_a_trend_open():
  steps = [about(5), [4, 4, 4], [4.5, 3.9, 3.9], about(2)]
  assert deciding.trend(steps) is None
  steps[2] = [4.3, 3.7, 3.9]  # Its mean is lower; the next may be unclear.
  assert deciding.trend(steps) is True
  steps[2][0] = NAN
  assert deciding.trend(steps) is None
  assert deciding.trend([[5, 5, 5], [1, 5.1, 5]]) is None  # In all not clear.


@pytest.fixture
def samples(monkeypatch):
  """Rows of Figures 9, 10, Table IV, all alike, which a test may change."""
  kinds = dict(
      sizes=[f'{n} a class' for n in (32, 64, 128)],
      classes=[f'{n} classes' for n in (10, 4, 2)],
      noise=['noise 0', 'noise 10'], outside=['fashion_mnist'],
  )
  found = {
      name + suffix: {
          kind: {'VMask': {
              'main': about(97), 'attack 1': about(38), 'recovered 1': about(90)
          }} for kind in of
      } for name, of in kinds.items() for suffix in ('', '_lenet5')
  }
  for rows in found.values():
    next(iter(rows.values()))['vanilla'] = {
        'main': about(97), 'attack 1': about(80), 'scratch 1': about(40)
    }
  monkeypatch.setattr(older, 'rows', found.__getitem__)
  return found


@pytest.mark.parametrize('record, kind, attack, held', [
    ('sizes', '64 a class', 39.5, True), ('sizes', '64 a class', 40.5, False),
    ('sizes', '32 a class', 60, True), ('sizes', '128 a class', 41, False),
    ('classes', '2 classes', 60, True), ('classes', '4 classes', 41, False),
    ('classes', '10 classes', 41, False), ('noise', 'noise 10', 41, False),
    ('outside', 'fashion_mnist', 60, True),
])
def test_the_papers_samples_are_judged_by_the_budget(
    samples, record, kind, attack, held
):
  ours, theirs = (claim(f'noisy (10) ({text}') for text in (
      'MLP3, our settings, budget 0.25', "LeNet5, authors' settings, budget 0.4"
  ))
  assert ours.judge().held is None  # Scratch, 40, is above its budget.
  assert theirs.judge().held is True
  samples[record][kind]['VMask']['attack 1'] = about(60)  # MLP3's alone.
  assert theirs.judge().held is True
  samples[f'{record}_lenet5'][kind]['VMask']['attack 1'] = about(attack)
  assert theirs.judge().held is held
  assert 'sizes_lenet5' in theirs.records and 'sizes' in ours.records


def test_a_budget_below_scratch_may_be_kept_and_not_exceeded(samples):
  """By the mean of scratch, which is on both sides of the budget."""
  plain = next(iter(samples['sizes'].values()))['vanilla']
  plain['scratch 1'] = [36.0, 41.0, 41.5]
  row = samples['sizes']['64 a class']['VMask']
  found = lambda: judges_samples.within_budget('', 40.5)
  assert found().held is True
  row['attack 1'] = about(50)
  assert found().held is False  # Scratch is 39.5.
  plain['scratch 1'] = [40.0, 41.0, 42.0]
  assert found().held is None and '64 a class' in found().because
  row['attack 1'] = about(38)
  assert found().held is True


def test_a_budget_without_trainings_is_not_judged(monkeypatch):
  monkeypatch.setattr(older, 'rows', lambda name: {})
  assert judges_samples.within_budget('', 40).held is None


def test_a_budget_is_kept_clearly_and_at_no_cost(samples):
  row = samples['noise']['noise 10']['VMask']
  row['attack 1'] = [37.0, 38.0, 42.0]
  assert judges_samples.within_budget('', 40.5).held is None
  row['attack 1'] = about(38)
  assert judges_samples.within_budget('', 40.5).held is True
  row['main'] = [x - 0.4 for x in about(97)]
  assert judges_samples.within_budget('', 40.5).held is False
  row['main'] = [x - 0.3 for x in about(97)]
  assert judges_samples.within_budget('', 40.5).held is True


@pytest.mark.parametrize('gap, lost, held', [
    (5.6, 0.3, True), (5.8, 0.3, False), (-9, 0.3, True), (5.6, 0.4, False),
])
def test_another_tasks_samples_are_judged_by_scratch(samples, gap, lost, held):
  """By Table IV's own most, of the records with other tasks alone."""
  assert judges_samples.MOST_OUTSIDE == pytest.approx(43.37 - 37.67)
  samples['sizes_lenet5']['64 a class']['VMask']['attack 1'] = about(90)
  row = samples['outside_lenet5']['fashion_mnist']['VMask']
  row['attack 1'] = about(40 + gap)
  row['main'] = [x - lost for x in about(97)]
  found = claim('attack is near or below "Scratch" (LeNet5')
  assert found.judge().held is held
  other = claim('attack is near or below "Scratch" (MLP3')
  assert other.judge().held is True


@pytest.mark.parametrize('record, text, right', [
    ('sizes', 'more auxiliary samples make',
     {'shadow': True, 'attack 1': False, 'mask_ratio': True}),
    ('classes', 'fewer classes or more noise make',
     {'shadow': False, 'simulated_leakage': False, 'mask_ratio': False}),
    ('noise', 'fewer classes or more noise make',
     {'shadow': False, 'simulated_leakage': False, 'mask_ratio': False}),
])
def test_samples_are_judged_by_the_way_that_the_paper_says(
    samples, record, text, right
):
  one = next(c for c in claims.CLAIMS if text in c.text and 'MLP3' in c.text)
  for rows in samples.values():
    _go(rows, right)
  assert one.judge().held is True
  for measure, up in right.items():
    _go(samples[record], {measure: not up})
    found = one.judge()
    assert found.held is False and 'does not ' + ('rise' if up else 'fall') in (
        found.because
    )
    _go(samples[record], {measure: up})
  _go(samples[f'{record}_lenet5'], {'shadow': not right['shadow']})
  assert one.judge().held is True


def _go(rows, ways):
  for i, row in enumerate(rows.values()):
    for measure, up in ways.items():
      row['VMask'][measure] = about(50 + i if up else 50 - i)


@pytest.mark.parametrize('attack, held', [(42.9, True), (43.2, False)])
def test_ours_is_judged_by_the_usual_samples(samples, attack, held):
  found = claim('leave the attacker about what the usual ones do (LeNet5')
  assert found.where.startswith('ours')
  samples['noise_lenet5']['noise 10']['VMask']['attack 1'] = about(attack)
  assert found.judge().held is held


@pytest.fixture
def budgets(monkeypatch):
  """Figure 8's rows by record: attack and main at six budgets."""
  found = {}
  for record in ('fig8', 'fig8_authors', 'fig8_lenet5'):
    rows = {'none None': dict(main=about(97), attack=about(10))}
    for who in ('20 epochs', 'VMask 50x5'):
      for i, b in enumerate((0.8, 0.7, 0.6, 0.5, 0.4, 0.25)):
        rows[f'{who} {b}'] = dict(
            main=[x - 0.3 for x in about(97)], attack=about(70 - i),
            mask_ratio=about(10 + i),
        )
    found[record] = rows
  monkeypatch.setattr(older, 'budgets', found.__getitem__)
  return found


def test_the_attack_falls_with_every_budget_of_every_defender(budgets):
  found = claim('the attack falls with the budget (MLP3')
  assert found.judge().held is True
  budgets['fig8_lenet5']['VMask 50x5 0.25']['attack'] = about(90)
  assert found.judge().held is True
  other = claim('the attack falls with the budget (LeNet5')
  assert other.judge().held is False
  for record, who in (('fig8', '20 epochs'), ('fig8_authors', 'VMask 50x5')):
    row = budgets[record][f'{who} 0.5']
    row['attack'] = about(69)  # Above that at 0.6, below that at 0.8.
    assert found.judge().held is False
    row['attack'] = [67.0, 71.0, 67.0]  # Not clearly above.
    assert found.judge().held is None
    row['attack'] = about(67)
  del budgets['fig8']['20 epochs 0.7']
  assert found.judge().held is None


@pytest.mark.parametrize('lost, held', [(0.3, True), (0.4, False)])
def test_main_is_vanillas_at_every_budget(budgets, lost, held):
  row = budgets['fig8_authors']['20 epochs 0.8']
  row['main'] = [x - lost for x in about(97)]
  found = claim('main accuracy stays that of vanilla (MLP3')
  assert found.judge().held is held
  other = claim('main accuracy stays that of vanilla (LeNet5')
  assert other.judge().held is True


def test_a_smaller_budget_hides_more_in_each_network(budgets):
  budgets['fig8_lenet5']['VMask 50x5 0.25']['mask_ratio'] = about(5)
  assert claim('a smaller budget hides more (MLP3').judge().held is True
  assert claim('a smaller budget hides more (LeNet5').judge().held is False


def test_at_scratch_is_as_near_as_the_papers_own_variant():
  for variant, most in judges.MOST_LEFT.items():
    at = paper.ROWS.index(variant)
    gaps = [paper.ATTACK[c][at] - paper.BASELINES[c][1] for c in COLUMNS]
    assert round(max(gaps), 1) == most


@pytest.mark.parametrize('gap, held, masked', [
    (1.3, True, True), (1.8, True, False), (2.4, False, False),
])
def test_vmask_as_is_judged_by_its_own_rows_and_limit(
    monkeypatch, gap, held, masked
):
  gone = dict(main=about(90), attack=about(40 + gap))
  kept = dict(main=about(97), attack=about(40))
  rows = dict(none=dict(
      main=about(97), attack=about(70), scratch=about(40)
  ))
  monkeypatch.setattr(older, 'column', lambda *_: rows)
  monkeypatch.setattr(older, 'again', dict)
  for of in ('our', "authors'"):
    scratch = claim(f'reduces the attack to "Scratch", too ({of}')
    main = claim(f'VMask-AS keeps the main accuracy, too ({of}')
    rows.update({'VMask-AS': gone, 'VMask': kept})
    assert scratch.judge().held is held and main.judge().held is False
    rows.update({'VMask-AS': kept, 'VMask': gone})
    assert scratch.judge().held is True and main.judge().held is True
  assert judges.at_scratch('authors').held is masked


def test_all_layers_decide_where_scratch_does_not(monkeypatch):
  """Scratch spreads by 6; what hides all layers leaves just as much."""
  found = dict(main=about(97), attack=[40.0, 44.0, 42.0])
  rows = {
      'none': dict(attack=about(70), scratch=[46.0, 40.0, 40.0]),
      'VMask': found,
  }
  assert judges._left(rows, 'VMask')[0] is None
  held, text = judges._left(rows | {'VMask-ALLS': found}, 'VMask')
  assert held is True and text.endswith(' (0.0 +- 0.0 from VMask-ALLS)')


@pytest.mark.parametrize('model, which, ratio, held', [
    ('mlp3', 'one', 3.2, True), ('mlp3', 'two', 4.0, False),
    ('mlp3', 'one', 4.0, False), ('mlp3', 'all', 4.8, True),
    ('mlp3', 'all', 5.0, False), ('lenet5', 'two', 5.5, True),
    ('lenet5', 'two', 7.0, False), ('lenet5', 'all', 7.5, True),
    ('lenet5', 'all', 7.6, False),
])
def test_all_layers_in_shares_are_held_to_vmask_alls(
    monkeypatch, model, which, ratio, held
):
  rows = {
      m: {s: dict(ratio_with_lan=2.0) for s in ('one', 'two', 'all')}
      for m in table3.PAPER
  }
  rows[model][which]['ratio_with_lan'] = ratio
  models = {m: dict(seconds_an_epoch=found) for m, found in rows.items()}
  monkeypatch.setattr(older, 'bench', lambda _: dict(
      runs=dict(default=dict(models=models))
  ))
  assert judges_costs.costs().held is held


@pytest.fixture
def curves(monkeypatch):
  """Figure 5's record, which a test may fill."""
  found = {}
  monkeypatch.setattr(older, 'record', lambda name: dict(
      curves=found if name == 'fig5_tm' else {}
  ))
  return found


def curve(*means):
  """[trainings, epochs, attack runs]."""
  return dict(attack=[
      [[x / 100 + off] * 2 for x in means] for off in (-0.01, 0, 0.01)
  ])


@pytest.mark.parametrize('means, each, still', [
    ((50, 55, 60), True, True), ((50, 60, 55), False, True),
    ((60, 55, 50), False, False), ((50, 45, 50), False, False),
])
def test_attacks_rise_by_epoch(curves, means, each, still):
  names = ('dCor', 'LabelDP', 'MID')
  one, others = claim("vanilla's attack increases"), claim('still has')
  curves |= {name: curve(50, 60) for name in ('none', 'VMask', *names)}
  assert one.judge().held is True and others.judge().held is True
  curves['none'] = curve(*means)
  assert one.judge().held is each and others.judge().held is True
  curves['none'] = curve(50, 60)
  for name in names:
    curves[name] = curve(*means)
    assert others.judge().held is still and one.judge().held is True
    curves[name] = curve(50, 60)
  curves['MID']['attack'][0][-1] = [0.4, 0.4]  # One training falls.
  assert others.judge().held is None


@pytest.mark.parametrize('layers, apart, first', [
    ((9, 1, 5, 2), True, True), ((9, 5, 1, 2), False, True),
    ((2, 1, 5, 9), False, False), ((5, 1, 2, 9), True, False),
    ((1, 5, 2, 9), True, False), ((5, 1, 5, 2), True, False),
])
def test_norms_of_layers(curves, layers, apart, first):
  others = curves['VMask-AS'] = dict(norms=[[[1.0, 9.0, 8.0, 1.0]] * 2] * 3)
  found = curves['VMask'] = dict(norms=[[list(layers)] * 2 for _ in range(3)])
  assert judges_studies.top_two_apart().held is apart
  assert judges_studies.first_is_largest().held is first
  found['norms'][0] = [[9, 1, 5, 2], [9, 5, 1, 2]]  # Once in one training.
  held = judges_studies.top_two_apart().held
  assert held is (None if apart else False)
  curves['VMask'] = others
  assert judges_studies.first_is_largest().held is False


def test_the_first_layers_norm_is_larger_after_every_epoch(curves):
  found = curves['VMask'] = dict(norms=[
      [[9 + off, 5, 1], [9, 8, 1]] for off in (0, 1, 2)
  ])
  assert judges_studies.first_is_largest().held is True
  found['norms'][0][1] = [6, 8, 1]
  assert judges_studies.first_is_largest().held is None
  found['norms'][1][1] = found['norms'][2][1] = [6, 8, 1]
  assert judges_studies.first_is_largest().held is False
  found['norms'][1][1] = [NAN, 8, 1]
  assert judges_studies.first_is_largest().held is None
