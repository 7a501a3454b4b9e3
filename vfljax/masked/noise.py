"""theta_r, the noise that a layer gets when it is masked and when it is shown.

Algorithm 1 of VMask (Tan et al., NDSS 2025) leaves the passive party with its
weights plus Gaussian noise of the active party's.
"""
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.masked.shares import Layer, Leaves
from vfljax.mpc.x64 import entry
from vfljax.nets import intercept
from vfljax.types import Array, Key, Params

STD = 0.01  # Of theta_r: Algorithm 1's sigma, appendix B.
FINE = 2.0**-12  # Of a deviation: far above a float32's last bit, far below it.


def noise(
    key: Key, chosen: Sequence[Layer], std: float = STD
) -> dict[str, Leaves]:
  """theta_r ~ N(0, std^2) of each layer: Algorithm 1, lines 4 and 9.

  In float64, a float32 Gaussian with a uniform number of std * `FINE` added. A
  float32 Gaussian alone is a multiple of a number much larger than the weights'
  last fraction bit, so that the bits below would reveal what it is added to:
  under T4 sums of the gradients that must stay with the active party.

  Use a key for one masking or one unmasking only; it is the active party's
  secret. If noise is used again, the passive party, which knows all other terms
  of its weights, learns it when it is given the layer.
  """
  check.key(key)
  check.at_least('std', std, 0)
  out = {}
  for i, layer in enumerate(chosen):
    own = jax.random.fold_in(key, i)
    shapes = {'kernel': layer.bilinear.w_shape,
              'bias': layer.bilinear.w_shape[-1:]}
    out[layer.name] = {
        name: _drawn(
            jax.random.fold_in(own, j), jax.random.fold_in(own, 2 + j),
            shapes[name], std,
        ) for j, name in enumerate(layer.leaves)
    }
  return out


@entry
def _drawn(
    coarse: Key, fine: Key, shape: tuple[int, ...], std: float
) -> Array:
  """Gaussian numbers whose last bits are random to float64's precision."""
  words = jax.random.bits(fine, (2, *shape), jnp.uint32)
  high, low = words.astype(jnp.float64)
  part = (high + low * 2.0**-32) * 2.0**-32 - 0.5
  drawn = jax.random.normal(coarse, shape, jnp.float32).astype(jnp.float64)
  return std * (drawn + FINE * part)


def needed(extra: Mapping[str, Leaves], chosen: Sequence[Layer]) -> None:
  """Raises ValueError if a layer has no noise, or is there twice.

  Masked again, a layer's zeros would take the place of its weights.
  """
  for i, layer in enumerate(chosen):
    if layer.name in [other.name for other in chosen[:i]]:
      raise ValueError(f'Layer {layer.name} is chosen twice; see `choose`.')
    if layer.name not in extra:
      raise ValueError(f'No noise for layer {layer.name}; see `noise`.')


def noisy(
    params: Params, chosen: Sequence[Layer], extra: dict[str, Leaves]
) -> Params:
  """The fast mode's weights: theta + theta_r in the clear.

  Raises:
    ValueError: if a layer has no noise, or is chosen twice.
  """
  needed(extra, chosen)
  for layer in chosen:
    old, more = intercept.leaves_at(params, layer.path), extra[layer.name]
    new = {k: v + more[k].astype(v.dtype) for k, v in old.items()}
    params = intercept.with_leaves(params, layer.path, new)
  return params
