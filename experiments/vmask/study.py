"""VMask's studies that look inside a training: the measurements of figures.

A study trains a configuration's federation for some seeds, one defense at a
time, and measures it after every epoch or after the last one. A measurement, or
look, is a function of the federation's state; all looks run in the training's
program.
"""
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import metrics, protocol, target, train, views
from vfljax.attack import TRAINED
from vfljax.defense import Holdings
from vfljax.defenses import shadow
from vfljax.nets import named_layers
from vfljax.runner.checking import checks
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Config, Entry
from vfljax.runner.experiment import attackers, division
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.plans import training_plan
from vfljax.runner.experiment.setting import Setting, build, split_samples
from vfljax.types import Array, Batch, Key, Params, State


class Seen(NamedTuple):
  """What a look gets."""

  setting: Setting
  plan: train.Plan
  splits: Splits
  state: State


Look = Callable[[Key, Seen], Any]


def prepare(config: Config) -> Setting:
  """The configuration with its data, checked.

  Raises:
    UserError: if it cannot be run.
  """
  return checks.make(config, load_data(config.data))


def run(
    setting: Setting, entry: Entry, looks: Mapping[str, Look],
    strength: float | None = None, every_epoch: bool = False,
) -> dict[str, np.ndarray]:
  """Trains under a defense: what each look saw, leaves [seeds, epochs, ...].

  Args:
    setting: What `prepare` returned; it has the numbers of seeds and epochs.
    entry: The defense.
    looks: The looks by name.
    strength: The defense's; by default the entry's first.
    every_epoch: Look after each epoch; else after the last one only.
  """
  first = entry.strengths[0] if entry.strengths else None
  defense = build(entry, first if strength is None else strength)

  def one(seed: Array, samples: Batch):
    key = jax.random.key(seed)
    splits = split_samples(
        setting, jax.random.fold_in(key, 0), samples
    )
    plan = training_plan(setting, defense, splits)

    def look(key, state):
      seen = Seen(setting, plan, splits, state)
      keys = jax.random.split(key, len(looks))
      return {n: f(k, seen) for k, (n, f) in zip(keys, looks.items())}

    plan = plan._replace(
        validate=look, every=1 if every_epoch else plan.epochs
    )
    started = train.start(jax.random.fold_in(key, 1), plan, splits.train)
    _, history = train.advance(plan, started, splits.train, 0, plan.epochs)
    found = history['validation']
    return found if every_epoch else jax.tree.map(lambda x: x[-1:], found)

  config = setting.config
  seeds = jnp.arange(config.first_seed, config.first_seed + config.seeds)
  program = jax.jit(
      lambda seeds, samples: _each(lambda s: one(s, samples), seeds)
  )
  return jax.tree.map(np.asarray, program(seeds, setting.samples))


def main_accuracy(key: Key, seen: Seen) -> Array:
  """Of the federation, on the test samples."""
  test = seen.splits.test
  logits = protocol.predict(
      key, seen.plan.vfl, seen.plan.defense, seen.state, test.features
  )
  return metrics.accuracy(logits, test.labels)


def shadow_accuracy(key: Key, seen: Seen) -> Array:
  """Of VMask's shadows under the true top, on the test samples."""
  held = Holdings(seen.plan.vfl, seen.state.parties[0].params, None)
  test = seen.splits.test
  logits = shadow.logits(held, seen.state.defense.shadows, test.features)
  return metrics.accuracy(logits, test.labels)


def facts(key: Key, seen: Seen) -> dict[str, Array]:
  """What the defense knows of itself."""
  return seen.plan.defense.facts(seen.state.defense)


def memory(field: str, key: Key, seen: Seen) -> Array:
  """A field of VMask's memory, of passive party 1."""
  return getattr(seen.state.defense, field)[0]


def attack(
    key: Key, seen: Seen, party: int = 1, hidden: Any = None, known: int = 0,
    recovered: bool = False,
) -> Array:
  """Best accuracy of model completion by a passive party, [repeats].

  If an attack diverged, only the epochs before that count.

  Args:
    hidden: bool [layers], layers that the attacker draws again; by default
      those that the defense hides. All of them is the paper's "Scratch", but
      for normalizations, which keep what they learned.
    known: Known labels of each class; 0 for the configured number.
    recovered: Whether the attacker has the true weights, whatever is hidden, as
      `adaptive`'s linear attacker recovers them from its transcript.
  """
  config = seen.setting.config
  name = 'model_completion'
  made = attackers.made(
      config, [name], seen.plan.vfl, seen.setting.classes
  )
  run = made[TRAINED][name].run

  def once(key):
    k_known, k_view, k_run, k_hidden = jax.random.split(key, 4)
    own = division.known(
        k_known, seen.splits.train, known or config.attack.known
    )
    view = views.trained_bottom(
        k_view, party, seen.plan.defense, seen.state, own, seen.splits.test
    )
    if recovered:
      view = view._replace(weights=_true(seen, party))
    if hidden is not None:
      view = view._replace(weights=_hide(k_hidden, view.weights, hidden))
    guess = run(k_run, view)
    return jnp.nanmax(jax.vmap(metrics.accuracy, (0, None))(
        guess, seen.splits.test.labels
    ))

  return _each(once, jax.random.split(key, config.attack.repeats))


def _each(one: Callable[[Array], Any], xs: Array) -> Any:
  """Of each; one after another on a CPU, where that is faster."""
  if target.kind() == 'cpu':
    return jax.lax.map(one, xs)
  return jax.vmap(one)(xs)


def _true(seen: Seen, party: int) -> Params:
  """What a passive party's network computes with: VMask's noise included."""
  weights = seen.state.parties[party].params['bottom']
  offset = getattr(seen.state.defense, 'offset', None)
  if offset is None:
    return weights
  return jax.tree.map(jnp.add, weights, offset[party - 1])


def scratch(key: Key, seen: Seen, party: int = 1) -> Array:
  """`attack` on random weights, [repeats]; normalizations stay as trained."""
  return attack(key, seen, party, np.ones(len(names(seen, party)), bool))


def names(seen: Seen, party: int = 1) -> tuple[str, ...]:
  """The layers of a passive party's network."""
  return named_layers.names(seen.state.parties[party].params['bottom'])


def layer_names(setting: Setting) -> tuple[str, ...]:
  """The same, in the order in which data meets them."""
  net, x = setting.vfl.bottom(1), setting.samples.features[1][:1]
  shapes = jax.eval_shape(net.init, jax.random.key(0), x)
  return named_layers.flow(net, shapes, x)


def hiding(setting: Setting, chosen: tuple[int, ...]) -> Look:
  """`attack` with layers hidden, numbered from 1 as data meets them."""
  order = layer_names(setting)
  wanted = [order[i - 1] for i in chosen]
  net, x = setting.vfl.bottom(1), setting.samples.features[1][:1]
  shapes = jax.eval_shape(net.init, jax.random.key(0), x)
  hidden = np.zeros(len(order), bool)
  if wanted:
    hidden = named_layers.mask(shapes, wanted)
  return partial(attack, hidden=hidden)


def mean_std(x: np.ndarray) -> str:
  """'76.5 +- 1.2' of accuracies, in %."""
  return f'{100 * np.mean(x):.2f} +- {100 * np.std(x):.2f}'


def _hide(key: Key, weights: Params, hidden: Any) -> Params:
  return named_layers.select(hidden, weights, named_layers.redraw(key, weights))
