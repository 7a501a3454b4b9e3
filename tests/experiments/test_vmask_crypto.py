"""Table III's cryptographic rows: from counts and times to seconds."""
import jax
import numpy as np
import pytest

from experiments.vmask import crypto, crypto_leaks, judges_costs, older
from experiments.vmask import tables_crypto as tables
from vfljax import attacks
from vfljax.he import acml, blindfl


@pytest.fixture
def made_up(monkeypatch):
  """Round numbers in place of the records."""
  micros = {
      'vanilla': 1000.0, 'phe encrypt': 1000.0, 'phe decrypt': 300.0,
      'phe add, floats': 10.0, 'phe multiply, float': 70.0,
      'ours encrypt': 900.0, 'ours decrypt': 200.0, 'ours add': 2.0,
      'ours multiply and add': 30.0, 'CKKS 4096 encrypt': 5000.0,
      'CKKS 4096 add': 100.0, 'CKKS 4096 decrypt': 500.0,
  }
  count = dict(encryptions=10, additions=100, multiplications=1000,
               decryptions=20, bytes=1_045_000, flights=5)
  record = dict(microseconds=micros, rounds=100, costs=dict(
      ours={'ACML': count, 'SPNN, CKKS': count | dict(multiplications=0)},
      ten={'ACML': count},
  ))
  real = older.record
  monkeypatch.setattr(
      older, 'record', lambda name: record if name == 'crypto' else real(name)
  )
  return record


def test_an_epoch_is_counts_times_microseconds(made_up):
  # 10 x 1000 + 100 x 10 + 1000 x 70 + 20 x 300 = 87000 us a batch.
  assert tables.seconds('ACML', 'ours', 'phe') == pytest.approx(8.7)
  # 10 x 900 + 100 x 2 + 1000 x (30 - 2) + 20 x 200 = 41200.
  assert tables.seconds('ACML') == pytest.approx(4.12)
  # 10 x 5000 + 100 x 100 + 20 x 500 = 70000.
  assert tables.seconds('SPNN, CKKS') == pytest.approx(7.0)
  assert tables.vanilla() == pytest.approx(0.1)
  assert tables.ratio('ACML') == pytest.approx(87)
  # 8.36 Mbit at 836 Mbit/s and five flights of 0.1 ms: 10.5 ms a batch.
  assert tables.network('ACML') == pytest.approx(1.05)
  lan = tables.plain_lan()
  assert tables.whole_ratio('ACML') == pytest.approx(5.17 / (0.1 + lan))
  assert tables.off('ACML')() == crypto.rounded(87 / (2600 / 1.9))


def test_hardys_epoch_written_out(made_up):
  # A batch of 128 rows, 23 columns: 256 encryptions, 128 + 127 x 23 additions,
  # 128 x 23 products, 23 decryptions; 30000 / 128 batches.
  batch = 256 * 1000 + (128 + 127 * 23) * 10 + 128 * 23 * 70 + 23 * 300
  assert tables.hardy('phe')() == crypto.rounded(batch * 30000 / 128 / 1e6)


def test_the_claim_of_cost_follows_the_record(made_up):
  assert not judges_costs.cheaper().held  # Of so cheap a crypto row.
  for row in made_up['costs']['ours'].values():
    row['encryptions'] = 10**7
  assert judges_costs.cheaper().held


@pytest.mark.parametrize('value, text', [
    (0.0781, '0.078'), (3.14, '3.1'), (1368, '1400'), (1.4e6, '1.4e+06'),
])
def test_two_digits(value, text):
  assert crypto.rounded(value) == text


def test_the_records_counts_are_the_formulas():
  kept = older.record('crypto')['costs']
  for name, widths in crypto.WIDTHS.items():
    for row, cost in crypto.costs(widths).items():
      wanted = cost.count._asdict() | cost.traffic._asdict()
      assert kept[name][row] == wanted, (name, row)


def test_the_papers_ratios():
  found = {system: crypto.papers(system) for system in tables.SYSTEMS}
  wanted = dict(ACML=1370, SPNN=237, SFA=842, BlindFL=1.4e6)
  for system, value in wanted.items():
    assert found[system] == pytest.approx(value, rel=0.03)


def test_widths_are_what_counts_follow():
  """Written out for one batch of two rows."""
  found = acml.cost(2, 3, 5).count
  assert found == (2 * 6 + 10 + 30, 20 + 10 + 15 + 30 + 24 + 6, 90, 31)
  found = blindfl.cost(2, 3, 4, 5).count
  assert found == (30 + 30, 20 + 30 + 20 + 15 + 15, 60 + 40, 20 + 15)


def test_epochs_until_trained():
  curve = older.record('fig5_tm')['curves']['none']['main']
  first = [next(i for i, x in enumerate(run) if x >= 0.96) for run in curve]
  assert tables.epochs('none') == np.mean(first) + 1
  assert tables.epochs('KDk') is None  # It ends at 93 %.


def test_leaks_are_measured_by_registered_attacks():
  for name, case in crypto_leaks.cases().items():
    for attack in case.attacks:
      assert attack in attacks.REGISTRY or attack == crypto_leaks.KNOWING, name


@pytest.mark.slow
def test_who_knows_the_loss_does_better_than_the_residues_sign():
  case = crypto_leaks.cases()['hardy, passive']
  made = jax.jit(jax.vmap(crypto_leaks.run(case)))
  found = crypto_leaks.scores(made(jax.random.split(jax.random.key(0), 2)))
  plain = found['residue_reconstruction']
  assert min(plain['exact']) == 1
  assert min(found[crypto_leaks.KNOWING]['last']) > max(plain['last'])
