"""The part of the contract of defenses about several passive parties."""
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import audit, protocol
from vfljax.contracts import luck
from vfljax.contracts.little import TXS, batch, federation
from vfljax.defense import Defense
from vfljax.types import Array

# Messages of the two passive parties, as indices: the same for both, two that
# differ, and these the other way round.
GIVEN = (0, 0), (0, 1), (1, 0)
# Of two passive parties, from what is made for one: a number for each, say.
_UNFIT = ValueError, TypeError, IndexError


def check_crossing(defense: Defense) -> None:
  """Checks that nothing but messages crosses between three parties.

  A hook may hand one passive party's part to another, which takes two of them.
  A defense that is made for a single passive party is not asked.

  Raises:
    ValueError: if something else crosses.
  """
  data = batch(parties=3)
  try:
    found = audit.report(
        defense, federation(3), TXS[:1] * 3, data, auxiliary=data
    )
  except _UNFIT:
    return
  audit.refuse(found)


def check_parties(name: str, defense: Defense) -> None:
  """Checks what `receive` and `gradient` make of two passive parties' messages.

  One that is made for a single passive party is not asked.

  Args:
    name: The defense's name in the messages.
    defense: The defense.

  Raises:
    ValueError: if the parties, who may collude, share random numbers; if a
      party gets what is another one's; or if `gradient` treats them unlike,
      such as one that protects only the first.
  """
  if not any(luck.has(defense, hook) for hook in ('receive', 'gradient')):
    return
  try:
    hooks = _hooks(defense)
    for run in hooks.values():
      luck.shape(run)
  except _UNFIT:  # It is made for one.
    return
  for hook, seen in luck.results(hooks, 2 * len(GIVEN)).items():
    equal, differ, turned = np.split(seen, len(GIVEN), axis=1)
    _check_luck(name, hook, hooks[hook], equal)
    # By one key, so that luck is the same.
    ignores = luck.alike(equal[:, 0], turned[:, 0])
    if ignores and not luck.alike(equal[:, 0], differ[:, 0]):
      raise ValueError(
          f'{name}: {hook} gives the first passive party what it makes of '
          "another one's message: results come in the order of the messages."
      )
    # Networks that receive may differ between parties, as others are trained.
    if hook == 'gradient' and not luck.distributed_alike(
        differ, turned[:, ::-1]
    ):
      raise ValueError(
          f'{name}: {hook} treats passive parties unlike, as if it protected '
          'only one, or each at a strength of its own: `defense.each` does the '
          'same for each of them.'
      )


def _check_luck(
    name: str, hook: str, run: Callable[[Array], Array], seen: np.ndarray
) -> None:
  """Checks that random parts of two parties do not correlate."""
  equal = lambda key: run(key)[:2]
  if luck.go_together(equal, seen):
    raise ValueError(
        f'{name}: passive parties share what {hook} draws, so that it '
        'cancels in their difference: jax.random.split(key, len(messages)), '
        'as `defense.each` does.'
    )


def _hooks(defense: Defense) -> dict[str, Callable[[Array], Array]]:
  """{name: key -> [6, rows, ...]}: hooks on two parties' messages, as GIVEN."""
  data, txs = batch(parties=3), TXS[:1] * 3
  begun = jax.jit(lambda key: protocol.init(
      key, federation(3), defense, txs, data, auxiliary=data
  ))(jax.random.key(0))
  active, memory = begun.parties[0].params['defense'], begun.defense
  one = luck.message()
  messages = one, one - 2 * one[:, ::-1]

  def on_all(run: Callable[..., tuple[Array, ...]], key: Array) -> Array:
    return jnp.stack([
        x for i, j in GIVEN for x in run(key, (messages[i], messages[j]))
    ])

  hooks = dict(
      receive=lambda key, given: defense.receive(
          active, memory, key, given, data.labels
      )[0],
      gradient=lambda key, given: defense.gradient(
          memory, key, given, data.labels
      )[0],
  )
  return {
      name: partial(on_all, run) for name, run in hooks.items()
      if luck.has(defense, name)
  }
