"""PlugVFL: parties that may quit, and embeddings that do not tell labels.

Two defenses in one (anonymous, under double-blind review: PlugVFL). Party
dropout trains the top with and without each passive party, so that it still
works when one quits. And each passive party's gradient is mixed with that of a
CLUB bound on I(embedding; label), so that the bottom network that a party keeps
after quitting knows little of the labels. The bound is estimated by a network
psi, which the active party trains on the embeddings it receives. A round,
Algorithm 1:

  psi       ascends  L_A = mean log q(y|h)                 (`adapt`, first)
  active    descends L_C, the task's loss on m * h         (theta_1, theta_S)
  passive k descends (1 - weight) L_C + weight (L_A + L_R) (theta_k)

with L_R = -mean log q(y'|h) for labels y' drawn at random. Algorithm 1 notes
L_A before psi's step; we take both terms after it, as the text says. Its line
13 divides by the batch once more, though all three losses are means; ours does
not. It has one
learning rate for all, psi included (0.01, section 5). Ours gives psi ten times
as much, for real protection: with one step at the task's rate psi fails to
predict the labels while another head reads them from the same embeddings
(experiments/plugvfl/README.md). The y' come from all labels (its line 10), here
drawn from the class counts of those seen so far, which is the same distribution
from the second epoch on. The paper leaves open what is dropped together (see
`per`). With several passive parties each has its own psi; their joint
information is not bounded. Nor is what the gradients tell that a party receives
in training: the same README has attackers who read them.
"""
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import check, club, descent, fusing, nets, target
from vfljax.defense import Defense, Slots, Spec, slots
from vfljax.numerics import floating
from vfljax.types import Array, Embeddings, Key, Net, Params


class Settings(NamedTuple):
  """The arguments of `plugvfl`."""

  weight: Any
  drop: Any
  per: str
  regularize: bool
  negatives: str
  psi_steps: int
  psi_learning_rate: Any
  psi_hidden: tuple[int, ...]

  @property
  def unprotected(self) -> bool:
    """Whether the weight is 0 and not traced, so that psi is not needed."""
    if isinstance(self.weight, Tracer):
      return False
    return not np.asarray(self.weight).any()  # `np.any` of JAX's is traced.

  def psi(self, classes: int) -> Net:
    """The network psi, from embeddings to logits of their classes."""
    return nets.mlp(*self.psi_hidden, classes)

  def log_q(self, classes: int) -> Callable[[Params], club.LogQ]:
    """weights -> log q(y|h), see `club.log_categorical`.

    On a GPU the slope of psi's logits is `apart`, as three kernels read it.
    """
    psi = self.psi(classes)
    return lambda weights: lambda h, y: club.log_categorical(
        fusing.apart_back(psi.apply(weights, h)), y
    )


def plugvfl(
    weight, drop=0.05, *, per='sample', regularize=True, negatives='all',
    psi_steps=1, psi_learning_rate=0.1, psi_hidden=(128, 128),
) -> Defense:
  """Party dropout and a CLUB bound on what embeddings tell of labels.

  Args:
    weight: Lambda of Eq. 6, in [0, 1]; may be traced. 0 does not protect
      labels; if it is not traced, psi is then not trained.
    drop: Probability p with which a passive party is left out of a round's
      task, in [0, 1); may be traced. One number for all, or one per party.
    per: What is left out together: the party's whole embedding of a 'sample'
      (Algorithm 1), all samples of a 'round' (section 4.2), or each 'element'
      by itself (Algorithm 1 read literally). Nothing is rescaled.
    regularize: Whether L_R is used; False is Fig. 7's ablation.
    negatives: L_R's labels come from 'all' labels (Algorithm 1) or from the
      'batch'.
    psi_steps: Psi's steps a round, 1 or more.
    psi_learning_rate: Of psi's SGD, above 0; may be traced. Algorithm 1 has
      the task's, 0.01; the default is ten times as much.
    psi_hidden: Psi's hidden widths; two of them make the paper's 3 layers.

  Raises:
    ValueError: if an argument is out of its range, or, when training starts, if
      `drop` has neither one entry nor one per passive party.
  """
  own = Settings(
      weight, drop, per, regularize, negatives, psi_steps, psi_learning_rate,
      psi_hidden,
  )
  _check(own)
  return Defense(
      init=partial(_init, own), adapt=partial(_adapt, own),
      receive=partial(_receive, own),
  )


def _check(own: Settings) -> None:
  check.inside('weight', own.weight, 0, 1)
  check.inside('drop', own.drop, 0, 1, open_high=True, many=True)
  check.one_of('per', own.per, ('sample', 'round', 'element'))
  check.one_of('negatives', own.negatives, ('all', 'batch'))
  check.count('psi_steps', own.psi_steps)
  check.above('psi_learning_rate', own.psi_learning_rate, 0)
  check.widths('psi_hidden', own.psi_hidden)


def _init(own: Settings, key: Key, spec: Spec) -> Slots:
  drops(own.drop, len(spec.embeddings))  # Raises for a wrong length.
  if own.unprotected:
    return slots(spec)
  psi = own.psi(spec.classes)
  keys = jax.random.split(key, len(spec.embeddings))
  blank = [jnp.zeros(u.shape, u.dtype) for u in spec.embeddings]
  weights = tuple(psi.init(k, u) for k, u in zip(keys, blank))
  counts = jnp.zeros(spec.classes, jnp.float32)
  return slots(spec, state=dict(psi=weights, counts=counts))


def _adapt(own: Settings, state, key, predict, up, labels):
  del key, predict
  if own.unprotected:
    return state
  tx = optax.sgd(own.psi_learning_rate)
  real, q = fusing.row_sums(labels), own.log_q(labels.shape[-1])

  def fit(weights, h):
    loss = lambda w: club.learning_loss(q(w), h, labels, real)

    def step(_, w):
      return descent.step(tx, jax.grad(loss)(w), tx.init(w), w)[0]

    return lax.fori_loop(0, own.psi_steps, step, weights)

  psi = tuple(fit(w, h) for w, h in zip(state['psi'], up))
  # `joined`, so that one kernel adds both these and psi's last bias.
  seen = fusing.joined(floating(labels).sum(0).astype(state['counts'].dtype))
  return dict(psi=psi, counts=state['counts'] + seen)


def _receive(own: Settings, active, state, key, up, labels):
  del active
  if labels is None:
    return up, jnp.zeros((), jnp.float32)
  k_drop, k_labels = jax.random.split(key)
  seen = masks(k_drop, up, own.drop, own.per)
  if own.unprotected:
    return tuple(m * h for m, h in zip(seen, up)), jnp.zeros((), jnp.float32)
  real = fusing.row_sums(labels)
  others = _others(k_labels, own.negatives, state['counts'], labels)
  judge = partial(_judge, own, labels.shape[-1])
  terms = [
      label_information(*judge(w, h), labels, others, real, own.regularize)
      for w, h in zip(state['psi'], up)
  ]
  kept = tuple(
      m * scale_gradient(h, 1 - own.weight) for m, h in zip(seen, up)
  )
  return kept, own.weight * sum(terms)


def _judge(
    own: Settings, classes: int, weights: Params, h: Array
) -> tuple[club.LogQ, Array]:
  """The arguments `log_q` and `h` of `label_information`.

  On a GPU `h` is psi's logits, so that psi's forward and backward pass run once
  for both the labels and the random ones.
  """
  if target.kind() == 'gpu':
    return club.log_categorical, own.psi(classes).apply(weights, h)
  return own.log_q(classes)(weights), h


def label_information(
    log_q: club.LogQ, h: Array, labels: Array, others: Array,
    real: Array | None = None, regularize: bool = True,
) -> Array:
  """The term of Eq. 6 that theta_k descends, L_A + L_R or L_A; a scalar, nats.

  Args:
    log_q: (h, labels) -> [batch], see `club.log_categorical`.
    h: [batch, ...] a passive party's embeddings.
    labels, others: [batch, classes] their labels, and random ones.
    real: [batch] 1, or 0 where a row is padding.
    regularize: Whether L_R is part of it.
  """
  if regularize:
    return club.sampled_upper_bound(log_q, h, labels, others, real)
  return -club.learning_loss(log_q, h, labels, real)


def masks(key: Key, up: Embeddings, drop, per: str = 'sample') -> Embeddings:
  """Party dropout's masks, 1 for the embeddings that the task's loss gets.

  Args:
    up: [batch, ...] each.
    drop, per: As in `plugvfl`.

  Returns:
    One array per party that broadcasts against its embeddings.
  """
  keys = jax.random.split(key, len(up))
  return tuple(
      jax.random.bernoulli(k, 1 - p, _coins(u, per)).astype(u.dtype)
      for k, u, p in zip(keys, up, drops(drop, len(up)))
  )


def drops(drop, parties: int) -> Sequence[Array]:
  """One probability per passive party, of one for all or one for each.

  Raises:
    ValueError: if there are neither 1 nor `parties` of them.
  """
  chances = jnp.asarray(drop, jnp.float32)
  if chances.ndim and chances.shape != (parties,):
    raise ValueError(
        f'drop has {chances.size} entries; there are {parties} passive parties.'
    )
  return list(jnp.broadcast_to(chances, (parties,)))


def scale_gradient(x: Array, factor) -> Array:
  """`x` itself, whose gradient is multiplied by `factor`."""
  fixed = lax.stop_gradient(x)
  return fixed + jnp.asarray(factor, x.dtype) * (x - fixed)


def _coins(u: Array, per: str) -> tuple[int, ...]:
  """The shape of an embedding's mask, which broadcasts against it."""
  if per == 'element':
    return u.shape
  rows = 1 if per == 'round' else len(u)
  return (rows, *[1] * (u.ndim - 1))


def _others(key: Key, negatives: str, counts: Array, labels: Array) -> Array:
  """[batch, classes]: random labels y', independent of their rows."""
  if negatives == 'batch':
    return club.negatives(key, labels, labels.sum(-1))
  drawn = jax.random.categorical(key, jnp.log(counts), shape=(len(labels),))
  return jax.nn.one_hot(drawn, len(counts), dtype=labels.dtype)
