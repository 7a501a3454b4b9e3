"""What is left of MID's claims where CAFE knows MID, on made-up results."""
import pytest

from experiments import evidence
from experiments.mid import knowing
from tests.experiments.test_mid_rebuilt import REBUILT, rebuilding

MNIST, CIFAR10 = knowing.RECORDS


def beside(zero, strong):
  """CAFE's results and those of one who knows MID, before training."""
  found, values = rebuilding(REBUILT), {}
  for cell, psnr in (
      (('none', None), 17.0), (('MID', 0.0), zero), (('MID', 1.0), 7.0),
      (('MID', 1e4), strong), (('DP-G', 0.1), 9.0),
  ):
    for metric, value in dict(
        psnr_start=psnr, ssim_start=0.25, own_image_start=0.4
    ).items():
      values[cell, knowing.BESIDE['who knows MID'], metric, 'test'] = {
          0: value - 0.1, 1: value + 0.1
      }
  return evidence.Kept({}, found._replace(values=found.values | values))


@pytest.mark.parametrize('zero, strong, held', [
    # More is left of the highest lambda, up to the mean image and beyond.
    (6.0, 10.0, [False, True]), (6.0, 11.5, [False, None]),
    (6.0, 13.0, [False, False]),
    (6.0, 6.2, [None, True]), (10.0, 6.0, [True, True]),
])
def test_who_knows_mid_is_judged_by_what_he_reads(
    monkeypatch, zero, strong, held
):
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: beside(zero, strong)
  )
  found = [claim.judge() for claim in MNIST.claims()]
  assert [verdict.held for verdict in found] == held
  assert found[0].because == (
      'PSNR CAFE: 6.0 +- 0.1 (MID 0), 5.0 +- 0.1 (MID 10000); who knows MID: '
      f'{zero:.1f} +- 0.1 (MID 0), {strong:.1f} +- 0.1 (MID 10000)'
  )
  assert found[1].because.endswith('mean image 11.6')


def test_both_attackers_stand_in_one_row(monkeypatch):
  monkeypatch.setattr(evidence, 'load', lambda paper, name: beside(6.5, 10.0))
  lines = MNIST.table().splitlines()
  assert lines[5] == (
      '| MID 10000 | 5.0 +- 0.1 | 0.50 +- 0.14 | 60 +- 14 | 10.0 +- 0.1 | '
      '0.25 +- 0.14 | 40 +- 14 |'
  )
  assert lines[-1] == (
      '| mean image, no attack | 11.6 +- 0.1 | 0.30 +- 0.14 |  |  |  |  |'
  )
  assert knowing.NUMBERS['knowing_own_image_10000']() == '40 +- 14'
  assert knowing.NUMBERS['floor_ssim']() == '0.30 +- 0.14'
  # Each record's numbers have its name.
  assert 'floor_ssim_cifar10' in knowing.NUMBERS


def test_each_record_says_its_steps():
  assert MNIST.command() == 'cafe_defended.py --config.data.path=mnist.npz'
  assert CIFAR10.command().endswith(
      ' --config.attack.cafe.steps=1500 --config.attack.replay_rounds=150'
  )
  for told, steps in ((MNIST, '10000 steps, the paper has 10000'),
                      (CIFAR10, '1500 steps, the paper has 20000')):
    for claim in told.claims():
      assert steps in claim.text and claim.records == (told.record,)
