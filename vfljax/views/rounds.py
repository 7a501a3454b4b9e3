"""Makes views of rounds of training."""
import jax
import jax.numpy as jnp

from vfljax import check, crossing
from vfljax.check import Misfit
from vfljax.defense import Defense, checked
from vfljax.numerics import floating, masked_median
from vfljax.sampling import per_class
from vfljax.types import Array, Key, Params, Round, State
from vfljax.views.kinds import (
    ClassCenters, CutGradients, KnownPositive, ModelGradients,
    RecordedGradients, WhiteBox,
)


def majority(labels: Array) -> Array:
  """The class with the largest share of each row of [batch, classes], one-hot.

  Labels are one-hot already unless a defense mixes samples; padding stays 0.
  """
  top = jax.nn.one_hot(labels.argmax(-1), labels.shape[-1], dtype=labels.dtype)
  return top * (labels.sum(-1, keepdims=True) > 0).astype(labels.dtype)


def _valid(labels: Array) -> Array:
  """[batch]: 1 for a sample, 0 for padding, and nothing else.

  Soft labels may add up to 1 but for a digit that tells the class.
  """
  return (crossing.rows(labels) > 0).astype(labels.dtype)


def cut_gradients(k: int, played: Round) -> CutGradients:
  """Passive party k's view of a round.

  Raises:
    ValueError: if there is no such passive party.
  """
  batch, messages = played.batch, played.messages
  check.passive(k, len(messages.up))
  return CutGradients(
      batch.features[k], floating(messages.up[k - 1]),
      floating(messages.down[k - 1]), _valid(batch.labels),
  )


def known_positive(key: Key, k: int, played: Round) -> KnownPositive:
  """Passive party k's view of a round, with one random positive sample known.

  `key` draws the sample.
  """
  view = cut_gradients(k, played)
  positive = majority(played.batch.labels)[:, -1] > 0
  lot = jax.random.uniform(key, positive.shape, jnp.float32)
  lot = jnp.where(positive, lot, -1.0)
  chosen = jnp.arange(len(lot)) == lot.argmax()
  return KnownPositive(*view, (chosen & positive).astype(view.valid.dtype))


def class_centers(key: Key, k: int, played: Round) -> ClassCenters:
  """Passive party k's view of a round, with the class centers of half of it.

  In a small round a class may have no known sample; its center is then zeros.
  That favours the attacker, without giving a label away: in an undefended
  federation the gradients of the two classes lie on either side of 0, so that a
  gradient nearer to 0 than to the other center is mostly of the class without
  a known sample. If such a center counted as unknown instead, rounds of eight
  samples would leak less to the mean attack.
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
    key: Draws the samples whose labels are known.
    k: The party.
    played: Rounds played from the same state; leaves have a leading axis.
    count: Known samples a class, 1 or more; of a class with fewer samples all
      are known.

  Returns:
    The view, and [n] 1 at the samples whose labels are known to the attacker.

  Raises:
    ValueError: if there is no such passive party.
  """
  check.passive(k, len(played.messages.down))
  flat = lambda x: x.reshape(-1, *x.shape[2:])
  labels = majority(flat(played.batch.labels))
  received = floating(flat(played.messages.down[k - 1]))
  chosen, own = per_class(key, labels, count)
  known = jnp.zeros(len(labels), labels.dtype).at[chosen].max(own.sum(-1))
  return RecordedGradients(received[chosen], own, received), known


def own_weights(key: Key, k: int, defense: Defense, state: State) -> Params:
  """Passive party k's bottom weights, as far as it can read them.

  `key` draws what `Defense.expose` makes up for the rest.

  Raises:
    ValueError: if there is no such passive party.
  """
  check.passive(k, len(state.parties) - 1)
  own = state.parties[k].params['bottom']
  return checked(defense).expose(state.defense, key, k, own)


def own_gradients(k: int, played: Round) -> dict[str, Params]:
  """A round's gradients of the weights that passive party k can read.

  Raises:
    ValueError: if there is no such passive party.
  """
  check.passive(k, len(played.gradients))
  read = played.read or played.gradients
  return dict(bottom=read[k - 1], defense=played.added[k - 1])


def model_gradients(
    key: Key, k: int, defense: Defense, played: Round
) -> ModelGradients:
  """Passive party k's view of a round whose messages are encrypted.

  `key` is that of `own_weights`.

  Raises:
    ValueError: if there is no such passive party.
  """
  check.passive(k, len(played.gradients))
  batch = played.batch
  return ModelGradients(
      batch.features[k], own_weights(key, k, defense, played.state),
      jax.tree.map(floating, own_gradients(k, played)['bottom']),
      _valid(batch.labels),
  )


def white_box(
    key: Key, k: int, defense: Defense, state: State,
    gradients: dict[str, Params], rows: Array, pool: Array,
) -> WhiteBox:
  """The active party's `WhiteBox` view of passive party k.

  Args:
    key: As in `own_weights`.
    k: The party, which shows what it can read and no more.
    defense: The federation's.
    state: The state from which all rounds were played.
    gradients: `own_gradients` of the rounds, leaves [rounds, ...].
    rows: [rounds, batch] indices into the pool of the samples in each round.
    pool: [pool, ...] the party's features, of which only the shape is used.
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
  """A passive party's view of a round, of the given type.

  Args:
    view: A key of `OF_A_ROUND`.
    key: Draws what the attacker happens to know.
    k: Which passive party attacks.
    defense: The federation's, whose `expose` says which weights can be read.
    played: The round.

  Raises:
    ValueError: if `view` is not one of a round in training.
  """
  if view not in OF_A_ROUND:
    raise Misfit(f'{view.__name__} is not a view of a round in training.')
  return OF_A_ROUND[view](key, k, defense, played)


def unknown(view) -> Array:
  """[batch] 1 at the rows of a round whose labels have to be guessed.

  Only these are scored: padding has no label, and a known label is not guessed.
  """
  return view.valid * (1 - getattr(view, 'known', 0))
