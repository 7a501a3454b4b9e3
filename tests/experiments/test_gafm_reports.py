"""What is read out of finished GAFM runs: tables, claims and pictures."""
import json

import numpy as np
import pytest

from experiments.gafm import claims, pictures, tables

AUCS = dict(gafm=(0.9, 0.2), none=(0.95, 0.95))
LEAKS = dict(
    gafm=dict(norm_scoring=0.55, mean_scoring=0.65, median_scoring=0.66),
    none=dict(norm_scoring=0.85, mean_scoring=1.0, median_scoring=0.91),
)


@pytest.fixture
def workdir(tmp_path):
  """Two defenses, two seeds, out of order."""
  lines = []
  for defense, aucs in AUCS.items():
    base = dict(defense=defense, strength=0.05 if defense == 'gafm' else None)
    for seed, auc in reversed(list(enumerate(aucs))):
      row = base | dict(seed=seed, attack=None, metric='auc', value=auc)
      lines += [row, row | dict(metric='accuracy', value=0.5)]
      for attack, leak in LEAKS[defense].items():
        row = base | dict(seed=seed, attack=attack)
        lines.append(row | dict(metric='leak_auc', value=leak + 0.02 * seed))
        lines.append(row | dict(metric='leak_auc_raw', value=0.1))
  file = tmp_path / 'results.jsonl'
  file.write_text('\n'.join(map(json.dumps, lines)) + '\n')
  return str(tmp_path)


def test_tables_count_flips_and_fold(workdir):
  rows = tables.read(workdir)
  np.testing.assert_array_equal(rows['gafm', 0.05]['auc'], [0.9, 0.2])
  np.testing.assert_allclose(rows['none', None]['mean'], [1.0, 1.02])
  line = next(r for r in tables.table(rows).split('\n') if 'gafm' in r)
  cells = [cell.strip() for cell in line.strip('|').split('|')]
  assert cells[:4] == [
      'gafm 0.05', '0.550+-0.350 (0.20-0.90)', '1/2', '0.850+-0.050'
  ]
  ratio = (0.9 / 0.66 + 0.2 / 0.68) / 2
  assert cells[-2] == f'{ratio:.2f}'


def test_claims_are_checked_on_means(workdir):
  found = {text: verdict for verdict, text, _ in claims.check(
      claims.means(workdir)
  )}
  assert found['GAFM leaks less than vanilla to each attack'] == 'holds'
  assert found["GAFM's AUC is similar to vanilla's"] == 'FAILS'
  assert found['GAFM leaks less than Max-Norm to each attack'] == 'not run'
  beat = 'Mean and median attacks beat the norm attack on every row'
  assert found[beat] == 'holds'


def row(rng, scale):
  """Numbers of one defense, around 0.7."""
  keys = ('auc', 'norm', 'mean', 'median')
  return dict(zip(keys, 0.7 + scale * rng.uniform(-0.2, 0.2, len(keys))))


@pytest.mark.parametrize('claim', claims.CLAIMS, ids=lambda c: c.text[:30])
def test_every_claim_can_hold_and_fail(claim):
  verdicts = set()
  for seed in range(60):
    rng = np.random.default_rng(seed)
    scale = 1 if seed % 2 else 0.01  # Far apart, and close together.
    rows = [row(rng, scale) for _ in claim.rows or range(1)]
    verdicts.add(bool(claim.holds(*rows)))
  assert verdicts == {True, False}


def test_pictures_from_saved_arrays(tmp_path):
  rng = np.random.default_rng(0)
  file = tmp_path / 'gradients.npz'
  np.savez(
      file, labels=rng.integers(0, 2, (4, 30)), predictions=rng.random((4, 30)),
      gradients=rng.normal(size=(4, 30)),
  )
  assert pictures.gradients(file).stat().st_size > 5000
  run = dict(deltas=[0.1, 0.2], ratios=[0.9, 0.8], share=0.1)
  chart = tmp_path / 'delta.json'
  chart.write_text(json.dumps(run))
  assert pictures.ratios([chart]).stat().st_size > 3000
