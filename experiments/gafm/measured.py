"""Reads measurements for GAFM's tables and claims; AUCs are in percent."""
from collections.abc import Iterable, Mapping
import dataclasses

import numpy as np

from experiments import evidence
from vfljax.report import papers, reading
from vfljax.report.reading import Cell, Results
from vfljax.runner.config import Paper

PAPER = 'gafm'
EPOCHS = dict(last='last', max='best')
NAMES = dict(
    none='vanilla', max_norm='Max-Norm', marvell='Marvell', gafm='GAFM',
    gafm_delta='GAFM',
    gafm_generator='GAFM, predicted by G', gafm_marvell='G-M',
    ce_only='CE only', gan_only='GAN only', gan_only_generator='GAN only, by G',
    norm_sample='a norm for each sample', norm_none='no norm',
    u_fixed='u fixed for each sample', linear_gan='linear G and D',
    literal_eq5='Eq. 5 on sigma(f)',
    printed_eq5='Eq. 5 as printed, log sigma(1 - f)',
    critic_steps_5='5 critic steps',
)
SHORT = dict(
    norm_scoring='norm', mean_scoring='mean', median_scoring='median',
    value_scoring='value', residual_scoring='residual',
)
OFF = 2  # of the paper's deviations, for a number in bold
# Trainings on reviews that broke: their AUC, percent, and their test log loss.
FAR, WRONG = 70, 4
# How each record is made, without the place of the data.
RUNS = dict(
    table2='table2.py', table3='ablations.py:table3', table4='table4.py',
    table4_221='table4.py --config.data.ratios=2:2:1',
    table6='ablations.py:table6', table8='ablations.py:table8',
    table10='ablations.py:table10', table11='ablations.py:table11',
    readings='readings.py',
    marvell_30='table2.py --config.defenses=marvell --config.train.epochs=30',
    reviews='reviews.py:sentences', reviews_multiparty='reviews.py:multiparty',
    reviews_max_norm='reviews.py:multiparty --config.defenses=max_norm',
    reviews_sigmas='reviews.py:sigmas --config.defenses=sigma_0.25',
    reviews_450='reviews.py:sentences --config.defenses=gafm '
                '--config.train.epochs=225 --config.train.measure_every=75',
    reviews_1500='reviews.py:sentences --config.defenses=marvell,gafm '
                 '--config.train.epochs=750 --config.train.measure_every=75',
)


def load(record: str) -> Results:
  return evidence.load(PAPER, record).results


def auc(results: Results, cell: Cell) -> np.ndarray:
  """[seeds], percent."""
  return np.array(list(evidence.quantity(results, cell, 'auc').values()))


def log_loss(results: Results, cell: Cell) -> np.ndarray:
  """[seeds], of the test samples, in nats."""
  return np.array(list(reading.find(results, cell, None, 'loss').values()))


def leak(results: Results, cell: Cell, attack: str, epoch: str) -> np.ndarray:
  """[seeds], percent, of the 'last' epoch or of the best, 'max'."""
  what = f'{attack}/leak_auc_{epoch}'
  return np.array(list(evidence.quantity(results, cell, what).values()))


def ratio(
    results: Results, cell: Cell, attack: str, epoch: str
) -> np.ndarray:
  """AUC over leak AUC, [seeds]."""
  return auc(results, cell) / leak(results, cell, attack, epoch)


def compared(results: Results, paper: Iterable[Paper]) -> list[dict]:
  """The paper's numbers that have a deviation, beside ours."""
  found = papers.compare(results, map(dataclasses.asdict, paper))
  return [c for c in found if c['sds'] is not None]


def off(number: Mapping) -> bool:
  """Whether it is off by more than `OFF` of the paper's deviations."""
  return abs(number['sds']) > OFF


def differing(results: Results, paper: Iterable[Paper]) -> set[tuple]:
  """(defense, attack or None) of the numbers that are off."""
  return {
      (c['defense'], c['attack']) for c in compared(results, paper) if off(c)
  }


def missing(*records: str) -> str:
  """The text in place of a table whose records are missing."""
  data = lambda r: (
      'movie_reviews.tsv' if r.startswith('reviews') else 'spambase.data'
  )
  return '\n'.join(
      f'no record yet: `python launch.py --config=experiments/gafm/{RUNS[r]} '
      f'--config.data.path={data(r)} '
      f'--record=experiments/gafm/records/{r}.json`'
      for r in records if not evidence.exists(PAPER, r)
  )
