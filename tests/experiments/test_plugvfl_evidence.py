"""By which criteria PlugVFL's claims are decided, and what its README says."""
import json

import pytest

from experiments import evidence
from experiments.claims import Claim, Verdict
from experiments.plugvfl import (
    agreed, claims, fig3, quits, rivals, rows, said,
)
from experiments.plugvfl.rows import Row
from vfljax.report import reading


def row(label, loss, few, strength=None, accuracy=90.0, after=80.0, all_=50.0):
  name = label if strength is None else f'{label} {strength:g}'
  return Row(name, label, strength, accuracy, after, loss, few, all_)


def use(monkeypatch, found, own=89.0, free=49.5):
  """`found` stands for the rows of records by name."""
  by_name = lambda record, kind='': {r.name: r for r in found[record]}
  for module in (claims, quits, rivals, said):
    monkeypatch.setattr(module, 'rows', by_name)
    if hasattr(module, 'alone'):
      monkeypatch.setattr(module, 'alone', lambda record: own)
  for module in (rivals, rows):
    monkeypatch.setattr(
        module, 'untrained', lambda record: dict(few=free, all=free)
    )


NONE, PLUG = row('none', 0, 70), row('plugvfl drop=0', 1, 12, 0.1)


@pytest.mark.parametrize('theirs, ours, held', [
    ([row('NG', 2, 60)], [PLUG], True),
    ([row('NG', 2, 60), row('NG', 0, 69, 0.1)], [PLUG], True),
    # No row of PlugVFL is as cheap, or there is none: nothing is compared.
    ([row('NG', 0, 69)], [PLUG], None),
    ([row('NG', 2, 60)], [], None),
    ([], [PLUG], None),
    ([row('NG', 2, 12)], [PLUG], False),
    ([row('NG', 2, 60), row('GC', 2, 10)], [PLUG], False),
    # What diverged is named, and decides nothing.
    ([row('NG', 2, float('nan'))], [PLUG], None),
    ([row('NG', 2, float('nan')), row('GC', 2, 60)], [PLUG], True),
    ([row('NG', float('nan'), 60)], [PLUG], None),
    ([row('NG', 2, 60)], [PLUG._replace(few=float('nan'))], False),
    # Figure 4 has no quits in training, and one step of psi a round.
    ([row('NG', 2, 60)], [row('plugvfl drop=0.05', 1, 12, 0.1)], None),
    ([row('NG', 2, 60)], [row('5 psi steps', 1, 12, 0.1)], None),
])
def test_a_baseline_without_a_comparison_decides_nothing(
    monkeypatch, theirs, ours, held
):
  use(monkeypatch, dict(theirs=[NONE, *theirs], own=[NONE, *ours]))
  assert rivals.beaten('theirs', 'own').held is held


@pytest.mark.parametrize('loss, few', [
    (float('nan'), 60), (2, float('nan')), (float('nan'), 10),
])
def test_what_diverged_is_named_and_is_neither_cheap_nor_at_guessing(
    monkeypatch, loss, few
):
  theirs = [NONE, row('NG', loss, few), row('GC', 2, 60)]
  use(monkeypatch, dict(theirs=theirs, own=[NONE, PLUG]))
  beaten, price = rivals.beaten('theirs', 'own'), rivals.price('theirs')
  for said_ in (beaten, price):
    assert 'diverged: NG' in said_.because
  assert beaten.held and 'not compared' not in beaten.because
  assert price.held is None


def test_what_is_not_compared_is_said(monkeypatch):
  found = dict(theirs=[NONE, row('NG', 2, 60), row('NG', 0, 69, 0.1)],
               own=[NONE, PLUG])
  use(monkeypatch, found)
  said_ = rivals.beaten('theirs', 'own').because
  assert 'no more: NG 60 (12); not compared, as' in said_
  assert said_.endswith('so little: NG 0.1 69') and '(-)' not in said_


def test_a_verdict_says_what_guessing_is_and_how_near_it_is(monkeypatch):
  use(monkeypatch, dict(r=[NONE, PLUG]), free=15.3)
  found = claims.reached([PLUG], 'few', 2, 'r')
  assert found.held
  assert found.because.endswith(
      'at guessing is at most 15 %, in the paper 10; an untrained extractor '
      '15.3, nearly the limit without a defense'
  )
  use(monkeypatch, dict(r=[NONE, PLUG]))
  far = claims.reached([PLUG], 'few', 2, 'r')
  assert far.because.endswith('extractor 49.5')
  assert claims.reached([PLUG], 'few', 1, 'r').held is False
  assert claims.reached([], 'few', 2, 'r').held is None
  unread = row('plugvfl', 1, float('nan'), 0.1)
  assert claims.reached([unread], 'few', 2, 'r').held is None


def quitting(*ps, none=50.0):
  """Rows: (p, points before, after)."""
  return [
      row('no defense', 0, 0, after=none),
      *(Row(f'p = {p:g}', f'plugvfl drop={p:g}', None, 90 - loss, after, loss,
            0, 0) for p, loss, after in ps),
  ]


@pytest.mark.parametrize('ps, held', [
    ([(0, 0, 50), (0.05, 0, 54.5), (0.3, -0.6, 57.7)], True),
    ([(0, 0, 50), (0.05, 0, 54.5), (0.3, 0.6, 57.7)], False),
    ([(0, 0, 50), (0.05, 0, 57)], False),  # over 7
    ([(0, 0, 50)], None),
    ([(0, 0, 50), (0.05, float('nan'), float('nan'))], False),
])
def test_seven_points_may_come_back_at_any_p(monkeypatch, ps, held):
  use(monkeypatch, dict(r=quitting(*ps)))
  assert quits.some_p('r').held is held


def test_the_papers_own_table_has_no_five_and_a_half_points(monkeypatch):
  none = fig3.TABLE_3['plugvfl drop=0']
  for label, (before, after) in fig3.TABLE_3.items():
    if label.startswith('plugvfl'):
      assert not (none[0] - before < 0.5 and after - none[1] > 5.5)
  assert quits.table3() == (
      "the paper's own Table 3 has 5.36 for 0.37 at p = 0.05"
  )
  assert '5.36' in quits.ON_CIFAR100.judge().because
  use(monkeypatch, dict(r=quitting((0, 0, 50), (0.05, 0, 54.5))))
  small = quits.small_p('r')
  assert small.held is False and '5.36' in small.because


def test_what_is_read_where_a_federation_diverged_is_nothing(monkeypatch):
  values = dict(accuracy={0: 80.0, 1: float('nan')})
  values['a/accuracy_last'] = {0: 50.0, 1: 10.0}
  monkeypatch.setattr(
      rows.evidence, 'quantity', lambda kept, cell, what: values[what]
  )
  found = rows.read(None, None, 'a')
  assert found[0] == 50 and found[1] != found[1]


@pytest.mark.parametrize('few, held', [
    ((77, 60), True), ((60, 77), True), ((75, 76), False), ((60, 61), False),
    ((float('nan'), 77), True), ((float('nan'), 75), False), ((), None),
    ((float('nan'),), None),
])
def test_a_baseline_that_helps_the_active_attacker(monkeypatch, few, held):
  """By over 2 points; PlugVFL is no baseline, and what diverged helps nobody.
  """
  none, own = row('no defense', 0, 74), row('plugvfl', 0, 99, 0.1)
  theirs = [row('NG', 0, x, s) for s, x in enumerate(few)]
  use(monkeypatch, dict(fig5=[none._replace(label='none'), own, *theirs]))
  assert claims._raised('fig5').held is held


@pytest.mark.parametrize('theirs, held', [
    ([row('NG', 2, 60)], True), ([row('NG', 2, 12)], False),
    ([row('NG', 0.5, 60)], None), ([], None),
])
def test_under_active_completion_all_of_plugvfls_rows_have_no_quits(
    monkeypatch, theirs, held
):
  own = row('plugvfl', 1, 12, 0.1), row('plugvfl', 3, 11, 0.5)
  use(monkeypatch, dict(r=[NONE, *own, *theirs]))
  assert rivals.beaten('r', 'r', rows.ACTIVE).held is held


def test_what_figure_5_is_judged_by_is_read_by_the_active_attacker(monkeypatch):
  asked = []
  found = {r.name: r for r in (NONE, row('plugvfl', 1, 12, 0.1),
                               row('NG', 2, 60))}

  def noted(record, kind=rows.PASSIVE):
    asked.append((record, kind))
    return found | {'no defense': NONE}

  use(monkeypatch, {})
  for module in (claims, rivals):
    monkeypatch.setattr(module, 'rows', noted)
  judged = claims._active('r', 'passive', 'd')
  verdicts = [claim.judge() for claim in judged]
  assert {*asked} == {('r', rows.ACTIVE), ('passive', rows.PASSIVE)}
  assert [v.held for v in verdicts[4:]] == [True, None, None, True]
  assert all('d' in claim.text for claim in judged)


@pytest.mark.parametrize('few, costs, accuracy, expensive, near', [
    (15, 12.1, 90.0, True, True), (15, 12.0, 90.0, False, True),
    (15, 12.1, 90.1, True, False), (15.1, 0, 99.0, None, None),
    (float('nan'), 0, 99.0, None, None),
])
def test_what_guessing_costs_with_other_defenses(
    monkeypatch, few, costs, accuracy, expensive, near
):
  """PlugVFL is not among them, and those that leave more do not count."""
  use(monkeypatch, dict(r=[
      NONE, row('NG', 1, 60), row('GC', costs, few, accuracy=accuracy),
      row('DSGD', 30, 12, accuracy=60) if few == 15 else row('PPDL', 1, 61),
  ]))
  assert rivals.price('r').held is expensive
  assert rivals.near_alone('r').held is near
  said_ = rivals.price('r').because
  assert ('none of them is; least' in said_) == (expensive is None)
  assert 'NG' not in said_ or few != 15


def returning(*gains, own=89.0):
  """PlugVFL's rows: (lambda, after quitting without it and with it)."""
  return [NONE, *(
      row(f'plugvfl drop={p}', 1, 12, strength, after=after)
      for strength, *both in gains for p, after in zip(('0', '0.05'), both)
  )]


@pytest.mark.parametrize('gains, held, where_lost', [
    ([(0.1, 80, 85), (0.5, 83, 88)], True, True),
    ([(0.1, 80, 84.9), (0.5, 83, 88)], False, False),
    ([(0.1, 80, 85), (0.5, 89, 89)], False, True),
    ([(0.1, 84, 84), (0.5, 89, 89)], False, None), ([], None, None),
])
def test_what_alternating_returns_under_a_defense(
    monkeypatch, gains, held, where_lost
):
  """The active party alone has 89 %."""
  use(monkeypatch, dict(r=returning(*gains)))
  everywhere, own = (claim.judge() for claim in claims._returned('r', 'd'))
  assert everywhere.held is held and own.held is where_lost
  if where_lost is None:
    assert own.because.endswith('nowhere')


@pytest.mark.parametrize('attacker, held', [('few', True), ('all', False)])
def test_an_active_attacker_may_know_all_labels(monkeypatch, attacker, held):
  found = row('plugvfl', 0.9, 12, 0.1, all_=50)
  use(monkeypatch, dict(fig5=[NONE, found, row('NG', 0, 1, all_=1)]))
  assert claims._at('fig5', attacker, 1).held is held
  assert claims._at('fig5', attacker, 0.9).held is None  # Not run so cheap.


@pytest.mark.parametrize('difference, held', [
    (0.49, True), (-0.49, True), (0.51, False), (-0.51, False),
])
def test_l_r_may_change_the_accuracy_by_nearly_nothing(
    monkeypatch, difference, held
):
  named = lambda name, accuracy: Row(
      name, 'plugvfl', 0.3, accuracy, 80, 1, 10, 10
  )
  use(monkeypatch, dict(fig7=[
      named('lambda 0.3', 85 + difference),
      named('without L_R, lambda 0.3', 85),
      named('slow psi, lambda 0.3', 0),
      named('slow psi, without L_R, lambda 0.3', 1),
  ]))
  assert claims._regularized(0.3)[1].judge().held is held
  assert not claims._regularized(0.3, 'slow psi, ')[1].judge().held


def test_rows_above_the_active_party_are_named(monkeypatch):
  above = row('5 psi steps', 3, 10, 0.1, accuracy=89.3, all_=13.57)
  below = row('5 psi steps', 3, 10, 0.3, accuracy=88.9, all_=13.6)
  use(monkeypatch, dict.fromkeys(said.LABELS, [PLUG, below]))
  assert said.over_alone() == 'none'
  use(monkeypatch, dict.fromkeys(said.LABELS, [PLUG])
      | dict(fig6_mnist=[PLUG, above, below]))
  assert said.over_alone() == (
      'MNIST, 5 psi steps 0.1: reads 13.57 % at 89.30, alone 89.00'
  )


def test_the_readme_says_what_came_out_again():
  lines = json.loads((evidence.HERE / 'verified.json').read_text())
  text = (evidence.HERE / 'plugvfl' / 'README.md').read_text('utf-8')
  off = {line['record'] for line in lines
         if line['record'].startswith('plugvfl')
         and line['came_out'] < line['values']}
  assert off == {f'plugvfl/records/{name}.json' for name in said.AGAIN}
  for name in said.AGAIN:
    assert f'<!-- is: again_{name} -->{said.again(name)}<' in text


def test_the_claims_are_also_judged_with_psi_as_algorithm_1_has_it(monkeypatch):
  """All of it at one learning rate: what our faster psi reaches is no help."""
  slow, bare = row('slow psi', 1, 27, 0.3), row('slow psi, without L_R', 0, 37)
  use(monkeypatch, dict(fig7_printed=[
      NONE, row('plugvfl', 1, 12, 0.3), slow, bare
  ]))
  few, all_ = (claim.judge() for claim in claims._as_printed())
  assert few.held is False and 'slow psi 0.3: reads 27.0 %' in few.because
  assert all_.held is False and 'reads 50.0 %' in all_.because
  use(monkeypatch, dict(fig7_printed=[NONE, slow._replace(few=12.0), bare]))
  assert claims._as_printed()[0].judge().held


def test_l_r_is_judged_at_either_rate_of_psi(monkeypatch):
  named = lambda name, few: Row(name, 'plugvfl', 0.3, 90, 80, 1, few, few)
  use(monkeypatch, dict(fig7=[
      named('lambda 0.3', 10), named('without L_R, lambda 0.3', 30),
      named('slow psi, lambda 0.3', 30),
      named('slow psi, without L_R, lambda 0.3', 31),
  ]))
  fast, slow = (claims._regularized(0.3, psi)[0] for psi in ('', 'slow psi, '))
  assert fast.judge().held and slow.judge().held is False
  assert 'Algorithm 1' in slow.text and 'Algorithm 1' not in fast.text


def test_as_many_seeds_may_differ_as_toss_coins_like_three_of_one_mind():
  assert [agreed.tolerated(n) for n in (2, 3, 5, 6, 8, 9, 10, 11)] == [
      -1, 0, 0, 1, 1, 2, 2, 3
  ]


@pytest.mark.parametrize('accuracies, held, against', [
    ((84.0, 83.5, 83.2), True, 0), ((86.0, 84.0, 82.0), None, 1),
    ((81.0, 80.0, 84.0), None, 1), ((81.0, 80.0, 82.0), False, 0),
    ((84.0,), True, 0), ((84.0, 84.0), None, 0),
    ((85.0,) * 8 + (82.0,) * 2, True, 2),
    ((85.0,) * 7 + (82.0,) * 3, None, 3),
])
def test_seeds_that_say_the_opposite_leave_it_open(
    accuracies, held, against, monkeypatch
):
  """That the active party alone is above 83 %."""
  base = dict(experiment='e', dataset='d', algorithm='vsnn', defense='none',
              strength=None, attack=None, split='test')
  (found,) = reading.of_rows([
      base | dict(metric=metric, seed=seed, value=value / 100)
      for metric in ('accuracy', 'alone_accuracy')
      for seed, value in enumerate(accuracies)
  ], {}, 10)
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, found)
  )
  claim = Claim(
      '', '', lambda: Verdict(rows.alone('r') > 83, 'figures'), ('r',)
  )
  verdict = agreed.by_each_seed(claim).judge()
  assert verdict.held is held
  assert verdict.because.endswith(
      f'by {against} of {len(accuracies)} seeds alone the opposite'
      if against or held is None else 'figures'
  )
  assert len(rows.results('r').seeds) == len(accuracies)
  nothing = claim._replace(judge=lambda: Verdict(None, ''))
  assert agreed.by_each_seed(nothing).judge().held is None
