"""T1: products of two shared operands with matrix Beaver triples.

The textbook protocol (Beaver, CRYPTO '91), for matrices and convolutions and
any number of parties: a dealer shares a, b and c = f(a, b); the parties open
E = x - a and F = w - b, and party i computes

  [y]_i = f(E, [w]_i) + f([a]_i, F) + [c]_i,

two ring products a party, since f(E, w) already holds f(E, F) + f(E, b).
Only uniform words are opened; the result stays shared. Generic MPC (CrypTen,
SPU) computes a masked layer like this; it is here for comparison with
`one_sided`.

Shares are stacked, [parties, ...]. Needs 64-bit types on, as `one_sided` does.
"""
from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.mpc import sharing
from vfljax.mpc.prg import Prg, stream
from vfljax.mpc.wire import Message, Transcript
from vfljax.mpc.x64 import ring_array

Array = jax.Array
Map = Callable[[Array, Array], Array]


class Triple(NamedTuple):
  """Shares [parties, ...] of random a, b and of c = f(a, b)."""

  a: Array
  b: Array
  c: Array


def _name(party: int) -> str:
  return ('passive', 'active')[party] if party < 2 else f'party {party}'


def triple(
    prg: Prg,
    key: Any,
    f: Map,
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    parties: int = 2,
) -> Triple:
  """A dealer's triple for one product.

  Args:
    prg: The generator.
    key: The dealer's key, for this triple only.
    f: The bilinear map.
    x_shape: Shape of its first operand.
    w_shape: Shape of its second.
    parties: At least 2.
  """
  check.count('parties', parties, 2)
  shapes = (x_shape, w_shape)
  a, b = (
      jnp.stack([
          prg.words(stream(prg, key, which, i), shape) for i in range(parties)
      ])
      for which, shape in enumerate(shapes)
  )
  total = f(a.sum(0), b.sum(0))
  c = sharing.share_raw(prg.fold(key, len(shapes)), total, parties, prg)
  return Triple(a, b, c)


def share_input(
    prg: Prg, key: Any, x: Array, parties: int = 2
) -> tuple[Array, Transcript]:
  """Party 0 shares its operand; X words to each other party, one flight."""
  shares = sharing.share_raw(key, x, parties, prg)
  said = tuple(
      Message(shares[i], 'x', _name(0), _name(i), 1) for i in range(1, parties)
  )
  return shares, said


def _broadcast(shares: Array, name: str) -> Transcript:
  """Every party sends its share to every other, in the first flight."""
  parties = shares.shape[0]
  return tuple(
      Message(shares[i], name, _name(i), _name(j), 1)
      for i in range(parties) for j in range(parties) if i != j
  )


def product(
    f: Map, x: Array, w: Array, dealt: Triple
) -> tuple[Array, Transcript]:
  """Shares of f(x, w) from shares of x and w; one flight.

  Two parties send 2 X + 2 W words.

  Args:
    f: The map `dealt` was made for.
    x: int64 [parties, *x_shape].
    w: int64 [parties, *w_shape].
    dealt: A triple no other product has used.

  Returns:
    (int64 [parties, *y_shape], transcript).
  """
  ring_array(x, 'x', shape=dealt.a.shape)
  ring_array(w, 'w', shape=dealt.b.shape)
  e_shares, f_shares = x - dealt.a, w - dealt.b
  e, opened = e_shares.sum(0), f_shares.sum(0)
  y = jax.eval_shape(f, e, opened)
  ring_array(dealt.c, 'c', shape=(len(x), *y.shape))

  def party(w, a, c):
    return f(e, w) + f(a, opened) + c

  out = [party(*own) for own in zip(w, dealt.a, dealt.c)]
  said = _broadcast(e_shares, 'E') + _broadcast(f_shares, 'F')
  return jnp.stack(out), said


def reveal(y: Array, to: int = 0) -> tuple[Array, Transcript]:
  """Opens a shared value to one party; Y words from each other, one flight.

  Raises:
    TypeError: if the shares are not int64.
    ValueError: if nobody is at `to`.
  """
  parties = ring_array(y, 'y', 1).shape[0]
  check.count('to', to, 0, parties - 1)
  said = tuple(
      Message(y[i], 'y', _name(i), _name(to), 1)
      for i in range(parties) if i != to
  )
  return functools.reduce(jnp.add, list(y)), said
