"""What GAFM's tables and claims read from its records; AUCs in percent."""
import numpy as np

from experiments import evidence
from vfljax.report.reading import Cell, Results

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


def load(record: str) -> Results:
  return evidence.load(PAPER, record).results


def auc(results: Results, cell: Cell) -> np.ndarray:
  """[seeds], percent."""
  return np.array(list(evidence.quantity(results, cell, 'auc').values()))


def leak(results: Results, cell: Cell, attack: str, epoch: str) -> np.ndarray:
  """[seeds], percent, of the 'last' epoch or of the best, 'max'."""
  what = f'{attack}/leak_auc_{epoch}'
  return np.array(list(evidence.quantity(results, cell, what).values()))


def ratio(
    results: Results, cell: Cell, attack: str, epoch: str
) -> np.ndarray:
  """AUC over leak AUC, [seeds]."""
  return auc(results, cell) / leak(results, cell, attack, epoch)
