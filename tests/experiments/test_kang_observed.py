"""Kang's claims that leave room for exceptions or compare, on made-up rows."""
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.claims import Verdict
from experiments.kang2022 import (
    alike, claims, observed, pu_scores, takeaways,
)
from vfljax.report import reading

NS, DS, DL = pu_scores.SETTINGS[1][1]
MC = 'model_completion'
METRICS = {None: 'auc', MC: 'auc_last'}


def made(cells, algorithm, dataset='d'):
  """Results of {(defense, strength): {attack or None: points, by two seeds}}.

  A point is a leakage; of `None` it is a utility loss.
  """
  base = dict(
      experiment='e', dataset=dataset, algorithm=algorithm, split='test'
  )
  (found,) = reading.of_rows([
      base | dict(
          defense=defense, strength=strength, attack=attack, seed=seed,
          metric=METRICS.get(attack, 'leak_auc'),
          value=(0.5 if attack else 0.9) + (x if attack else -x) / 100,
      )
      for (defense, strength), points in cells.items()
      for attack, values in points.items()
      for seed, x in enumerate(
          values if isinstance(values, tuple) else (values, values)
      )
  ], {}, 2)
  return found


NONE = {('none', None): {None: 0, NS: 50, DS: 50}}


def judged(start, *everything):
  runs = [alike.Run(results, ()) for results in everything]
  return next(
      v for v in takeaways.verdicts(runs) if v.claim.startswith(start)
  )


@pytest.mark.parametrize('so, own, often', [
    ((1, 1, 1, 0), (6, 8), True), ((1, 1, 0, 0), (6, 8), False),
    ((1, 1, 1, 0), (8, 8), False), ((0,), (0, 8), True),
])
def test_as_often_as_in_the_paper(so, own, often):
  assert pu_scores.as_often(so, own) == often
  assert pu_scores.as_often([[x, 1] for x in so], own).tolist() == [often, True]


@pytest.mark.parametrize('start, number, defense, scores, held', [
    ('VLR 1', 1, 'iso', (4, 5, 4, 4), True),
    ('VLR 1', 2, 'dp_laplace', (4, 5, 4, 3), False),
    ('VLR 1', 1, 'max_norm', (0, 0, 0, 0), None),  # It is of other two.
    ('VLR 2', 3, 'iso', (0,) * 9 + (4,), True),
    ('VLR 2', 3, 'iso', (3,) * 8 + (4, 4), False),
    ('VNN 1a', 4, 'marvell', (4, 5, 4, 3), True),
    ('VNN 1a', 4, 'marvell', (5, 5, 3, 3), False),
    ('VNN 1a', 4, 'iso', (5, 5, 5, 5), None),
    ('VNN 2', 5, 'iso', (0, 1, 2, 3), True),
    ('VNN 2', 5, 'iso', (0, 1, 2, 4), False),
    ('VNN 2', 4, 'iso', (0, 1, 2, 3), None),  # Not of that setting.
])
def test_generally_is_as_often_as_in_the_paper(
    start, number, defense, scores, held, monkeypatch
):
  monkeypatch.setattr(
      takeaways, 'of_setting', lambda everything, which, algorithm='': {
          f'data {i}': {'none': 0, defense: score}
          for i, score in enumerate(scores) if which == number
      }
  )
  monkeypatch.setattr(  # The seeds agree.
      takeaways, 'thwarting', lambda *whose: float(bool(held))
  )
  assert judged(start).held is held


@pytest.mark.parametrize('own, share', [((1, 2), 1), ((6, 8), 0.75)])
def test_seeds_decide_by_the_papers_share_too(own, share):
  """Three score 4 or more but for a seed's; one scores less by both."""
  found = [
      made(NONE | {('marvell', 4.0): {None: 0, NS: ns, DS: 0}}, 'vhnn', data)
      for data, ns in (('a', 4), ('b', 4), ('c', (9, 10.8)), ('d', 12))
  ]
  thwarting = pu_scores.thwarting(found, (4,), ('marvell',), own)
  assert thwarting == pytest.approx(share, abs=0.05)
  held = judged('VNN 1a', *found)
  assert held.held is None and 'it holds in 7' in held.because


def strengths(weak, strong, **more):
  """Of Marvell at two strengths; by its own data set another that stays."""
  still = {None: 0, NS: 3, DS: 3}
  return [
      made(NONE | {('marvell', 2.0): weak, ('marvell', 12.0): strong, **{
          (name, 1.0): points for name, points in more.items()
      }}, 'vsnn'),
      made(NONE | {('marvell', 2.0): still, ('marvell', 12.0): still}, 'vhnn'),
  ]


STILL = {None: 0, NS: 4, DS: 4}


@pytest.mark.parametrize('weak, held', [
    ({None: 0, NS: 9, DS: 9}, True), ({None: 0, NS: 12, DS: 4}, False),
    ({None: 0, NS: 4, DS: 12}, False), ({None: 1.5, NS: 4, DS: 4}, False),
    ({None: 0, NS: (7, 12.8), DS: 4}, None),  # 9.9 is a 4, a seed's is a 3.
    ({None: 0, NS: (8, 14), DS: 4}, None),
    ({None: 0, NS: 9, DS: 9, MC: 40}, True),
])
def test_marvells_score_moves_by_one_at_most(weak, held):
  for pair in ((weak, STILL), (STILL, weak)):
    found = judged('VNN 1b', *strengths(*pair))
    assert found.held is held, found.because
    assert 'd, VHNN: [5, 5]' in found.because


def test_a_strength_alone_moves_nowhere():
  wild = {None: 0, NS: 40, DS: 40}
  assert judged('VNN 1b', *strengths(STILL, STILL, iso=wild)).held is True
  one = made(NONE | {('marvell', 2.0): STILL}, 'vsnn')
  lacks = {None: 0, NS: 4}
  half = made(NONE | {('marvell', s): lacks for s in (2.0, 4.0)}, 'vsnn')
  assert judged('VNN 1b', one, half).held is None


LEFT = {NS: 3, DS: 6, DL: 20}
FREE = {NS: 40, DS: 50, DL: 50}


@pytest.mark.parametrize('left, free, held', [
    ({}, {}, True), ({NS: 10.5, DS: 20}, {}, False),
    ({NS: 9.5, DS: 20}, {}, True), ({NS: (5, 14.9), DS: 20}, {}, None),
    # Where NS leaks little without MN there is nothing to thwart.
    ({}, {NS: 8}, None), ({}, {NS: (8, 14)}, None), ({DS: 2}, {NS: 8}, None),
    ({}, {NS: 10.5}, True), ({DS: 2}, {}, False),
    ({DS: (3, 7)}, {}, None), ({DL: 2}, {}, False), ({DL: (3, 7)}, {}, None),
    ({'residue_reconstruction': 0}, {}, True),
])
def test_max_norm_thwarts_norms_and_the_others_less(left, free, held):
  results = made({
      ('none', None): {None: 0} | FREE | free,
      ('max_norm', None): {None: 0} | LEFT | left,
      ('iso', 5.0): {None: 0, NS: 50, DS: 0, DL: 0},
  }, 'vlr')
  found = observed.max_norm([alike.Run(results, None)])
  assert found.held is held, found.because


def scored(vhnn, vsnn):
  """A leakage to NS for each defense, in both; MC's is the other way round."""
  return [
      alike.Run(made(NONE | {
          (d, 1.0): {None: 0, NS: x, DS: 0, MC: 30 - np.mean(x)}
          for d, x in leaks.items()
      }, algorithm), ())
      for algorithm, leaks in (('vhnn', vhnn), ('vsnn', vsnn))
  ]


@pytest.mark.parametrize('vhnn, vsnn, held', [
    (dict(iso=4, marvell=9), dict(iso=9, marvell=14), True),
    (dict(iso=4, marvell=9), dict(iso=9, marvell=9.5), None),  # A tie.
    (dict(iso=4, marvell=9), dict(iso=9, marvell=4), False),
    (dict(iso=9, marvell=9), dict(iso=4, marvell=4), False),
    (dict(iso=9, marvell=9), dict(iso=4, marvell=9), False),
    # By the mean it is lower, and higher; a seed has it otherwise.
    (dict(iso=4, marvell=9), dict(iso=(4, 6.5), marvell=14), None),
    (dict(iso=6, marvell=9), dict(iso=(3, 6.5), marvell=14), None),
])
def test_every_protection_is_worse_in_vsnn(vhnn, vsnn, held):
  found = observed.degraded(scored(vhnn, vsnn))
  assert found.held is held, found.because
  assert 'iso' in found.because and 'none' not in found.because


def test_other_features_are_not_compared():
  whole, split = scored(dict(iso=4), dict(iso=9))
  assert observed.degraded([whole, split]).held is True
  assert observed.degraded([whole, split._replace(held=(1,))]).held is None
  assert observed.degraded([whole]).held is None


def test_a_tie_is_not_put_on_the_seeds():
  found = observed.degraded(scored(dict(iso=4), dict(iso=4)))
  assert found.held is None and 'drawn anew' not in found.because


@pytest.mark.parametrize('held, late, said', [
    (True, True, 'best'),
    (True, None, 'best epoch: best; by the last epoch it is not decided: last'),
    (None, False, 'best epoch: best; by the last epoch it is not held: last'),
])
def test_what_the_last_epoch_decides_otherwise_is_said(
    held, late, said, monkeypatch
):
  monkeypatch.setattr(claims, '_runs', lambda records: [
      alike.Run(SimpleNamespace(epoch='best'), None)
  ])
  monkeypatch.setattr(
      reading, 'at_epoch', lambda results, epoch: SimpleNamespace(epoch=epoch)
  )
  found = claims._both_epochs(lambda runs: Verdict(
      held if runs[0].results.epoch == 'best' else late, runs[0].results.epoch
  ), ('vlr',))
  assert found == Verdict(held, said)


@pytest.mark.parametrize('text, judge, records', [
    ('MN thwarts NS', observed.max_norm, ('vlr',)),
    ('every protection is worse', observed.degraded, (
        'vhnn_spambase', 'vsnn_spambase', 'vhnn_fashion_imbalanced',
        'vsnn_fashion_imbalanced',
    )),
])
def test_claims_are_judged_by_their_records(text, judge, records):
  claim, = (c for c in claims.CLAIMS if c.text.startswith(text))
  assert claim.records == records
  assert isinstance(claim.judge, partial)
  assert claim.judge.args == (judge, records)
