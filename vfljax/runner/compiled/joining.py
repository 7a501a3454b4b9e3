"""Which defenses are branches of one program, and what they have there.

One that changes what the active party receives may have weights. All trainings
of a program have the weights of all its defenses and update them, those of
others by gradients of zero. That is nothing beside convolutions, but much in a
small network of layers, which compiles in a moment; so only the former share.
"""
import jax

from vfljax import switching
from vfljax.defense import Defense
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
  return bool(method and method.keeps_shapes) and _convolves(job.setting)


def _convolves(setting: Setting) -> bool:
  """Whether a bottom network has a weight of three axes or more.

  It uses such a weight at many places of a sample.
  """
  weights = [
      jax.eval_shape(net.init, jax.random.key(0), x)
      for net, x in zip(setting.vfl.bottoms, setting.samples.features) if net
  ]
  return any(w.ndim > 2 for w in jax.tree.leaves(weights))


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
