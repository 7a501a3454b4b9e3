"""The functions of one cell, that is one training, that are compiled.

  start:   (cell, samples) -> run
  advance: ({cells, runs}, (samples, first epoch)) -> (run, history)
  finish:  ({cells, runs}, samples) -> {attack or '': {metric: value}}

`finish` can also be compiled as two programs, of which many defenses share the
second (`stolen`):

  close:   ({cells, runs}, samples) -> (part of `finish`'s results, weights)
  attack:  ({cells, weights}, samples) -> the other results

A cell is a seed and a strength. Each seed has three independent streams of
keys: for its split, its training and its attacks. So all defenses and attacks
meet the same samples, and attacks draw nothing that the training draws.
"""
from typing import Any, NamedTuple

import jax

from vfljax import measure, protocol, train, views
from vfljax.backdoor import Backdoor, measured
from vfljax.runner.compiled import replay, stolen
from vfljax.runner.experiment import attackers, division
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.experiment.plans import training_plan
from vfljax.runner.experiment.setting import (
    Setting, quits, split_samples, with_spare,
)
from vfljax.scene import Ground
from vfljax.types import Array, Batch, Key


class Prepared(NamedTuple):
  """A cell's plan, samples, keys, and its backdoor or `None`."""

  plan: train.Plan
  splits: Splits
  k_train: Key
  k_attack: Key
  backdoor: Backdoor | None


def start(job: Job, cell: dict[str, Array], samples: Batch) -> train.Run:
  """The run before its first epoch."""
  prepared = prepare(job, cell, samples)
  return train.start(prepared.k_train, prepared.plan, prepared.splits.train)


def advance(job: Job, epochs: int, cell: dict[str, Any], shared: tuple):
  """Plays `epochs` epochs: (run, history)."""
  samples, first = shared
  prepared = prepare(job, cell['cells'], samples)
  # `strides` chooses calls of equal length.
  return train.advance(
      prepared.plan, cell['runs'], prepared.splits.train, first, epochs,
      aligned=True,
  )


def finish(job: Job, cell: dict[str, Any], samples: Batch) -> dict[str, Any]:
  """Measurements after training: utility under '', attacks by name."""
  found, weights = close(
      job, bool(stolen.attacks(job.setting)), cell, samples
  )
  return found | attack(
      job, dict(cells=cell['cells'], weights=weights), samples
  )


def close(job: Job, stealing: bool, cell: dict[str, Any], samples: Batch):
  """Measurements that need the federation, and the weights to be stolen.

  Args:
    job: The job.
    stealing: Whether to return weights; {} if not.
    cell: The cell under 'cells' and the run under 'runs'. 'began' may hold the
      federation before its first update, which replayed rounds need; without
      it, it is initialised again.
    samples: All samples.

  Returns:
    (utility under '' and attacks by name, what attackers read by party).
  """
  prepared = prepare(job, cell['cells'], samples)
  plan, splits = prepared.plan, prepared.splits
  state = train.finish(cell['runs'])
  k_predict, k_attacks = jax.random.split(prepared.k_attack)
  logits = protocol.predict(
      k_predict, plan.vfl, plan.defense, state, splits.test.features
  )
  found = {'': measure.of_model(logits, splits.test.labels)}
  found[''] |= plan.defense.facts(state.defense)
  if prepared.backdoor:
    attacked = protocol.predict(
        k_predict, plan.vfl, plan.defense, state, splits.test.features,
        adversary=prepared.backdoor.inference,
    )
    found[job.setting.backdoor] = measured(
        prepared.backdoor, logits, attacked, splits.test.labels
    )
  for who, present in quits(job.setting).items():
    logits = protocol.predict(
        k_predict, plan.vfl, plan.defense, state, splits.test.features, present
    )
    left = measure.of_model(logits, splits.test.labels)
    found[''] |= {f'quit_{metric}{who}': left[metric] for metric in left}
  keys = _attempts(job, k_attacks)
  for name in stolen.without(job.setting).after_training:
    for k in job.setting.attackers:
      repeats = jax.lax.map(
          lambda key, name=name, k=k: _attack(
              job, prepared, state, name, k, key
          ),
          keys,
      )
      label = measure.label(name, k, job.setting.attackers)
      found[label] = jax.tree.map(lambda x: x.mean(0), repeats)
  if job.setting.replayed:
    began = cell['began'] if 'began' in cell else train.start(
        prepared.k_train, plan, splits.train
    ).state
    found |= replay.measured(
        job.setting, plan, splits.train, cell['runs'].labels,
        dict(start=began, end=state), jax.random.fold_in(k_attacks, 1),
    )
  if not stealing:
    return found, {}
  return found, stolen.weights(job.setting, plan.defense, state, keys)


def attack(job: Job, cell: dict[str, Any], samples: Batch) -> dict[str, Any]:
  """Attacks that only need stolen weights; of the cell only the seed is used.

  With `which`, one of them, of those that are one program. With `played`, some
  of the repeats.
  """
  splits, own = _drawn(job, cell['cells'], samples)
  _, k_attacks = jax.random.split(_of_attacks(own))
  given = job.setting, splits, _attempts(job, k_attacks), cell['weights']
  played = cell.get('played')
  if 'which' in cell:
    return stolen.measured_of_one(*given, cell['which'], played)
  return stolen.measured(*given, played)


def without_utility(
    job: Job, cell: dict[str, Any], samples: Batch
) -> dict[str, Any]:
  """The attacks of `close`, without the utility."""
  found, _ = close(job, False, cell, samples)
  return {name: measured for name, measured in found.items() if name}


def _attempts(job: Job, key: Key) -> Array:
  """A key for each repeat, which draws other known labels and other noise."""
  return jax.random.split(key, job.setting.config.attack.repeats)


def _attack(job: Job, prepared: Prepared, state, name, k, key):
  """Runs one attack after training, by or on passive party k."""
  plan, splits = prepared.plan, prepared.splits
  attack = job.setting.after_training[name].knowing(plan.defense)
  who, _, recipe = attackers.attacker(job.setting.config, name)
  k_known, k_view, k_run = stolen.luck(key)
  seen = views.Finished(
      plan.vfl, plan.defense, state,
      division.known(k_known, splits.train, who.known), splits.test,
      attack.wants.samples, splits.train, splits.auxiliary,
  )
  view = views.after_training(attack.view, k_view, k, seen)
  luck = k_run if recipe.one_luck else measure.own_key(k_run, name)
  guess = attack.run(luck, view)
  if attack.wants.samples:
    truth = views.wanted_features(k, seen)
    return attackers.scored(recipe.measure, measure.of_images, guess, truth)
  return attackers.scored(
      recipe.measure, measure.of_completion, guess, splits.test.labels
  )


def prepare(job: Job, cell: dict[str, Any], samples: Any) -> Prepared:
  """Makes a cell's plan, samples and keys.

  `samples` are not used if the cell has 'held' (a streamed training).
  """
  splits, own = _drawn(job, cell, samples)
  strength = None if job.constant else cell['strength']
  defense = job.make(strength, **cell['others'])
  backdoor = None
  if job.setting.backdoor:
    backdoor = _plant(job.setting, splits, jax.random.fold_in(own, 3))
  plan = training_plan(job.setting, defense, splits, backdoor)
  return Prepared(
      plan, splits, jax.random.fold_in(own, 1), _of_attacks(own),
      backdoor,
  )


def _drawn(job: Job, cell: dict[str, Any], samples: Any) -> tuple[Splits, Key]:
  """(a seed's samples, its key)."""
  config = job.setting.config
  own = jax.random.key(cell['seed'])
  again = config.data.resplit
  k_split = division.key_of(cell['seed'] if again else config.first_seed)
  if 'held' in cell:  # What a streamed training keeps on the device.
    held = division.scaled(*cell['held'])
    return with_spare(job.setting, k_split, held), own
  return split_samples(job.setting, k_split, samples), own


def _of_attacks(own: Key) -> Key:
  """A seed's stream of keys for measurements after training."""
  return jax.random.fold_in(own, 2)


def _plant(setting: Setting, splits: Splits, key: Key) -> Backdoor:
  """The backdoor of one training."""
  _, own, recipe = attackers.attacker(setting.config, setting.backdoor)
  features = tuple(splits.train.features[k] for k in setting.attackers)
  return recipe.plant(own, Ground(
      key, setting.attackers, features, splits.train.labels,
      setting.config.train.batch_size,
  ))
