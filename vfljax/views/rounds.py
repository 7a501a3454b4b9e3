"""Views taken out of rounds of training."""
import jax
import jax.numpy as jnp

from vfljax import crossing
from vfljax.sampling import per_class
from vfljax.types import Array, Key, Params, Round, State
from vfljax.views.kinds import (
    ClassCenters, CutGradients, KnownPositive, ModelGradients,
    RecordedGradients, WhiteBox,
)


def majority(labels: Array) -> Array:
  """The class that each row of [batch, classes] is mostly of, one-hot.

  Labels are one-hot already unless a defense mixes samples; padding stays 0.
  """
  top = jax.nn.one_hot(labels.argmax(-1), labels.shape[-1], dtype=labels.dtype)
  return top * (labels.sum(-1, keepdims=True) > 0).astype(labels.dtype)


def cut_gradients(k: int, played: Round) -> CutGradients:
  """Passive party k's view of a round."""
  batch, messages = played.batch, played.messages
  return CutGradients(
      batch.features[k], messages.up[k - 1], messages.down[k - 1],
      crossing.rows(batch.labels),
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
  chosen = jax.random.bernoulli(key, 0.5, view.valid.shape)
  known = chosen.astype(view.valid.dtype) * view.valid
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
  chosen, own = per_class(key, labels, count)
  known = jnp.zeros(len(labels), labels.dtype).at[chosen].max(own.sum(-1))
  return RecordedGradients(received[chosen], own, received), known


def model_gradients(k: int, played: Round) -> ModelGradients:
  """Passive party k's view of a round whose messages are encrypted."""
  batch, weights = played.batch, played.state.parties[k].params['bottom']
  return ModelGradients(
      batch.features[k], weights, played.gradients[k - 1],
      crossing.rows(batch.labels),
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


def _masked_median(x: Array, mask: Array) -> Array:
  """Coordinate-wise median of the rows of `x` where `mask`; 0 without any."""
  count = mask.sum()
  ordered = jnp.sort(jnp.where(mask[:, None], x, jnp.inf), axis=0)
  low = ordered[jnp.maximum((count - 1) // 2, 0)]
  high = ordered[jnp.minimum(count // 2, len(x) - 1)]
  return jnp.where(count > 0, (low + high) / 2, 0.0)


# View -> (key, passive party, round) -> the party's view of the round.
OF_A_ROUND = {
    CutGradients: lambda key, k, played: cut_gradients(k, played),
    KnownPositive: known_positive,
    ClassCenters: class_centers,
    ModelGradients: lambda key, k, played: model_gradients(k, played),
}


def in_training(view: type, key: Key, k: int, played: Round):
  """The view of a round of the given type.

  Raises:
    ValueError: if attackers do not have that view in training.
  """
  if view not in OF_A_ROUND:
    raise ValueError(f'{view.__name__} is not a view of a round in training.')
  return OF_A_ROUND[view](key, k, played)
