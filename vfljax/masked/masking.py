"""Which layers of a network are masked, and putting their weights in shares.

Algorithm 1 of VMask (Tan et al., NDSS 2025) on any of our networks: a layer's
name is the path of its weights, its arithmetic is that of `masked.shares`, and
there is one definition of the network (`nets.intercept`). `masked.training`
trains such weights.

  found = layers(net, params, x)
  chosen = choose(found, ['conv1', 'fc2'])
  weights, said = mask(public, chosen, keys, params, noise(key, chosen), 0)

and `change` to mask another selection.
"""
from collections.abc import Sequence
from typing import NamedTuple
import warnings

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.masked import ranges, shares
from vfljax.masked.finding import layers
from vfljax.masked.noise import STD, needed, noise, noisy
from vfljax.masked.shares import Layer, Secret, Public
from vfljax.mpc.one_sided import Seeds
from vfljax.mpc.wire import Transcript
from vfljax.nets import intercept
from vfljax.types import Params

__all__ = [
    'STD', 'Weights', 'change', 'choose', 'layers', 'mask', 'noise', 'noisy',
    'unmask',
]


class Weights(NamedTuple):
  """A bottom network's weights.

  Attributes:
    plain: The network's parameters, with zeros where a layer is masked.
    secret: The shares of each masked layer, by name.
  """

  plain: Params
  secret: dict[str, Secret]


def choose(
    found: Sequence[Layer], names: Sequence[str], last: str = ''
) -> tuple[Layer, ...]:
  """The layers to mask, by name.

  Args:
    found: From `layers`.
    names: Names, or the first parts of their paths if unique: 'fc1' for
      'fc1/Dense_0'.
    last: One of `names` whose output and gradient stay with the active party
      (T4); it must be the network's last operation. '': none.

  Raises:
    ValueError: if a name fits no layer or several, or `last` is not the last.
  """
  known = [layer.name for layer in found]
  picked = [_named(known, name) for name in names]
  closing = _named(known, last) if last else ''
  if closing and closing not in picked:
    raise ValueError(f'Layer {last} is not among those to mask: {picked}.')
  if closing and not {f.name: f.final for f in found}[closing]:
    raise ValueError(
        f'Layer {closing} cannot leave its output with the active party: it '
        'is not the last operation of the network.'
    )
  return tuple(
      layer._replace(to_active=layer.name == closing)
      for layer in found if layer.name in picked
  )


def _named(known: Sequence[str], name: str) -> str:
  fits = [k for k in known if k == name or k.startswith(f'{name}/')]
  if len(fits) != 1:
    problem = f'fits {len(fits)} layers' if fits else 'does not exist'
    raise ValueError(
        f'Layer {name!r} {problem}; the network has {", ".join(known)}.'
    )
  return fits[0]


def mask(
    public: Public, chosen: Sequence[Layer], keys: Seeds, params: Params,
    extra: dict[str, shares.Leaves], period: int,
) -> tuple[Weights, Transcript]:
  """Algorithm 1, lines 2-6: puts layers into shares; W words a layer.

  Args:
    public: Public numbers.
    chosen: The layers.
    keys: The parties' seeds.
    params: The network's weights.
    extra: theta_r, from `noise`.
    period: Number of the masking, from 0 to 2^32 - 1. With the same number
      twice the mask V is the same, which reveals the difference of both
      maskings.

  Returns:
    (weights, transcript).

  Raises:
    ValueError: if a weight is outside the fixed-point range, the period is
      none, or a layer has no noise or is chosen twice.

  Warns:
    UserWarning: where the paper's condition on a layer's size fails, or where
      a layer's weights are all zero, as those of one that is masked already.
  """
  check.whole('period', period, 0, 2**32 - 1)
  needed(extra, chosen)
  secret, said = {}, []
  for i, layer in enumerate(chosen):
    theta = intercept.leaves_at(params, layer.path)
    secret[layer.name], words = shares.share(
        public, layer, keys, (period, i), theta, extra[layer.name]
    )
    for complaint in ranges.condition(layer), ranges.blank(layer, theta):
      if complaint:
        warnings.warn(complaint, stacklevel=2)
    said += words
    blank = jax.tree.map(jnp.zeros_like, theta)
    params = intercept.with_leaves(params, layer.path, blank)
  return Weights(params, secret), tuple(said)


def unmask(
    public: Public, chosen: Sequence[Layer], weights: Weights,
    extra: dict[str, shares.Leaves],
) -> tuple[Weights, Transcript]:
  """Algorithm 1, lines 7-11: gives layers back with fresh noise.

  The passive party knows the weights that it once masked, so it learns by how
  much they changed since, up to theta_r twice: also under T4, where single
  gradients stay with the active party.

  Raises:
    ValueError: if a layer has no noise, is chosen twice or is not in shares.
  """
  needed(extra, chosen)
  for layer in chosen:
    if layer.name not in weights.secret:
      raise ValueError(f'Layer {layer.name} is not in shares: unmask takes '
                       'layers that `mask` or `change` put there.')
  params, secret, said = weights.plain, dict(weights.secret), []
  for layer in chosen:
    old = intercept.leaves_at(params, layer.path)
    theta, words = shares.unshare(
        public, layer, secret.pop(layer.name), extra[layer.name],
        old['kernel'].dtype,
    )
    said += words
    params = intercept.with_leaves(params, layer.path, theta)
  return Weights(params, secret), tuple(said)


def change(
    public: Public, layers: tuple[Sequence[Layer], Sequence[Layer]],
    keys: Seeds, weights: Weights, extra: dict[str, shares.Leaves],
    period: int,
) -> tuple[Weights, Transcript]:
  """Algorithm 1 as a whole: from one selection of masked layers to another.

  A layer that is in both stays in its shares. The optimizers' states are kept:
  under T3 the passive party knows a masked layer's updates.

  Args:
    public: Public numbers.
    layers: (the layers masked now, the layers to mask).
    keys: The parties' seeds.
    weights: With the former masked.
    extra: theta_r, from `noise`, for all layers that change.
    period: As in `mask`: another one for each change.

  Returns:
    (weights, transcript).

  Raises:
    ValueError: as `mask`; if the layers masked now are not those that
      `weights` has in shares, or one goes from T3 to T4 or back, whose shares
      have other fraction bits: `unmask` it first.
  """
  old, new = ({layer.name: layer for layer in some} for some in layers)
  shares.matched(weights.secret, layers[0])
  for name in old.keys() & new.keys():
    if old[name].to_active != new[name].to_active:
      raise ValueError(
          f'Layer {name} cannot go from T3 to T4, or back, in its shares, '
          'which have other fraction bits there: `unmask` it first.'
      )
  shown = [layer for name, layer in old.items() if name not in new]
  hidden = [layer for name, layer in new.items() if name not in old]
  weights, told = unmask(public, shown, weights, extra)
  masked, said = mask(public, hidden, keys, weights.plain, extra, period)
  secret = weights.secret | masked.secret
  return Weights(masked.plain, secret), (*told, *said)
