"""VLR, VHNN and VSNN: three ways to fill in `VFL` (Kang et al. 2022, Table 2).

  VLR   vertical logistic regression: linear bottoms, softmax or sigmoid of the
        sum of their outputs, a top without weights.
  VHNN  vertical hetero neural network: every party has a bottom network.
  VSNN  vertical split neural network: the active party has labels only.
"""
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

import jax.numpy as jnp

from vfljax import check, fusing, nets
from vfljax.types import VFL, Array, Net

Aggregation = Callable[[Sequence[Array]], Array]

AGGREGATIONS: dict[str, Aggregation] = dict(
    concat=lambda us: jnp.concatenate(
        [u.reshape(len(u), -1) for u in us], axis=-1
    ),
    sum=lambda us: reduce(jnp.add, _alike(us)),
    mean=lambda us: reduce(jnp.add, _alike(us)) / len(us),
    max=lambda us: reduce(jnp.maximum, _alike(us)),
    product=lambda us: reduce(jnp.multiply, _alike(us)),
)
# What else is known of aggregations; add the name of one of your own where it
# belongs. `ADDED`: the aggregate is linear in the embeddings (concatenation is
# a sum of embeddings padded with zeros), which some attacks need. `NEEDS_ALL`:
# the zeros of an absent party wipe out the other embeddings, so that there is
# no prediction by the active party alone to compare with.
ADDED: set[str] = {'concat', 'sum', 'mean'}
NEEDS_ALL: set[str] = {'product'}


def _alike(us: Sequence[Array]) -> Sequence[Array]:
  """The embeddings, if of one shape; others would be broadcast in silence."""
  shapes = [u.shape[1:] for u in us]
  if len(set(shapes)) > 1:
    raise ValueError(
        'Embeddings are added, averaged, compared or multiplied number by '
        f'number, so all parties need one width; got {shapes}. Other widths '
        "can be put together: aggregation='concat'."
    )
  return us


def vlr(parties: int, classes: int, *, active: bool = True) -> VFL:
  """Vertical logistic regression.

  The logits are the sum of the parties' linear outputs. For two classes these
  have width 1 and the sum goes into a sigmoid, as in deployed systems; for more
  they have one number per class and the sum goes into a softmax.

  Args:
    parties: 2 or more, the active one included.
    classes: 2 or more.
    active: Whether the active party has features of its own.

  Raises:
    ValueError: for fewer parties or classes.
  """
  check.count('vlr: parties', parties, 2)
  check.count('vlr: classes', classes, 2)
  width = 1 if classes == 2 else classes
  bottoms = [nets.mlp(width) if k or active else None for k in range(parties)]
  return VFL(tuple(bottoms), plain(), fusing.cross_entropy)


def vhnn(
    bottoms: Sequence[Net], top: Net, aggregation: str = 'concat'
) -> VFL:
  """Vertical hetero neural network: every party has features.

  Args:
    bottoms: One network per party, the active party's first.
    top: From the aggregated embeddings to logits [batch, classes].
    aggregation: A name in `AGGREGATIONS`.

  Raises:
    ValueError: if `bottoms` is a single network, `top` is no `Net`, or the
      aggregation is unknown.
  """
  return VFL(
      tuple(_several(bottoms)), aggregate(top, aggregation),
      fusing.cross_entropy,
  )


def vsnn(
    bottoms: Sequence[Net], top: Net, aggregation: str = 'concat'
) -> VFL:
  """Vertical split neural network: the active party has labels only.

  Args:
    bottoms: One network per passive party.
    top, aggregation: As in `vhnn`.

  Raises:
    ValueError: as `vhnn`.
  """
  return VFL(
      (None, *_several(bottoms)), aggregate(top, aggregation),
      fusing.cross_entropy,
  )


def _several(bottoms: Sequence[Net]) -> Sequence[Net]:
  """`bottoms`, unless it is one `Net`, which as a tuple would pass for many."""
  if isinstance(bottoms, Net) or not isinstance(bottoms, Iterable):
    got = 'one' if isinstance(bottoms, Net) else check.kind(bottoms)
    raise ValueError(
        'bottoms must be a list with a network for each party, such as '
        f'[nets.mlp(8)] * 2; got {got} alone.'
    )
  return bottoms


def aggregate(net: Net, aggregation: str = 'concat') -> Net:
  """A top network that aggregates the embeddings and applies `net` to them.

  Args:
    net: From one array, the aggregate, to logits [batch, classes].
    aggregation: A name in `AGGREGATIONS`.

  Returns:
    A `Net` on the tuple of embeddings, `None` (an active party without
    features) left out.

  Raises:
    ValueError: if `net` is no `Net`, or the aggregation is unknown.
  """
  if not isinstance(net, Net):
    raise ValueError(
        f'The top must be a Net; it is {check.kind(net)}. '
        'nets.mlp(classes) is one; `nets.linen` and `nets.nnx` make one of a '
        'Flax module. For one without weights: '
        'vsnn(bottoms, net)._replace(top=algorithms.plain()).'
    )
  fuse = _aggregation(aggregation)
  gather = lambda us: fuse([u for u in us if u is not None])
  return Net(
      lambda key, us: net.init(key, gather(us)),
      lambda params, us: net.apply(params, gather(us)),
      net.train and (lambda params, key, us: net.run(params, key, gather(us))),
      net.absorb,
  )


def plain(aggregation: str = 'sum') -> Net:
  """A top without weights: the aggregated embeddings are the logits.

  An aggregate of width 1 is the logit of a sigmoid and becomes two logits for a
  softmax with the same probabilities (`nets.pair`); a wider one has one logit
  per class.

  Args:
    aggregation: A name in `AGGREGATIONS`.

  Raises:
    ValueError: if the aggregation is unknown.
  """
  fuse = _aggregation(aggregation)

  def logits(us):
    z = fuse([u for u in us if u is not None])
    return nets.padded_pair(z) if z.shape[-1] == 1 else z

  return Net(lambda key, us: (), lambda params, us: logits(us))


def _aggregation(name: str) -> Aggregation:
  if name not in AGGREGATIONS:
    raise ValueError(
        f'Unknown aggregation {name!r}; choose of {", ".join(AGGREGATIONS)}.'
    )
  return AGGREGATIONS[name]
