"""A linear layer's weights in shares: configuration, masking, dealing.

Kernel and bias are both shared; the bias has the output's fraction bits and is
added to the shares of the output (`masked_layer`), so it costs nothing online.
Layers use T3 (`one_sided`) or, where the active party receives the layer's
output anyway, T4 (`to_active`).
"""
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.mpc import fixed_point, one_sided, ring, to_active
from vfljax.mpc.bilinear import Bilinear
from vfljax.mpc.one_sided import Masked, Place, Seeds
from vfljax.mpc.prg import THREEFRY, Prg
from vfljax.mpc.wire import WORD, Transcript
from vfljax.mpc.x64 import entry

Array = jax.Array
Leaves = dict[str, Array]  # 'kernel' and perhaps 'bias'.
Secret = dict[str, Masked]  # The shares of each.


class Public(NamedTuple):
  """Public configuration of masked layers.

  Attributes:
    precision: Fraction bits under T3.
    last: Fraction bits under T4: they hold |y| < 2^(63 - 2 inputs - gradients).
    drop_bytes: Low bytes left out of the active party's answers under T3, 0..7.
    prg: The generator of all masks. Not of theta_r: `noise` draws it from a JAX
      key of 64 bits.
  """

  precision: fixed_point.Precision = fixed_point.Precision()
  last: to_active.Precision = to_active.Precision(17, 23)
  drop_bytes: int = 0
  prg: Prg = THREEFRY


class Layer(NamedTuple):
  """The static description of a masked layer.

  Attributes:
    name: Its path in the network's parameters.
    bilinear: The layer at the batch's shapes.
    bias: Whether it has one.
    first: Whether its input needs no gradient.
    final: Whether its output is the network's, with nothing after it.
    to_active: T4 instead of T3.
  """

  name: str
  bilinear: Bilinear
  bias: bool
  first: bool
  final: bool = False
  to_active: bool = False

  @property
  def path(self) -> tuple[str, ...]:
    """Where its weights are in the network's parameters, outermost first."""
    return tuple(filter(None, self.name.split('/')))  # (): it is the network.

  @property
  def leaves(self) -> tuple[str, ...]:
    """The names of its weights."""
    return ('kernel', 'bias') if self.bias else ('kernel',)


class Dealt(NamedTuple):
  """T3: correlations of the forward pass and of the input gradient."""

  forward: one_sided.Correlation
  backward: one_sided.Correlation | None


def weight_bits(public: Public, layer: Layer) -> dict[str, int]:
  """Fraction bits of a layer's kernel and bias.

  Raises:
    ValueError: if `public` has numbers that are none of bits or bytes. All that
      is masked comes by here.
  """
  _check(public)
  if layer.to_active:
    inputs, weights = public.last.inputs, public.last.weights
  else:
    inputs, weights = public.precision.inputs, public.precision.weights
  return {'kernel': weights, 'bias': inputs + weights}


def _check(public: Public) -> None:
  """Passes if its numbers are what they have to be; ValueError if not."""
  for name in ('precision', 'last'):
    bits = getattr(public, name)
    for part in ('inputs', 'weights', 'gradients'):
      check.count(f'{name}.{part}', getattr(bits, part), 0, 62)
  check.count('drop_bytes', public.drop_bytes, 0, WORD - 1)
  if not isinstance(public.prg, Prg):
    raise ValueError(
        'prg must be a generator, as mpc.prg.CHACHA20; got '
        f'{public.prg!r}.'
    )


_share = entry(jax.jit(one_sided.mask, static_argnums=0))
_unshare = entry(jax.jit(one_sided.unmask))


def _encode(layer: Layer, values: Leaves, bits: dict[str, int]) -> Leaves:
  """Codes of a layer's weights; ValueError says which layer is out of range."""
  out = {}
  for name in layer.leaves:
    try:
      out[name] = fixed_point.encode(values[name], bits[name])
    except ValueError as error:
      raise ValueError(f'Layer {layer.name}, {name}: {error}') from None
  return out


def share(
    public: Public, layer: Layer, keys: Seeds, place: Place, theta: Leaves,
    noise: Leaves,
) -> tuple[Secret, Transcript]:
  """Masks one layer: W words (and the bias's), one flight.

  Args:
    public: Public numbers.
    layer: Which.
    keys: The parties' seeds.
    place: Numbers no other masking has, such as (period, layer).
    theta: Its weights, at the passive party.
    noise: theta_r, at the active party.

  Returns:
    Shares of theta + noise, and what was said.

  Raises:
    ValueError: if a concrete weight is outside the fixed-point range.
  """
  bits = weight_bits(public, layer)
  codes, noises = _encode(layer, theta, bits), _encode(layer, noise, bits)
  secret, said = {}, ()
  for i, name in enumerate(layer.leaves):
    secret[name], words = _share(
        public.prg, keys, (*place, i), codes[name], noises[name]
    )
    said += words
  return secret, said


def unshare(
    public: Public, layer: Layer, secret: Secret, noise: Leaves,
    dtype: Any = jnp.float32,
) -> tuple[Leaves, Transcript]:
  """Gives the passive party the weights with fresh noise; W words, a flight."""
  bits = weight_bits(public, layer)
  noises = _encode(layer, noise, bits)
  theta, said = {}, ()
  for name in layer.leaves:
    codes, words = _unshare(secret[name], noises[name])
    theta[name] = fixed_point.decode(codes, bits[name], dtype)
    said += words
  return theta, said


def matched(secret: Mapping[str, Any], layers: Sequence[Layer]) -> None:
  """Raises ValueError unless these layers, and no others, are in shares.

  In the plain weights there are zeros for a layer in shares. Who takes it for
  one that is not masked would train, or mask, the zeros.
  """
  names = {layer.name for layer in layers}
  if names != secret.keys():
    raise ValueError(
        f'Layers in shares: {", ".join(secret) or "none"}; layers said to be '
        f'masked: {", ".join(sorted(names)) or "none"}. They must be the same.'
    )


def opened(secret: Secret, bits: dict[str, int], dtype: Any) -> Leaves:
  """The weights behind the shares; no party can compute this alone."""
  return {
      k: fixed_point.decode(ring.add(*v), bits[k], dtype)
      for k, v in secret.items()
  }


def deal(
    public: Public, layer: Layer, keys: Seeds, place: Place, secret: Secret
) -> tuple[Dealt | to_active.Correlation, Transcript]:
  """The dealer's part of one training step, offline.

  Args:
    public: Public numbers.
    layer: Which.
    keys: The parties' seeds.
    place: Numbers no other step has, such as (period, layer, step); traced or
      not, each a uint32.
    secret: The layer's shares; T3 uses V alone, T4 none.
  """
  f, prg = layer.bilinear, public.prg
  if layer.to_active:
    return to_active.deal(prg, keys, place, f)
  v = secret['kernel'].active
  up, said = one_sided.deal(prg, keys, (*place, 0), f.forward, f.x_shape, v)
  if layer.first:
    return Dealt(up, None), said
  down, more = one_sided.deal(
      prg, keys, (*place, 1), f.input_gradient, f.y_shape, v
  )
  return Dealt(up, down), (*said, *more)
