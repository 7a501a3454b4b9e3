"""A federation for VMask: samples that layers tell apart, and an attacker."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import algorithms, nets, protocol
from vfljax.completion import Schedule
from vfljax.defense import Defense
from vfljax.defenses.shadow import Attacker
from vfljax.types import Batch

KEY = jax.random.key(0)
CLASSES = 4
QUICK = Attacker(Schedule(8, 0, 2, 0.3, 'sgd'), known=2, head=(8,))


def samples(count: int = 64, parties: int = 2, seed: int = 0) -> Batch:
  """Samples whose class is in two of twelve columns at every party."""
  rng = np.random.default_rng(seed)
  labels = rng.integers(CLASSES, size=count)
  features = rng.normal(size=(parties, count, 12)).astype(np.float32)
  angle = labels * np.pi / 2
  features[..., :2] += 2.5 * np.stack([np.cos(angle), np.sin(angle)], -1)
  one_hot = np.eye(CLASSES, dtype=np.float32)[labels]
  return Batch(tuple(map(jnp.asarray, features)), jnp.asarray(one_hot))


def federation(parties: int = 2):
  return algorithms.vhnn(
      [nets.mlp(16, 8, 6)] * parties, nets.mlp(8, CLASSES), 'sum'
  )


def start(defense: Defense, parties: int = 2, **options):
  data = samples(parties=parties)
  return protocol.init(
      KEY, federation(parties), defense, [optax.sgd(0.1)] * parties, data,
      **(dict(auxiliary=samples(48, parties, seed=9)) | options),
  )
