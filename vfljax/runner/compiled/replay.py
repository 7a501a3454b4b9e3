"""Attacks on rounds that are replayed before and after training.

An attack that takes minutes a round (gradient inversion over thousands of
samples) cannot run in every round of every measured epoch, and an attack that
needs gradients of several rounds does not fit into one. Both get a few rounds
of the federation before its first update ('start', which the public code
attacks) and after its last ('end'). No weights are updated in these rounds.
"""
from collections.abc import Callable
import sys
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import measure, train, views
from vfljax.attack import Attack, Wants
from vfljax.leakage import AttackName
from vfljax.measure import Guessed, Metrics
from vfljax.permuting import permutation
from vfljax.runner.errors import UserError, choices
from vfljax.runner.experiment.attackers import attacker, differs, scored
from vfljax.runner.experiment.setting import Setting
from vfljax.types import Array, Key, Round, State


# Samples, at most, of recorded rounds, unless more are asked for. More take
# longer and hardly tell such an attack more.
_RECORDED = 4096
_EACH = 4  # Rounds, about, with each sample of a pool, and without it.


def recorded(samples: int, size: int) -> int:
  """Full rounds of `size` in an epoch, of at most `_RECORDED` samples."""
  return min(samples, _RECORDED) // size


def rounds(asked: int, attack: Attack, samples: int, size: int) -> int:
  """How many rounds are played again for an attack.

  Args:
    asked: `attack.replay_rounds`; 0 is as many as the attack needs: one round,
      an epoch's of at most `_RECORDED` samples for an attack that learns from
      all of them together, and half as many again as its pool has samples,
      or more, for an attack that rebuilds these.
    attack: The attack.
    samples: The number of training samples.
    size: Samples in a round.
  """
  if asked:
    return asked
  if attack.wants.batch:
    return _of_pool(attack.wants)
  if attack.view is views.RecordedGradients:
    return max(recorded(samples, size), 1)
  return 1


def _of_pool(wants: Wants) -> int:
  """Rounds that determine what each sample of a pool contributes to gradients.

  Each round gives the sum of what its samples contribute, so that fewer rounds
  than samples leave open whose is what; so does a sample that is in no round,
  or in all. Rounds of the whole pool differ by a defense's noise alone.
  """
  out = wants.samples - wants.batch
  if not out:
    return _EACH
  few = _EACH * wants.samples // min(wants.batch, out)
  return max(-(-3 * wants.samples // 2), few)


def check(setting: Setting, samples: int) -> None:
  """Checks that there are enough samples to replay.

  Args:
    setting: The experiment.
    samples: The number of training samples.

  Raises:
    UserError: if there are fewer than the replayed attacks need.
  """
  config = setting.config
  size = config.train.batch_size
  for name, attack in setting.replayed.items():
    who = attacker(config, name).who
    choices(who, replay_at=('both', 'start', 'end'))
    if attack.wants.batch:  # It has its own rounds.
      continue
    most = samples // size
    if not 0 <= who.replay_rounds <= most:
      raise UserError(
          f'attack.replay_rounds must be between 1 and {most}, the rounds of '
          f'an epoch, or 0: as many as the attack needs; got '
          f'{who.replay_rounds}.'
      )
    rows, share = _share(setting, name, samples)
    if attack.view is views.RecordedGradients and not 1 <= who.known <= share:
      more = ''
      if rows < most * size:
        more = ' To allow more, raise --config.attack.replay_rounds.'
      if not share:
        raise UserError(
            f'{name} records the gradients of {rows} samples, and needs two or '
            f'more for each of {setting.classes} classes, one with its label '
            'known. Leave it out with --config.attacks=...'
            f'{more.replace("allow", "record")}'
        )
      raise UserError(
          f'attack.known must be between 1 and {share} labels '
          f'per class, because {name} records the gradients of {rows} samples; '
          f'got {who.known}.{more}'
      )


def most_known(setting: Setting, samples: int) -> int:
  """How many labels of a class attackers on replayed rounds may know.

  Without an attacker that is told labels there is no limit, nor do variants
  count that say themselves how many they know. Arguments as of `check`.
  """
  return min((
      _share(setting, name, samples)[1]
      for name, attack in setting.replayed.items()
      if attack.view is views.RecordedGradients
      and not differs(setting.config, name, 'known')
  ), default=sys.maxsize)


def _share(setting: Setting, name: str, samples: int) -> tuple[int, int]:
  """(samples of the rounds that are replayed, labels of a class at most)."""
  asked = attacker(setting.config, name).who.replay_rounds
  size = setting.config.train.batch_size
  rows = rounds(asked, setting.replayed[name], samples, size) * size
  return rows, rows // (2 * setting.classes)


def measured(
    setting: Setting, plan: train.Plan, data: Any, labels: Any,
    states: dict[str, State], key: Key,
) -> dict[str, Metrics]:
  """Runs the replayed attacks: {attack: {metric_stage: value}}.

  Args:
    setting: The experiment with its `replayed` attacks.
    plan: The training.
    data: The training samples.
    labels: The labels that the defense prepared for training, or ().
    states: The federation's state by stage: 'start', 'end'.
    key: The same for every stage, so that samples and draws are the same.
  """
  found: dict[str, Metrics] = {}
  for name in setting.replayed:
    who, _, recipe = attacker(setting.config, name)
    # Variants that share their luck attack the same rounds of one pool.
    lucky = AttackName.parse(name).base if recipe.one_luck else name
    at = who.replay_at
    own = {s: state for s, state in states.items() if at in ('both', s)}
    for k in setting.attackers:
      luck = jax.random.fold_in(measure.own_key(key, lucky), k)

      def attack(state, name=name, k=k, luck=luck):
        return _attack(setting, plan, data, labels, state, name, k, luck)

      label = measure.label(name, k, setting.attackers)
      found[label] = _at_stages(attack, own)
  return found


def _at_stages(
    attack: Callable[[State], Metrics], states: dict[str, State]
) -> Metrics:
  """{metric_stage: value} of an attack on one state or two.

  A loop over the states compiles the attack only once.
  """
  stages = list(states)
  last = states[stages[-1]]
  _, found = lax.scan(
      lambda state, _: (last, attack(state)), states[stages[0]],
      length=len(stages),
  )
  return {
      f'{metric}_{stage}': x[i]
      for i, stage in enumerate(stages) for metric, x in found.items()
  }


def _attack(setting, plan, data, labels, state, name, k, key) -> Metrics:
  attack = setting.replayed[name].knowing(plan.defense)
  who = attacker(setting.config, name).who
  if attack.wants.batch:
    return _rebuild(setting, plan, data, labels, state, name, k, key)
  k_rows, k_view, k_play, k_run = jax.random.split(key, 4)
  rows = permutation(k_rows, len(data.labels))
  count = rounds(who.replay_rounds, attack, len(rows), plan.batch_size)
  rows = rows[: count * plan.batch_size].reshape(count, plan.batch_size)
  keys = jax.random.split(k_play, len(rows))

  def play(i, key) -> Round:
    # Attackers have their say on a round's samples as in training (`epochs`).
    i = plan.adversary.rows(jax.random.fold_in(key, 2), i)
    return _play(plan, data, labels, state, i, key)

  flat = lambda x: x.reshape(-1, *x.shape[2:])
  if attack.view is views.RecordedGradients:
    seen = lax.map(
        lambda x: play(*x)._replace(state=(), gradients=(), read=()),
        (rows, keys),
    )
    view, known = views.recorded_gradients(k_view, k, seen, who.known)
    scores = attack.run(k_run, view)
    truth = flat(seen.batch.labels)
    measure.check_guess(name, scores, truth)
    return _measured(Guessed(scores, truth, 1 - known))

  def guess(x) -> Guessed:
    i, key, luck = x
    seen = play(i, key)
    k_see, k_guess = jax.random.split(luck)
    view = views.in_training(attack.view, k_see, k, plan.defense, seen)
    scores = attack.run(k_guess, view)
    measure.check_guess(name, scores, seen.batch.labels)
    return Guessed(scores, seen.batch.labels, views.unknown(view))

  lucks = jax.random.split(k_run, len(rows))
  guessed = lax.map(guess, (rows, keys, lucks))
  if who.pool == 'round':
    return measure.averaged([guessed], _measured)
  return _measured(jax.tree.map(flat, guessed))


def _rebuild(setting, plan, data, labels, state, name, k, key) -> Metrics:
  """Rebuilds features from the gradients of rounds over a pool of samples.

  The active party does this, against passive party k.
  """
  attack = setting.replayed[name].knowing(plan.defense)
  who, _, recipe = attacker(setting.config, name)
  k_pool, k_rounds, k_play, k_run, k_view = jax.random.split(key, 5)
  pool = permutation(k_pool, len(data.labels))[: attack.wants.samples]
  count = rounds(who.replay_rounds, attack, len(data.labels), plan.batch_size)
  rows = _rounds(k_rounds, count, attack.wants)
  keys = jax.random.split(k_play, len(rows))

  def play(x):
    i, key = x
    seen = _play(plan, data, labels, state, pool[i], key)
    return views.own_gradients(k, seen)

  truth = data.features[k][pool]
  view = views.white_box(
      k_view, k, plan.defense, state, lax.map(play, (rows, keys)), rows, truth
  )
  guess = attack.run(k_run, view)
  return scored(recipe.measure, measure.of_images, guess, truth)


def _rounds(key: Key, count: int, wants: Wants) -> Array:
  """The pool's samples in each round: indices [count, batch]."""
  keys = jax.random.split(key, count)
  draw = lambda k: jax.random.permutation(k, wants.samples)[: wants.batch]
  return jax.vmap(draw)(keys)


def _measured(guessed: Guessed) -> Metrics:
  """`measure.of_labels`, and for several classes 'matched'.

  'matched' is the accuracy after each guessed class is renamed to the class
  that most of its samples have. A defense may make an attacker swap classes
  consistently, which a few known labels would correct. NaN if the accuracy is.
  """
  found = measure.of_labels(guessed)
  scores, labels, weights = guessed
  if scores.ndim == 2:
    said = jax.nn.one_hot(scores.argmax(-1), labels.shape[-1])
    truth = views.majority(labels) * weights[:, None]
    share = (said.T @ truth).max(-1).sum() / truth.sum()
    # `argmax` of NaN scores would be some class.
    found['matched'] = jnp.where(jnp.isnan(found['accuracy']), jnp.nan, share)
  return found


def _play(plan: train.Plan, data, labels, state: State, i, key: Key) -> Round:
  """Plays a round of samples `i` from `state`; it keeps the true labels."""
  truth = jax.tree.map(lambda x: x[i], data)
  prepared = labels[i] if plan.defense.prepare else None
  return train.play_prepared(key, plan, state, truth, prepared)[1]
