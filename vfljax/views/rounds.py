"""Views taken out of rounds of training."""
import jax
import jax.numpy as jnp

from vfljax import crossing
from vfljax.check import Misfit
from vfljax.defense import Defense
from vfljax.numerics import masked_median
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
  """Passive party k's view of a round.

  Raises:
    ValueError: if there is no such passive party.
  """
  batch, messages = played.batch, played.messages
  if not 1 <= k <= len(messages.up):
    raise ValueError(
        f'Passive parties are 1 to {len(messages.up)}; there is no {k}.'
    )
  return CutGradients(
      batch.features[k], messages.up[k - 1], messages.down[k - 1],
      crossing.rows(batch.labels),
  )


def known_positive(key: Key, k: int, played: Round) -> KnownPositive:
  """Passive party k's view of a round, and one random positive sample in it."""
  view = cut_gradients(k, played)
  positive = majority(played.batch.labels)[:, -1] > 0
  lot = jax.random.uniform(key, positive.shape, jnp.float32)
  lot = jnp.where(positive, lot, -1.0)
  chosen = jnp.arange(len(lot)) == lot.argmax()
  return KnownPositive(*view, (chosen & positive).astype(view.valid.dtype))


def class_centers(key: Key, k: int, played: Round) -> ClassCenters:
  """Passive party k's view of a round, and the class centers of half of it.

  A small round may leave a class without a known sample, whose center is then
  zeros. That favours the attacker, and gives no label away: without a defense
  the gradients of two classes lie on either side of 0, so that what is nearer
  to it than to the other center is mostly of the class that it does not know.
  Taken for unknown instead, rounds of eight leak less to it (mean attack).
  """
  view = cut_gradients(k, played)
  chosen = jax.random.bernoulli(key, jnp.float32(0.5), view.valid.shape)
  known = chosen.astype(view.valid.dtype) * view.valid
  labels = majority(played.batch.labels) * known[:, None]
  flat = view.received.reshape(len(labels), -1)
  means = (labels.T @ flat) / jnp.maximum(labels.sum(0), 1)[:, None]
  medians = jax.vmap(masked_median, (None, 1))(flat, labels > 0.5)
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


def own_weights(key: Key, k: int, defense: Defense, state: State) -> Params:
  """Passive party k's bottom network, as far as it can read its weights."""
  own = state.parties[k].params['bottom']
  return defense.expose(state.defense, key, k, own)


def own_gradients(k: int, played: Round) -> dict[str, Params]:
  """The gradients in a round of passive party k's weights, as it reads them."""
  read = played.read or played.gradients
  return dict(bottom=read[k - 1], defense=played.added[k - 1])


def model_gradients(
    key: Key, k: int, defense: Defense, played: Round
) -> ModelGradients:
  """Passive party k's view of a round whose messages are encrypted."""
  batch = played.batch
  return ModelGradients(
      batch.features[k], own_weights(key, k, defense, played.state),
      own_gradients(k, played)['bottom'], crossing.rows(batch.labels),
  )


def white_box(
    key: Key, k: int, defense: Defense, state: State,
    gradients: dict[str, Params], rows: Array, pool: Array,
) -> WhiteBox:
  """The active party's `WhiteBox` view of passive party k.

  Args:
    key: Of what the party makes up for weights that it cannot read.
    k: The party, who shows what it can read and no more.
    defense: What protects the federation.
    state: The federation in all rounds.
    gradients: `own_gradients` of the rounds, leaves [rounds, ...].
    rows: [rounds, batch] which samples of the pool were in them.
    pool: [pool, ...] the party's features, of which only the shape is seen.
  """
  weights = dict(
      bottom=own_weights(key, k, defense, state),
      defense=state.parties[k].params['defense'],
  )
  return WhiteBox(weights, gradients, rows, jnp.zeros_like(pool))


# View -> (key, passive party, defense, round) -> its view of the round.
OF_A_ROUND = {
    CutGradients: lambda key, k, defense, played: cut_gradients(k, played),
    KnownPositive: lambda key, k, defense, played: known_positive(
        key, k, played
    ),
    ClassCenters: lambda key, k, defense, played: class_centers(key, k, played),
    ModelGradients: model_gradients,
}


def in_training(view: type, key: Key, k: int, defense: Defense, played: Round):
  """The view of a round of the given type.

  Args:
    view: Of `OF_A_ROUND`.
    key: Of what the attacker happens to know.
    k: Which passive party sees.
    defense: What protected the round: it says which weights can be read.
    played: The round.

  Raises:
    ValueError: if attackers do not have that view in training.
  """
  if view not in OF_A_ROUND:
    raise Misfit(f'{view.__name__} is not a view of a round in training.')
  return OF_A_ROUND[view](key, k, defense, played)


def unknown(view) -> Array:
  """[batch] 1 at the rows of a round whose labels are left to guess.

  Padding has no label, and what an attacker knows it does not guess: neither
  is scored.
  """
  return view.valid * (1 - getattr(view, 'known', 0))
