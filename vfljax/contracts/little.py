"""A small federation of two classes, and checks that both contracts share."""
from collections.abc import Callable, Iterator
import contextlib
from functools import partial, wraps
from typing import Any, ParamSpec

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import algorithms, nets
from vfljax.types import VFL, Batch

ROWS, WIDTH, PADDING = 16, 6, 4
TXS = (optax.sgd(0.05, momentum=0.9),) * 2
TINY = 1e-5  # Relative difference that rounding may cause.
_P = ParamSpec('_P')
TELL = 'crossing.rows(labels) and crossing.counted(u) tell which these are'


def replaying(check: Callable[_P, None]) -> Callable[_P, None]:
  """A check that plays a round again with its key, to compare both.

  Under `jax_debug_key_reuse` JAX would refuse that, as if the method that is
  checked had used its key twice.
  """

  @wraps(check)
  def call(*args: _P.args, **kwargs: _P.kwargs) -> None:
    with jax.debug_key_reuse(False):
      check(*args, **kwargs)

  return call


def federation(parties: int = 2) -> VFL:
  return algorithms.vhnn(
      [nets.mlp(8, WIDTH)] * parties, nets.binary(nets.mlp(8, 1))
  )


@partial(jax.jit, static_argnames=('rows', 'parties'))
def batch(rows: int = ROWS, parties: int = 2) -> Batch:
  """A random batch; all passive parties hold the same features."""
  one, two = jax.random.split(jax.random.key(3))
  own, theirs = jax.random.normal(one, (rows, 4)), jax.random.normal(
      two, (rows, 5)
  )
  positive = (jnp.arange(rows) % 3 == 0).astype(int)
  features = own, *[theirs] * (parties - 1)
  return Batch(features, jax.nn.one_hot(positive, 2))


def check_finite(name: str, tree: Any) -> None:
  for path, x in jax.tree.leaves_with_path(tree):
    if not np.isfinite(x).all():
      raise ValueError(
          f'{name}: {jax.tree_util.keystr(path) or "its guess"} is not finite; '
          'a norm has no gradient at 0 and nothing is divided by it: '
          'jnp.maximum(norm, 1e-12).'
      )


def check_same(who: str, one: Any, other: Any, otherwise: str) -> None:
  if not same(one, other):
    raise ValueError(f'{who} {otherwise}.')


def same(one: Any, other: Any) -> bool:
  """Whether two trees have the same numbers, but for rounding."""
  return all(
      np.allclose(x, y, rtol=10 * TINY, atol=TINY)
      for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True)
  )


@contextlib.contextmanager
def each_key_once(who: str) -> Iterator[None]:
  """What is traced inside draws from no key twice, as far as JAX can tell."""
  try:
    with jax.debug_key_reuse(True):
      yield
  except jax.errors.KeyReuseError as error:
    raise ValueError(
        f'{who} draws from one key twice, and gets the same luck twice: split '
        'it, one, other = jax.random.split(key), and take one for each draw.'
    ) from error
