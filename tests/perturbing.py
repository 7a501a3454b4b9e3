"""Gradients, and what a defense makes of them: for the tests of formulas."""
import pathlib

import jax
import numpy as np

GOLDEN = pathlib.Path(__file__).parent / 'golden'
KEY = jax.random.key(0)


def gradients(batch=40, width=3, scale=1e-3, seed=0):
  """[batch, width] gradients and one-hot labels [batch, 2], ~30 % positive."""
  rng = np.random.default_rng(seed)
  positive = rng.random(batch) < 0.3
  positive[:2] = True, False
  d = rng.normal(size=(batch, width)) * (0.5 + positive[:, None])
  d = (d + np.where(positive, -2.0, 1.0)[:, None]) * scale
  return d.astype(np.float32), np.eye(2, dtype=np.float32)[positive.astype(int)]


def perturb(defense, key, d, labels):
  """What the defense makes of one party's gradient, compiled."""
  return jax.jit(raw(defense))(key, d, labels)


def raw(defense):
  return lambda key, d, labels: defense.gradient((), key, (d,), labels)[0][0]


def draws(defense, d, labels, count):
  """[count, batch, width] independent perturbations."""
  keys = jax.random.split(KEY, count)
  return np.asarray(
      jax.jit(jax.vmap(raw(defense), (0, None, None)))(keys, d, labels)
  )


def check_apart(drawn):
  """That no two of a round's numbers go together, over [count, ...] rounds.

  Six standard errors of a correlation of nothing; a draw that two of them share
  makes it 1.
  """
  flat = np.asarray(drawn, np.float64).reshape(len(drawn), -1)
  flat = flat[:, flat.std(0) > 0]
  assert flat.shape[1] > 1
  together = np.abs(np.corrcoef(flat.T) - np.eye(flat.shape[1]))
  assert together.max() < 6 / len(flat) ** 0.5


def check_unlike(one, other):
  """That weights or passports are not one draw, of another scale or not.

  Of arrays of different sizes what they have in common is looked at; a few
  numbers alone may be alike by chance.
  """
  pairs = [
      (np.ravel(a), np.ravel(b))
      for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other))
  ]
  sizes = [min(len(a), len(b)) for a, b in pairs]
  assert max(sizes) > 4
  for (a, b), size in zip(pairs, sizes):
    if size > 4 and np.ptp(a) > 0 and np.ptp(b) > 0:
      assert np.corrcoef(a[:size], b[:size])[0, 1] < 0.999
