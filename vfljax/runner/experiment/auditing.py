"""What crosses between the parties in a round, for reports and `--list audit`.

`vfljax.audit` traces a round without computing it. This module audits the
federation of an experiment, and every registered defense and attack.
"""
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax import algorithms, attacks, audit, defenses, nets
from vfljax.attack import TRAINING, Recipe, recipe_of
from vfljax.defense import Defense
from vfljax.runner.errors import brief
from vfljax.runner.experiment.jobs import ALONE, Job
from vfljax.runner.experiment.plans import rounds_an_epoch, training_plan
from vfljax.runner.experiment.setting import Setting, build, split_samples
from vfljax.scene import Ground, Scene
from vfljax.types import Batch

Rows = list[tuple[str, ...]]

# Rows of a round and width of an embedding in `--list audit`.
_ROWS, _WIDTH = 16, 6
_MOST = 3  # Most leaks that are kept; one is enough for a warning.


class Kept(NamedTuple):
  """What crosses in a round, as a timing record keeps it.

  Attributes:
    messages: (party, 'up' or 'down', shape, type, bytes) of each message.
    samples: Samples in a round.
    rounds: Rounds in an epoch.
    epoch_bytes: 'up' and 'down' -> bytes an epoch, of all passive parties.
    borrowers: Passive parties that compute with memory of the defense.
    made_anew_of: What the defense renews that memory from between epochs.
    leaks: The first few leaks beside the messages, each in words.
    count: How many leaks there are.
  """

  messages: list[tuple]
  samples: int
  rounds: int
  epoch_bytes: dict[str, int]
  borrowers: list[int]
  made_anew_of: list[str]
  leaks: list[str]
  count: int


def of_job(job: Job) -> dict[str, Any]:
  """What crosses in a round of a job's training, for its timing record.

  The round is traced, not computed, at the job's first strength (all have the
  same shapes) and with parties that follow the protocol. It is that of the
  row's own words: where a number stands for a word, the program has what other
  rows need.

  Returns:
    'defense' and the fields of `Kept`; if the audit fails, 'defense' and
    'error', because a failed audit must not end a training. {} for the active
    party alone, which receives no messages.
  """
  if job.entry.name == ALONE:
    return {}
  try:
    found = _of_job(job)._asdict()
  except Exception as error:
    found = dict(error=_said(error))
  return dict(defense=job.entry.name) | found


def _of_job(job: Job) -> Kept:
  setting, entry = job.setting, job.entry
  swept = {name: job.others[name][0] for name in entry.grid}
  defense = build(entry, job.strengths[0], **swept)
  splits = jax.eval_shape(
      partial(split_samples, setting), _key(), setting.samples
  )
  plan = training_plan(setting, defense, splits)
  sizes, rest = [plan.batch_size], setting.sizes.train % plan.batch_size
  if plan.remainder == 'keep' and rest:
    sizes.append(rest)  # A hook may differ in a smaller round.
  found, *more = [
      audit.report(
          plan.defense, plan.vfl, plan.txs,
          _round(plan.defense, splits.train, size), auxiliary=plan.auxiliary,
      ) for size in sizes
  ]
  ways = [str(leak) for one in (found, *more) for leak in one.leaks]
  leaks = list(dict.fromkeys(ways))
  rows = _rows_an_epoch(setting)
  return Kept(
      [tuple(message) for message in found.crossing], found.samples,
      rounds_an_epoch(setting), {
          way: round(found.bytes_a_sample(way) * rows) for way in ('up', 'down')
      }, list(found.borrowers), list(found.made_anew_of), leaks[:_MOST],
      len(leaks),
  )


def _said(error: Exception) -> str:
  """An error in one line."""
  first = brief(str(error)).partition('\n')[0]
  return f'{type(error).__name__}: {first}'


def _key() -> Any:
  return jax.eval_shape(lambda: jax.random.key(0))


def _round(defense: Defense, data: Any, rows: int) -> Any:
  """A round's shapes: `rows` of the samples, with labels as in training."""
  labels = data.labels
  if defense.prepare:
    labels = jax.eval_shape(defense.prepare, _key(), data.features[0], labels)
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct((rows, *x.shape[1:]), x.dtype),
      Batch(data.features, labels),
  )


def _rows_an_epoch(setting: Setting) -> int:
  """Samples in all rounds of an epoch, padding included."""
  config = setting.config.train
  if config.remainder == 'keep':
    return setting.sizes.train
  return rounds_an_epoch(setting) * config.batch_size


def tables() -> list[tuple[str, Rows]]:
  """(title, rows) of two tables: what each defense sends, each attack sees.

  Takes some seconds, because a round of every defense is traced.
  """
  head = 'defense', 'message', 'shape', 'type', 'bytes a sample', 'beside it'
  sent = [row for name in sorted(defenses.REGISTRY) for row in _sent(name)]
  seen = [_seen(name, made) for name, made in sorted(attacks.REGISTRY.items())]
  return [
      (f'What crosses in a round of {_ROWS} samples', [head, *sent]),
      ('What attacks see (Ground: what an attack that changes training gets)',
       [('attack', 'view', 'its fields'), *seen]),
  ]


def _sent(name: str) -> Rows:
  """A registered defense's rows, one for each message."""
  method = defenses.REGISTRY[name]
  defense = method(method.strengths[0]) if method.strengths else method()
  vfl = algorithms.vhnn(
      [nets.mlp(8, _WIDTH)] * 2, nets.binary(nets.mlp(8, 1))
  )
  shape: Any = lambda *s: jax.ShapeDtypeStruct(s, jnp.float32)
  data = Batch((shape(_ROWS, 4), shape(_ROWS, 5)), shape(_ROWS, 2))
  try:
    found = audit.report(
        defense, vfl, (optax.adam(1e-2),) * 2, _round(defense, data, _ROWS),
        auxiliary=data,
    )
  except Exception as error:  # A user's defense may fail; list the others.
    return [(name, '', '', '', '', f'not audited: {_said(error)}')]
  return [
      (name if not i else '', f'{sent.direction}, party {sent.party}',
       str(list(sent.shape)), sent.dtype, f'{sent.bytes / _ROWS:g}',
       _verdict(found) if not i else '')
      for i, sent in enumerate(found.crossing)
  ]


def _verdict(found: audit.Report) -> str:
  if found.leaks:
    return 'LEAKS: ' + '; '.join(map(str, found.leaks))
  if not found.borrowers:
    return 'nothing else'
  anew = ', '.join(found.made_anew_of)
  return 'nothing else, except memory that the defense lends' + (
      f', which it renews between epochs from {anew}' if anew else ''
  )


def _seen(name: str, factory: Any) -> tuple[str, str, str]:
  """A registered attack, its view and the view's fields."""
  made = recipe_of(factory)
  if made.stage == TRAINING:  # Such an attack has no view.
    view: Any = Ground
  else:
    view = _view(name, made)
  if view is None:
    return name, 'not known: it needs a special kind of federation', ''
  return name, view.__name__, ', '.join(view._fields)


def _view(name: str, made: Recipe) -> type | None:
  """The attack's view, on the first of three federations that it works on."""
  def own(widths: tuple[int, ...], norm: str):
    return nets.mlp(*widths, norm=norm)

  plain = Scene(classes=2, own=own)
  linear = algorithms.vlr(2, 2)
  deep = algorithms.vhnn(
      [nets.mlp(8, _WIDTH)] * 2, nets.binary(nets.mlp(8, 1))
  )
  for scene, vfl in (
      (plain, deep), (plain._replace(linear=True), linear),
      (plain._replace(network='cafe'), deep),
  ):
    if not made.why_not(name, scene):
      return made.make(made.options(), scene, vfl).view
  return None
