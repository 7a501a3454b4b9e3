"""Checks of what is passed to a federation: arguments that were swapped."""
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from vfljax import check
from vfljax.types import VFL, Batch, Net, State, Transforms


def state(found: Any) -> None:
  """Raises ValueError unless it is a `State`."""
  if not isinstance(found, State):
    raise ValueError(
        'state must be a State, as `init` makes it and a round returns it; got '
        f'{check.kind(found)}. The key comes first, the state after txs, '
        'or in `predict` after the defense.'
    )


def features(found: Any, parties: int) -> None:
  """Raises ValueError unless it has the same rows of each party."""
  listed = isinstance(found, (tuple, list)) and not isinstance(
      found, Batch
  )
  if not listed or len(found) != parties:
    got = f'{len(found)} arrays' if listed else check.kind(found)
    raise ValueError(
        f'features must be a tuple with those of each of the {parties} parties '
        f'(batch.features), None for a party with labels only; got {got}.'
    )
  shapes = [jnp.shape(x) for x in jax.tree.leaves(tuple(found))]
  if len({shape[:1] for shape in shapes}) > 1:  # One row would be stretched.
    raise ValueError(
        'Row i of the features must be the same sample at every party; their '
        f'shapes are {", ".join(map(str, shapes))}.'
    )


def kinds(vfl: VFL, txs: Transforms) -> None:
  """Raises ValueError for one optimizer, which is a tuple, too, or no `Net`."""
  one = isinstance(txs, optax.GradientTransformation)
  if one or not isinstance(txs, Sequence):
    got = 'one alone' if one else check.kind(txs)
    raise ValueError(
        f'txs must have an optimizer for each party; got {got}. The same '
        f'one for all: (tx,) * {len(vfl.bottoms)}.'
    )
  for tx in txs:
    if not (hasattr(tx, 'init') and hasattr(tx, 'update')):
      raise ValueError(
          'txs must have an optimizer for each party, such as optax.adam(0.01);'
          f' one is {check.kind(tx)}.'
      )
  named = {f'bottom of party {k}': n for k, n in enumerate(vfl.bottoms)}
  for who, net in {**named, 'top': vfl.top}.items():
    if not isinstance(net, Net) and (net is not None or who == 'top'):
      raise ValueError(
          f'The {who} must be a Net; it is {check.kind(net)}. '
          '`nets.linen` and `nets.nnx` make one of a Flax module.'
      )
