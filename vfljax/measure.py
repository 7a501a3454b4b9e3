"""Scores attackers' guesses against the truth, and models' logits.

`watcher` runs attacks on rounds inside training and scores them once an epoch,
over all rounds of the epoch pooled ('epoch', as in GAFM) or round by round and
averaged ('round', as in Marvell; rounds of one class are left out).
"""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
import zlib

import jax
import jax.numpy as jnp

from vfljax import check, metrics, views
from vfljax.attack import Attack
from vfljax.check import Misfit
from vfljax.defense import Defense
from vfljax.leakage import AttackName
from vfljax.numerics import floating
from vfljax.telling import is_real, told
from vfljax.types import Array, Key, Round

Metrics = dict[str, Array]
WINDOW = 7  # Of `metrics.ssim`.
UTILITY = ('accuracy', 'auc', 'loss')  # What `of_model` measures.


class Guessed(NamedTuple):
  """One attack on one round: scores, true labels, and which rows count."""

  scores: Array  # [batch] or [batch, classes]
  labels: Array  # [batch, classes]
  weights: Array  # [batch], 0 where padded or known to the attacker


class Watched(NamedTuple):
  """An attack's result on one round, until the epoch is scored."""

  guessed: Guessed
  facts: Metrics  # `Attack.facts`; an epoch's rounds are averaged.


def watcher(
    attacks: Mapping[str, Attack], defense: Defense,
    parties: Sequence[int] = (1,), pool: str = 'epoch',
) -> tuple[Callable[[Key, Round], Any], Callable[..., dict[str, Metrics]]]:
  """`watch` and `digest` of `train.Plan` for attacks on single rounds.

  Args:
    attacks: By name; their views must be views of a round.
    defense: The federation's, for its `expose` and attackers who know it.
    parties: The passive parties that attack, 1..K. Results of the first are
      named as the attack, those of another party k 'name@k'.
    pool: 'epoch' scores an epoch's rounds at once, 'round' averages theirs.

  Returns:
    (watch, digest); an epoch's digest is {attack: {metric: scalar}}.

  Raises:
    ValueError: for another `pool`; in `watch`, for a guess of another shape, or
      facts that are no numbers.
  """
  check.one_of('watcher: pool', pool, ('epoch', 'round'))

  def watch(key, played):
    rows = {}
    for name, asked in attacks.items():
      attack = asked.knowing(defense)
      for k in parties:
        at = jax.random.fold_in(own_key(key, name), k)
        k_view, k_run = jax.random.split(at)
        view = views.in_training(attack.view, k_view, k, defense, played)
        guess, labels = attack.run(k_run, view), played.batch.labels
        check_guess(name, guess, labels)
        guessed = Guessed(guess, labels, views.unknown(view))
        facts = attack.facts(view)
        check.facts(name, facts)
        rows[label(name, k, parties)] = Watched(guessed, facts)
    return rows

  scored = _pooled if pool == 'epoch' else averaged

  def digest(*stacks):
    if not attacks:
      return {}
    found = {}
    for name in stacks[0]:
      own: list[Watched] = [stack[name] for stack in stacks]
      facts = _mean([seen.facts for seen in own])
      found[name] = facts | scored([seen.guessed for seen in own])
    return found

  return watch, digest


def _pooled(stacks: list[Guessed]) -> Metrics:
  """An attack's scores over all rounds of an epoch at once.

  Args:
    stacks: Arrays [rounds, batch, ...]: of the full rounds and, if there was
      one, of the smaller round.
  """
  flat = lambda x: x.reshape(-1, *x.shape[2:])
  return of_labels(jax.tree.map(
      lambda *x: jnp.concatenate([flat(part) for part in x]), *stacks
  ))


def averaged(stacks: list[Guessed], scored: Callable | None = None) -> Metrics:
  """The means of `scored`, or `of_labels`, of single rounds; see `_pooled`."""
  found = _mean([jax.vmap(scored or of_labels)(x) for x in stacks])
  # A round of one class has no AUC and is left out of the mean. A NaN score
  # means that training diverged, which the mean must not hide.
  broken = jnp.stack([_diverged(guessed) for guessed in stacks]).any()
  return jax.tree.map(lambda x: jnp.where(broken, jnp.nan, x), found)


def check_fact(who: str, fact: str) -> None:
  """Refuses a defense's fact that would stand where the utility does.

  Raises:
    ValueError: naming the fact.
  """
  if fact in UTILITY or fact.startswith(('alone_', 'quit_')):
    raise ValueError(
        f'{who}: a fact is recorded beside the utility, which has the name '
        f'{fact!r} already. Call it otherwise: own_{fact}.'
    )


def check_guess(name: str, guess: Any, labels: Array) -> None:
  """Checks that an attack scores each sample of a round.

  Args:
    name: The attack's.
    guess: [batch, classes] scores or, of two classes, [batch] ones.
    labels: [batch, classes].

  Raises:
    ValueError: if the guess has another shape.
  """
  shape = getattr(guess, 'shape', None)
  # How positive a sample is says nothing of more than two classes.
  one, each = labels.shape[:1], labels.shape
  fit = (each,) if each[1] > 2 else (one, each)
  if shape not in fit or not is_real(guess):
    raise Misfit(
        f'{name} must return scores of shape {" or ".join(map(str, fit))} for '
        f'this batch; it returned {told(guess)}. Of class numbers scores are '
        f'jax.nn.one_hot(guess, {each[1]}).'
    )


def _margins(scores: Array) -> Array:
  """How much likelier the second class is, of [..., 2]; uint8 wraps around."""
  scores = floating(scores)
  return scores[..., 1] - scores[..., 0]


def own_key(key: Key, name: str) -> Key:
  """The key of the attack `name`, the same whichever others run beside it."""
  return jax.random.fold_in(key, zlib.crc32(name.encode()))


def label(name: str, party: int, parties: Sequence[int]) -> str:
  """The name in results of an attack by `party`, one of `parties`."""
  other = 0 if party == parties[0] else party
  return str(AttackName.parse(name)._replace(party=other))


def of_labels(guessed: Guessed) -> Metrics:
  """Scores an attack on labels.

  Args:
    guessed: One class score per sample, [batch], or one per class,
      [batch, classes]; more than two classes need the latter.

  Returns:
    Scalars. Two classes: 'leak_auc_raw', 'leak_auc' (folded, max(a, 1 - a))
    and, with a score per class, 'accuracy'. More classes: 'accuracy'. A mixed
    sample (MixUp) counts as of the class with its largest share.
  """
  scores, labels, weights = guessed
  weights = jnp.where(_labeled(labels) > 0, weights, 0)
  labels = views.majority(labels)
  found: Metrics = {}
  if labels.shape[-1] == 2:
    one = scores if scores.ndim == 1 else _margins(scores)
    raw = metrics.roc_auc(one, labels[:, 1], weights)
    found |= dict(leak_auc_raw=raw, leak_auc=jnp.maximum(raw, 1 - raw))
  if scores.ndim == 2:
    found['accuracy'] = metrics.accuracy(scores, labels, weights)
  return found


def of_completion(guess: Array, labels: Array) -> Metrics:
  """Scores a completed model on samples that it was not trained on.

  Args:
    guess: [stages, samples, classes], scores after each stage of its training.
    labels: [samples, classes]; a row of zeros does not count.

  Returns:
    Scalars 'accuracy_last' and 'accuracy_best' over the stages; for two classes
    also 'auc_last' and 'auc_best'. The best stage is chosen with the true
    labels, which the attacker lacks, so it is an upper bound. A stage that
    diverged, whose numbers are NaN, is not the best.

  Raises:
    ValueError: if the guess has another shape.
  """
  shape = getattr(guess, 'shape', None) or (0,)
  if shape[1:] != labels.shape or not shape[0] or not is_real(guess):
    raise Misfit(
        'A guess at labels after training must be [stages, samples, classes], '
        f'here (stages, {labels.shape[0]}, {labels.shape[1]}); it is '
        f'{told(guess)}.'
    )
  real, all_of = _labeled(labels), (0, None, None)
  accuracy = jax.vmap(metrics.accuracy, all_of)
  per_stage = {'accuracy': accuracy(guess, labels, real)}
  if labels.shape[-1] == 2:
    auc = jax.vmap(metrics.roc_auc, all_of)
    per_stage['auc'] = auc(_margins(guess), labels[:, 1], real)
  found = {f'{name}_last': x[-1] for name, x in per_stage.items()}
  best = {f'{name}_best': jnp.nanmax(x) for name, x in per_stage.items()}
  return found | best


def of_images(guess: Array, truth: Array) -> Metrics:
  """Scores an attack on images: mean 'ssim' (7 x 7 windows) and 'psnr' (dB).

  Args:
    guess: [n, height, width, channels] in [0, 1], at least 7 x 7 pixels.
    truth: Images of the same shape and range.

  Raises:
    ValueError: of features that are no such images, such as a table's rows.
  """
  fits = is_real(guess) and guess.shape == truth.shape
  if truth.ndim != 4 or not fits or min(truth.shape[1:3]) < WINDOW:
    raise Misfit(
        f'Guesses at features are measured as images, [n, height, width, '
        f'channels] of {WINDOW} x {WINDOW} pixels or more; the features are '
        f'{truth.shape}, the guess {told(guess)}. For others give the recipe '
        'measure=(guess, truth) -> {name: number, the larger the better} and '
        'score=leakage.Score((name,), (what guessing has,)).'
    )
  check.pixels('of_images: truth', truth)
  return dict(
      ssim=metrics.ssim(guess, truth).mean(),
      psnr=metrics.psnr(guess, truth).mean(),
  )


def of_model(logits: Array, labels: Array) -> Metrics:
  """The utility of a model: 'accuracy', 'loss' and, for two classes, 'auc'.

  Args:
    logits: [samples, classes].
    labels: [samples, classes]; a row of zeros does not count. If all rows are
      zeros, the results are NaN.

  Returns:
    Scalars: 'accuracy' and 'auc' as fractions, 'loss' the mean cross-entropy in
    nats.
  """
  # A sum of many in half precision is infinite, or loses all but three digits.
  log_p, real = jax.nn.log_softmax(floating(logits)), _labeled(labels)
  found = dict(
      accuracy=metrics.accuracy(logits, labels, real),
      loss=-(floating(labels) * log_p).sum(-1).sum() / real.sum(),
  )
  if labels.shape[-1] == 2:
    found['auc'] = metrics.roc_auc(_margins(logits), labels[:, 1], real)
  return found


def _labeled(labels: Array) -> Array:
  """[samples]: 1 where there is a label, 0 at a row of zeros.

  `argmax` alone would take such a row for the first class.
  """
  return (labels.sum(-1) > 0).astype(floating(labels).dtype)


def _diverged(guessed: Guessed) -> Array:
  """Whether a score with weight above 0 is NaN."""
  scores, _, weights = guessed
  nan = jnp.isnan(scores)
  nan = nan.any(-1) if scores.ndim > weights.ndim else nan
  return (nan & (weights > 0)).any()


def _mean(stacks: list[Metrics]) -> Metrics:
  """Each number's mean over the rounds of all stacks, NaN left out.

  An epoch has one stack of full rounds and perhaps one of a smaller round.
  """
  return jax.tree.map(lambda *x: jnp.nanmean(jnp.concatenate(x)), *stacks)
