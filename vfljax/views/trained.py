"""Makes views of a trained federation."""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check, protocol
from vfljax.check import Misfit
from vfljax.defense import Defense
from vfljax.hooks import borrowers
from vfljax.numerics import floating
from vfljax.types import VFL, Array, Batch, Key, Params, State
from vfljax.views.kinds import TrainedBottom, TrainedTop, UnlabeledBottom
from vfljax.views.rounds import own_weights


class Finished(NamedTuple):
  """A trained federation and its samples, as the simulator has them.

  Attributes:
    vfl, defense, state: The federation.
    known: Training samples whose labels the attacker knows.
    test: Samples whose labels, or features, the attacker wants.
    wanted: An attacker that wants features wants those of the first `wanted`
      test samples.
    training: All training samples.
    auxiliary: Labeled samples of which an active attacker knows the features of
      every party.
  """

  vfl: VFL
  defense: Defense
  state: State
  known: Batch
  test: Batch
  wanted: int
  training: Batch
  auxiliary: Batch


class Own(NamedTuple):
  """What a passive party has after training.

  Attributes:
    weights: Its bottom network's weights, as far as it can read them
      (`own_weights`).
    k: Which party it is.
    known, test, training: As in `Finished`; views take the party's own features
      of these, and the labels of `known` alone.
  """

  weights: Params
  k: int
  known: Batch
  test: Batch
  training: Batch


def trained_bottom(
    key: Key, k: int, defense: Defense, state: State, known: Batch, test: Batch
) -> TrainedBottom:
  """Passive party k's view after training, with the labels of `known`."""
  weights = own_weights(key, k, defense, state)
  return _bottom(Own(weights, k, known, test, known))


def unlabeled_bottom(
    key: Key, k: int, defense: Defense, state: State, known: Batch,
    test: Batch, training: Batch,
) -> UnlabeledBottom:
  """Passive party k's view after training, with all its training samples."""
  weights = own_weights(key, k, defense, state)
  return _unlabeled(Own(weights, k, known, test, training))


def _bottom(own: Own) -> TrainedBottom:
  k, known = own.k, own.known
  return TrainedBottom(
      own.weights, known.features[k], known.labels, own.test.features[k]
  )


def _unlabeled(own: Own) -> UnlabeledBottom:
  return UnlabeledBottom(*_bottom(own), own.training.features[own.k])


def trained_top(
    defense: Defense, state: State, sent: Array, auxiliary: Batch
) -> TrainedTop:
  """The active party's view of the embeddings that passive party k sent.

  Args:
    defense, state: The federation's.
    sent: [n, ...] those embeddings.
    auxiliary: Labeled samples of which it knows the features of every party.
  """
  leaves, tree = jax.tree.flatten(state.defense)
  lent = borrowers(defense, state.defense, len(state.parties) - 1)
  memory = tree.unflatten(
      jnp.zeros_like(x) if parties else x for x, parties in zip(leaves, lent)
  )
  return TrainedTop(
      state.parties[0].params, floating(sent), auxiliary, memory
  )


def _trained_bottom(key: Key, k: int, f: Finished) -> TrainedBottom:
  return trained_bottom(key, k, f.defense, f.state, f.known, f.test)


def _unlabeled_bottom(key: Key, k: int, f: Finished) -> UnlabeledBottom:
  return unlabeled_bottom(
      key, k, f.defense, f.state, f.known, f.test, f.training
  )


def _trained_top(key: Key, k: int, f: Finished) -> TrainedTop:
  check.passive(k, len(f.vfl.bottoms) - 1)  # 0 would attack itself.
  x = wanted_features(k, f)
  sent = protocol.embed(key, f.vfl, f.defense, f.state, k, x)
  return trained_top(f.defense, f.state, sent, f.auxiliary)


def wanted_features(k: int, finished: Finished) -> Array:
  """[wanted, ...] the features of passive party k that an attacker wants."""
  return finished.test.features[k][: finished.wanted]


# View -> (key, passive party, federation) -> that view. The party is the one
# that attacks, or, with `TrainedTop`, the one that is attacked.
OF_A_TRAINED_FEDERATION: dict[type, Any] = {
    TrainedBottom: _trained_bottom,
    UnlabeledBottom: _unlabeled_bottom,
    TrainedTop: _trained_top,
}


# View -> (`Own`) -> that view: the views that need no more of a federation than
# what one passive party has.
OF_ONES_OWN: dict[type, Any] = {
    TrainedBottom: _bottom, UnlabeledBottom: _unlabeled,
}


def after_training(view: type, key: Key, k: int, finished: Finished):
  """A view of a trained federation, of the given type.

  Args:
    view: A key of `OF_A_TRAINED_FEDERATION`.
    key: Draws what is random in inference and in `own_weights`.
    k: The passive party that attacks or, with `TrainedTop`, is attacked.
    finished: The federation.

  Raises:
    ValueError: if `view` is not one of a trained federation, or there is no
      such passive party.
  """
  if view not in OF_A_TRAINED_FEDERATION:
    raise Misfit(f'{view.__name__} is not a view of a trained federation.')
  return OF_A_TRAINED_FEDERATION[view](key, k, finished)
