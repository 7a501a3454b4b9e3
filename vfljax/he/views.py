"""What each party can read under each protocol, and the views of attackers.

`readable` takes it from the messages that were sent, without the masks that the
reader itself has added. Each protocol trains the same as a plain federation, so
the same numbers are in that federation's rounds. Attacks are measured there
(`SIGHTS`), where they are traced and fast:

  acml      cut where the passive party's own network ends, the layer above
  spnn      cut after the first layer; for the server, after its network, which
            is then the passive party's and all features with it
  sfa       cut as it is
  blindfl   nothing to see
  hardy     vertical logistic regression, of which the passive party has the
            gradient of its weights (Kang et al., Eq. 7)
"""
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vfljax.he import ckks
from vfljax.he.arrays import Encrypted, Masked
from vfljax.he.cipher import Arithmetic
from vfljax.he.encoding import decode
from vfljax.he.keys import PrivateKey
from vfljax.he.packing import Sums
from vfljax.he.party import Channel
from vfljax.views import CutGradients, ModelGradients


class Sight(NamedTuple):
  """What one party learns by design.

  Attributes:
    protocol: The name of the protocol's module.
    party: The party's name.
    what: What it reads, in words.
    view: The equivalent view of an attack during training; `None` if it tells
      nothing about labels.
    layers: How many of the first layers of the passive party's bottom network
      are trained in the clear; -1 for all of them.
  """

  protocol: str
  party: str
  what: str
  view: type | None
  layers: int = 0


SIGHTS = (
    Sight('acml', 'passive', "its embedding's gradient", CutGradients, -1),
    Sight('acml', 'active', "the layer's output and its steps with noise: of a "
          'wide layer products of embeddings; as published, all embeddings',
          None),
    Sight('spnn', 'passive', "the first layer's gradient", CutGradients, 1),
    Sight('spnn', 'server', "the first layer's output, and its own network's "
          'gradient', CutGradients),
    Sight('sfa', 'passive', "its embedding's gradient", CutGradients, -1),
    Sight('sfa', 'active', 'the sum of all embeddings: the other one, if '
          'there are two', None),
    Sight('blindfl', 'passive', 'uniform numbers', None),
    Sight('blindfl', 'active', "the first layer's output, not its parts", None),
    Sight('hardy', 'passive', "its weights' gradient", ModelGradients),
    Sight('hardy', 'coordinator', "both parties' gradients, without features",
          None),
)


def readable(
    line: Channel, party: str,
    private: PrivateKey | ckks.PrivateContext | None = None,
    sums: Sums | None = None, own: Mapping[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
  """What a party has received and can read, by the messages' names.

  See `opened`.

  Returns:
    Real numbers, those of CKKS as [numbers]. What is hidden by another's mask
    is there too, as the huge numbers that it is.
  """
  plain = {
      said.declared.name: said.payload for said in line.said
      if said.declared.receiver == party
      and isinstance(said.payload, np.ndarray)
  }
  sealed = {
      said.declared.name: private.opened(Arithmetic(), said.payload, (-1,))
      for said in line.said if said.declared.receiver == party
      and isinstance(said.payload, ckks.Sealed)
      and isinstance(private, ckks.PrivateContext)
      and said.payload.context is private.public
  }
  return plain | sealed | {
      name: decode(found.values, found.fraction)
      for name, found in opened(line, party, private, sums, own).items()
  }


def opened(
    line: Channel, party: str,
    private: PrivateKey | ckks.PrivateContext | None = None,
    sums: Sums | None = None, own: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Masked]:
  """Of these the integers, whose last bits may say what size does not.

  Args:
    line: What was said; of a message that was sent twice the last one counts.
    party: Who reads.
    private: Its key, if it has one; that of CKKS opens real numbers alone,
      which are in `readable`.
    sums: How numbers that were added up lie in ciphertexts; then those are
      [numbers], and a last ciphertext's empty slots are 0.
    own: What the party itself can take away from a message, its masks above
      all, by the message's name; of the last batch, as messages are.

  Raises:
    ValueError: for a party or a message that the protocol does not have: its
      reader would see nothing, or hidden numbers.
  """
  count, found, own = Arithmetic(), {}, own or {}
  names = {d.name for d in line.declared}
  for name, known in (
      (party, {who for d in line.declared for who in (d.sender, d.receiver)}),
      *((name, names) for name in own),
  ):
    if name not in known:
      raise ValueError(f'{name!r} is none of this protocol; there are: '
                       f'{", ".join(sorted(known))}.')
  for said in line.said:
    declared, payload = said.declared, said.payload
    if declared.receiver != party:
      continue
    if isinstance(payload, Encrypted) and isinstance(private, PrivateKey) and (
        payload.key == private.public
    ):
      payload = count.decrypt_integers(private, payload)
      if sums:
        size = (payload.values.size * sums.slots,)
        payload = payload._replace(values=sums.unpack(payload.values, size))
    if isinstance(payload, Masked):
      values = payload.values - own.get(declared.name, 0)
      found[declared.name] = payload._replace(values=values)
  return found
