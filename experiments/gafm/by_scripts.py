"""Decides the claims on Delta, and on a party that keeps its gradients.

They rest on the records of GAFM's own scripts in records/, besides those of
trainings. As with all of GAFM's claims, too few draws of the seeds that agree
with a verdict decide nothing (`redrawn`).
"""
import numpy as np

from experiments import redrawn
from experiments.claims import Verdict
from experiments.gafm import ablations, scripts
from experiments.gafm.measured import EPOCHS


def chosen() -> Verdict:
  """The paper's Figure 7 calls the three smallest ratios close."""
  (delta,) = scripts.read('delta_tenth')['delta']
  return among(delta, 'table10', f'a tenth chooses {delta:g} (last epoch)')


def chosen_for_imdb() -> Verdict:
  """Whether the paper's Delta for IMDB is among the three on reviews."""
  return among(0.1, 'reviews', "the paper's tenth of IMDB chooses 0.1")


def among(delta: float, record: str, said: str) -> Verdict:
  """Whether a Delta has one of the three lowest ratios, by the best epoch."""
  ratios = {epoch: scripts.by_seed(epoch, record) for epoch in EPOCHS}
  orders = {epoch: in_order(found.mean(1)) for epoch, found in ratios.items()}
  held = {epoch: delta in order[:3] for epoch, order in orders.items()}
  shown = {
      epoch: ', '.join(f'{d:g}' for d in order) or 'a ratio is no number'
      for epoch, order in orders.items()
  }
  word = '' if held['max'] == held['last'] else (
      ', by which it is held' if held['last'] else ', by which it is not held'
  )
  shares = redrawn.weights(ratios['max'].shape[1])
  drawn = [delta in in_order(x)[:3] for x in shares @ ratios['max'].T]
  return redrawn.tested(held['max'], float(np.mean(drawn)), (
      f'{said}; all data, from the lowest ratio, best epoch: {shown["max"]}; '
      f'last epoch{word}: {shown["last"]}; three of five are among them by '
      'chance, too'
  ))


def in_order(ratios: np.ndarray) -> list[float]:
  """The Deltas from the lowest ratio on; none if one has no ratio."""
  if not np.isfinite(ratios).all():
    return []
  return [ablations.DELTAS[i] for i in np.argsort(ratios)]


def transcript() -> Verdict:
  """Whether a party learns anything from keeping the gradients it was sent."""
  found = scripts.read('averaging')['leak_auc']['gafm']
  kept, last, own = (100 * np.asarray(found[what]) for what in (
      'residual, first 50', 'gradient, last', 'f(x), last epoch'
  ))
  shares = redrawn.weights(len(kept))
  return redrawn.tested(
      bool(kept.mean() <= own.mean()),
      float(np.mean(shares @ kept <= shares @ own)),
      f'leak AUC {kept.mean():.1f} from 50 epochs, {last.mean():.1f} from the '
      f"last one, {own.mean():.1f} by the party's own f(x)",
  )
