"""Choosing a defense's strength on a small part of the data.

GAFM's rule (appendix D.3): train on a random tenth of the samples at every
strength, a few times over, and take the strength of the lowest mean ratio of
leak AUC to training AUC, averaged over attacks. It uses nothing specific to
GAFM, so it works for any defense on two classes.
"""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import measure, protocol, sweep, train
from vfljax.attack import Attack
from vfljax.defense import Defense
from vfljax.permuting import permutation
from vfljax.types import VFL, Array, Batch, Key, Transforms


class Choice(NamedTuple):
  """The outcome of `least_ratio`.

  Attributes:
    strength: The one with the lowest ratio.
    ratios: [strengths] mean leak AUC over training AUC.
    leak: [strengths, repeats, attacks] folded leak AUC.
    auc: [strengths, repeats] training AUC, not folded: near 0 where the model
      has learned the classes the wrong way round.
  """

  strength: float
  ratios: np.ndarray
  leak: np.ndarray
  auc: np.ndarray


class Trial(NamedTuple):
  """How a strength is tried; defaults are the paper's.

  Attributes:
    share: Share of the samples in a random part, in (0, 1].
    repeats: Number of parts, 1 or more.
    epochs: Epochs of each training.
    batch_size: Of each training; a part smaller than a batch is one batch.
  """

  share: float = 0.1
  repeats: int = 5
  epochs: int = 300
  batch_size: int = 1028


def least_ratio(
    key: Key, make: Callable[[Any], Defense], strengths: Sequence[float],
    vfl: VFL, txs: Transforms, data: Batch, attacks: Mapping[str, Attack],
    trial: Trial = Trial(),
) -> Choice:
  """Trains at every strength on random parts of the data: GAFM's rule.

  Args:
    key: Seeds the parts and the trainings, the same for every strength.
    make: (strength) -> Defense; the strength is traced.
    strengths: One or more.
    vfl: The networks, aggregation and loss.
    txs: One optax transformation per party.
    data: All samples, standardised; labels [n, 2].
    attacks: By name, on rounds, scored over the last epoch.
    trial: The parts and the trainings.

  Raises:
    ValueError: if a number is out of its range, there are no attacks, or every
      strength's ratio is NaN. (A strength with NaN is not chosen.)
  """
  share, repeats, epochs, batch_size = trial
  count = int(share * len(data.labels)) if 0 < share <= 1 else 0
  if not (len(strengths) and attacks and repeats >= 1 and count >= 2):
    raise ValueError(
        'least_ratio needs strengths, attacks, one or more repeats and a share '
        f'in (0, 1] of two or more samples; got share {share}, {repeats} '
        'repeats.'
    )

  def run(key: Key, strength: Array, data: Batch) -> dict[str, Array]:
    k_part, k_fit, k_predict = jax.random.split(key, 3)
    rows = permutation(k_part, len(data.labels))[:count]
    part = jax.tree.map(lambda x: x[rows], data)
    defense = make(strength)
    watch, digest = measure.watcher(attacks, defense)
    state, history = train.fit(
        k_fit, vfl, defense, txs, part, epochs=epochs,
        batch_size=min(batch_size, count), remainder='keep', watch=watch,
        digest=digest, every=epochs,
    )
    logits = protocol.predict(k_predict, vfl, defense, state, part.features)
    leaks = [found['leak_auc'][-1] for found in history['watch'].values()]
    return dict(
        leak=jnp.stack(leaks), auc=measure.of_model(logits, part.labels)['auc']
    )

  found = sweep.sweep(run, jax.random.split(key, repeats), strengths, data)
  leak, auc = np.asarray(found['leak']), np.asarray(found['auc'])
  ratios = (leak / auc[..., None]).mean((1, 2))
  if np.isnan(ratios).all():
    raise ValueError(
        'least_ratio: no strength has a ratio, as each diverged or had a part '
        'of one class alone, of which there is no AUC. Give parts of more '
        f'samples than {count} (Trial.share), or smaller learning rates.'
    )
  chosen = int(np.nanargmin(ratios))  # `argmin` takes NaN for the least.
  return Choice(float(strengths[chosen]), ratios, leak, auc)
