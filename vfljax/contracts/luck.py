"""The part of the contract of defenses about random numbers: whose they are."""
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax.extend import core
import jax.numpy as jnp
import numpy as np

from vfljax import crossing, protocol
from vfljax.contracts.little import (
    ROWS, TELL, TINY, TXS, WIDTH, batch, federation,
)
from vfljax.defense import Defense
from vfljax.types import Array, State

DRAWS = 400


def check(name: str, defense: Defense, begun: State) -> None:
  """Checks what send, label, receive and gradient draw.

  Args:
    name: The defense's name in the messages.
    defense: The defense.
    begun: The state at the start of `little.federation`.

  Raises:
    ValueError: if a hook draws with a key of its own; if its random numbers are
      shared between rows; if rows of padding, or the order of the rows, change
      what it makes of samples.
  """
  _check_keys(name, defense, begun)
  hooks = _hooks(defense, begun)
  drawn = results(hooks)
  _check_draws(name, hooks, drawn)
  _check_number(name, defense, begun, drawn)


def message() -> Array:
  rows = jnp.arange(1.0, ROWS + 1)[:, None]
  return rows * jnp.linspace(0.01, 0.02, WIDTH)[None]


def _hooks(
    defense: Defense, begun: State, padding: int = 0, turned: bool = False
) -> dict[str, Callable[[Array], Array]]:
  """{name: key -> [rows, ...]}: its hooks applied to samples; `padding` further
  rows of padding follow the samples, and are cut off the results. If `turned`,
  the hooks get all rows in the opposite order, padding first."""
  place = lambda x: x[::-1] if turned else x
  more = lambda x: place(jnp.pad(x, ((0, padding), (0, 0))))
  x, labels, memory = more(message()), more(batch().labels), begun.defense
  active, passive = (p.params['defense'] for p in begun.parties)
  hooks = dict(
      send=lambda key: defense.send(passive, key, x)[0],
      label=lambda key: defense.label(memory, key, labels),
      receive=lambda key: defense.receive(
          active, memory, key, (x,), labels
      )[0][0],
      gradient=lambda key: defense.gradient(memory, key, (x,), labels)[0][0],
  )

  def of_samples(run: Callable[[Array], Array], key: Array) -> Array:
    with crossing.in_round(crossing.rows(labels)):
      return place(run(key))[:ROWS]

  return {
      name: partial(of_samples, run) for name, run in hooks.items()
      if has(defense, name)
  }


def has(defense: Defense, hook: str) -> bool:
  """Whether it has a hook of its own; the default changes nothing."""
  return getattr(defense, hook) is not Defense._field_defaults[hook]


def results(
    hooks: dict[str, Callable[[Array], Array]], whose: int = ROWS, seed: int = 5
) -> dict[str, np.ndarray]:
  """Each hook's results for many keys, {name: [draws, `whose`, numbers]}.

  All in one program, as each would be compiled for longer than it runs.
  """
  def of_all(key: Array) -> dict[str, Array]:
    one = jax.vmap(lambda key: {name: run(key) for name, run in hooks.items()})
    return one(jax.random.split(key, DRAWS))

  return {
      name: np.asarray(seen, np.float64).reshape(DRAWS, whose, -1)
      for name, seen in jax.jit(of_all)(jax.random.key(seed)).items()
  }


def go_together(run: Callable[[Array], Array], seen: np.ndarray) -> bool:
  """Whether random parts correlate between two entries of the second axis.

  Rare large numbers of two entries may fall together by chance. A pair counts
  if it correlates again in further draws, twice.
  """
  found = _pairs(seen)
  for seed in 8, 9:
    if found.any():
      found &= _pairs(results({'': run}, seen.shape[1], seed)[''])
  return bool(found.any())


def _pairs(seen: np.ndarray) -> np.ndarray:
  """Which numbers [n, n] of different entries correlate."""
  whose = np.repeat(np.arange(seen.shape[1]), seen.shape[2])
  seen = seen.reshape(len(seen), -1)
  drawn = np.flatnonzero(seen.std(0) > 1e-6 * np.abs(seen).max())
  found = np.zeros((len(whose), len(whose)), bool)
  if len(drawn) > 1:
    together = np.abs(np.corrcoef(seen[:, drawn].T)) > 6 / DRAWS**0.5
    found[np.ix_(drawn, drawn)] = together
  return found & (whose[:, None] != whose)


def _check_keys(name: str, defense: Defense, begun: State) -> None:
  """Checks that no hook draws with a key that it makes itself.

  Those that are not tried alone are looked for in a round.
  """
  data, trace = batch(), lambda fn, *given: jax.make_jaxpr(fn)(
      jax.random.key(0), *given
  )
  found = {hook: trace(run) for hook, run in _hooks(defense, begun).items()}
  if defense.prepare:
    found['prepare'] = trace(defense.prepare, data.features[0], data.labels)
  found['a hook in the round'] = trace(lambda key, *given: protocol.play_round(
      key, federation(), defense, TXS, *given
  ), begun, data)
  for hook, traced in found.items():
    if _makes_keys(traced.jaxpr):
      raise ValueError(
          f'{name}: {hook} has a key of its own, with which it draws the same '
          'in every round, or for equal data: draw with the key that it is '
          'given, and in `init` for what must stay the same.'
      )


def _makes_keys(jaxpr: Any) -> bool:
  """Whether a traced program, or one in it, starts from a seed or kept key."""
  key = lambda v: jnp.issubdtype(v.aval.dtype, jax.dtypes.prng_key)
  kept = lambda v: isinstance(v, core.Literal) or v in jaxpr.constvars
  return any(map(key, jaxpr.constvars)) or any(
      eqn.primitive.name == 'random_seed'
      or eqn.primitive.name == 'random_wrap' and any(map(kept, eqn.invars))
      or any(map(_makes_keys, core.jaxprs_in_params(eqn.params)))
      for eqn in jaxpr.eqns
  )


def _check_draws(
    name: str, hooks: dict[str, Callable[[Array], Array]],
    drawn: dict[str, np.ndarray],
) -> None:
  """Checks that random parts of two rows do not correlate."""
  for hook, seen in drawn.items():
    if go_together(hooks[hook], seen):
      raise ValueError(
          f'{name}: rows share what {hook} draws, so that it cancels in their '
          'difference: draw numbers of shape (len(x), ...).'
      )


def _check_number(
    name: str, defense: Defense, begun: State, drawn: dict[str, np.ndarray]
) -> None:
  """Checks that three times as many rows of padding do not change the samples'
  results, nor that all rows come in the opposite order; as other numbers are
  drawn, only their distribution can be compared."""
  padding = 3 * ROWS
  try:
    for run in _hooks(defense, begun, padding).values():
      shape(run)
  except ValueError:  # Its memory has a row for each of a round's.
    padding = 0
  hooks = _hooks(defense, begun, padding)
  turned = _hooks(defense, begun, padding, turned=True)
  found = results(hooks | {f'{hook}, turned': turned[hook] for hook in turned})
  for hook, one in drawn.items():
    other = found[hook]
    if not alike(one, other):
      still = one.std(0) <= 1e-6 * np.abs(one).max()
      spread = other.std(0)[~still] / one.std(0)[~still]
      # If padding counted, the ratio would be 2 or 4.
      if still.any() or not 1 / 1.5 < np.median(spread) < 1.5:
        raise ValueError(
            f'{name}: rows of padding in the round change what {hook} makes of '
            f'the samples: {TELL}.'
        )
    if not distributed_alike(other, found[f'{hook}, turned']):
      raise ValueError(
          f'{name}: what {hook} makes of a sample depends on its place in the '
          'round: numbers of one sample are along the last axes, what is drawn '
          'is so for all samples alike, and padding may come first.'
      )


def shape(run: Callable[[Array], Array]) -> tuple[int, ...]:
  return jax.eval_shape(run, jax.random.key(0)).shape


def alike(one: np.ndarray, other: np.ndarray) -> bool:
  """Whether they have the same numbers, but for rounding."""
  most = np.abs(one).max()
  return np.allclose(one, other, rtol=10 * TINY, atol=TINY * most)


def distributed_alike(one: np.ndarray, other: np.ndarray) -> bool:
  """Whether means and mean squares of [draws, ...] are the same by chance."""
  if alike(one, other):
    return True
  most = np.abs(one).max()
  for power in 1, 2:
    a, b = (x**power for x in (one, other))
    error = np.sqrt((a.var(0) + b.var(0)) / DRAWS)
    off = np.abs(a.mean(0) - b.mean(0))
    if (off > 6 * error + 10 * TINY * most**power).any():
      return False
  return True
