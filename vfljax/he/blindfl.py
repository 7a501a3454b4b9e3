"""BlindFL: shares of the first layer's weights, multiplied as ciphertexts
(Fu et al., 2022).

x_A and x_P are the parties' features, W_A and W_P their parts of the first
layer, [n, h]. For W = U + V, its owner has U, the other party has V, and the
owner also has [V] under the other's key. The active party's network computes
the loss from z = x_A W_A + x_P W_P [B, h]; dz is the loss's gradient.

  1  P -> A  [x_P V_P - e_P] under A,  A -> P  [x_A V_A - e_A] under P
  2  P -> A  x_P U_P + e_P + (x_A V_A - e_A)     P's share of z
  3  A -> P  [rate dz] under A
  4  P -> A  [x_P^T (rate dz) - f] under A       P: U_P <- U_P - f
  5  A -> P  [V_P] under A                       A: V_P <- V_P - (... - f)

A adds its own share to P's, so it learns z but not the two terms. It updates
its weights by itself: U_A <- U_A - x_A^T (rate dz). P sees only uniform
numbers.

As described: VMask (section VI) says that the model is divided, with HE and
shares on the input layer, and plain training above it; Kang et al. (Table 5)
that gradients and weights of both sides are protected; the paper's abstract
calls it a federated source layer. Ours, after second-hand accounts of it: the
five messages and who keeps which piece; that shares and masks are integers,
masks 64 bits longer than what they hide; that weights have the fraction bits of
the product x^T (rate dz), so that nothing is rounded after what went in, and
are drawn down to the last of them; a dither below 2^-25 on z, so that it is no
exact product of integers (`masks`); plain SGD. The paper's own text was not at
hand. A can still find features on a coarse grid, such as 0 and 1: z spans their
columns if the batch and h are larger than the number of features.

Shares grow by a mask in every step; there is room for 2^`STEPS` steps.
"""
from typing import Any

import numpy as np

from vfljax import check
from vfljax.he import masks
from vfljax.he.arrays import Count, Encrypted, Masked
from vfljax.he.encoding import (
    FACTORS, SLOPES, VALUES, Code, decode, encode,
)
from vfljax.he.keys import PrivateKey, PublicKey
from vfljax.he.local import Top
from vfljax.he.party import (
    MASKED, Channel, Cost, Declared, Party, Traffic, asked, under,
)

P, A = 'passive', 'active'
MESSAGES = (
    Declared(1, P, A, "the passive party's product", under(A)),
    Declared(1, A, P, "the active party's product", under(P)),
    Declared(2, P, A, 'share', MASKED),
    Declared(3, A, P, 'slope', under(A)),
    Declared(4, P, A, 'step', under(A)),
    Declared(5, A, P, 'weights', under(A)),
)
STEPS = 32  # Logarithm of the number of steps.
SLOPE = Code(VALUES.fraction, SLOPES.bits)  # rate dz, encrypted: |x| < 1.
FRACTION = FACTORS.fraction + SLOPE.fraction  # Of weights.


def shares_code(rows: int) -> Code:
  """The code of a share of the weights, with room for 2^`STEPS` steps."""
  return Code(FRACTION, step_bits(rows) + masks.SLACK + STEPS + 1)


def step_bits(rows: int) -> int:
  """Bits of x^T (rate dz), for a batch of so many rows."""
  check.count('rows', rows)
  return FACTORS.bits + SLOPE.bits + int(np.ceil(np.log2(rows)))


class Half(Party):
  """The part of the protocol that is the same for both parties.

  Args:
    name: The party's name.
    private: Its key.
    other: The other party's public key.
    pieces: (U of its own weights [n, h], V of the other's), real numbers that
      it draws itself.
    rows: The size of the largest batch.
    workers: Number of threads for powers.
  """

  def __init__(
      self, name: str, private: PrivateKey, other: PublicKey,
      pieces: tuple[Any, Any], rows: int, workers: int = 1,
  ):
    super().__init__(name, private, workers)
    self._other, self._code = other, shares_code(rows)
    self._own, self._theirs = (weights(piece) for piece in pieces)

  def tell_weights(self) -> Encrypted:
    """[V] of the other's weights, under its own key: before training."""
    return self._math.encrypt_integers(
        self.public, self._theirs, self._code
    )

  def keep(self, told: Encrypted) -> None:
    """[V] of its own weights, as the other party told them."""
    self._told = told

  def product(self, x) -> Encrypted:
    """Message 1: [x V - e] under the other's key."""
    self._x = np.asarray(x)
    product = self._math.matmul_left(self._x, self._told)
    masked, mask = self._math.hide(product)
    self._e, self._size = -mask, masked.bits  # x V + mask is x V - e.
    return masked

  def _share(self, product: Encrypted) -> Masked:
    """x U + e, and what the other's product was opened to."""
    theirs = self._math.decrypt_integers(self._key, product)
    own = encode(self._x, FACTORS) @ self._own + self._e
    return theirs._replace(
        values=theirs.values + own, bits=max(theirs.bits, self._size) + 2
    )


class Passive(Half):
  """The party with features only; it sees ciphertexts and masked numbers."""

  def share(self, product: Encrypted) -> Masked:
    """Takes the active party's product; message 2."""
    found = self._share(product)
    blur = masks.dither(found.values.shape, found.fraction)
    return found._replace(values=found.values + blur)

  def step(self, slope: Encrypted) -> Encrypted:
    """Takes message 3; message 4 and its own part of the step."""
    product = self._math.matmul_left(self._x.T, slope)
    masked, mask = self._math.hide(product)
    self._own = self._own + mask  # f is minus the mask.
    return masked


class Active(Half):
  """The party with features, labels and everything above the first layer.

  Args:
    top: Computes the loss from z and the labels.
    rate: SGD's learning rate for the first layer.
    *others: The arguments of `Half`, from `private` on.
  """

  def __init__(self, top: Top, rate: float, *others: Any):
    super().__init__(A, *others)
    check.at_least('rate', rate, 0)
    self._top, self._rate = top, rate

  def learn(
      self, product: Encrypted, share: Masked, labels
  ) -> tuple[float, Encrypted]:
    """Takes messages 1 and 2: the loss and message 3, after its own step."""
    own = self._share(product)
    self._masks['share'] = -own.values
    z = decode(self._unmasked('share', share), share.fraction)
    loss, dz = self._top.learn(z, labels)
    slope = encode(self._rate * dz, SLOPE)
    self._own = self._own - encode(self._x, FACTORS).T @ slope
    return loss, self._math.encrypt_integers(self.public, slope, SLOPE)

  def weights(self, step: Encrypted) -> Encrypted:
    """Takes message 4; message 5 after a step of its share."""
    taken = self._math.decrypt_integers(self._key, step)
    self._theirs = self._theirs - taken.values
    return self.tell_weights()


def weights(piece) -> np.ndarray:
  """Integers of weights, of `FRACTION` bits of fraction, uniform in the last.

  If those bits were zeros, A could read products with x_P in them.
  """
  bits = FRACTION + VALUES.bits - VALUES.fraction
  return masks.dithered(piece, Code(FRACTION, bits))


def channel(passive: PublicKey, active: PublicKey) -> Channel:
  return Channel(MESSAGES, {P: passive, A: active})


def meet(passive: Passive, active: Active) -> None:
  """Before training: each tells the other its [V], once."""
  active.keep(passive.tell_weights())
  passive.keep(active.tell_weights())


def step(
    passive: Passive, active: Active, line: Channel, x, own: Any
) -> float:
  """One mini-batch; returns its loss before the step.

  Args:
    passive: The passive party.
    active: The active party.
    line: What `channel` returned.
    x: The passive party's features, [B, n].
    own: (features, labels) of the active party.
  """
  x0, labels = own
  theirs = line.carry("the passive party's product", passive.product(x))
  ours = line.carry("the active party's product", active.product(x0))
  share = line.carry('share', passive.share(ours))
  loss, slope = active.learn(theirs, share, labels)
  told = passive.step(line.carry('slope', slope))
  passive.keep(
      line.carry('weights', active.weights(line.carry('step', told)))
  )
  return loss


def cost(batch: int, n: int, n_active: int, h: int, bits: int = 1024) -> Cost:
  """What a mini-batch takes, both parties together; n inputs at P, m at A.

    encryptions      2 B h  (e of both)  + B h  (dz)  + n h  (f)  + n h  ([V])
    additions        B (n - 1) h + B (m - 1) h + 2 B h  +  n (B - 1) h + n h
    multiplications  B n h + B m h  (forwards)  +  n B h  (backwards)
    decryptions      2 B h + n h

  Ciphertexts: 3 B h + 2 n h; B h shares; 5 flights. [V_A] does not change and
  crosses once, before training.
  """
  asked(bits, batch=batch, n=n, n_active=n_active, h=h)
  m = n_active
  count = Count(
      encryptions=3 * batch * h + 2 * n * h,
      additions=batch * (n - 1) * h + batch * (m - 1) * h + 2 * batch * h
      + n * (batch - 1) * h + n * h,
      multiplications=2 * n * batch * h + batch * m * h,
      decryptions=2 * batch * h + n * h,
  )
  terms = int(np.ceil(np.log2(max(n, m))))
  share = shares_code(batch).bits + FACTORS.bits + terms + masks.SLACK + 3
  size = (3 * batch * h + 2 * n * h) * -(-bits // 4)
  return Cost(count, Traffic(size + batch * h * -(-(share + 1) // 8), 5))
