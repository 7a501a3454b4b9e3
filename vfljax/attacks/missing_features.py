"""Missing features (Zou et al. 2023, after Liu et al. 2021).

A share of the passive parties' embeddings does not arrive and is replaced by
zeros. The paper says "throughout the training process"; in VFLAIR, its authors'
benchmark, they are missing in the test only, which is `rate=0` here. A party
does not learn that its embedding was lost: it receives the gradient at zero and
updates its weights with it.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.adversary import Adversary
from vfljax.attack import TRAINING, recipe
from vfljax.backdoor import Backdoor, some
from vfljax.leakage import DROP
from vfljax.scene import Ground


class Options(NamedTuple):
  """See `missing_features`."""

  rate: float = 0.25  # share of embeddings that do not arrive in training


def _plant(options: Options, ground: Ground) -> Backdoor:
  return missing_features(options.rate, parties=ground.parties)


@recipe(stage=TRAINING, options=Options, plant=_plant, score=DROP)
def missing_features(
    rate=0.25, *, parties: tuple[int, ...] = (1,)
) -> Backdoor:
  """Replaces a share of the embeddings by zeros.

  Args:
    rate: Share of a round's samples in training, in [0, 1]; may be traced. At
      inference the embeddings of all samples given are missing.
    parties: The parties whose embeddings are lost, 1..K, for the same samples.

  Raises:
    ValueError: if `rate` is outside [0, 1], or there are no parties.
  """
  check.inside('missing_features: rate', rate, 0, 1)
  some('missing_features', parties)
  rate = jnp.asarray(rate, jnp.float32)  # Of an integer nothing is drawn.

  def send(state, key, own):
    del state
    arrives = ~jax.random.bernoulli(key, rate, (len(own[0]),))
    there = lambda u: arrives.reshape(-1, *[1] * (u.ndim - 1))
    return tuple(jnp.where(there(u), u, jnp.zeros_like(u)) for u in own)

  def strike(state, key, own):
    del state, key
    return tuple(jnp.zeros_like(u) for u in own)

  return Backdoor(
      Adversary(parties, send=send), Adversary(parties, send=strike)
  )
