"""Pretrained weights as an argument of a program, not as its constants.

Constants are compiled into a program: tens of megabytes for a small encoder. So
`init` fetches pretrained weights from the host by a callback, unless the caller
passes them (`given`), as the runner does: its programs can then be cached for
the next start, and an accelerator does not wait for the host.
"""
from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
from contextvars import ContextVar
from typing import Any

import jax

from vfljax.types import Net, Params

_GIVEN: ContextVar[Mapping[str, Params]] = ContextVar('given')


class Pretrained:
  """A network's pretrained weights, on the host until `placed`.

  Attributes:
    name: Networks with the same name start from the same weights.
    weights: A pytree of NumPy arrays.
  """

  def __init__(self, name: str, weights: Params):
    self.name, self.weights = name, weights
    self._placed: dict[Any, Params] = {}

  def start(self) -> Params:
    """The weights, in a trace or outside; for a network's `init`."""
    here = _GIVEN.get({}).get(self.name)
    if here is not None:
      return here
    shapes = jax.tree.map(
        lambda w: jax.ShapeDtypeStruct(w.shape, w.dtype), self.weights
    )
    return jax.pure_callback(lambda: self.weights, shapes)

  def placed(self, where: Any) -> Params:
    """The weights on devices, copied once per sharding.

    Args:
      where: The sharding.
    """
    if where not in self._placed:
      self._placed[where] = jax.device_put(self.weights, where)
    return self._placed[where]


def found(nets: Iterable[Net | None]) -> list[Pretrained]:
  """The pretrained weights of those networks that have them."""
  return [net.pretrained for net in nets if net and net.pretrained]


def placed(nets: Iterable[Net | None], where: Any) -> dict[str, Params]:
  """The pretrained weights of these networks on devices, by name."""
  return {one.name: one.placed(where) for one in found(nets)}


@contextlib.contextmanager
def given(weights: Mapping[str, Params]) -> Iterator[None]:
  """A context where `init` takes these weights, by `Pretrained.name`."""
  token = _GIVEN.set(weights)
  try:
    yield
  finally:
    _GIVEN.reset(token)


def taking(fn: Callable[..., Any]) -> Callable[..., Any]:
  """Makes of `fn(..., shared)` a function of (..., (shared, weights))."""

  def taken(*arguments):
    *own, (shared, weights) = arguments
    with given(weights):
      return fn(*own, shared)

  return taken
