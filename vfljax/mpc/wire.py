"""Transcripts of protocols: messages, bytes, flights, modelled network time.

A protocol step returns the messages it sent beside its result. Their sizes are
static, so that they can be counted on arrays, tracers and `jax.eval_shape`
alike, at no cost. A flight is a one-way trip: messages of one flight do not
wait for each other, a later flight waits for the earlier one.
"""
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax

from vfljax import check

WORD = 8  # Bytes of a ring element.


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=['payload'],
    meta_fields=['name', 'sender', 'receiver', 'flight', 'width'],
)
@dataclasses.dataclass(frozen=True)
class Message:
  """One message.

  Attributes:
    payload: int64 array of ring elements.
    name: What it is, in the protocol's letters.
    sender: 'passive', 'active' or 'dealer'.
    receiver: Likewise.
    flight: From 1 in the order of the protocol; 0: offline, before it starts.
    width: Bytes an element takes on the wire.

  Raises:
    ValueError: for a flight or a width that is none.
  """

  payload: Any
  name: str
  sender: str
  receiver: str
  flight: int
  width: int = WORD

  def __post_init__(self):
    check.count('flight', self.flight, 0)
    check.count('width', self.width)

  @property
  def size(self) -> int:
    """Bytes on the wire."""
    return math.prod(self.payload.shape) * self.width


Transcript = tuple[Message, ...]


class Network(NamedTuple):
  """A full-duplex link between every two parties.

  Attributes:
    bandwidth: Bits per second and direction, infinite for latency alone;
      VMask's cluster measured 836 Mbit/s on gigabit Ethernet (its section V-A).
    latency: Seconds of a flight of any size; 0.1 ms is our assumption for a
      switched local network, the paper gives none.
  """

  bandwidth: float = 836e6
  latency: float = 1e-4


class Count(NamedTuple):
  """Totals of a transcript: bytes, words and flights online, bytes offline."""

  bytes: int
  words: int
  flights: int
  offline_bytes: int


def count(transcript: Transcript) -> Count:
  """Totals; flights are counted by number, so join steps with `then`."""
  online = [m for m in transcript if m.flight]
  return Count(
      sum(m.size for m in online),
      sum(math.prod(m.payload.shape) for m in online),
      len({m.flight for m in online}),
      sum(m.size for m in transcript if not m.flight),
  )


def then(first: Transcript, *rest: Transcript) -> Transcript:
  """Joins transcripts of consecutive steps, numbering flights consecutively."""
  out = list(first)
  for step in rest:
    base = max((m.flight for m in out), default=0)
    for m in step:
      flight = m.flight + base if m.flight else 0
      out.append(dataclasses.replace(m, flight=flight))
  return tuple(out)


def seconds(transcript: Transcript, network: Network = Network()) -> float:
  """Modelled online time in seconds: per flight, latency and busiest link.

  Raises:
    ValueError: for a bandwidth that is not above 0, or a latency below 0.
  """
  check.inside('bandwidth', network.bandwidth, 0, math.inf, open_low=True)
  check.at_least('latency', network.latency, 0)
  total = 0.0
  for flight in {m.flight for m in transcript if m.flight}:
    links: dict[tuple[str, str], int] = {}
    for m in transcript:
      if m.flight == flight:
        link = (m.sender, m.receiver)
        links[link] = links.get(link, 0) + m.size
    total += network.latency + 8 * max(links.values()) / network.bandwidth
  return total
