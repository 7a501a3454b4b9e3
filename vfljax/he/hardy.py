"""HardyLR: logistic regression with a coordinator who has the key (Hardy et
al., 2017).

The loss is replaced by its Taylor polynomial, whose slope is linear. With
t = 2 y - 1 in {-1, 1} and u = x_P w_P + x_A w_A [B]:

  log 2 - t u / 2 + u^2 / 8,   d = (u / 4 - t / 2) / B

  1  P -> A  [u_P]                     under the coordinator's key
  2  A -> P  [B d] = [u_P] / 4 + [u_A / 4 - t / 2]
  3  P -> C  [x_P^T (B d)],  A -> C  [x_A^T (B d)]
  4  C -> P, A  each its gradient, decrypted

A quarter is two more bits of fraction. Each party divides by B and takes its
step.

As described: Kang et al. (Table 5) list it as a protection of u_P and of the
residues d of both parties, for logistic regression. Their Eq. 7 says why that
is not enough: P has x_P^T d in the clear (`views.hardy`). That there is a
coordinator with the key, and the polynomial, is from Hardy et al. as others
quote it. Ours: that A encrypts its part of B d, which makes its randomness
fresh; that weights stay with their party, where the paper's coordinator may
keep them; fixed-point numbers; plain SGD without a bias or a penalty. With
`masked`, as Yang et al. (2019) have it, each party adds a mask to what the
coordinator decrypts; without, the sums' randomness, too, is one of features
alone, which somebody who has the key might make something of. The papers' own
texts were not at hand.
"""
import math

import numpy as np

from vfljax import check
from vfljax.he.arrays import Count, Encrypted, Masked
from vfljax.he.encoding import FACTORS, VALUES, Code, decode, encode, reals
from vfljax.he.keys import PrivateKey, PublicKey
from vfljax.he.masks import SLACK
from vfljax.he.party import (
    MASKED, Channel, Cost, Declared, Party, Traffic, asked, under,
)

P, A, C = 'passive', 'active', 'coordinator'
MESSAGES = (
    Declared(1, P, A, 'part', under(C)),
    Declared(2, A, P, 'residues', under(C)),
    Declared(3, P, C, "the passive party's sums", under(C)),
    Declared(3, A, C, "the active party's sums", under(C)),
    Declared(4, C, P, "the passive party's gradient", MASKED),
    Declared(4, C, A, "the active party's gradient", MASKED),
)


class Half(Party):
  """A party with features.

  Args:
    name: The party's name.
    weights: w [n], real numbers.
    rate: SGD's learning rate.
    coordinator: The coordinator's public key.
    masked: Whether it hides its gradient from the coordinator.
    workers: Number of threads for powers.
  """

  def __init__(
      self, name: str, weights, rate: float, coordinator: PublicKey,
      masked: bool = False, workers: int = 1,
  ):
    super().__init__(name, None, workers)
    check.at_least('rate', rate, 0)
    self._weights = reals(weights)
    if self._weights.ndim != 1:
      raise ValueError('weights must be [n], a number for each feature; got '
                       f'the shape {self._weights.shape}.')
    if not np.isfinite(self._weights).all():
      raise ValueError('weights must be finite; got '
                       f'{self._weights[~np.isfinite(self._weights)][0]}.')
    self._rate, self._coordinator, self._masked = rate, coordinator, masked
    self._back = f"the {name} party's gradient"

  def sums(self, residues: Encrypted) -> Encrypted:
    """Message 3: [x^T (B d)], [n, 1]."""
    found = self._math.matmul_left(self._x.T, residues)
    self._masks[self._back] = np.zeros(found.shape, object)
    if self._masked:
      found, self._masks[self._back] = self._math.hide(found)
    return found

  def learn(self, opened: Masked) -> None:
    """Takes message 4."""
    found = self._unmasked(self._back, opened)
    total = decode(found, opened.fraction)[:, 0]
    self._weights = self._weights - self._rate * total / len(self._x)

  def _part(self, x) -> np.ndarray:
    self._x = np.asarray(x, np.float64)
    return (self._x @ self._weights)[:, None]


class Passive(Half):
  """Has features."""

  def part(self, x) -> Encrypted:
    """Message 1, [B, 1]."""
    return self._math.encrypt(self._coordinator, self._part(x))


class Active(Half):
  """Has features and labels."""

  def residues(self, part: Encrypted, x, labels) -> Encrypted:
    """Message 2, [B, 1]; labels [B] are 0 or 1.

    Raises:
      ValueError: for other labels.
    """
    y = np.asarray(labels, np.float64)
    if y.shape != (len(x),) or not np.isin(y, (0, 1)).all():
      raise ValueError(f'Labels are 0 or 1, one a row, {len(x)} of them; got '
                       f'shape {y.shape} and {np.unique(y)[:5]}.')
    t = 2 * y[:, None] - 1
    own = encode(self._part(x), VALUES) - encode(2 * t, VALUES)
    quarter = Code(VALUES.fraction + 2, VALUES.bits + 1)
    fresh = self._math.encrypt_integers(self._coordinator, own, quarter)
    return self._math.add(
        part._replace(fraction=part.fraction + 2), fresh
    )


class Coordinator(Party):
  """Has the key; sees the sums of both parties, or masked ones."""

  def __init__(self, private: PrivateKey):
    super().__init__(C, private)

  def open(self, sums: Encrypted) -> Masked:
    """A part of message 4."""
    return self._math.decrypt_integers(self._key, sums)


def channel(coordinator: PublicKey) -> Channel:
  return Channel(MESSAGES, {C: coordinator})


def step(
    passive: Passive, active: Active, coordinator: Coordinator,
    line: Channel, x, own,
) -> None:
  """One mini-batch.

  Args:
    passive: Whose features are x [B, n].
    active: Whose features [B, m] and labels [B], 0 or 1, are `own`.
    coordinator: Has the key.
    line: Of `channel`.
    x: The passive party's features.
    own: (features, labels) of the active party.
  """
  part = line.carry('part', passive.part(x))
  residues = active.residues(part, *own)
  arrived = line.carry('residues', residues)
  told = {
      P: line.carry(
          "the passive party's sums", passive.sums(arrived)
      ),
      A: line.carry("the active party's sums", active.sums(residues)),
  }
  for name, one in ((P, passive), (A, active)):
    one.learn(line.carry(
        f"the {name} party's gradient", coordinator.open(told[name])
    ))


def cost(
    batch: int, n: int, m: int, bits: int = 1024, masked: bool = False
) -> Cost:
  """What a mini-batch takes, all three together; n inputs at P, m at A.

    encryptions      2 B                        masked: + n + m
    additions        B + (B - 1) (n + m)        masked: + n + m
    multiplications  B (n + m)
    decryptions      n + m

  Ciphertexts: 2 B + n + m; opened: n + m; 4 flights.
  """
  asked(bits, batch=batch, n=n, m=m)
  more = (n + m) * masked
  count = Count(
      2 * batch + more, batch + (batch - 1) * (n + m) + more,
      batch * (n + m), n + m,
  )
  opened = VALUES.bits + 2 + FACTORS.bits + math.ceil(math.log2(batch))
  opened += (SLACK + 1) * masked
  size = (2 * batch + n + m) * -(-bits // 4) + (n + m) * -(-(opened + 1) // 8)
  return Cost(count, Traffic(size, 4))
