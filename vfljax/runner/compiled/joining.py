"""Which defenses are branches of one program, and what they have there.

One that changes what the active party receives may have weights. All trainings
of a program have the weights of all its defenses and update them, those of
others by gradients of zero. That is little if the bottom networks have more
weights and compute with each of them many times, as LeNet5, VGG and ResNets do.
A network of layers computes with each of them once a sample, so that it costs
more there, and it compiles soon. So only the former share.
"""
import math
from typing import Any

import jax

from vfljax import switching
from vfljax.defense import Defense, Spec
from vfljax.defenses import REGISTRY
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.experiment.setting import Setting, absent


def joins(job: Job) -> bool:
  """Whether the job's defense can be a branch beside others."""
  made = job.make(job.strengths[0])
  if not switching.can_be_one(made):
    return False
  if not switching.receives(made):
    return True
  method = REGISTRY.get(job.entry.defense)
  return bool(method and method.keeps_shapes) and (
      _convolves(job.setting) and _is_small(job.setting, made)
  )


def _bottoms(setting: Setting) -> list[Any]:
  """Shapes of all bottom networks' weights."""
  return [
      net and jax.eval_shape(net.init, jax.random.key(0), x)
      for net, x in zip(setting.vfl.bottoms, setting.samples.features)
  ]


def _convolves(setting: Setting) -> bool:
  """Whether a bottom network has a weight of three axes or more.

  It uses such a weight at many places of a sample.
  """
  return any(w.ndim > 2 for w in jax.tree.leaves(_bottoms(setting)))


def _is_small(setting: Setting, defense: Defense) -> bool:
  """Whether the defense has at most as many weights as the bottom networks."""
  if not switching.has_memory(defense):
    return True
  bottoms = _bottoms(setting)
  row = lambda x: jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
  some = jax.tree.map(row, setting.samples)

  def begun(key, bottoms, some):
    embeddings = tuple(
        jax.eval_shape(setting.vfl.bottom(k).apply, weights, some.features[k])
        for k, weights in enumerate(bottoms[1:], start=1)
    )
    spec = Spec(
        embeddings, setting.classes, setting.vfl, tuple(bottoms[1:]),
        jax.eval_shape(lambda x: x, some.features[1:]), some,
    )
    return defense.init(key, spec).active

  own = jax.eval_shape(begun, jax.random.key(0), bottoms, some)
  return _numbers(own) <= _numbers(bottoms)


def _numbers(weights: Any) -> int:
  return sum(math.prod(w.shape) for w in jax.tree.leaves(weights))


def deaf(defense: Defense, alone: jax.Array) -> Defense:
  """`defense`, whose active party receives zeros if `alone`."""

  def receive(active, state, key, up, labels):
    up, penalty = defense.receive(active, state, key, up, labels)
    heard, _ = absent(alone).receive(active, state, key, up, labels)
    return heard, penalty

  return defense._replace(receive=receive)


def remembers(job: Job) -> bool:
  """Whether the job's defense has a memory of its own."""
  return switching.has_memory(job.make(job.strengths[0]))


def receives(job: Job) -> bool:
  """Whether it changes what the active party receives."""
  return switching.receives(job.make(job.strengths[0]))


def prepares(job: Job) -> bool:
  """Whether it changes labels before training."""
  return bool(job.make(job.strengths[0]).prepare)
