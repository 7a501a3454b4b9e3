"""ACML: an encrypted layer between two plain networks (Zhang and Zhu, 2020).

The passive party's plain network turns its features into a [B, d]. A layer W
[d, h] between the parties computes z = a W. The active party's top computes the
loss from z, whose gradient is dz [B, h]. The passive party has the key.

  1  P -> A  [a]
  2  A -> P  [a V + e]              W = V + N: what A has of the layer
  3  P -> A  a V + e + a N + r      so that A has z = a W
  4  A -> P  [a^T (rate dz) + e']
  5  P -> A  a^T (rate dz) + e' + n, and [N]
  6  A -> P  [dz (V + N)^T + r']    a's gradient, decrypted by P

A replaces V by V - (a^T (rate dz) + n) and P replaces N by N + n, so that W
becomes W - rate a^T dz. Each party draws its own V or N, and no party has W. V,
N and n have the same 72 bits of fraction as the product that n hides: fewer
would not hide the product's last bits. As factors, V in 2 and N in 3 and 6 are
rounded to 24 bits, which shortens exponents; hiding does not depend on it. r
and r', uniform below 2^-25, turn the integers into real numbers (`masks`).

A still learns z, and W's steps up to n. If h >= d, z gives a up to a linear
map. If h > 1.5 d, two batches also reveal a a^T by linear equations, since the
second W is the first minus a^T (rate dz). Then only a rotation is unknown,
about which V reveals as much as N leaves of W: with (d, h) = (4, 12) a is known
to a third, with (4, 40) to a sixth. If a layer is `dealt`, V reveals nothing. n
is usually larger than a batch's step, but averages out over many similar
batches; by how much was not measured. If d > 1.5 h, P has the same equations
for dz, as it knows a and sees dz W^T; this was not measured either.

As published, N is 0 at first (`noise` of zeros) and A draws all of W. If d <= h
and W has full rank, A then solves z = a W for a. So it also knows a^T (rate dz)
and the next W, and learns the embeddings of every batch, whatever n is. If
d > h it learns h of a's d dimensions in the first batch.

As described: VMask (section VI) says that the model is split into an
unencrypted feature extractor and a partly encrypted classifier; the documents
of FATE's "hetero NN", which follows the paper, give these six messages and who
adds which noise, its code that N begins with zeros. Ours: the network's widths;
masks e, e' of integers 64 bits longer than what they hide; fresh randomness in
all that A sends; n drawn from N(0, 1), N from N(0, 1 / d) at first; r and r';
plain SGD. The paper's own text was not at hand.
"""
from typing import Any

import numpy as np

from vfljax import check
from vfljax.he.arrays import Count, Encrypted, Masked
from vfljax.he.encoding import (
    FACTORS, SLOPES, VALUES, Code, decode, encode,
)
from vfljax.he.keys import PrivateKey, PublicKey
from vfljax.he.local import Bottom, Top
from vfljax.he.masks import SLACK, dither, dithered, normal
from vfljax.he.party import (
    MASKED, Channel, Cost, Declared, Party, Traffic, asked, under,
)

P, A = 'passive', 'active'
MESSAGES = (
    Declared(1, P, A, 'embedding', under(P)),
    Declared(2, A, P, 'hidden', under(P)),
    Declared(3, P, A, 'opened hidden', MASKED),
    Declared(4, A, P, 'slope', under(P)),
    Declared(5, P, A, 'opened slope', MASKED),
    Declared(5, P, A, 'noise', under(P)),
    Declared(6, A, P, 'gradient', under(P)),
)
SPREAD, WIDE = 1.0, 256.0  # Standard deviations of n and of `dealt`'s N.
FRACTION = VALUES.fraction + SLOPES.fraction  # Of V, N, n: a^T (rate dz)'s.
LAYER = Code(FRACTION, FRACTION + FACTORS.bits - FACTORS.fraction)


class Passive(Party):
  """The party with the features, the plain network, the key and the noise N.

  The layer starts as the other party's V plus this N.

  Args:
    bottom: The plain network, whose output is a [B, d].
    shape: (d, h) of the layer between the parties.
    private: Its key.
    workers: Number of threads for powers.
    noise: N at first, real numbers; by default drawn from N(0, 1 / d). Others
      are that of `dealt`, and zeros as published, which reveal all to A.
  """

  def __init__(
      self, bottom: Bottom, shape: tuple[int, int], private: PrivateKey,
      workers: int = 1, noise: Any = None,
  ):
    super().__init__(P, private, workers)
    self._bottom = bottom
    check.sizes('shape', shape=shape)
    first = normal(shape) / np.sqrt(shape[0]) if noise is None else noise
    self._noise = dithered(first, LAYER)
    if self._noise.shape != tuple(shape) or len(shape) != 2:
      raise ValueError(
          'shape must be (d, h), and noise of that shape; got the shapes '
          f'{shape} and {self._noise.shape}.'
      )

  def embed(self, x) -> Encrypted:
    """Message 1."""
    self._a = dithered(self._bottom.forward(x), VALUES)
    return self._math.encrypt_integers(self.public, self._a, VALUES)

  def open_hidden(self, hidden: Encrypted) -> Masked:
    """Message 3."""
    found = self._math.decrypt_integers(self._key, hidden)
    own = self._a @ _factors(self._noise)
    blur = dither(hidden.shape, hidden.fraction)
    return found._replace(values=found.values + own + blur)

  def open_slope(self, slope: Encrypted) -> Masked:
    """Half of message 5; the noise grows after it is sent, by `tell_noise`."""
    found = self._math.decrypt_integers(self._key, slope)
    self._new = self._drawn()
    return found._replace(values=found.values + self._new)

  def tell_noise(self) -> Encrypted:
    """The other half: [N], with which this batch was computed."""
    told = self._math.encrypt_integers(
        self.public, _factors(self._noise), FACTORS
    )
    self._noise = self._noise + self._new
    return told

  def learn(self, gradient: Encrypted) -> None:
    """Takes message 6."""
    self._bottom.backward(self._math.decrypt(self._key, gradient))

  def _drawn(self) -> np.ndarray:
    return dithered(SPREAD * normal(self._noise.shape), LAYER)


class Active(Party):
  """The party with the labels, the top and V, which is W except for noise.

  Args:
    top: Computes the loss from z and its own features and labels.
    weights: V [d, h], real numbers: drawn by itself, or from `dealt`.
    rate: SGD's learning rate for the layer.
    passive: The passive party's public key.
    workers: Number of threads for powers.
  """

  def __init__(
      self, top: Top, weights, rate: float, passive: PublicKey,
      workers: int = 1,
  ):
    super().__init__(A, None, workers)
    check.at_least('rate', rate, 0)
    self._top, self._rate, self._passive = top, rate, passive
    self._weights = dithered(weights, LAYER)
    if self._weights.ndim != 2:
      raise ValueError('weights must be [d, h]; got the shape '
                       f'{self._weights.shape}.')

  def hidden(self, a: Encrypted) -> Encrypted:
    """Message 2."""
    self._a = a
    product = self._math.matmul_integers(
        a, _factors(self._weights), FACTORS
    )
    masked, self._masks['opened hidden'] = self._math.hide(product)
    return masked

  def learn(self, opened: Masked, own: Any) -> float:
    """Takes message 3: the loss, and a step of the top."""
    z = decode(self._unmasked('opened hidden', opened), opened.fraction)
    loss, self._dz = self._top.learn(z, own)
    return loss

  def slope(self) -> Encrypted:
    """Message 4."""
    product = self._math.matmul(
        self._a.T, self._rate * self._dz, SLOPES
    )
    masked, self._masks['opened slope'] = self._math.hide(product)
    return masked

  def gradient(self, opened: Masked, noise: Encrypted) -> Encrypted:
    """Takes message 5, makes message 6 and takes the layer's step."""
    own = _factors(self._weights)
    whole = self._math.add_plain(noise, own, FACTORS.bits)
    told = self._math.blur(self._math.matmul_left(
        self._dz, whole.T, SLOPES
    ))
    step = self._unmasked('opened slope', opened)
    self._weights = self._weights - step
    return told


def dealt(weights) -> tuple[np.ndarray, np.ndarray]:
  """(V, N) of a layer W [d, h], dealt by a third party that knows W.

  N has a standard deviation of `WIDE`, which is large beside W, so V reveals
  nothing about W.
  """
  noise = WIDE * normal(np.shape(weights))
  return np.asarray(weights, np.float64) - noise, noise


def _factors(weights: np.ndarray) -> np.ndarray:
  """V or N as integer factors, rounded to `FACTORS`."""
  return encode(decode(weights, FRACTION), FACTORS)


def channel(passive: PublicKey) -> Channel:
  return Channel(MESSAGES, {P: passive})


def step(
    passive: Passive, active: Active, line: Channel, x, own: Any
) -> float:
  """One mini-batch; returns its loss before the step.

  Args:
    passive: The passive party.
    active: The active party.
    line: What `channel` returned.
    x: The passive party's features, [B, ...].
    own: What the active party's top gets besides z: features and labels.
  """
  a = line.carry('embedding', passive.embed(x))
  hidden = line.carry('hidden', active.hidden(a))
  opened = line.carry('opened hidden', passive.open_hidden(hidden))
  loss = active.learn(opened, own)
  slope = line.carry('slope', active.slope())
  grown = line.carry('opened slope', passive.open_slope(slope))
  noise = line.carry('noise', passive.tell_noise())
  passive.learn(line.carry('gradient', active.gradient(grown, noise)))
  return loss


def cost(batch: int, d: int, h: int, bits: int = 1024) -> Cost:
  """What a mini-batch takes, all parties together.

    encryptions       2 B d + B h + 2 d h
    additions         B (d - 1) h + B h + d (B - 1) h + 2 d h
                      + B (h - 1) d + B d
    multiplications   3 B d h
    decryptions       B h + d h + B d

  Ciphertexts: 2 B d + B h + 2 d h; opened: B h + d h, of the bits that a
  product of B or d terms and its mask may have. 6 flights.
  """
  asked(bits, batch=batch, d=d, h=h)
  terms = lambda n: int(np.ceil(np.log2(n)))
  count = Count(
      encryptions=2 * batch * d + batch * h + 2 * d * h,
      additions=batch * (d - 1) * h + batch * h + d * (batch - 1) * h
      + 2 * d * h + batch * (h - 1) * d + batch * d,
      multiplications=3 * batch * d * h,
      decryptions=batch * h + d * h + batch * d,
  )
  ciphers = 2 * batch * d + batch * h + 2 * d * h
  opened = lambda code, n: -(
      -(VALUES.bits + code.bits + terms(n) + SLACK + 2) // 8
  )
  size = ciphers * -(-bits // 4) + batch * h * opened(FACTORS, d)
  size += d * h * opened(SLOPES, batch)
  return Cost(count, Traffic(size, 6))

