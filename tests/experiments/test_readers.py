"""What attackers on gradients read, and what that decides."""
import math

import pytest

from experiments import evidence, readers
from experiments.claims import Claim
from experiments.plugvfl import agreed, claims, rows
from experiments.vmask import judges_trades, older
from vfljax.report import reading

# By defense: (learned at the start, at the end), (clustered at both), in
# percent, for two seeds each.
Table = dict[tuple[str, float | None], tuple[tuple[float, ...], ...]]
NONE = ('none', None)


def results(found: Table, accuracy=None, few=50.0):
  base = dict(experiment='e', dataset='d', algorithm='vhnn')
  lines = []
  for (defense, strength), values in found.items():
    here = base | dict(defense=defense, strength=strength)
    pairs = [(a, m) for a in readers.READERS.values()
             for m in readers.TIMES.values()]
    for (attack, metric), by_seed in zip(pairs, values, strict=True):
      lines += [
          here | dict(attack=attack, metric=metric, split='train', seed=seed,
                      value=value / 100)
          for seed, value in enumerate(by_seed)
      ]
    own = (accuracy or {}).get(defense, 90.0)
    for seed in range(len(values[0])):
      lines += [
          here | dict(attack=attack, metric=metric, split='test', seed=seed,
                      value=value / 100)
          for attack, metric, value in (
              (None, 'accuracy', own), (None, 'quit_accuracy', 50.0),
              ('model_completion', 'accuracy_last', few),
          )
      ]
  (made,) = reading.of_rows(lines, {}, 10)
  return made


FOUND: Table = {NONE: ((10, 30), (20, 60), (50, 70), (40, 20))}


def test_the_better_attacker_counts_at_each_time():
  made = results(FOUND)
  read = readers.read(made, NONE)
  assert (read.start, read.end) == pytest.approx((60, 40))
  assert read.all == pytest.approx(60)
  # And for a seed by itself the better of both times, too.
  assert readers.by_seed(made, NONE) == pytest.approx({0: 50, 1: 70})


@pytest.mark.parametrize('lost', range(4))
def test_an_attacker_without_a_number_is_not_passed_over(lost):
  values = [(10.0, 30.0)] * 4
  values[lost] = (math.nan, 30.0)
  made = results({NONE: tuple(values)})
  assert math.isnan(readers.read(made, NONE).all)
  assert math.isnan(readers.by_seed(made, NONE)[0])
  assert readers.by_seed(made, NONE)[1] == pytest.approx(30)


def test_a_table_has_both_attackers_at_both_times():
  text = readers.table(results(FOUND), lambda cell: cell[0], lambda cell: 'x')
  assert text.splitlines()[0].split(' | ')[1:] == [
      'accuracy', 'completion', 'learned: start', 'learned: end',
      'clustered: start', 'clustered: end |',
  ]
  assert 'none | 90.0 +- 0.0 | x | 20.0 +- 14.1 | 40.0 +- 28.3' in text


@pytest.mark.parametrize('at_end, cost, held', [
    (12, 1, True), (40, 1, False), (12, 3, False),
])
def test_plugvfl_is_judged_by_what_gradients_tell(
    at_end, cost, held, monkeypatch
):
  same = lambda *values: tuple((v, v) for v in values)
  made = results(
      {NONE: same(90, 90, 90, 90), ('plugvfl', 0.1): same(11, at_end, 10, 10)},
      dict(plugvfl=90.0 - cost),
  )
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, made)
  )
  found = claims._in_gradients(2)
  assert found.held is held
  if cost > 2:
    assert found.because == 'no row costs less than 2 points'
    return
  assert f'11.0 % before training, {at_end}.0 after, for 1.0' in found.because
  assert 'no defense: 90.0' in found.because
  assert rows.results('gradients').seeds == [0, 1]


@pytest.mark.parametrize('others', [(60.0,), (math.nan,), (60.0, math.nan)])
def test_the_row_that_tells_least_decides(others, monkeypatch):
  """Of those with a number, whatever their order."""
  same = lambda value: ((value, value),) * 4
  for order in (1, -1):
    read = [*others, 12.0][::order]
    made = results({NONE: same(90)} | {
        ('plugvfl', 0.1 * i): same(x) for i, x in enumerate(read, start=1)
    }, dict(plugvfl=89.0))
    monkeypatch.setattr(
        evidence, 'load', lambda paper, name, r=made: evidence.Kept({}, r)
    )
    assert claims._in_gradients(2).held is True


def test_without_a_number_gradients_decide_nothing(monkeypatch):
  lost = ((math.nan, math.nan),) * 4
  made = results({NONE: lost, ('plugvfl', 0.1): lost}, dict(plugvfl=89.0))
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, made)
  )
  assert claims._in_gradients(2).held is None


def test_a_seed_that_gradients_tell_nothing_leaves_it_open(monkeypatch):
  made = results({
      NONE: ((90.0,) * 3,) * 4, ('plugvfl', 0.1): ((9.0, 60.0, 70.0),) * 4,
  }, dict(plugvfl=89.0))
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, made)
  )
  claim = Claim('', '', lambda: claims._in_gradients(2), ('gradients',))
  found = agreed.by_each_seed(claim).judge()
  assert found.held is None and 'by 1 of 3 seeds' in found.because


def test_vmasks_rivals_are_judged_by_what_gradients_tell(monkeypatch):
  same = lambda value: ((value, value),) * 4
  made = results({
      NONE: same(99), ('VMask', 0.25): same(99), ('NG', 1.0): same(30),
      ('LabelDP', 3.0): same(12),
  })
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, made)
  )
  completed = dict(none=dict(attack=[84.0, 84.0]))
  monkeypatch.setattr(older, 'column', lambda name: completed)
  assert judges_trades.most_by_completion().held is False
  assert judges_trades.gradients_mitigated(('NG',)).held is False
  assert judges_trades.gradients_mitigated(('NG', 'LabelDP')).held is True
  completed['none']['attack'] = [99.5, 99.5]
  assert judges_trades.most_by_completion().held is True
