"""SFA: embeddings are added up under encryption and a mask (Cai et al., 2022).

Every party has a plain network, and their embeddings u [B, d] are added up. The
first passive party has the key; r is the active party's mask.

  1  P_k -> A   [u_k]
  2  A -> P_1   [u_0 + sum_k u_k + r]
  3  P_1 -> A   u_0 + sum_k u_k + r      A takes r away
  4  A -> P_k   the gradient of the sum, plain [B, d]

As described: VMask (section VI) and the paper's abstract name a secure
aggregation of the forward pass, on transformed data, with masks that can be
removed. Ours is all else: who has the key, that the mask is an integer 64 bits
longer than the sum, that gradients cross in the clear, fixed-point numbers,
plain SGD, several numbers a ciphertext (`packing.Sums`). The paper's own text
was not at hand, and it may hide more: of one passive party the active one here
learns u_1, the sum less its own; of two or more, only the sum.
"""
from collections.abc import Sequence
from typing import Any

import numpy as np

from vfljax import check
from vfljax.he.arrays import Count, Encrypted, Masked
from vfljax.he.encoding import decode
from vfljax.he.keys import PrivateKey
from vfljax.he.local import Bottom, Top
from vfljax.he.packing import Sums
from vfljax.he.party import (
    FLOATS, MASKED, Channel, Cost, Declared, Party, Traffic, asked, under,
)

A, FIRST = 'active', 'passive 1'


def messages(passive: int) -> tuple[Declared, ...]:
  """Of so many passive parties."""
  check.count('The number of passive parties', passive)
  names = [f'passive {k}' for k in range(1, passive + 1)]
  return (
      *(Declared(1, n, A, f'embedding of {n}', under(FIRST)) for n in names),
      Declared(2, A, FIRST, 'masked sum', under(FIRST)),
      Declared(3, FIRST, A, 'opened sum', MASKED),
      *(Declared(4, A, n, f'gradient for {n}', FLOATS) for n in names),
  )


class Passive(Party):
  """Has features and a network; the first of them the key.

  Args:
    k: Which one, from 1.
    bottom: Its network, [B, d].
    sums: How numbers lie in ciphertexts: `terms` of one more than there are
      passive parties, `masked`.
    private: The key, of the first one.
    workers: Threads in which it takes powers.
  """

  def __init__(
      self, k: int, bottom: Bottom, sums: Sums,
      private: PrivateKey | None = None, workers: int = 1,
  ):
    check.count('k', k)
    super().__init__(f'passive {k}', private, workers)
    self._bottom, self._sums = bottom, sums

  def embed(self, x) -> Encrypted:
    """Message 1."""
    u = self._bottom.forward(x)
    self._shape = u.shape
    return self._sums.seal(self._math, u)

  def open(self, total: Encrypted) -> Masked:
    """Message 3."""
    return self._sums.open(self._math, self._key, total, self._shape)

  def learn(self, gradient: np.ndarray) -> None:
    """Takes message 4."""
    self._bottom.backward(gradient)


class Active(Party):
  """Has the labels, its own features and network, and the top.

  Args:
    bottom: Its network, [B, d].
    top: What ends in the loss, of the sum and the labels.
    sums: As the others'.
    workers: Threads in which it takes powers.
  """

  def __init__(self, bottom: Bottom, top: Top, sums: Sums, workers: int = 1):
    super().__init__(A, None, workers)
    self._bottom, self._top, self._sums = bottom, top, sums

  def add(self, embeddings: Sequence[Encrypted], x) -> Encrypted:
    """Message 2."""
    total, self._masks['opened sum'] = self._sums.seal_masked(
        self._math, self._bottom.forward(x)
    )
    for one in embeddings:
      total = self._sums.add(self._math, total, one)
    return total

  def learn(self, opened: Masked, labels) -> tuple[float, np.ndarray]:
    """Takes message 3: the loss and message 4, after a step of its own."""
    z = decode(self._unmasked('opened sum', opened), opened.fraction)
    loss, gradient = self._top.learn(z, labels)
    self._bottom.backward(gradient)
    return loss, gradient


def channel(sums: Sums) -> Channel:
  return Channel(messages(sums.terms - 1), {FIRST: sums.key})


def step(
    passive: Sequence[Passive], active: Active, line: Channel,
    features: Sequence[Any], own: Any,
) -> float:
  """One mini-batch; returns its loss before the step.

  Args:
    passive: All of them, in order.
    active: Whose features and labels are `own`.
    line: Of `channel`.
    features: Of the passive parties, in order.
    own: (features, labels) of the active party.
  """
  x0, labels = own
  sent = [
      line.carry(f'embedding of passive {k}', one.embed(x))
      for k, (one, x) in enumerate(zip(passive, features, strict=True), 1)
  ]
  total = line.carry('masked sum', active.add(sent, x0))
  opened = line.carry('opened sum', passive[0].open(total))
  loss, gradient = active.learn(opened, labels)
  for k, one in enumerate(passive, 1):
    one.learn(line.carry(f'gradient for passive {k}', gradient))
  return loss


def cost(sums: Sums, batch: int, d: int) -> Cost:
  """What a mini-batch takes, all K passive parties and the active one.

  With c ciphertexts for B d numbers, B d of them unpacked, ceil(B d / slots)
  packed:

    encryptions (K + 1) c, additions K c, multiplications 0, decryptions c

  (K + 1) c ciphertexts cross, B d opened sums of `sums.width` bits and K B d
  plain numbers of 8 bytes; 4 flights.
  """
  asked(sums.key.bits, batch=batch, d=d)
  k, c = sums.terms - 1, sums.ciphers(batch * d)
  size = (k + 1) * c * sums.key.bytes + batch * d * -(-sums.width // 8)
  return Cost(
      Count((k + 1) * c, k * c, 0, c), Traffic(size + 8 * k * batch * d, 4)
  )
