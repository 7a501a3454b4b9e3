"""Passive model completion (Fu et al. 2022): a head on the stolen bottom.

After training, a passive party puts an inference head on its own bottom network
and trains it on the few samples whose labels it has learned. Two baselines say
what the stolen weights are worth: the same procedure from a randomly
initialised bottom (`scratch`), and a model of its own choice on its raw
features (`local_model`). An attacker cannot select by test accuracy, so the
guesses of all stages are returned, and the best and the last are reported.
"""
import jax
import jax.numpy as jnp

from vfljax import nets
from vfljax.attack import Attack
from vfljax.completion import (
    Samples, Schedule, check, complete, with_statistics,
)
from vfljax.types import Array, Net
from vfljax.views import TrainedBottom

__all__ = [
    'Schedule', 'check', 'complete', 'local_model', 'mlp_head',
    'model_completion', 'scratch', 'standardized',
]


def model_completion(
    bottom: Net, head: Net | None, schedule: Schedule = Schedule(),
    tune: bool = True, stolen: bool = True, standardize: bool = False,
) -> Attack:
  """Completes a stolen bottom network with an inference head.

  Args:
    bottom: The attacker's own architecture.
    head: Maps its (flattened) embeddings to logits [batch, classes]. `None`
      reads the embedding itself as logits, which needs no training (VLR).
    schedule: How to train.
    tune: Train the bottom's weights too; else the head alone.
    stolen: Start from the trained weights; else from random ones ("scratch").
    standardize: Scale the head's input by the embeddings of the known samples:
      an attacker who expects embeddings that were made small or lopsided.

  Returns:
    An attack whose guess is [stages, samples, classes].

  Raises:
    ValueError: if the schedule makes no sense.
  """
  check(schedule)

  def run(key, view: TrainedBottom):
    k_bottom, k_head, k_train = jax.random.split(key, 3)
    weights = view.weights
    if not stolen:
      weights = bottom.init(k_bottom, view.labeled_features)
    if head is None:
      return _as_logits(bottom.apply(weights, view.features))[None]
    embedded = bottom.apply(weights, view.labeled_features)
    top = standardized(head, embedded) if standardize else head
    head_weights = top.init(k_head, embedded[:1])
    if tune:
      whole = nets.then(bottom, top)
      start = dict(first=weights, second=head_weights)
      return complete(
          k_train, schedule, whole.apply, start,
          Samples(view.labeled_features, view.labeled, view.features),
          with_statistics(whole, start), 'first',
      )
    # A frozen bottom is applied once, not once a step.
    wanted = bottom.apply(weights, view.features)
    return complete(
        k_train, schedule, top.apply, head_weights,
        Samples(embedded, view.labeled, wanted),
        with_statistics(top, head_weights),
    )

  return Attack(TrainedBottom, run)


def scratch(
    bottom: Net, head: Net, schedule: Schedule = Schedule(),
    tune: bool = True, standardize: bool = False,
) -> Attack:
  """Baseline: the same completion of a randomly initialised bottom."""
  return model_completion(
      bottom, head, schedule, tune, stolen=False, standardize=standardize
  )


def local_model(net: Net, schedule: Schedule = Schedule()) -> Attack:
  """Baseline: `net`, from features to logits, on the same labeled samples.

  Raises:
    ValueError: if the schedule makes no sense.
  """
  check(schedule)

  def run(key, view: TrainedBottom):
    k_init, k_train = jax.random.split(key)
    params = net.init(k_init, view.labeled_features)
    return complete(
        k_train, schedule, net.apply, params,
        Samples(view.labeled_features, view.labeled, view.features),
        with_statistics(net, params),
    )

  return Attack(TrainedBottom, run)


def standardized(head: Net, embedded: Array) -> Net:
  """`head` on embeddings scaled to mean 0 and deviation 1 over `embedded`.

  Args:
    embedded: [known, ...]; a unit that is the same in all of them becomes 0.
  """
  mean, std = embedded.mean(0), embedded.std(0)
  # Relative to the largest unit, since a defense may shrink them all.
  floor = 1e-6 * std.max() + jnp.finfo(std.dtype).tiny
  scale = lambda u: (u - mean) / jnp.maximum(std, floor)
  train = head.train
  return head._replace(
      init=lambda key, u: head.init(key, scale(u)),
      apply=lambda params, u: head.apply(params, scale(u)),
      train=train and (lambda params, key, u: train(params, key, scale(u))),
  )


def mlp_head(classes: int, *hidden: int) -> Net:
  """An inference head, embedding to logits; linear without hidden widths."""
  return nets.mlp(*hidden, classes)


def _as_logits(u: Array) -> Array:
  u = u.reshape(len(u), -1)
  return nets.pair(u) if u.shape[1] == 1 else u
