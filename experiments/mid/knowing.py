"""Verdicts on CAFE by an attacker who knows MID, before training: ours.

The paper has no such attacker. What is left of its claims for one is judged by
the rule of `rebuilt.py`, beside the paper's own attacker on the same rounds.
"""
from functools import partial
from typing import NamedTuple

from experiments import evidence
from experiments.claims import Claim, Verdict
from experiments.mid import cafe, cafe_defended, curves, rebuilt
from vfljax.report import reading
from vfljax.report.reading import Cell

DIGITS = dict(psnr=1, ssim=2, own_image=0)
BESIDE = {'CAFE': 'cafe', 'who knows MID': cafe_defended.DEFENDED}


class Told(NamedTuple):
  """A record of both attackers.

  Attributes:
    record: Its name.
    data: The data set, 'MNIST' or 'CIFAR-10'.
    steps: The attacks'.
    flags: What its command has besides those of the data.
  """

  record: str
  data: str
  steps: int
  flags: str = ''

  def command(self) -> str:
    """What follows 'launch.py --config=experiments/mid/'."""
    data = rebuilt.DATA[self.data.lower().replace('-', '')]
    return f'cafe_defended.py {data}{self.flags}'

  def read(self, cell: Cell, attack: str, metric: str) -> list[float]:
    """What an attacker reads before training, by seed; shares in percent."""
    results = evidence.load(rebuilt.PAPER, self.record).results
    found = reading.find(results, cell, attack, f'{metric}_start')
    return [value * (100 if metric == 'own_image' else 1)
            for value in found.values()]

  def quoted(self, cell: Cell, attack: str, metric: str) -> str:
    return evidence.spread(self.read(cell, attack, metric), DIGITS[metric])

  def floor(self, metric: str) -> str:
    """What guessing the mean image has."""
    values = self.read(('none', None), 'cafe', f'mean_image_{metric}')
    return evidence.spread(values, DIGITS[metric])

  def ends(self, attack: str) -> tuple[reading.Summary, reading.Summary]:
    """PSNR at lambda 0 and at the highest."""
    first, *_, last = (
        reading.summarize(self.read(('MID', strength), attack, 'psnr'))
        for strength in cafe.LAMBDAS
    )
    return first, last

  def table(self) -> str:
    """Both attackers on the untrained federation."""
    results = evidence.load(rebuilt.PAPER, self.record).results
    rows = [
        [curves.named(cell), *(
            self.quoted(cell, attack, metric)
            for attack in BESIDE.values() for metric in DIGITS
        )]
        for cell in results.cells
    ]
    rows.append(['mean image, no attack', *map(self.floor, ('psnr', 'ssim'))])
    rows[-1] += [''] * (len(rows[0]) - len(rows[-1]))
    said = 'PSNR', 'SSIM', 'nearest to their own, %'
    head = [f'{who}: {what}' for who in BESIDE for what in said]
    return evidence.markdown(['', *head], rows)

  def claims(self) -> list[Claim]:
    """What is left of the paper's claims where the attacker knows MID."""
    who = "to CAFE that knows MID's penalty"
    how = (
        f"{self.data}, untrained, its authors' weights; {self.steps} steps, "
        f'the paper has {rebuilt.PAPER_STEPS[self.data]}'
    )
    judges = (('lambda 0', _falls), ('the mean image', _fails))
    return [
        Claim('ours', f'the highest lambda leaves less than {what} {who} '
              f'({how})', partial(judge, self), (self.record,))
        for what, judge in judges
    ]

  def numbers(self) -> dict[str, evidence.Table]:
    """What the README quotes, by name."""
    last = self.record.removeprefix('cafe_defended')
    quoted = {
        f'{who}_{metric}_{lam:g}{last}':
        partial(self.quoted, ('MID', lam), attack, metric)
        for who, attack in zip(('plain', 'knowing'), BESIDE.values())
        for lam in cafe.LAMBDAS for metric in DIGITS
    }
    free = {
        f'undefended_{metric}{last}':
        partial(self.quoted, ('none', None), 'cafe', metric)
        for metric in DIGITS
    }
    return quoted | free | {
        f'floor_{metric}{last}': partial(self.floor, metric)
        for metric in ('psnr', 'ssim')
    }


def _falls(told: Told) -> Verdict:
  zero, strong = told.ends(cafe_defended.DEFENDED)
  parts = [_said_ends(who, *told.ends(a)) for who, a in BESIDE.items()]
  return Verdict(
      curves.above(zero.mean - strong.mean, zero.std + strong.std),
      f'PSNR {"; ".join(parts)}',
  )


def _said_ends(
    who: str, zero: reading.Summary, strong: reading.Summary
) -> str:
  return (
      f'{who}: {zero.mean:.1f} +- {zero.std:.1f} (MID {cafe.LAMBDAS[0]:g}), '
      f'{strong.mean:.1f} +- {strong.std:.1f} (MID {cafe.LAMBDAS[-1]:g})'
  )


def _fails(told: Told) -> Verdict:
  floor = rebuilt.mean_image(told.record)
  _, strong = told.ends(cafe_defended.DEFENDED)
  return Verdict(
      curves.above(floor - strong.mean, strong.std),
      f'PSNR {strong.mean:.1f} +- {strong.std:.1f} (MID '
      f'{cafe.LAMBDAS[-1]:g}), mean image {floor:.1f}',
  )


RECORDS = (
    Told('cafe_defended', 'MNIST', cafe_defended.STEPS),
    Told('cafe_defended_cifar10', 'CIFAR-10', cafe.STEPS,
         f' --config.attack.cafe.steps={cafe.STEPS}'
         ' --config.attack.replay_rounds=150'),
)
RUNS = {told.record: told.command() for told in RECORDS}
CLAIMS = [claim for told in RECORDS for claim in told.claims()]
NUMBERS = {
    name: number for told in RECORDS for name, number in told.numbers().items()
}
