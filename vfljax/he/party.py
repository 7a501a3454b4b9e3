"""Parties, their declared messages, and the channel that enforces these.

A protocol declares its messages: sender, receiver, flight and kind. Parties
return payloads and receive payloads; the protocol's `step` passes each payload
through the channel to its receiver. The channel refuses a message that is not
declared or is of another kind. Nothing else of a party is accessible: keys,
weights, features and masks are private (`_`), and a private key cannot be
copied.
"""
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from vfljax import check
from vfljax.he import ckks
from vfljax.he.arrays import Count, Encrypted, Masked, checked
from vfljax.he.cipher import Arithmetic
from vfljax.he.keys import LEAST, PrivateKey, PublicKey

FLOATS, MASKED = 'floats', 'masked'


def under(party: str) -> str:
  """The kind of ciphertexts under that party's key."""
  return f'under {party}'


class Declared(NamedTuple):
  """A message of a protocol.

  Attributes:
    flight: From 1, in the order of the protocol. Messages of one flight do not
      wait for each other.
    sender: The name of the party that sends it.
    receiver: The name of the party that gets it.
    name: The message's name, unique in the protocol.
    kind: `FLOATS`, `MASKED`, or `under` a party's key.
  """

  flight: int
  sender: str
  receiver: str
  name: str
  kind: str


class Said(NamedTuple):
  """A message that was sent: which one, how long, and what was in it."""

  declared: Declared
  bytes: int
  payload: Any


class Traffic(NamedTuple):
  """What crossed: bytes and flights."""

  bytes: int = 0
  flights: int = 0


class Channel:
  """Carries a protocol's messages and no others.

  Args:
    declared: These messages.
    keys: The public keys of parties, by their names.

  Attributes:
    said: What it has carried, in order.

  Raises:
    ValueError: if two messages have one name, or a flight or kind is none.
  """

  def __init__(
      self, declared: Iterable[Declared], keys: Mapping[str, Any]
  ):
    self.said: list[Said] = []
    declared = tuple(declared)
    for message in declared:
      check.count(f'The flight of {message.name!r}', message.flight)
      sealed = message.kind.startswith(under(''))
      if message.kind not in (FLOATS, MASKED) and not sealed:
        raise ValueError(
            f'{message.name!r} is of the kind {message.kind!r}; kinds are '
            f'{FLOATS!r}, {MASKED!r} and under(a party).'
        )
    names = [message.name for message in declared]
    if len({*names}) < len(names):
      raise ValueError(f'Two messages have one name; there are: {names}.')
    self._declared = {message.name: message for message in declared}
    self._keys = dict(keys)

  def carry(self, name: str, payload: Any) -> Any:
    """Carries a payload: returns a copy of it, if it is as declared.

    Raises:
      ValueError: for a message that is not declared, or of another kind.
    """
    if name not in self._declared:
      raise ValueError(f'{name!r} is no message of this protocol; there are: '
                       f'{", ".join(self._declared)}.')
    declared = self._declared[name]
    copy, size = self._copied(declared, payload)
    self.said.append(Said(declared, size, copy))
    return copy

  @property
  def declared(self) -> tuple[Declared, ...]:
    """The protocol's messages."""
    return tuple(self._declared.values())

  @property
  def traffic(self) -> Traffic:
    """Of all that was carried; a flight's messages count as one flight."""
    flights, last = 0, 0
    for one in self.said:
      flights += one.declared.flight != last
      last = one.declared.flight
    return Traffic(sum(one.bytes for one in self.said), flights)

  def _copied(self, declared: Declared, payload: Any) -> tuple[Any, int]:
    kind = declared.kind
    if kind == FLOATS and isinstance(payload, np.ndarray) and (
        jnp.issubdtype(payload.dtype, jnp.floating)
    ):
      return payload.astype(np.float64), payload.size * 8
    if kind == MASKED and isinstance(payload, Masked):
      return payload._replace(values=payload.values.copy()), payload.bytes
    key = self._keys.get(kind.removeprefix('under '))
    if key is not None and isinstance(payload, Encrypted):
      sent = payload._replace(values=payload.values.copy())
      return checked(key, sent), payload.bytes
    if isinstance(payload, ckks.Sealed):
      return payload.carried(kind, self._keys)
    raise ValueError(
        f'{declared.name!r} is declared to be {kind!r}; '
        f'{declared.sender} sent {type(payload).__name__}.'
    )


class Party:
  """Who takes part: a name, perhaps a key, and what it computes.

  Args:
    name: As in the protocol's messages.
    private: Its key, if the protocol gives it one.
    workers: Threads in which it takes powers.
  """

  def __init__(
      self, name: str, private: PrivateKey | None = None, workers: int = 1
  ):
    self._name = name
    self._private = private
    self._math = Arithmetic(workers)
    # What it can take away from a message to it, by the message's name.
    self._masks: dict[str, Any] = {}

  @property
  def count(self) -> Count:
    """What it has done so far."""
    return self._math.count

  @property
  def public(self) -> PublicKey:
    """Its public key.

    Raises:
      ValueError: if it has none.
    """
    return self._key.public

  def _unmasked(self, name: str, message: Masked) -> np.ndarray:
    """A message's integers without what this party has put on them."""
    return message.values - self._masks[name]

  @property
  def _key(self) -> PrivateKey:
    if self._private is None:
      raise ValueError(f'The {self._name} party has no key in this protocol.')
    return self._private


class Cost(NamedTuple):
  """What a mini-batch takes: operations of all parties, bytes, flights."""

  count: Count
  traffic: Traffic


def asked(bits: int, **sizes: int) -> None:
  """Passes if a mini-batch can be of these sizes, under keys of `bits`.

  Raises:
    ValueError: if not; it says which.
  """
  check.sizes('cost', **sizes)
  check.count('cost: bits', bits, LEAST)


def cost(parties: Sequence[Party], channel: Channel) -> Cost:
  """Of all that these parties have done and said so far."""
  total = Count()
  for party in parties:
    total = total.plus(party.count)
  return Cost(total, channel.traffic)
