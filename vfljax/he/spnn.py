"""SPNN: the first layer's sum goes to a server, encrypted (Zhou et al., 2022).

Two parties hold features, the active one labels, too; a server, which has the
key, does the rest of the network but its last layer.

  1  P -> A  [x_P W_P]              [B, h]
  2  A -> S  [x_P W_P + x_A W_A]
  3  S -> A  its network's output, plain [B, l]
  4  A -> S  the loss's gradient of that, plain
  5  S -> P, A  the gradient of the sum, plain [B, h]

As described: VMask (section VI) says that the computation is cut so that the
parts that touch labels stay with their owner, with secret shares and HE; the
paper's abstract, that private data meet the first layer by one of the two and
that a half-honest server does the rest. This is the variant with HE. Ours:
that A, too, encrypts its part, so that what S decrypts has fresh randomness;
fixed-point numbers in place of floats; plain SGD; packing, several numbers a
ciphertext, by Paillier (`packing.Sums`) or CKKS (`ckks`). The paper's own text
was not at hand.
"""
from typing import Any

import numpy as np

from vfljax import check
from vfljax.he.arrays import Count
from vfljax.he.ckks import PrivateContext, PublicContext
from vfljax.he.keys import PrivateKey, PublicKey
from vfljax.he.local import Bottom, Middle, Top
from vfljax.he.packing import Sums
from vfljax.he.party import (
    FLOATS, Channel, Cost, Declared, Party, Traffic, under,
)

P, A, S = 'passive', 'active', 'server'
MESSAGES = (
    Declared(1, P, A, 'part', under(S)),
    Declared(2, A, S, 'sum', under(S)),
    Declared(3, S, A, 'last', FLOATS),
    Declared(4, A, S, 'slope', FLOATS),
    Declared(5, S, P, 'gradient', FLOATS),
    Declared(5, S, A, 'gradient too', FLOATS),
)
Scheme = Sums | PublicContext


class Passive(Party):
  """Has features and its part of the first layer.

  Args:
    bottom: That part, x W_P, [B, h].
    scheme: How numbers are encrypted for the server.
    workers: Threads in which it takes powers.
  """

  def __init__(self, bottom: Bottom, scheme: Any, workers: int = 1):
    super().__init__(P, None, workers)
    self._bottom, self._scheme = bottom, scheme

  def part(self, x) -> Any:
    """Message 1."""
    return self._scheme.seal(self._math, self._bottom.forward(x))

  def learn(self, gradient: np.ndarray) -> None:
    """Takes message 5."""
    self._bottom.backward(gradient)


class Active(Party):
  """Has features, labels, its part of the first layer and the last layer.

  Args:
    bottom: Its part of the first layer.
    top: The last layer and the loss, of the server's output and the labels.
    scheme: How numbers are encrypted for the server.
    workers: Threads in which it takes powers.
  """

  def __init__(
      self, bottom: Bottom, top: Top, scheme: Any, workers: int = 1
  ):
    super().__init__(A, None, workers)
    self._bottom, self._top, self._scheme = bottom, top, scheme

  def add(self, part: Any, x) -> Any:
    """Message 2."""
    own = self._scheme.seal(self._math, self._bottom.forward(x))
    return self._scheme.add(self._math, part, own)

  def slope(self, last: np.ndarray, labels) -> tuple[float, np.ndarray]:
    """The loss and message 4."""
    return self._top.learn(last, labels)

  def learn(self, gradient: np.ndarray) -> None:
    """Takes message 5."""
    self._bottom.backward(gradient)


class Server(Party):
  """Has the key and the network between the first layer and the last.

  Args:
    middle: That network, [B, h] to [B, l].
    private: Its key, Paillier's or CKKS's.
    scheme: As the others'.
  """

  def __init__(
      self, middle: Middle, private: PrivateKey | PrivateContext, scheme: Any
  ):
    super().__init__(S)
    self._secret = private  # Of either kind, which the scheme knows.
    self._middle, self._scheme = middle, scheme

  def forward(self, total: Any, shape: tuple[int, int]) -> np.ndarray:
    """Message 3, from the encrypted sum, [B, h] = `shape`."""
    h = self._scheme.opened(self._math, self._secret, total, shape)
    return self._middle.forward(h)

  def backward(self, slope: np.ndarray) -> np.ndarray:
    """Message 5."""
    return self._middle.through(slope)


def channel(server: PublicKey | PublicContext) -> Channel:
  return Channel(MESSAGES, {S: server})


def step(
    passive: Passive, active: Active, server: Server, line: Channel, x, own,
    width: int,
) -> float:
  """One mini-batch; returns its loss before the step.

  Args:
    passive: Whose features are x [B, ...].
    active: Whose features and labels are `own`.
    server: Does the rest.
    line: Of `channel`.
    x: The passive party's features.
    own: (features, labels) of the active party.
    width: h, of the first layer.
  """
  features, labels = own
  part = line.carry('part', passive.part(x))
  total = line.carry('sum', active.add(part, features))
  last = line.carry('last', server.forward(total, (len(labels), width)))
  loss, slope = active.slope(last, labels)
  gradient = server.backward(line.carry('slope', slope))
  passive.learn(line.carry('gradient', gradient))
  active.learn(line.carry('gradient too', gradient))
  return loss


def cost(scheme: Scheme, batch: int, h: int, last: int) -> Cost:
  """What a mini-batch takes, all parties together.

  With c ciphertexts for B h numbers, B h of them unpacked, ceil(B h / slots)
  packed:

    encryptions 2 c, additions c, multiplications 0, decryptions c

  2 c ciphertexts cross, 2 B l + 2 B h plain numbers of 8 bytes; 5 flights.
  What a CKKS ciphertext takes on the wire differs by a few bytes from one to
  the next, and bytes are 0 here.
  """
  check.sizes('cost', batch=batch, h=h, last=last)
  c = scheme.ciphers(batch * h)
  count = Count(2 * c, c, 0, c)
  if not isinstance(scheme, Sums):
    return Cost(count, Traffic(0, 5))
  plain = 8 * (2 * batch * last + 2 * batch * h)
  return Cost(count, Traffic(2 * c * scheme.key.bytes + plain, 5))
