"""Gradient clustering: k-means on the gradients that a party receives.

Gradients of samples of one class point the same way. A passive party keeps each
sample's cut-layer gradient of many rounds and puts them into as many clusters
as there are classes. It trains no model, and the top may be anything. The few
labels that it knows only give the clusters their names. This is the attack on
gradients of Liu et al. (2022, "Similarity-based Label Inference Attack against
Training and Inference of Split Learning", arXiv:2203.05222; at first called
"Clustering label inference attack"). They compare gradients by the cosine: the
squared distance of vectors of length 1 is 2 - 2 cos.

A single round may lack a class, so all rounds that are played again are
clustered together, each sample once: an epoch's, of at most 4096 samples,
unless `replay_rounds` asks for another number. Gradient compression and D-SGD
hide little of what it reads before training, unless they leave hardly anything
of a gradient. Noise several times as long as the gradients hides all.

A run records `accuracy`, by the names that the attacker gives, and `matched`,
where each guessed class is read as the class that it mostly is. That takes all
labels, which the attacker lacks, so `matched` is an upper bound of `accuracy`.
Of two classes the folded AUC does not depend on the names.

Ours: k-means starts several times from samples that lie apart (k-means++), and
the start with the closest clusters counts; SecretFlow's starts once, from one
known sample of each class. Two clusters may be of one class. Weights do not
change between the rounds that are played again.
"""
import math
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import check, samples
from vfljax.attack import REPLAYED, Attack, recipe
from vfljax.numerics import directions, exact, floating, row_norms, safe_sqrt
from vfljax.types import Array, Key
from vfljax.views import RecordedGradients

TIED = 1e-5  # Shares of known samples that differ by less are equal.


class Options(NamedTuple):
  """See `gradient_clustering`."""

  unit: bool = True  # compare directions; else lengths count, too
  starts: int = 8  # of k-means; the one with the closest clusters counts
  iterations: int = 30  # of k-means, from each start


@recipe(stage=REPLAYED, options=Options)
def gradient_clustering(
    unit: bool = True, starts: int = 8, iterations: int = 30
) -> Attack:
  """Scores: [n, classes], minus the distance to a class's nearest cluster.

  NaN everywhere if a gradient is not finite: the training has diverged. A class
  that names no cluster is further away than every cluster.

  Args:
    unit: Cluster gradients by direction. Otherwise lengths count, too.
    starts: How often k-means starts, 1 or more.
    iterations: Steps of k-means from each start, 1 or more. Always as many, so
      that one program serves all seeds and strengths.

  Raises:
    ValueError: if `starts` or `iterations` is no integer of 1 or more.
  """
  check.count('gradient_clustering: starts', starts)
  check.count('gradient_clustering: iterations', iterations)

  def run(key, view: RecordedGradients):
    labels = view.known_labels
    samples.check_known(
        'gradient_clustering', view.known_received, labels, 0
    )
    x, known = compared(view.received, view.known_received, unit)
    centers, _ = kmeans(key, x, labels.shape[-1], starts, iterations)
    named = names(distances(known, centers), labels)
    return nearness(distances(x, centers), named)

  return Attack(RecordedGradients, run)


def compared(
    received: Array, known: Array, unit: bool
) -> tuple[Array, Array]:
  """Gradients as the points that are clustered, [n, width] and [known, width].

  Of length 1; or all divided by the longest of `received`, since the square of
  1e-30 is 0 in 32 bits. Then minus the mean of `received`, since distances of
  points far from 0 are rounded more.

  Args:
    received: [n, ...].
    known: [known, ...], some of them.
    unit: Whether each has length 1; a gradient of 0 stays 0.
  """
  if unit:
    x, own = directions(received), directions(known)
  else:
    flat = lambda d: floating(d).reshape(len(d), -1)
    x, own = flat(received), flat(known)
    longest = row_norms(x).max(initial=0)
    scale = jnp.where(longest > 0, longest, 1)
    x, own = x / scale, own / scale
  middle = x.mean(0)[None]
  return x - middle, own - middle


def squares(x: Array, centers: Array) -> Array:
  """Squared distances [n, clusters] of x [n, width] to [clusters, width]."""
  lengths = (x**2).sum(-1)[:, None] + (centers**2).sum(-1)[None]
  return jnp.maximum(lengths - 2 * exact(x, centers.T), 0)


def distances(x: Array, centers: Array) -> Array:
  """As `squares`, not squared."""
  return safe_sqrt(squares(x, centers))


def spread(key: Key, x: Array, clusters: int, trials: int) -> Array:
  """k-means++ (Arthur and Vassilvitskii 2007): samples that lie apart.

  The first one evenly. For each other one `trials` samples are drawn by their
  squared distance to the nearest one so far; the one that leaves all samples
  closest is taken.

  Args:
    key: Draws them.
    x: [n, width]. With fewer different rows than clusters some are taken twice.
    clusters: How many, 1 or more.
    trials: 1 or more. With one alone some clusters are often left out.

  Returns:
    [clusters, width].
  """
  x = jnp.asarray(x)  # NumPy's is not indexed by a traced number.
  k_first, k_others = jax.random.split(key)
  first = x[jax.random.randint(k_first, (), 0, len(x), jnp.int32)][None]

  def draw(nearest, key):
    i = jax.random.categorical(key, jnp.log(nearest), shape=(trials,))
    left = jnp.minimum(nearest[:, None], squares(x, x[i]))
    best = left.sum(0).argmin()
    return left[:, best], x[i[best]]

  keys = jax.random.split(k_others, clusters - 1)
  others = lax.scan(draw, squares(x, first)[:, 0], keys)[1]
  return jnp.concatenate([first, others])


def moved(x: Array, centers: Array) -> Array:
  """Lloyd's step: each center to the mean of the samples nearest to it.

  A center without samples stays. Of centers equally near the first counts.
  """
  nearest = squares(x, centers).argmin(-1)
  members = jax.nn.one_hot(nearest, len(centers), dtype=x.dtype)
  count = members.sum(0)[:, None]
  means = exact(members.T, x) / jnp.maximum(count, 1)
  return jnp.where(count > 0, means, centers)


def kmeans(
    key: Key, x: Array, clusters: int, starts: int, iterations: int
) -> tuple[Array, Array]:
  """The centers of the start with the smallest inertia, and that inertia.

  One start after the other, as each has distances of all samples to all
  centers. The trials of `spread` are as many as scikit-learn's.

  Args:
    key: Draws where it starts.
    x: [n, width].
    clusters: How many.
    starts: How often it starts.
    iterations: Steps from each start.

  Returns:
    [clusters, width], and the sum of squared distances to the nearest center.
  """
  trials = 2 + int(math.log(clusters))

  def one(key):
    start = spread(key, x, clusters, trials)
    centers = lax.fori_loop(
        0, iterations, lambda _, now: moved(x, now), start
    )
    return centers, squares(x, centers).min(-1).sum()

  centers, inertia = lax.map(one, jax.random.split(key, starts))
  best = inertia.argmin()
  return centers[best], inertia[best]


def names(far: Array, labels: Array) -> Array:
  """Which class each cluster is, from the samples whose labels are known.

  The class with the largest share of its known samples in the cluster. Shares,
  not numbers, as an attacker knows equally many of each class, however rare it
  is, and fewer of a class that has no more. Of classes with equal shares, as in
  a cluster without known samples, the one counts that is nearer to this cluster
  than to the others, by its known samples' mean distance. For two classes, both
  known, this makes two different names.

  Args:
    far: [known, clusters] distances of the known samples to the centers.
    labels: [known, classes]; a row of zeros does not count. A class without a
      known sample names no cluster. Without any known sample cluster i is
      class i, which is a guess.

  Returns:
    [clusters, classes] one-hot.
  """
  labels = labels.astype(far.dtype)
  count = labels.sum(0)
  weights = (labels / jnp.maximum(count, 1)[None]).T  # [classes, known]
  nearest = jax.nn.one_hot(far.argmin(-1), far.shape[1], dtype=far.dtype)
  share = exact(weights, nearest)
  apart = exact(weights, far)
  apart = apart - apart.mean(1, keepdims=True)
  there = (count > 0)[:, None]
  first = there & (share > share.max(0)[None] - TIED)
  best = jnp.where(first, -apart, -jnp.inf).argmax(0)
  named = jax.nn.one_hot(best, len(count), dtype=far.dtype)
  return jnp.where(there.any(), named, jnp.eye(*named.shape, dtype=far.dtype))


def nearness(far: Array, named: Array) -> Array:
  """Scores [n, classes] from distances [n, clusters] and their one-hot names.

  Minus the distance to the nearest cluster of the class; of a class without a
  cluster 1 more than that to the furthest cluster.
  """
  none = jnp.full((len(far), named.shape[1]), jnp.inf, far.dtype)
  mine = none.at[:, named.argmax(1)].min(far)
  return -jnp.minimum(mine, 1 + far.max(-1)[:, None])
