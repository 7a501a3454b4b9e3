"""What an attacker gets to see. An attack takes one of these and nothing else.

A view is the "privacy vulnerability" of Kang et al. (2022), Table 3: its fields
are the threat model, T1 for a curious passive party and T2 for a curious active
party. Only this module takes views out of the whole federation.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from vfljax.defense import Defense
from vfljax.types import Array, Batch, Key, Params, Round, State


class CutGradients(NamedTuple):
  """T1 in training: what passive party k sees in one round, and nothing more.

  Attributes:
    features: [batch, ...] its own samples.
    sent: [batch, ...] its embeddings.
    received: [batch, ...] its cut-layer gradients, as sent to it.
    valid: [batch] 1 for a sample, 0 for a row of padding.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array


class KnownPositive(NamedTuple):
  """T1 in training, and the gradient of one sample known to be positive.

  Attributes: as `CutGradients`, and
    known: [batch] 1 at the known positive sample; all 0 if the batch has none.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array
  known: Array


class ClassCenters(NamedTuple):
  """T1 in training, and the centers of both classes' gradients in the round.

  The centers come from a random half of the round, `known`, and the other half
  is what is left to guess. A center that contained the sample to be guessed
  would be drawn towards it: in a small round of wide gradients, pure noise
  would then "leak" its labels (batch 32, width 16: AUC 0.77).

  Attributes: as `CutGradients`, and
    known: [batch] 1 at the samples that make up the centers.
    means: [classes, ...] mean gradient of each class.
    medians: [classes, ...] coordinate-wise median gradient of each class.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array
  known: Array
  means: Array
  medians: Array


class RecordedGradients(NamedTuple):
  """T1 in training: cut-layer gradients kept for a while, a few labels known.

  Attributes:
    known_received: [known, ...] gradients of samples whose labels it has
      learned.
    known_labels: [known, classes] those labels.
    received: [n, ...] the gradients of all samples that it recorded.
  """

  known_received: Array
  known_labels: Array
  received: Array


class ModelGradients(NamedTuple):
  """T1 in training under encryption: no cut-layer gradients in the clear.

  Attributes:
    features: [batch, ...] passive party k's samples.
    weights: Its bottom network's parameters in the round.
    gradients: Those parameters' gradients, of the batch's mean loss.
    valid: [batch] 1 for a sample, 0 for a row of padding.
  """

  features: Array
  weights: Params
  gradients: Params
  valid: Array


class WhiteBox(NamedTuple):
  """T2, white box: a passive party's network, and its gradients in many rounds.

  What the active party sees where parties share the gradients of their weights,
  as CAFE assumes. The federation stands still meanwhile.

  Attributes:
    weights: 'bottom' and 'defense', the passive party's parameters.
    gradients: The same of their gradients, leaves [rounds, ...].
    rows: [rounds, batch] which samples of a pool, 0.., were in each round.
    blank: [pool, ...] zeros, of the shape of the features that it wants.
  """

  weights: dict[str, Params]
  gradients: dict[str, Params]
  rows: Array
  blank: Array


class TrainedBottom(NamedTuple):
  """T1 after training: passive party k's bottom network and a few labels.

  Attributes:
    weights: Its bottom network's parameters, as it can read them.
    labeled_features: [known, ...] its samples whose labels it has learned.
    labeled: [known, classes] those labels.
    features: [samples, ...] the samples whose labels it wants.
  """

  weights: Params
  labeled_features: Array
  labeled: Array
  features: Array


class MaskedLayer(NamedTuple):
  """T1 with secret shares: what passive party k keeps of one masked layer.

  Its share is uniform and says nothing by itself. But the party had the weights
  before it shared them, and under VMask it computes the layer's updates.

  Attributes:
    copy: 'kernel' and perhaps 'bias': the weights that it put into shares plus
      all its updates since. The active party's noise is not in them. Where
      updates are not the party's to see (T4): the weights before, alone.
    copies: The same at each of some rounds, [rounds, ...]; () if it kept none.
    inputs: [rounds, batch, ...] the layer's inputs in those rounds; () if none.
    outputs: [rounds, batch, ...] its outputs; () if none, or hidden (T4).
  """

  copy: dict[str, Array]
  copies: dict[str, Array] | tuple[()]
  inputs: Array | tuple[()]
  outputs: Array | tuple[()]


class UnlabeledBottom(NamedTuple):
  """T1 after training: as `TrainedBottom`, and its samples without labels.

  Attributes: as `TrainedBottom`, and
    unlabeled: [n, ...] its training samples; among them, without their labels,
      are the labeled ones.
  """

  weights: Params
  labeled_features: Array
  labeled: Array
  features: Array
  unlabeled: Array


class TrainedTop(NamedTuple):
  """T2 after training: the active party's networks and what it is sent.

  Attributes:
    weights: 'bottom' and 'top': its networks' parameters.
    received: [n, ...] embeddings of the samples whose features it wants.
    auxiliary: Samples whose features at every party it knows, with labels.
  """

  weights: dict[str, Params]
  received: Array
  auxiliary: Batch


def majority(labels: Array) -> Array:
  """The class that each row of [batch, classes] is mostly of, one-hot.

  Labels are one-hot already unless a defense mixes samples; padding stays 0.
  """
  top = jax.nn.one_hot(labels.argmax(-1), labels.shape[-1], dtype=labels.dtype)
  return top * (labels.sum(-1, keepdims=True) > 0)


def cut_gradients(k: int, played: Round) -> CutGradients:
  """Passive party k's view of a round."""
  batch, messages = played.batch, played.messages
  return CutGradients(
      batch.features[k], messages.up[k - 1], messages.down[k - 1],
      batch.labels.sum(-1),
  )


def known_positive(key: Key, k: int, played: Round) -> KnownPositive:
  """Passive party k's view of a round, and one random positive sample in it."""
  view = cut_gradients(k, played)
  positive = majority(played.batch.labels)[:, -1] > 0
  lot = jnp.where(positive, jax.random.uniform(key, positive.shape), -1.0)
  chosen = jnp.arange(len(lot)) == lot.argmax()
  return KnownPositive(*view, (chosen & positive).astype(view.valid.dtype))


def class_centers(key: Key, k: int, played: Round) -> ClassCenters:
  """Passive party k's view of a round, and the class centers of half of it."""
  view = cut_gradients(k, played)
  known = jax.random.bernoulli(key, 0.5, view.valid.shape) * view.valid
  labels = majority(played.batch.labels) * known[:, None]
  flat = view.received.reshape(len(labels), -1)
  means = (labels.T @ flat) / jnp.maximum(labels.sum(0), 1)[:, None]
  medians = jax.vmap(_masked_median, (None, 1))(flat, labels > 0.5)
  shape = (labels.shape[-1], *view.received.shape[1:])
  return ClassCenters(
      *view, known, means.reshape(shape), medians.reshape(shape)
  )


def recorded_gradients(
    key: Key, k: int, played: Round, count: int
) -> tuple[RecordedGradients, Array]:
  """Passive party k's view of several rounds, with `count` labels a class.

  Args:
    key: Of which samples are known.
    k: The party.
    played: Rounds, leaves with a leading axis; of the same state.
    count: Known samples a class, 1 or more; a class with fewer of them has all
      of them known.

  Returns:
    The view, and [n] 1 at the samples whose labels are known to the attacker.
  """
  flat = lambda x: x.reshape(-1, *x.shape[2:])
  labels = majority(flat(played.batch.labels))
  received = flat(played.messages.down[k - 1])
  lot = jax.random.uniform(key, (len(labels), 1))
  ranked = jnp.where(labels > 0, lot, -1.0)  # [n, classes]
  score, chosen = jax.lax.top_k(ranked.T, count)  # [classes, count]
  there = (score > 0).ravel()  # A class may have fewer samples than `count`.
  chosen = chosen.ravel()
  known = jnp.zeros(len(labels), labels.dtype).at[chosen].max(
      there.astype(labels.dtype)
  )
  own = labels[chosen] * there[:, None]
  return RecordedGradients(received[chosen], own, received), known


def model_gradients(k: int, played: Round) -> ModelGradients:
  """Passive party k's view of a round whose messages are encrypted."""
  batch, weights = played.batch, played.state.parties[k].params['bottom']
  return ModelGradients(
      batch.features[k], weights, played.gradients[k - 1],
      batch.labels.sum(-1),
  )


def own_gradients(k: int, played: Round) -> dict[str, Params]:
  """The gradients of passive party k's own weights in a round."""
  return dict(bottom=played.gradients[k - 1], defense=played.added[k - 1])


def white_box(
    k: int, state: State, gradients: dict[str, Params], rows: Array,
    pool: Array,
) -> WhiteBox:
  """The active party's `WhiteBox` view of passive party k.

  Args:
    k: The party.
    state: The federation in all rounds.
    gradients: `own_gradients` of the rounds, leaves [rounds, ...].
    rows: [rounds, batch] which samples of the pool were in them.
    pool: [pool, ...] the party's features, of which only the shape is seen.
  """
  own = state.parties[k].params
  weights = {name: own[name] for name in ('bottom', 'defense')}
  return WhiteBox(weights, gradients, rows, jnp.zeros_like(pool))


def in_training(view: type, key: Key, k: int, played: Round):
  """The view of a round of the given type.

  Raises:
    ValueError: if attackers do not have that view in training.
  """
  if view is CutGradients:
    return cut_gradients(k, played)
  if view is KnownPositive:
    return known_positive(key, k, played)
  if view is ClassCenters:
    return class_centers(key, k, played)
  if view is ModelGradients:
    return model_gradients(k, played)
  raise ValueError(f'{view.__name__} is not a view of a round in training.')


def trained_bottom(
    key: Key, k: int, defense: Defense, state: State, known: Batch, test: Batch
) -> TrainedBottom:
  """Passive party k's view after training, with the labels of `known`."""
  weights = state.parties[k].params['bottom']
  exposed = defense.expose(state.defense, key, k, weights)
  return TrainedBottom(
      exposed, known.features[k], known.labels, test.features[k]
  )


def unlabeled_bottom(
    key: Key, k: int, defense: Defense, state: State, known: Batch,
    test: Batch, training: Batch,
) -> UnlabeledBottom:
  """Passive party k's view after training, with all its training samples."""
  view = trained_bottom(key, k, defense, state, known, test)
  return UnlabeledBottom(*view, training.features[k])


def trained_top(state: State, sent: Array, auxiliary: Batch) -> TrainedTop:
  """The active party's view of embeddings that were sent to it."""
  own = state.parties[0].params
  weights = {name: own[name] for name in ('bottom', 'top')}
  return TrainedTop(weights, sent, auxiliary)


def _masked_median(x: Array, mask: Array) -> Array:
  """Coordinate-wise median of the rows of `x` where `mask`; 0 without any."""
  count = mask.sum()
  ordered = jnp.sort(jnp.where(mask[:, None], x, jnp.inf), axis=0)
  low = ordered[jnp.maximum((count - 1) // 2, 0)]
  high = ordered[jnp.minimum(count // 2, len(x) - 1)]
  return jnp.where(count > 0, (low + high) / 2, 0.0)
