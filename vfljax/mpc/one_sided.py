"""T3: products of one party's private input with weights shared beforehand.

The weights are M + V = enc(theta + noise) mod 2^64: M at the passive party P, V
at the active party A. V does not change while a layer is masked, so that one
correlation per product suffices and a pass costs as much as sharing the input
and reconstructing the output: X words up, Y words down, one round trip, one
ring product per party.

  dealer, offline:  U, W_P from a seed shared with P;  W_A = f(U, V) - W_P to A
  P -> A:  E = enc(x) - U
  A -> P:  s = f(E, V) + W_A
  P:       f(enc(x), M) + W_P + s = f(enc(x), M + V)

VMask's Algorithm 5 (Tan et al., NDSS 2025) multiplies shares locally and so
loses the cross terms of the product; this is a correct protocol of the same
cost. As there, P sees the layer's input, output and output gradient, so it
computes the weight gradient by itself and updates its share alone. A sees
uniform words only, if seeds are secret and parties do not collude.

Every function takes and gives ring elements (int64) and needs 64-bit types on:
run it in a `jit` under `jax.enable_x64(True)`, or wrapped by `x64.entry`.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from vfljax import check
from vfljax.mpc.prg import Prg, stream
from vfljax.mpc.wire import WORD, Message, Transcript
from vfljax.mpc.x64 import ring_array

Array = jax.Array
Map = Callable[[Array, Array], Array]
Place = tuple[Any, ...]  # Numbers that name a use: period, layer, step, pass.

# The first number of a stream's name: the purpose of its words. As the first it
# ensures that no name is a prefix of another, so that no key is both drawn from
# and folded.
PAD, STATIC, INPUT, OUTPUT = range(4)


class Seeds(NamedTuple):
  """Generator keys that two parties share, for one run.

  Masks are named by period, layer, step and pass. A repeated run, one resumed
  after a failure or one with other fraction bits would draw the same masks for
  other numbers, and the difference of the messages of both runs would have no
  mask: such a run needs seeds of its own.

  Attributes:
    dealer_passive: Gives U and W_P.
    dealer_active: Gives V.
    passive_active: Gives r, which hides theta when a layer is masked.
  """

  dealer_passive: Any
  dealer_active: Any
  passive_active: Any


class Masked(NamedTuple):
  """Weights in two shares: M at the passive party, V at the active party."""

  passive: Array
  active: Array


class Correlation(NamedTuple):
  """One product's correlated randomness: U and W_P at P, W_A at A."""

  u: Array
  passive: Array
  active: Array


def seeds(prg: Prg, key: Any) -> Seeds:
  """All three keys from one, for simulation."""
  return Seeds(*(prg.fold(key, i) for i in range(3)))


def mask(
    prg: Prg, keys: Seeds, place: Place, theta: Array, noise: Array
) -> tuple[Masked, Transcript]:
  """Masks a layer's weights; W words, one flight.

  P keeps theta - r. A sends F = r + noise - V to P. P computes
  M = (theta - r) + F, which is uniform to P if V is fresh.

  Args:
    prg: The generator.
    keys: The parties' seeds.
    place: Numbers no other masking has, such as (period, layer).
    theta: int64, codes of the weights, known to P.
    noise: int64 like theta, codes of A's noise theta_r.

  Returns:
    Shares that sum to theta + noise, and the transcript.
  """
  ring_array(theta, 'theta')
  ring_array(noise, 'noise', shape=theta.shape)
  r = prg.words(stream(prg, keys.passive_active, PAD, *place), theta.shape)
  v = prg.words(stream(prg, keys.dealer_active, STATIC, *place), theta.shape)
  f = r + noise - v
  said = (Message(f, 'F', 'active', 'passive', 1),)
  return Masked((theta - r) + f, v), said


def deal(
    prg: Prg,
    keys: Seeds,
    place: Place,
    f: Map,
    x_shape: tuple[int, ...],
    v: Array,
) -> tuple[Correlation, Transcript]:
  """The dealer's offline part of one product: Y words to A.

  Args:
    prg: The generator.
    keys: The parties' seeds.
    place: Numbers no other product has, such as (period, layer, step, pass).
    f: The bilinear map: `forward` or `input_gradient` of a `Bilinear`.
    x_shape: Shape of P's operand.
    v: A's share.
  """
  u = prg.words(stream(prg, keys.dealer_passive, INPUT, *place), x_shape)
  whole = f(u, v)
  key = stream(prg, keys.dealer_passive, OUTPUT, *place)
  passive = prg.words(key, whole.shape)
  active = whole - passive
  said = (Message(active, 'W_A', 'dealer', 'active', 0),)
  return Correlation(u, passive, active), said


def ask(x: Array, u: Array) -> Array:
  """P's message E = enc(x) - U."""
  ring_array(x, 'x', shape=u.shape)
  return x - u


def answer(f: Map, e: Array, v: Array, w: Array, drop: int = 0) -> Array:
  """A's message s = f(E, V) + W_A, rounded to a multiple of 2^drop.

  Raises:
    ValueError: if W_A is of another shape, as that of another product.
  """
  check.count('drop', drop, 0, 8 * (WORD - 1))
  s = f(e, v)
  s = s + ring_array(w, 'W_A', shape=s.shape)
  if not drop:
    return s
  return (s >> drop) + ((s >> (drop - 1)) & 1)


def open_product(
    f: Map, x: Array, m: Array, w: Array, s: Array, drop: int = 0
) -> Array:
  """P's result f(enc(x), M) + W_P + s.

  Raises:
    ValueError: if W_P is of another shape, as that of another product.
  """
  ring_array(w, 'W_P', shape=s.shape)
  check.count('drop', drop, 0, 8 * (WORD - 1))
  return f(x, m) + w + (s << drop)


def product(
    f: Map,
    x: Array,
    masked: Masked,
    correlation: Correlation,
    drop_bytes: int = 0,
) -> tuple[Array, Transcript]:
  """f(x, theta + noise) mod 2^64, opened to P; X + Y words, 2 flights.

  Args:
    f: The map `correlation` was dealt for.
    x: int64 codes, P's operand.
    masked: The shared weights.
    correlation: From `deal`; for this product only.
    drop_bytes: Low bytes A leaves out of its answer, 0..7: with 3, Y costs 5
      bytes a word and the result errs by at most 2^23, 2^-25 at 48 fraction
      bits. P adds mod 2^64, so nothing can wrap wrongly.

  Returns:
    (int64 codes whose fraction bits are the factors' together, transcript).
  """
  check.count('drop_bytes', drop_bytes, 0, WORD - 1)
  drop = 8 * drop_bytes
  e = ask(x, correlation.u)
  s = answer(f, e, masked.active, correlation.active, drop)
  y = open_product(f, x, masked.passive, correlation.passive, s, drop)
  said = (
      Message(e, 'E', 'passive', 'active', 1),
      Message(s, 's', 'active', 'passive', 2, WORD - drop_bytes),
  )
  return y, said


def update(masked: Masked, delta: Array) -> Masked:
  """theta <- theta - delta (codes) on P's share alone, without a message."""
  ring_array(delta, 'delta', shape=masked.passive.shape)
  return Masked(masked.passive - delta, masked.active)


def unmask(masked: Masked, noise: Array) -> tuple[Array, Transcript]:
  """Gives P its weights with fresh noise of A's; W words, one flight.

  Args:
    masked: The shares.
    noise: int64 codes of A's new noise theta_r'.

  Returns:
    (codes of theta + noise + fresh noise, transcript).
  """
  ring_array(noise, 'noise', shape=masked.active.shape)
  sent = masked.active + noise
  said = (Message(sent, 'V', 'active', 'passive', 1),)
  return masked.passive + sent, said
