"""GAFM's verdicts: which attacks and epochs decide, and what was left out."""
import math

import numpy as np
import pytest

from experiments import redrawn
from experiments.gafm import (
    by_scripts, claims, common, numbers, rows, rules, scripts, terms,
)
from vfljax.runner.workdir import recording

SPAMBASE = terms.DATA['spambase']
THREE = dict(norm=70.0, mean=71.0, median=72.0)
LEAST = dict(auc=90.0, worst=89.0, best=91.0, norm=60.0, mean=60.0, median=60.0)
MORE = LEAST | THREE


def test_each_attack_counts_ours_too():
  assert rules.all_less(LEAST, MORE)
  ours = dict(value=60.0, residual=66.0)
  theirs = dict(value=70.0, residual=56.0)
  assert not rules.all_less(LEAST | ours, MORE | theirs)
  assert rules.all_less(LEAST | ours, MORE | dict(theirs, residual=67.0))
  assert rules.strongest(LEAST | ours) == 66
  with pytest.raises(KeyError):  # Measured of one alone: no comparison.
    rules.all_less(LEAST | ours, MORE)


def judged(monkeypatch, best, last, **changed):
  """The verdict of 'one leaks less than the other' on these two rows each.

  A number is that of both seeds.
  """
  by_epoch = dict(max=best, last=last)
  monkeypatch.setattr(rows, 'by_seed', lambda where, epoch: {
      name: np.broadcast_to(x, 2)
      for name, x in by_epoch[epoch][where == 'r/none'].items()
      if name not in ('worst', 'best')
  })
  test = claims.Test('', '', ('r/gafm', 'r/none'), rules.all_less, 'all')
  return claims.judged(test._replace(**changed))


def test_what_the_papers_attacks_alone_decide_is_said(monkeypatch):
  adaptive = LEAST | dict(residual=66.0), MORE | dict(residual=56.0)
  found = judged(monkeypatch, adaptive, (LEAST, MORE))
  assert found.held is False
  assert 'residual 66.0' in found.because and 'residual 56.0' in found.because
  assert 'by the last epoch it is held' in found.because
  assert "paper's three attacks alone, in the best epoch, it is held" in (
      found.because
  )
  plain = judged(monkeypatch, (LEAST, MORE), (LEAST, MORE))
  assert plain.held is True and 'alone' not in plain.because


@pytest.mark.parametrize('norms, held', [
    ((69.9, 69.9), True), ((60.0, 79.9), None), ((60.0, 80.1), None),
    ((70.1, 70.1), False),
])
def test_what_hangs_on_the_seeds_is_not_decided(norms, held, monkeypatch):
  """Vanilla's are 70: below it in the mean, by one seed of the two."""
  one = LEAST | dict(norm=np.array(norms)), MORE
  found = judged(monkeypatch, one, one)
  assert found.held is held
  assert ('with the seeds drawn anew' in found.because) == (held is None)


def test_draws_are_those_of_the_bootstrap():
  """Of two seeds: both are the first one in a quarter, one each in half."""
  shares = redrawn.weights(2)[:, 0]
  counts = [(shares == x).mean() for x in (0, 0.5, 1)]
  np.testing.assert_allclose(counts, (0.25, 0.5, 0.25), atol=0.05)
  np.testing.assert_allclose(redrawn.weights(3).sum(1), 1)
  assert (redrawn.weights(3, 1) != redrawn.weights(3)).any()
  assert [redrawn.decided(True, x) for x in (0.98, 0.97)] == [True, None]
  assert [redrawn.decided(False, x) for x in (0.02, 0.03)] == [False, None]


def test_rows_of_a_record_are_drawn_together(monkeypatch):
  """Seeds that differ more than their rows do still tell these apart."""
  seeds = np.array([90.0, 80, 70, 60])
  made = {'r/a': seeds, 'r/b': seeds - 1, 's/a': seeds}
  monkeypatch.setattr(
      rows, 'by_seed', lambda where, epoch: dict(auc=made[where])
  )
  found = rows.drawn(list(made), 'max')
  assert len(found) == redrawn.DRAWS
  assert all(abs(a['auc'] - b['auc'] - 1) < 1e-9 for a, b, _ in found)
  assert any(a['auc'] != other['auc'] for a, _, other in found)
  assert any(a['worst'] > 60 for a, _, _ in found)  # That seed was not drawn.
  assert all(a['worst'] <= a['auc'] <= a['best'] for a, _, _ in found)
  assert rows.row('r/a', 'max') == dict(auc=75, worst=60, best=90)


def test_how_far_leaks_are_apart_is_of_the_seeds_that_were_drawn(monkeypatch):
  monkeypatch.setattr(rows, 'by_seed', lambda where, epoch: {
      'auc': np.array([90.0, 80]), 'mean': np.array([60.0, 95]),
      'auc/mean': np.array([1.5, 0.8]),
  })
  found = rows.row('r/a', 'max')
  assert (found['width/mean'], found['best'] - found['worst']) == (35, 10)
  assert 'width/auc/mean' not in found
  widths = [one['width/mean'] for one, in rows.drawn(['r/a'], 'max')]
  assert {*widths} == {0, 35}  # One seed twice, or both.
  assert np.mean(widths) == pytest.approx(35 / 2, abs=2)


def test_no_number_never_holds(monkeypatch):
  """Not even where the rows that are left out of a mean would look good."""
  lost = LEAST | dict(auc=math.nan)
  assert judged(monkeypatch, (lost, MORE), (lost, MORE)).held is False
  for test in claims.TESTS:
    assert not claims._holds(test, [lost] * len(test.rows))


def record(leaks):
  """Of GAFM and vanilla: {attack: (best, last) leak AUC} and an AUC of .9."""
  rows = []
  for defense, found in leaks.items():
    head = [defense, 0.05 if defense.startswith('gafm') else None]
    rows.append([*head, None, 'auc', 'test', [0.9, 0.9]])
    for attack, (best, last) in found.items():
      for metric, leak in (('leak_auc_max', best), ('leak_auc_last', last)):
        rows.append([*head, attack, metric, 'train', [leak, leak]])
  return dict(
      format=recording.FORMAT, command='', config={}, samples='',
      title=['e', 'd', 'vsnn'], seeds=[0, 1], classes=2, date='2026-11-26',
      versions=dict(jax='1', python='3'), device='cpu',
      seconds=dict(running=6.0), rows=rows,
  )


def test_the_least_difference_can_be_of_all_five_attacks(keep):
  three = dict(norm_scoring=(0.7, 0.6), mean_scoring=(0.7, 0.6),
               median_scoring=(0.7, 0.6))
  own = lambda value, residual: dict(
      value_scoring=(value, 0.6), residual_scoring=(residual, 0.6)
  )
  keep('r', record(dict(
      gafm=three | own(0.72, 0.95),
      marvell=dict.fromkeys(three, (0.8, 0.7)) | own(0.8, 0.75),
  )))
  least = lambda *attacks: numbers.least(
      'r', 'gafm', 'marvell', attacks=attacks or common.ATTACKS
  )
  assert least().startswith('10.0 points')
  assert least(*numbers.NOT_RESIDUAL) == '0.0 points (last epoch, value attack)'
  assert least(*numbers.ALL) == '-20.0 points (best epoch, residual attack)'
  assert numbers.rise('r', 'gafm', numbers.NOT_RESIDUAL) == '12.0 points'
  assert numbers.rise('r', 'gafm', numbers.ALL) == '35.0 points'
  assert numbers.rise('table2', 'gafm', numbers.ALL).startswith('no record yet')


@pytest.mark.parametrize('best, last, held, said', [
    ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5), True, 'last epoch: 0.05, 0.1'),
    ((1, 5, 3, 4, 2), (1, 2, 3, 4, 5), False, 'by which it is held: 0.05, 0.1'),
    ((1, 2, 3, 4, 5), (1, 5, 3, 4, 2), True, 'by which it is not held: 0.05'),
    ((1, 2, 3, 4, math.nan), (1, 2, 3, 4, 5), False, 'a ratio is no number'),
])
def test_deltas_are_judged_by_both_epochs(best, last, held, said, monkeypatch):
  ratios = dict(max=best, last=last)
  monkeypatch.setattr(scripts, 'by_seed', lambda epoch, record: (
      np.repeat(np.array(ratios[epoch])[:, None], 3, axis=1)
  ))
  found = by_scripts.among(0.1, 'table10', 'chosen')
  assert found.held is held
  assert said in found.because and 'best epoch: ' in found.because


@pytest.mark.parametrize('apart, held', [(5.0, True), (0.1, None)])
def test_a_delta_among_the_lowest_by_some_seeds_alone_is_not_decided(
    apart, held, monkeypatch
):
  """By the means it is second; others come before it as seeds fall."""
  noise = np.array([-1.0, 1.0, 0.5, -0.5])
  ratios = np.array([0.0 * noise, 1 + noise, 1 - noise + apart,
                     1 - noise + 1.1 * apart, 1 - noise + 1.2 * apart])
  monkeypatch.setattr(scripts, 'by_seed', lambda epoch, record: ratios)
  found = by_scripts.among(0.1, 'reviews', 'chosen')
  assert found.held is held
  assert ('is held by the means' in found.because) == (held is None)


@pytest.mark.parametrize('own, held', [
    ((0.9, 0.9, 0.9), True), ((0.9, 0.9, 0.2), None), ((0.2, 0.2, 0.2), False),
])
def test_seeds_have_to_agree_on_what_a_transcript_tells(
    own, held, monkeypatch
):
  kept = (0.6, 0.6, 0.6)
  leaks = {'residual, first 50': kept, 'gradient, last': kept,
           'f(x), last epoch': own}
  monkeypatch.setattr(
      scripts, 'read', lambda name: dict(leak_auc=dict(gafm=leaks))
  )
  found = by_scripts.transcript()
  assert found.held is held
  assert ('is held by the means' in found.because) == (held is None)
  assert 'not held' not in found.because


@pytest.mark.parametrize('gan, held', [
    ([[1.0], [1.0], [1.0]], True), ([[0.01], [0.01], [26.0]], None),
    ([[20.0], [20.0], [20.0]], False),
])
def test_seeds_have_to_agree_on_the_sizes_of_the_terms(
    gan, held, monkeypatch
):
  means = dict(GAN=gan, CE=[[1.0], [-1.0], [1.0]])
  monkeypatch.setattr(terms.scripts, 'read', lambda name: dict(means=means))
  assert terms.comparable(SPAMBASE).held is held


@pytest.mark.parametrize('name', terms.DATA)
def test_terms_are_followed_to_the_end_of_a_training_on_their_data(name):
  of = terms.DATA[name]
  config = of.config(())
  assert config.data.name == name and not config.listed
  assert of.epochs[0] == 1 and of.epochs[-1] == config.train.epochs


def test_terms_cancel_only_if_seeds_agree(monkeypatch):
  """In the mean what is sent is below both; the seeds do not bear it out."""
  centers = dict(
      GAN=[[-0.03], [-0.03], [-0.03]], CE=[[0.02], [0.02], [0.02]],
      sent=[[-0.001], [-0.001], [-0.05]],
  )
  found = dict(centers=centers, opposed=[1, 1, 1])
  monkeypatch.setattr(terms.scripts, 'read', lambda name: found)
  assert terms.opposed(SPAMBASE).held is None
  centers['sent'] = [[-0.001], [-0.001], [-0.002]]
  assert terms.opposed(SPAMBASE).held is True
  centers['sent'] = [[-0.025], [-0.026], [-0.024]]  # Clearly above CE's.
  assert terms.opposed(SPAMBASE).held is False
  centers['sent'] = [[-0.001], [-0.001], [math.nan]]
  assert terms.opposed(SPAMBASE).held is None
  centers['GAN'] = [[0.03]] * 3  # Not opposed.
  assert terms.opposed(SPAMBASE).held is False


@pytest.mark.parametrize('gan, ce, held', [
    ((-0.03,) * 3, (0.02,) * 3, True), ((0.03,) * 3, (-0.02,) * 3, False),
    ((-0.03,) * 3, (-0.02,) * 3, False), ((0.03,) * 3, (0.02,) * 3, False),
    ((-0.03, -0.03, 0.02), (0.02,) * 3, None),
    ((-0.03,) * 3, (0.02, 0.02, -0.01), None),
])
def test_each_term_is_on_its_own_side(gan, ce, held, monkeypatch):
  """The GAN's of y = 1 is left, the cross-entropy's right; next to none sent.
  """
  centers = dict(
      GAN=[[x] for x in gan], CE=[[x] for x in ce], sent=[[0.001]] * 3
  )
  found = dict(centers=centers, opposed=[1, 1, 1])
  monkeypatch.setattr(terms.scripts, 'read', lambda name: found)
  assert terms.opposed(SPAMBASE).held is held
