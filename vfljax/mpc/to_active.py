"""T4: the last bottom layer, with output and gradient left to the active party.

In `one_sided` P reads the layer's output y and gradient g, and since it knows
every update it can solve y = z th for the weights over a few batches. For the
layer whose output A receives anyway, P needs neither: A opens y and keeps g,
and each update changes both shares. With th = th_P + th_A, which are M and V
of `one_sided.mask`:

  forward   A -> P: F = th_A - V               W words, V fresh from the dealer
            P -> A: E = z - U, c = f(z, th_P + F) + W_P             X + Y words
            A: y = c + f(E, V) + W_A
  weights   A -> P: F2 = g - V2                                       Y words
            P: h(U, F2) + W2_P,  A: h(E, g) + W2_A, shares of h(z, g)
  input     P -> A: E3 = th_P - U3                                    W words
            A -> P: s = k(V2, E3) + W3_A + k(g, th_A)                 X words
            P: k(F2, th_P) + W3_P + s = k(g, th)

f is the layer, h and k its transposes in w and in x; z, g, th are codes. The
first step's correlations are W_A = f(U, V) - W_P, W2_A = h(U, V2) - W2_P and
W3_A = k(V2, U3) - W3_P from the dealer. g is eta times the gradient with f_g
fraction bits, so that f_theta = f_x + f_g makes h's shares updates as they are:
no share is truncated. The input gradient then has f_x + 2 f_g bits, which is
what bounds them: `Precision` holds |y| < 2^7 and |eta gx| < 2^5.

P sees F, F2 and s: uniform, uniform, and a function of gx and its own values. A
sees E, E3 (uniform), and c, a function of y and its own values. A party that is
given the weights later learns by how much they changed
(`masked.masking.unmask`).

But gx reveals much. Its rows are combinations of th's columns: for a dense
layer [n, m] with m < n, m rows or more span these, so P has z th up to an
m x m matrix, which is learned when the network is completed. And gx is exact, a
product of integers, so that a few rows more give the lattice of the columns.
LLL finds its short vectors, which are the columns up to signs, order and now
and then a sum, and with them g: one batch may be enough. So th and g are hidden
only in a layer whose input needs no gradient. Likewise y reveals to A the
lattice of z's columns where m >= n and the batch is larger than n.

Needs 64-bit types on.
"""
from typing import NamedTuple

import jax

from vfljax.mpc.bilinear import Bilinear
from vfljax.mpc.one_sided import Place, Seeds
from vfljax.mpc.prg import Prg, stream
from vfljax.mpc.wire import Message, Transcript
from vfljax.mpc.x64 import ring_array

Array = jax.Array

_V, _U, _OUT, _V2, _OUT2, _U3, _OUT3 = range(16, 23)


class Precision(NamedTuple):
  """Fraction bits of z and of eta times the gradient; weights have the sum."""

  inputs: int = 18
  gradients: int = 20

  @property
  def weights(self) -> int:
    """f_theta = f_x + f_g."""
    return self.inputs + self.gradients


class Shares(NamedTuple):
  """Weights in two shares that both move: th_P and th_A."""

  passive: Array
  active: Array


class Correlation(NamedTuple):
  """One training step's correlated randomness, in the docstring's letters.

  A's: v, v2, active, active2, active3. P's: u, u3, passive, passive2, passive3.
  """

  u: Array
  v: Array
  passive: Array
  active: Array
  v2: Array
  passive2: Array
  active2: Array
  u3: Array
  passive3: Array
  active3: Array


def deal(
    prg: Prg, keys: Seeds, place: Place, f: Bilinear
) -> tuple[Correlation, Transcript]:
  """The dealer's offline part of a training step: Y + W + X words to A."""

  def words(key, use, shape):
    return prg.words(stream(prg, key, use, *place), shape)

  p, a = keys.dealer_passive, keys.dealer_active
  u, u3 = words(p, _U, f.x_shape), words(p, _U3, f.w_shape)
  v, v2 = words(a, _V, f.w_shape), words(a, _V2, f.y_shape)
  own = words(p, _OUT, f.y_shape)
  own2, own3 = words(p, _OUT2, f.w_shape), words(p, _OUT3, f.x_shape)
  rest = f.forward(u, v) - own
  rest2 = f.weight_gradient(u, v2) - own2
  rest3 = f.input_gradient(v2, u3) - own3
  said = tuple(
      Message(part, name, 'dealer', 'active', 0)
      for part, name in ((rest, 'W_A'), (rest2, 'W2_A'), (rest3, 'W3_A'))
  )
  return Correlation(u, v, own, rest, v2, own2, rest2, u3, own3, rest3), said


def _fits(f: Bilinear, shares: Shares, c: Correlation) -> None:
  """Passes if shares and randomness are those of the layer.

  Raises:
    ValueError: if one is of another shape. Of another batch's, a row would be
      broadcast: y is right, and rows of E have one mask.
  """
  for shape, names in (
      (f.x_shape, ('u', 'passive3', 'active3')),
      (f.w_shape, ('v', 'passive2', 'active2', 'u3')),
      (f.y_shape, ('passive', 'active', 'v2')),
  ):
    for name in names:
      ring_array(getattr(c, name), f'c.{name}', shape=shape)
  for name, share in shares._asdict().items():
    ring_array(share, f'shares.{name}', shape=f.w_shape)


def forward(
    f: Bilinear, z: Array, shares: Shares, c: Correlation
) -> tuple[Array, Array, Transcript]:
  """y = f(z, th) at A; W + X + Y words, 2 flights.

  Args:
    f: The layer.
    z: int64 codes of P's input.
    shares: The weights.
    c: This step's correlation.

  Returns:
    (codes of y at A with f_x + f_theta fraction bits; E, which A keeps for the
    weight gradient; transcript).
  """
  ring_array(z, 'z', shape=f.x_shape)
  _fits(f, shares, c)
  refresh = shares.active - c.v
  e = z - c.u
  part = f.forward(z, shares.passive + refresh) + c.passive
  y = part + f.forward(e, c.v) + c.active
  said = (
      Message(refresh, 'F', 'active', 'passive', 1),
      Message(e, 'E', 'passive', 'active', 2),
      Message(part, 'c', 'passive', 'active', 2),
  )
  return y, e, said


def backward(
    f: Bilinear,
    g: Array,
    e: Array,
    shares: Shares,
    c: Correlation,
    input_gradient: bool = True,
) -> tuple[Shares, Array | None, Transcript]:
  """Updates both shares by h(z, g) and gives P its input gradient.

  Y words and 1 flight; with the input gradient Y + W + X and 2 flights, E3
  going with F2.

  Args:
    f: The layer.
    g: int64 codes of eta times the output gradient, at A.
    e: From `forward`.
    shares: The weights before the update.
    c: The step's correlation, as in `forward`.
    input_gradient: Whether P needs it; the first layer does not.

  Returns:
    (new shares; codes of eta times the input gradient with f_g + f_theta
    fraction bits, at P, or `None`; transcript).
  """
  ring_array(g, 'g', shape=f.y_shape)
  ring_array(e, 'e', shape=f.x_shape)
  _fits(f, shares, c)
  opened = g - c.v2
  said = [Message(opened, 'F2', 'active', 'passive', 1)]
  passive = f.weight_gradient(c.u, opened) + c.passive2
  active = f.weight_gradient(e, g) + c.active2
  new = Shares(shares.passive - passive, shares.active - active)
  if not input_gradient:
    return new, None, tuple(said)
  e3 = shares.passive - c.u3
  s = f.input_gradient(c.v2, e3) + c.active3
  s = s + f.input_gradient(g, shares.active)
  gx = f.input_gradient(opened, shares.passive) + c.passive3 + s
  said += [
      Message(e3, 'E3', 'passive', 'active', 1),
      Message(s, 's', 'active', 'passive', 2),
  ]
  return new, gx, tuple(said)
