"""What decides the claims on Delta and on who keeps what it was sent.

They rest on what GAFM's own scripts wrote into records/, beside the trainings'
records. Two of those files, of older scripts, do not name the version that made
them, and the verdicts say so.
"""
import numpy as np

from experiments.claims import Verdict
from experiments.gafm import ablations, scripts
from experiments.gafm.measured import EPOCHS

UNKNOWN = 'the record names no version of the code'


def chosen() -> Verdict:
  """The paper's Figure 7 calls the three smallest ratios close."""
  tenth = scripts.read('delta_tenth')
  said = f'a tenth chooses {tenth["delta"]:g} (last epoch; {UNKNOWN})'
  return among(tenth['delta'], 'table10', said)


def chosen_for_imdb() -> Verdict:
  """Whether the paper's Delta for IMDB is among the three on reviews."""
  return among(0.1, 'reviews', "the paper's tenth of IMDB chooses 0.1")


def among(delta: float, record: str, said: str) -> Verdict:
  """Whether it has one of the three lowest ratios, by the best epoch."""
  orders = {epoch: in_order(record, epoch) for epoch in EPOCHS}
  held = {epoch: delta in order[:3] for epoch, order in orders.items()}
  shown = {
      epoch: ', '.join(f'{d:g}' for d in order) or 'a ratio is no number'
      for epoch, order in orders.items()
  }
  word = '' if held['max'] == held['last'] else (
      ', by which it is held' if held['last'] else ', by which it is not held'
  )
  return Verdict(held['max'], (
      f'{said}; all data, from the lowest ratio, best epoch: {shown["max"]}; '
      f'last epoch{word}: {shown["last"]}'
  ))


def in_order(record: str, epoch: str) -> list[float]:
  """The Deltas from the lowest ratio on all data; none if one has no ratio."""
  found = scripts.all_data(epoch, record)
  if not np.isfinite(found).all():
    return []
  return [ablations.DELTAS[i] for i in np.argsort(found)]


def transcript() -> Verdict:
  """Whether a party's record of what it was sent tells it anything."""
  found = scripts.read('averaging')['gafm']
  kept, own = 'residual, first 50', 'f(x), last epoch'
  last = found['gradient, last'][0]
  return Verdict(
      found[kept][0] <= found[own][0],
      f'leak AUC {100 * found[kept][0]:.1f} from 50 epochs, '
      f'{100 * last:.1f} from the last one, '
      f"{100 * found[own][0]:.1f} by the party's own f(x); measured 2026-11-21 "
      f'by an earlier version: {UNKNOWN}, so that it cannot be made again as '
      'it was',
  )
