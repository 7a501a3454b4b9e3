"""Shadows: the active party's imitations of the passive parties' networks.

The active party trains networks of the same structure, from the initial weights
that all parties drew from a shared seed, on a few samples of its own (VMask,
Algorithm 6, after Gao and Zhang 2023). The top network is not trained and the
active party's own embedding is replaced by zeros. By attacking a shadow the
active party estimates how much a passive party's network leaks of the labels.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import check as checks
from vfljax import completion, metrics, nets, shards
from vfljax.completion import Samples, Schedule, best
from vfljax.defense import Holdings
from vfljax.nets import named_layers
from vfljax.permuting import permutation
from vfljax.sampling import per_class
from vfljax.types import Array, Batch, Key, Net, Params

Shadows = tuple[Params, ...]
LOW = 1e-3  # Smallest lot in drawing the imagined attacker's samples.


class Attacker(NamedTuple):
  """The attacker that the active party simulates on its shadows.

  Attributes:
    schedule: How it trains; its best stage counts, as in VMask's Algorithm 3.
      VMask simulates 20 epochs in every experiment, while its real attack
      trains 50, or 20 for DistilBERT. Give it more epochs against an attacker
      who trains longer.
    known: Labels it knows of each class, >= 1.
    head: Hidden widths of its inference head.
    norm: What normalizes them, one of `nets.NORMS`.
    draws: How often it is simulated, each time with other known samples and
      random weights; the mean counts. VMask simulates it once.
    epochs: How many of the schedule's epochs are played, as if it had no more;
      all if `None`. Needs a schedule with a stage after each epoch. It and
      `plays` may be traced, so that defenses that differ in them share one
      program.
    plays: How many of the draws are played; all if `None`.
  """

  schedule: Schedule = Schedule(20, 0, 20, 0.1, 'sgd')
  known: int = 4
  head: tuple[int, ...] = (64,)
  draws: int = 1
  norm: str = 'none'
  epochs: Any = None
  plays: Any = None

  @property
  def sizes(self) -> dict[str, int]:
    """The fields that may be traced, if unset; see `defense.Method.sized`."""
    schedule, said = self.schedule, (self.epochs, self.plays)
    if schedule.stages != schedule.epochs or said != (None, None):
      return {}
    return dict(epochs=schedule.epochs, plays=self.draws)

  def of_size(self, epochs: int, plays: int) -> 'Attacker':
    """The same with so many epochs, a stage after each, and draws."""
    schedule = self.schedule._replace(epochs=epochs, stages=epochs)
    return self._replace(schedule=schedule, draws=plays)


class Learning(NamedTuple):
  """How shadows learn: by plain SGD.

  Attributes:
    learning_rate: Above 0; may be traced.
    batch_size: Auxiliary samples a step, 1 or more; all if they are fewer.
      Algorithm 6 is printed with all of them.
  """

  learning_rate: Any = 0.1
  batch_size: int = 128


def check(name: str, attacker: Attacker) -> None:
  """Raises ValueError, naming the argument `name`, for a senseless attacker."""
  checks.count(f'{name}.known', attacker.known)
  checks.count(f'{name}.draws', attacker.draws)
  checks.one_of(f'{name}.norm', attacker.norm, nets.NORMS)
  checks.widths(f'{name}.head', attacker.head)
  schedule = attacker.schedule
  completion.check(schedule, f'{name}.schedule.')
  _check_played(f'{name}.plays', attacker.plays, attacker.draws)
  _check_played(f'{name}.epochs', attacker.epochs, schedule.epochs)
  if attacker.epochs is not None and schedule.stages != schedule.epochs:
    raise ValueError(
        f'{name}.epochs needs a schedule with a stage after each epoch; this '
        f'one has {schedule.stages} stages in {schedule.epochs} epochs.'
    )


def check_scored(
    name: str, attacker: Attacker, labels: Array | np.ndarray
) -> None:
  """Refuses auxiliary samples that leave the simulated attacker none to guess.

  Its score would then be NaN: samples that it knows are not scored, and for two
  classes the AUC needs unknown samples of both.

  Args:
    labels: [n, classes], not traced; a row of zeros is no sample.

  Raises:
    ValueError: for such samples.
  """
  labels = np.asarray(jax.device_get(labels))
  of = (labels > 0.5).sum(0)  # As `per_class` counts them.
  known = np.minimum(of, attacker.known)
  two = len(of) == 2
  if (of > known).all() if two else (labels.sum(1) > 0).sum() > known.sum():
    return
  raise ValueError(
      f'{name} knows {attacker.known} auxiliary samples of a class and is '
      f'scored by the others: {"each" if two else "some"} class needs '
      f'{attacker.known + 1} or more, and there are {", ".join(map(str, of))} '
      'by class. Give more auxiliary samples, or let it know fewer '
      '(Attacker.known).'
  )


def _check_played(name: str, number: Any, most: int) -> None:
  if number is not None:
    checks.whole(name, number, 1, most)


def logits(
    holdings: Holdings, shadows: Shadows, features: tuple
) -> Array:
  """The top's logits [batch, classes] for the shadows' embeddings.

  Args:
    features: Of all parties, the active one's first; only their shape is used
      of the latter, whose embedding is zeros.
  """
  vfl, params = holdings.vfl, holdings.params
  up = tuple(
      vfl.bottom(k).apply(p, features[k])
      for k, p in enumerate(shadows, start=1)
  )
  return vfl.top.apply(params['top'], (_absent(holdings, features[0]), *up))


def update(
    key: Key, holdings: Holdings, shadows: Shadows, how: Learning,
    norms: str = 'sum',
) -> tuple[Shadows, tuple[Array, ...]]:
  """One pass over the auxiliary samples: Algorithm 6.

  Args:
    shadows: One entry per passive party.
    how: How they learn.
    norms: One of `named_layers.NORMS`.

  Returns:
    The shadows, and for each the norms of its layers' gradients, [layers],
    averaged over the steps.
  """
  assert holdings.auxiliary is not None
  aux = holdings.auxiliary
  count = len(aux.labels)
  size = min(how.batch_size, count)
  k_order, k_steps = jax.random.split(key)
  order = permutation(k_order, count)[: count // size * size]

  def step(shadows, xs):
    i, key = xs
    batch: Batch = _rows(aux, i)
    loss = lambda s: _loss(key, holdings, s, batch)
    grads, stats = jax.grad(loss, has_aux=True)(shadows)
    descend = lambda p, g: p - how.learning_rate * g
    shadows = jax.tree.map(descend, shadows, grads)
    shadows = tuple(
        holdings.vfl.bottom(k).absorb(p, s)
        for k, (p, s) in enumerate(zip(shadows, stats), start=1)
    )
    return shadows, tuple(map(named_layers.NORMS[norms], grads))

  rounds = order.reshape(-1, size)
  keys = jax.random.split(k_steps, len(rounds))
  shadows, found = lax.scan(step, shadows, (rounds, keys))
  return shadows, tuple(n.mean(0) for n in found)


def known_samples(
    key: Key, attacker: Attacker, labels: Array
) -> tuple[Array, Array]:
  """The simulated attacker's known rows and labels, a set for each draw.

  As in Algorithm 2 they are drawn once a selection, before its loop.
  """
  draw = lambda key: per_class(key, labels, attacker.known, LOW)
  return jax.vmap(draw)(jax.random.split(key, attacker.draws))


def leakage(
    key: Key, attacker: Attacker, net: Net, shadow: Params, hidden: Array,
    features: Array, labels: Array, known: tuple[Array, Array],
) -> Array:
  """The simulated attacker's score on a shadow, a scalar in [0, 1].

  Its accuracy on the auxiliary samples whose labels it does not know; for two
  classes the AUC, as in VMask. Its Algorithm 3 splits the known samples, to
  train on some and be scored by the rest; here it trains on all of them.

  Args:
    key: Seeds the redrawn layers, the head and the training.
    net: The passive party's network.
    shadow: Its shadow's weights.
    hidden: bool [layers]: those that the attacker cannot read and redraws.
    features: [n, ...] the auxiliary samples, as that party has them.
    labels: [n, classes]; a row of zeros is no sample.
    known: What `known_samples` drew.
  """
  epochs, plays = _whole(attacker.epochs), _whole(attacker.plays)

  def attack(draw):
    key, (rows, own_labels) = draw
    k_hidden, k_head, k_train = jax.random.split(key, 3)
    head = nets.mlp(*attacker.head, labels.shape[-1], norm=attacker.norm)
    redrawn = named_layers.redraw(k_hidden, shadow)
    start = dict(  # The parameters of `nets.then`.
        first=named_layers.select(hidden, shadow, redrawn),
        second=head.init(k_head, net.apply(shadow, _rows(features, slice(1)))),
    )
    scored = _unknown(labels, rows, own_labels)
    return best(
        k_train, attacker.schedule, nets.then(net, head), start,
        Samples(_rows(features, rows), own_labels, features),
        lambda guess: _score(guess, labels, scored), 'first', epochs,
    )

  draws = jax.random.split(key, attacker.draws), known
  if plays is None:
    return lax.map(attack, draws).mean()
  return _mean_of_first(plays, attack, draws, key)


def _unknown(labels: Array, rows: Array, own_labels: Array) -> Array:
  """bool [n]: the labeled samples that are not among an attacker's `rows`.

  `own_labels` are zeros in those of its rows that only fill up its number.
  """
  known = jnp.zeros(len(labels), bool).at[rows].max(own_labels.sum(-1) > 0)
  return (labels.sum(-1) > 0) & ~known


def _mean_of_first(count: Array, fn: Callable, draws: Any, key: Key) -> Array:
  """Mean of `fn` over the first `count` of `draws`; no more are computed."""
  add = lambda i, total: total + fn(_rows(draws, i))
  return lax.fori_loop(0, count, add, shards.scalar(key, 0)) / count


def _rows(samples: Any, rows: Any) -> Any:
  return jax.tree.map(lambda x: jnp.asarray(x)[rows], samples)


def _whole(number: Any) -> Any:
  """A sweep's number, a float, as the integer that a loop needs."""
  return None if number is None else jnp.asarray(number).astype(jnp.int32)


def _score(guess: Array, labels: Array, counts: Array) -> Array:
  if labels.shape[-1] == 2:
    return metrics.roc_auc(guess[:, 1] - guess[:, 0], labels[:, 1], counts)
  return metrics.accuracy(guess, labels, counts)


def _loss(key: Key, holdings: Holdings, shadows: Shadows, batch: Batch):
  """(mean loss of a batch, statistics of the shadows' forward passes)."""
  vfl = holdings.vfl
  embedded = [
      vfl.bottom(k).run(p, jax.random.fold_in(key, k), batch.features[k])
      for k, p in enumerate(shadows, start=1)
  ]
  own = _absent(holdings, batch.features[0])
  up = tuple(u for u, _ in embedded)
  out = vfl.top.apply(holdings.params['top'], (own, *up))
  real = batch.labels.sum(-1)
  total = (real * optax.losses.softmax_cross_entropy(out, batch.labels)).sum()
  return total / jnp.maximum(real.sum(), 1), tuple(s for _, s in embedded)


def _absent(holdings: Holdings, features: Array | None) -> Array | None:
  """The active party's embedding, left out: zeros."""
  own = holdings.vfl.bottoms[0]
  if own is None:
    return None
  u = jax.eval_shape(own.apply, holdings.params['bottom'], features)
  return jnp.zeros(u.shape, u.dtype)
