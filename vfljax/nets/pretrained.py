"""Weights that a network starts from, as an argument of a program.

What a program holds as a constant is compiled into it: tens of megabytes for a
small encoder. So `init` asks the host for them, unless who compiles gives them
(`given`), as the runner does: its programs are then kept for the next start,
and an accelerator need not wait for the host.
"""
from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
from contextvars import ContextVar
from typing import Any

import jax

from vfljax.types import Net, Params

_GIVEN: ContextVar[Mapping[str, Params]] = ContextVar('given')


class Pretrained:
  """A network's weights, on the host until somebody places them.

  Attributes:
    name: Whose: networks of one name start from the same.
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
    """On devices, once for all who ask.

    Args:
      where: A sharding.
    """
    if where not in self._placed:
      self._placed[where] = jax.device_put(self.weights, where)
    return self._placed[where]


def found(nets: Iterable[Net | None]) -> list[Pretrained]:
  """What these networks start from; [] of random ones."""
  return [net.pretrained for net in nets if net and net.pretrained]


def placed(nets: Iterable[Net | None], where: Any) -> dict[str, Params]:
  """The same on devices, by name."""
  return {one.name: one.placed(where) for one in found(nets)}


@contextlib.contextmanager
def given(weights: Mapping[str, Params]) -> Iterator[None]:
  """Networks that begin in here begin with these, by `Pretrained.name`."""
  token = _GIVEN.set(weights)
  try:
    yield
  finally:
    _GIVEN.reset(token)


def taking(fn: Callable[..., Any]) -> Callable[..., Any]:
  """`fn(..., shared)` as a function of ... and (shared, weights)."""

  def taken(*arguments):
    *own, (shared, weights) = arguments
    with given(weights):
      return fn(*own, shared)

  return taken
