"""Missing features (Zou et al. 2023, after Liu et al. 2021).

A share of the passive parties' embeddings does not arrive: zeros take their
place. The paper says "throughout the training process"; VFLAIR, its authors'
benchmark, has them missing at the test alone, which is `rate=0` here. A party
does not learn that its embedding was lost: it is sent the gradient at zero and
goes by it.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.adversary import Adversary
from vfljax.attack import TRAINING, recipe
from vfljax.backdoor import Backdoor
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
  """Embeddings of zeros in the place of some.

  Args:
    rate: Share of a round's samples in training, in [0, 1]; may be traced. At
      inference the embeddings of all samples given are missing.
    parties: Whose, 1..K; the same samples' at each.

  Raises:
    ValueError: if `rate` is outside [0, 1].
  """
  check.inside('missing_features: rate', rate, 0, 1)

  def send(state, key, own):
    del state
    arrives = ~jax.random.bernoulli(key, rate, (len(own[0]),))
    return tuple(
        u * arrives.reshape(-1, *[1] * (u.ndim - 1)).astype(u.dtype)
        for u in own
    )

  def strike(state, key, own):
    del state, key
    return tuple(jnp.zeros_like(u) for u in own)

  return Backdoor(
      Adversary(parties, send=send), Adversary(parties, send=strike)
  )
