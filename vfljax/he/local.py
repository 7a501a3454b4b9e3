"""The parts of a federation that are computed in plain, each at one party.

Networks are `vfljax.types.Net`s, so that what a protocol trains can be compared
with `protocol.play_round`; all learn by plain SGD, w - rate g, since that is
what shares and ciphertexts can do.
"""
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import check
from vfljax.types import Array, Net, Params

# (params, z, own) -> the batch's mean loss; z is what arrives, [batch, ...],
# own is what the party adds: (features or (), labels).
Head = Callable[[Params, Array, Any], Array]


class Bottom:
  """A party's own network, [batch, ...] to [batch, width]."""

  def __init__(self, net: Net, params: Params, rate: float):
    check.at_least('rate', rate, 0)
    self.params = params
    self._net, self._rate = net, rate
    self._back: Any = None
    self._dtype: Any = None  # Of what it gave last.

  def forward(self, x) -> np.ndarray:
    """Embeddings, remembering the way back."""
    u, self._back = jax.vjp(
        lambda p: self._net.apply(p, jnp.asarray(x)), self.params
    )
    self._dtype = u.dtype
    return np.asarray(u)

  def backward(self, d) -> None:
    """A step down the gradient, from that of the embeddings."""
    self.step(self._back(jnp.asarray(d, dtype=self._dtype))[0])

  def step(self, gradients: Params) -> None:
    self.params = down(self.params, gradients, self._rate)


class Middle(Bottom):
  """A network between two parties, which also returns its input's gradient."""

  def forward(self, x) -> np.ndarray:
    x = jnp.asarray(x, dtype=_type(self.params))
    u, self._back = jax.vjp(self._net.apply, self.params, x)
    self._dtype = u.dtype
    return np.asarray(u)

  def through(self, d) -> np.ndarray:
    """A step, and the gradient of what was its input before it."""
    own, back = self._back(jnp.asarray(d, dtype=self._dtype))
    self.step(own)
    return np.asarray(back)


class Top:
  """What ends in the loss."""

  def __init__(self, head: Head, params: Params, rate: float):
    check.at_least('rate', rate, 0)
    self.params = params
    self._head, self._rate = head, rate

  def learn(self, z, own: Any) -> tuple[float, np.ndarray]:
    """The loss and z's gradient; a step of its own parameters."""
    z = jnp.asarray(z, dtype=_type(self.params, own))
    loss, (mine, dz) = jax.value_and_grad(self._head, argnums=(0, 1))(
        self.params, z, own
    )
    self.params = down(self.params, mine, self._rate)
    return float(loss), np.asarray(dz)


def down(params: Params, gradients: Params, rate: float) -> Params:
  """A step of plain SGD."""
  return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def _type(*trees: Any) -> Any:
  """Of the first array of floats among the leaves; `None` without any."""
  found = [getattr(x, 'dtype', None) for x in jax.tree.leaves(trees)]
  floats = (t for t in found if t and jnp.issubdtype(t, jnp.floating))
  return next((jax.dtypes.canonicalize_dtype(t) for t in floats), None)
