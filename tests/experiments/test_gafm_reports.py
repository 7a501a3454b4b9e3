"""What is read out of GAFM's records: tables, claims and pictures."""
import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from experiments import evidence
from experiments.gafm import (
    claims, common, numbers, pictures, rules, scripts, tables, terms,
)
from vfljax.defense import Spec
from vfljax.defenses.gafm import gafm
from vfljax.runner.config import Paper
from vfljax.runner.workdir import recording

AUCS = dict(gafm=(0.9, 0.2), none=(0.95, 0.95))
LAST = dict(
    gafm=dict(norm_scoring=0.55, mean_scoring=0.65, median_scoring=0.66),
    none=dict(norm_scoring=0.85, mean_scoring=0.96, median_scoring=0.91),
)


def record(aucs, last, best=0.01):
  """Two seeds; the best epoch leaks `best` more than the last."""
  rows = []
  for defense, values in aucs.items():
    head = [defense, 0.05 if defense.startswith('gafm') else None]
    rows.append([*head, None, 'auc', 'test', list(values)])
    rows.append([*head, None, 'accuracy', 'test', [0.5, 0.5]])
    rows.append([*head, None, 'loss', 'test', [4.5 - x for x in values]])
    for attack, leak in last[defense].items():
      seeds = [leak, leak + 0.02]
      most = [x + best for x in seeds]
      for metric, found in (
          ('leak_auc', most), ('leak_auc_max', most), ('leak_auc_last', seeds),
          ('leak_auc_raw', [0.1, 0.1]),
      ):
        rows.append([*head, attack, metric, 'train', found])
  return dict(
      format=recording.FORMAT, command='python launch.py', config={},
      samples='', title=['e', 'd', 'vsnn'], seeds=[0, 1], classes=2,
      date='2026-11-22', versions=dict(jax='1', python='3'), device='cpu',
      seconds=dict(running=6.0), rows=rows,
  )


def cells(text, start):
  """The cells of the first row that begins so."""
  line = next(r for r in text.split('\n') if r.startswith(f'| {start}'))
  return [cell.strip() for cell in line.strip('|').split('|')]


def test_tables_count_flips_and_fold(keep):
  keep('table3', record(AUCS, LAST))
  text = tables.table('table3', more=tables.ratios, columns=('median', 'mean'))
  std = np.std([90, 20], ddof=1)
  assert cells(text, 'GAFM')[:5] == [
      'GAFM', f'55.0 +- {std:.1f} (20.0-90.0)', '1/2, folded 85.0 +- 7.1',
      'last', '56.0 +- 1.4',
  ]
  assert cells(text, 'vanilla')[2] == '0/2'
  ratio = (0.9 / 0.66 + 0.2 / 0.68) / 2
  assert cells(text, 'GAFM')[-2] == f'{ratio:.2f} (paper 1.39)'
  best = cells(text[text.index('| GAFM'):], ' |')
  assert best[3:5] == ['best', '57.0 +- 1.4']
  assert best[-2] == f'{(0.9 / 0.67 + 0.2 / 0.69) / 2:.2f}'


def test_the_papers_row_is_beside_the_last_epoch(keep):
  keep('table2', record(AUCS, LAST, best=0.3))
  paper = [
      Paper('none', 'auc', 0.95, 0.003),
      *(Paper('none', 'leak_auc_last', mean, 0.02, attack)
        for attack, mean in zip(common.ATTACKS, (0.86, 0.97, 0.70))),
  ]
  text = tables.table('table2', paper, ranges=dict(none='95-96'))
  assert cells(text, 'vanilla, paper')[1:5] == [
      '95 (95-96)', '', 'not said', '86 +- 2'
  ]
  last = cells(text, 'vanilla |')
  assert [x.startswith('**') for x in last[4:]] == [False, False, True]


def test_a_record_that_is_not_there_is_said(keep):
  del keep
  for name in ('table2', 'table10', 'readings'):
    assert tables.TABLES[name]().startswith('no record yet: `python launch.py')
  rows = [claim for claim in claims.CLAIMS if 'table2' in claim.records]
  assert rows and not evidence.exists('gafm', 'table2')


def test_deltas_ratio_is_over_the_auc_seed_by_seed(keep):
  keep('table10', record(AUCS, LAST))
  leaks = np.array([[x, x + 0.02] for x in LAST['gafm'].values()])
  wanted = (leaks / AUCS['gafm']).mean()
  found, = scripts.all_data('last')  # Of vanilla there is no Delta.
  assert found == pytest.approx(wanted)


def test_reviews_are_shown_seed_by_seed(keep):
  deltas = record(dict(gafm_delta=(0.8, 0.6)), dict(gafm_delta=LAST['gafm']))
  made = record(AUCS, LAST)
  more = [[row[0], 0.2, *row[2:]] for row in deltas['rows']]
  keep('reviews', made | dict(rows=[*more, *deltas['rows'], *made['rows']]))
  assert tables.by_seed().startswith('no record yet')
  keep('reviews_1500', record(dict(AUCS, gafm=(0.92, 0.91)), LAST))
  keep('reviews_450', record(AUCS, LAST))
  keep('reviews_sigmas', record({'sigma_0.25': (0.7, 0.6)}, {
      'sigma_0.25': LAST['gafm']
  }))
  lines = tables.by_seed().split('\n')
  assert [cells(row, '')[0] for row in lines[2:8]] == [
      'GAFM, after 450 rounds', 'GAFM, after 1500 rounds', 'GAFM',
      'GAFM, Delta 0.2', 'GAFM, Delta 0.05', 'sigma 0.25',
  ]
  assert cells(lines[0], '')[1:] == ['0', '1', 'below 70', 'log loss above 4']
  assert cells(lines[4], '')[1:] == ['90.0', '20.0', '1', '1']
  assert cells(lines[5], '')[3:] == ['1', '0']  # 60, with a log loss of 3.9.
  assert numbers.counted('reviews', 0, 70) == '1 of 2'
  assert numbers.counted('reviews_1500', 90, 100) == '2 of 2'
  assert numbers.better('reviews_1500') == '0 of 2'


def test_sentences_count_what_agrees_with_the_paper(keep):
  keep('table2', record(AUCS, LAST))
  paper = [
      Paper('none', 'auc', 0.95, 0.01),
      Paper('none', 'leak_auc_last', 0.86, 0.02, 'norm_scoring'),
      Paper('none', 'leak_auc_last', 0.86, 0.02, 'mean_scoring'),
      Paper('gafm', 'leak_auc_last', 0.56, 0.02, 'norm_scoring'),
  ]
  assert numbers.agreed('table2', paper) == '3 of 4'
  assert numbers.agreed('table2', paper, 'none') == '2 of 3'
  assert numbers.agreed('table6', paper).startswith('no record yet')


def test_the_least_difference_says_where_it_is(keep):
  """Of both epochs and all three attacks, the other row by row."""
  keep('reviews', record(
      dict(AUCS, marvell=(0.9, 0.9)),
      dict(LAST, marvell=dict(LAST['none'], mean_scoring=0.67)),
  ))
  assert numbers.least('reviews', 'gafm', 'none', 'marvell') == (
      '2.0 points (last epoch, mean attack)'
  )
  assert numbers.least('reviews', 'gafm', 'none') == (
      '25.0 points (last epoch, median attack)'
  )
  made = record(AUCS, LAST)
  for row in made['rows']:
    if row[0] == 'gafm' and row[3] == 'leak_auc_max':
      row[-1] = [x + 0.24 for x in row[-1]]
  keep('reviews', made)
  evidence.load.cache_clear()
  assert numbers.least('reviews', 'gafm', 'none') == (
      '1.0 points (best epoch, median attack)'
  )


def test_claims_say_where_the_last_epoch_decides_otherwise(keep):
  keep('table2', record(AUCS, LAST))
  found = {t.text: claims.judged(t) for t in claims.TESTS
           if t.text.startswith('GAFM')
           and t.rows == ('table2/gafm', 'table2/none')}
  less = found[next(t for t in found if 'less than vanilla' in t)]
  assert less.held and 'last epoch' not in less.because
  assert not found[next(t for t in found if 'similar' in t)].held
  made = record(AUCS, LAST)
  for row in made['rows']:
    if row[0] == 'gafm' and row[3] == 'leak_auc_max':
      row[-1] = [1.0, 1.0]
  keep('table2', made)
  evidence.load.cache_clear()
  turned = claims.judged(claims.TESTS[0])
  assert turned.held is False
  assert 'by the last epoch it is held' in turned.because


def row(rng, scale):
  """Numbers of one defense, around 70."""
  attacks = (*rules.PAPERS, *rules.OURS)
  keys = ('auc', *attacks, 'best', 'auc/median', 'auc/mean')
  found = dict(zip(keys, 70 + scale * rng.uniform(-20, 20, len(keys))))
  found |= dict(worst=60.0, auc=found['auc'] + 23 * (rng.random() < 0.5))
  more = ('auc/norm', 'width/mean', 'width/median')
  return found | dict(zip(more, rng.uniform(1, 9, len(more))))


@pytest.mark.parametrize('test', claims.TESTS, ids=lambda t: t.text[:30])
def test_every_claim_can_hold_and_fail(test):
  verdicts = set()
  for seed in range(400):
    rng = np.random.default_rng(seed)
    scale = 1 if seed % 2 else 0.01  # Far apart, and close together.
    verdicts.add(bool(test.holds(*(row(rng, scale) for _ in test.rows))))
  assert verdicts == {True, False}


def test_pictures_from_saved_arrays(tmp_path):
  rng = np.random.default_rng(0)
  file = tmp_path / 'gradients.npz'
  np.savez(
      file, labels=rng.integers(0, 2, (4, 30)), predictions=rng.random((4, 30)),
      gradients=rng.normal(size=(4, 30)),
  )
  assert pictures.gradients(file).stat().st_size > 5000
  run = dict(deltas=[0.1, 0.2], ratios=[[0.9, 0.8]], share=0.1)
  chart = tmp_path / 'delta.json'
  chart.write_text(json.dumps(run))
  assert pictures.ratios([chart]).stat().st_size > 3000


def test_both_terms_together_are_what_the_defense_descends():
  """Of a round with a row of padding, with the same draws."""
  f = np.random.default_rng(1).normal(size=(4, 1)).astype(np.float32)
  labels = np.array([[0.0, 1], [1, 0], [0, 1], [0, 0]], np.float32)
  defense = gafm(0.05)

  @jax.jit
  def both(key, f):
    memory = defense.init(jax.random.key(0), Spec((f,), 2)).state
    played = SimpleNamespace(
        messages=SimpleNamespace(up=[f]), batch=SimpleNamespace(labels=labels),
        state=SimpleNamespace(defense=memory),
    )
    sent = jax.grad(lambda f: defense.objective(
        memory, key, lambda us: us[0], (f,), labels
    ))(f)
    return *pictures.terms(key, played), sent

  gan, ce, sent = map(np.asarray, both(jax.random.key(2), f))
  assert np.abs(gan[:3]).min() > 0 and np.abs(ce[:3]).min() > 0
  assert gan[3] == ce[3] == 0
  np.testing.assert_allclose(gan + ce, sent[:, 0], rtol=1e-5)


def test_means_and_centers_of_both_terms():
  """Of two rounds of three samples and a last one of two: positives minus
  negatives."""
  labels = np.array([1.0, 0, 0, 1, 1, 0, 1, 0])
  sent, gan, ce = np.random.default_rng(0).normal(size=(3, 8))
  columns = labels, np.zeros(8), sent, gan, ce
  rounds = (tuple(x[:6].reshape(2, 3) for x in columns),
            tuple(x[6:].reshape(1, 2) for x in columns))
  found = np.array(terms.digest(*rounds))
  for column, values in zip(found.T, (gan, ce, sent), strict=True):
    apart = values[labels == 1].mean() - values[labels == 0].mean()
    np.testing.assert_allclose(column, [values.mean(), apart], rtol=1e-5)


@pytest.mark.parametrize('gan, ce, sent, cancels, alike', [
    (-0.03, 0.02, -0.01, True, True), (-0.03, -0.02, -0.01, False, True),
    (0.001, 0.02, 0.01, False, False),
    (0.3, -0.02, 0.28, False, False),  # Their sum, below the larger alone.
    (-0.032, 0.013, -0.019, False, True),  # So it is on Spambase.
    (-0.03, 0.02, -0.04, False, True),  # Apart, and yet more is sent.
    (0.03, -0.02, 0.01, False, True),  # Opposed, the other way round.
])
def test_verdicts_on_both_terms(gan, ce, sent, cancels, alike, monkeypatch):
  """Of the last epoch alone: in the one before they are the other way round."""
  before, last = dict(GAN=gan, CE=-ce, sent=9), dict(GAN=gan, CE=ce, sent=sent)
  rows = {w: [[before[w], last[w]]] * 2 for w in last}
  found = dict(means=rows, centers=rows, opposed=[0.5, 0.5])
  monkeypatch.setattr(terms.scripts, 'read', lambda name: found)
  of = terms.DATA['spambase']
  assert terms.opposed(of).held == cancels
  assert terms.comparable(of).held == alike
