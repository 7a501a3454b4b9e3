"""Additive secret sharing over Z_2^64.

A value is the sum mod 2^64 of its shares; any proper subset of the shares is
uniform and independent of it. Sums of shared values are sums of shares;
products need `beaver` or `one_sided`.
"""
from collections.abc import Sequence
import functools
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.mpc import prg as prgs
from vfljax.mpc.x64 import Array, Ring, entry, ring_array


def share_raw(
    key: Any, x: Array, parties: int = 2, prg: prgs.Prg = prgs.THREEFRY
) -> Array:
  """`share` inside a 64-bit program."""
  check.count('parties', parties, 2)
  ring_array(x, 'x')
  masks = [prg.words(prg.fold(key, i), x.shape) for i in range(parties - 1)]
  return jnp.stack([*masks, x - functools.reduce(jnp.add, masks)])


_share = jax.jit(share_raw, static_argnums=(2, 3))


@entry
def share(
    key: Any, x: Ring, parties: int = 2, prg: prgs.Prg | str = 'threefry'
) -> Array:
  """Splits ring elements into additive shares.

  Args:
    key: The generator's key: a `jax.random` key, or `prg.chacha20_key(bytes)`.
      One key shares one value; reuse would repeat the masks. So `vmap` over
      values has to map a key for each, too.
    x: int64 array.
    parties: At least 2.
    prg: A name in `prg.REGISTRY` or a `Prg`.

  Returns:
    int64 [parties, *x.shape], which sums to x mod 2^64.

  Raises:
    TypeError: if x is not int64, or the key is another generator's.
    ValueError: for fewer than 2 parties, an unknown generator, or no key.
  """
  return _share(key, ring_array(x, 'x'), parties, prgs.get(prg))


@entry
@jax.jit
def _total(shares: Sequence[Array]) -> Array:
  return functools.reduce(jnp.add, shares)


def reconstruct(shares: Ring | Sequence[Ring]) -> Array:
  """The shared value: the sum of all shares mod 2^64.

  Args:
    shares: int64 [parties, ...], or one int64 array per party.

  Raises:
    TypeError: if a share is not int64.
    ValueError: if there is no share, or one has another shape.
  """
  several = isinstance(shares, Sequence)
  if not several:
    ring_array(shares, 'shares', 1)
  if not len(shares):
    raise ValueError('reconstruct needs the shares of all parties; got none.')
  if not several:
    return _sum_first(shares)
  known = [ring_array(s, f'shares[{i}]') for i, s in enumerate(shares)]
  if len({s.shape for s in known}) > 1:
    raise ValueError(
        'All shares of a value must have its shape; got '
        f'{[s.shape for s in known]}.'
    )
  return _total(known)


@entry
@jax.jit
def _sum_first(shares: Array) -> Array:
  return shares.sum(0)
