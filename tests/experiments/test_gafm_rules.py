"""GAFM's sentences: whose rows, which attacks and which side decide them."""
import math

import numpy as np
import pytest

from experiments.gafm import ablations, claims, paper, rows, rules

BASE = dict(
    auc=90.0, worst=88.0, best=92.0, **dict.fromkeys(rules.PAPERS, 60.0),
    **{f'width/{a}': 5.0 for a in rules.PAPERS},
    **{f'auc/{a}': 1.2 for a in rules.PAPERS},
)


def sentence(part, record):
  """The one with these words on that record's rows."""
  found, = (
      t for t in claims.TESTS
      if part in t.text and all(r.startswith(record) for r in t.rows)
  )
  return found


def holds(part, record, changed):
  """Whether it holds of rows that are all alike but for these changes."""
  test = sentence(part, record)
  return test.holds(*(
      BASE | changed.get(r.partition('/')[2], {}) for r in test.rows
  ))


@pytest.mark.parametrize('record', ['table2', 'reviews'])
@pytest.mark.parametrize('changed, held', [
    (dict(max_norm=dict(auc=91.9)), True),
    (dict(max_norm=dict(auc=92.0)), False), (dict(gafm=dict(auc=88.0)), False),
    (dict(gafm=dict(auc=95.0)), True), (dict(none=dict(auc=99.0)), True),
])
def test_an_auc_as_max_norms(record, changed, held):
  part = "GAFM's AUC is similar to Max-Norm's"
  assert holds(part, record, changed) is held


@pytest.mark.parametrize('record', ['table3', 'reviews'])
@pytest.mark.parametrize('changed, held', [
    ({}, True), (dict(gan_only=dict(norm=99.0, mean=50.0)), True),
    (dict(gan_only=dict(mean=60.1, median=50.0)), False),
    (dict(gan_only=dict(median=60.1, mean=50.0)), False),
    (dict(gafm=dict(mean=59.9)), False), (dict(ce_only=dict(mean=1.0)), True),
])
def test_the_gan_alone_leaks_no_more_than_gafm(record, changed, held):
  assert holds('The GAN alone leaks little', record, changed) is held


WIDER = {'width/mean': 5.1, 'width/median': 5.1}


@pytest.mark.parametrize('record', ['table3', 'reviews'])
@pytest.mark.parametrize('changed, held', [
    (dict(ce_only=WIDER), True), ({}, False), (dict(gafm=WIDER), False),
    (dict(ce_only=WIDER, gafm=WIDER), False),
    (dict(ce_only=WIDER | {'width/mean': 5.0}), False),
    (dict(ce_only=WIDER | {'width/median': 5.0}), False),
    (dict(ce_only=WIDER | {'width/norm': 0.0}), True),
    (dict(gan_only=WIDER), False),
])
def test_the_cross_entropy_alone_fluctuates_more_than_gafm(
    record, changed, held
):
  part = 'The cross-entropy alone fluctuates'
  assert holds(part, record, changed) is held


@pytest.mark.parametrize('record', ['table11', 'reviews'])
@pytest.mark.parametrize('changed, held', [
    (dict(gafm_marvell=dict(auc=89.9)), True), ({}, False),
    (dict(gafm_marvell=dict(auc=89.9), gafm=dict(auc=89.0)), False),
    (dict(gafm_marvell=dict(auc=89.9), marvell=dict(auc=89.0)), False),
])
def test_gm_costs_beside_gafm_and_beside_marvell(record, changed, held):
  assert holds('G-M costs some utility', record, changed) is held


TRADED = {'auc/norm': 1.5, 'auc/mean': 1.1, 'auc/median': 1.1}  # 1.23 together.


@pytest.mark.parametrize('changed, own, all_of', [
    ({'gamma_1': TRADED}, True, True), ({}, False, False),
    ({'gamma_1': TRADED, 'gamma_10': {'auc/mean': 1.3}}, False, False),
    ({'gamma_1': TRADED, 'gamma_20': {'auc/median': 1.3}}, False, False),
    ({'gamma_1': TRADED, 'gamma_0.2': {'auc/norm': 1.3}}, True, False),
    ({'gamma_1': TRADED, 'gamma_5': {'auc/norm': 1.3}}, True, False),
    ({'gamma_1': TRADED, 'gamma_20': {'auc': 99.0, 'mean': 50.0}}, True, True),
])
def test_the_balanced_gamma_has_the_best_trade(changed, own, all_of):
  assert holds("the paper's gammas 1, 10 and 20", 'table8', changed) is own
  assert holds('all that were tried', 'table8', changed) is all_of


def test_the_balanced_gamma_is_that_of_table_7():
  """Of those that were tried its terms are the nearest to each other."""
  gan, ce = map(abs, paper.TERMS)
  balanced = min(ablations.GAMMAS, key=lambda g: abs(math.log(g * gan / ce)))
  both = [t for t in claims.TESTS if t.text.startswith('Gamma 1, which')]
  assert [t.where for t in both] == ['Appendix D.2', 'ours']
  for test in both:
    assert test.rows[0] == f'table8/gamma_{balanced:g}'
  tried = {f'table8/gamma_{g:g}' for g in ablations.GAMMAS}
  assert {*both[1].rows} == tried and len(both[1].rows) == len(tried)


@pytest.mark.parametrize('shown, said', [
    ('trade', 'GAFM 1.17; vanilla 1.17'),
    ('widths', 'GAFM 20.0, 0.0 points from worst to best'),
])
def test_a_verdict_shows_what_it_compares(shown, said, monkeypatch):
  one = dict(auc=90.0, norm=60.0, mean=np.array((60.0, 80)), median=60.0)
  monkeypatch.setattr(rows, 'by_seed', lambda where, epoch: {
      name: np.broadcast_to(x, 2) for name, x in (one | {
          'auc/norm': 1.5, 'auc/mean': 1.0, 'auc/median': 1.0
      }).items()
  })
  test = claims.Test('', '', ('r/gafm', 'r/none'), rules.little, shown)
  found = claims.judged(test)
  assert said in found.because
