"""Multi-head training: one top network for every set of parties that stayed.

PlugVFL (under double-blind review, section 5) compares its party dropout with
this: the active party trains further heads without the parties that may quit,
and predicts with the head of those that are present. The paper has two parties;
for K passive ones we take all 2^K subsets, so a round costs 2^K passes through
top networks. The paper does not say how the heads' losses are weighted: here
they are added, so that each head learns at the full rate.

The embedding of a party that quit arrives as zeros, so an embedding that is 0
in a whole batch counts as absent. A defense of the active party that changes
what it receives, such as MID's bottleneck, hides that: chained with one, the
head of all parties predicts, whoever has quit.
"""
from collections.abc import Sequence

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import fusing
from vfljax.defense import Defense
from vfljax.numerics import floating
from vfljax.types import Array, Embeddings, Net

MOST = 6  # 64 heads.


def multi_head() -> Defense:
  """One top network per subset of the passive parties, all trained at once.

  The federation's loss must be softmax cross entropy, as all papers' is. The
  round's loss is the sum over subsets.

  Raises:
    ValueError: when its networks are made, with more than 6 passive parties, or
      a top network that keeps batch statistics.
  """

  def objective(state, key, predict, up, labels):
    del state, key
    real = floating(labels.sum(-1))  # No half precision counts to 257.
    count = jnp.where(real.sum() > 0, real.sum(), 1)  # Loss 0 without a label.
    total = jnp.zeros((), jnp.float32)
    for subset in range(2 ** len(up)):
      logits = predict(absent(up, subset))
      task = fusing.cross_entropy(logits, labels)
      total = total + (real * task).sum() / count
    return total

  return Defense(top=heads, objective=objective)


def absent(up: Sequence[Array], subset: int) -> tuple[Array | None, ...]:
  """`up` with `None` at each index whose bit of `subset` is 0."""
  return tuple(u if subset >> k & 1 else None for k, u in enumerate(up))


def heads(net: Net) -> Net:
  """One `net` per subset of the passive parties, in one network.

  Its parameters are a tuple indexed by `subset`, whose bit k - 1 is that of
  passive party k. Its input is the tuple of embeddings, the active party's
  first. In training the head is chosen at tracing, by which embeddings are
  `None`; at inference it is chosen at run time, by which are all zeros.
  """

  def init(key, us):
    parties = len(us) - 1
    if parties > MOST:
      raise ValueError(
          f'multi_head: {parties} passive parties need {2 ** parties} heads; '
          f'at most {MOST} parties are supported.'
      )
    inputs = [_seen(us, subset) for subset in range(2 ** parties)]
    keys = jax.random.split(key, len(inputs))
    made = tuple(
        net.init(k, seen) if any(u is not None for u in seen) else ()
        for k, seen in zip(keys, inputs)
    )
    if any(u is not None for u in us):
      _, stats = jax.eval_shape(net.run, made[-1], key, us)
      if jax.tree.leaves(stats):
        raise ValueError(
            'multi_head: top networks cannot keep statistics, as those with '
            'BatchNorm (--config.model.norm) and those of rvfr do.'
        )
    return made

  def apply(params, us):
    there = [
        jnp.any(u != 0).astype(jnp.int32) << k for k, u in enumerate(us[1:])
    ]
    subset, first = sum(there, jnp.int32(0)), 0
    if us[0] is None:  # Without any embedding there is no head: take all's.
      subset, first = jnp.where(subset == 0, len(params) - 1, subset), 1
    branches = [
        lambda us, i=i: net.apply(params[i], _seen(us, i))
        for i in range(first, len(params))
    ]
    return lax.switch(subset - first, branches, us)

  def train(params, key, us):
    if all(u is None for u in us):  # No embedding, no head: a loss of 0.
      return jnp.zeros((1, 1)), ()
    subset = sum((u is not None) << k for k, u in enumerate(us[1:]))
    return net.run(params[subset], key, us)[0], ()

  return Net(init, apply, train)


def _seen(us: Embeddings, subset: int) -> tuple[Array | None, ...]:
  """A head's input: the active party's embedding and those of the subset."""
  return (us[0], *absent(us[1:], subset))
