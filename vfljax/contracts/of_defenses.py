"""What every defense keeps to."""
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax.extend import core
import jax.numpy as jnp
import numpy as np

from vfljax import audit, crossing, protocol
from vfljax.contracts.little import (
    PADDING, ROWS, TINY, TXS, WIDTH, batch, check_finite, check_same,
    federation,
)
from vfljax.defense import Defense
from vfljax.types import Array, Batch, Round, State

DRAWS = 400
_TELL = 'crossing.rows(labels) and crossing.counted(u) tell which these are'


def check_defense(
    make: Callable[..., Defense], *arguments: Any, **options: Any
) -> None:
  """Plays rounds with a defense, as a sweep does, with its strength traced.

  Args:
    make: Its factory ...
    arguments, options: ... and what it is given, the strength first.

  Raises:
    ValueError: if something but messages crosses between parties
      (`audit.check`), if a round does not scan, is not finite or not a function
      of its key, if messages or facts have other shapes than they need, if
      rows of padding count, if send, label, receive or gradient draws by a key
      that it makes or keeps, or if rows share what a hook draws, or two passive
      parties (of a defense that is not made for one alone).
  """
  name, defense = _name(make), make(*arguments, **options)
  begun = protocol.init(
      jax.random.key(0), federation(), defense, TXS, batch(),
      auxiliary=batch(),
  )

  _check_messages(name, defense, begun)
  audit.check(defense, federation(), TXS, batch(), auxiliary=batch())

  def round_(strength, state, data):
    own = make(*strength, *arguments[1:], **options)
    key = jax.random.key(1)
    return protocol.play_round(key, federation(), own, TXS, state, data)

  # Two programs: what is drawn while one is traced is a constant of it.
  play, again = jax.jit(round_), jax.jit(lambda *given: round_(*given))
  strength = tuple(jnp.asarray(x, jnp.float32) for x in arguments[:1])
  try:
    after, seen = play(strength, begun, batch())
  except jax.errors.ConcretizationTypeError as error:
    raise ValueError(
        f'{name}: a sweep traces its strength, the first argument: use '
        'jnp.where in place of `if`, and no int() or float() of it.'
    ) from error
  _check_round(name, begun, after, seen)
  other = again(strength, begun, batch())
  check_same(f'{name}: a round', (after, seen), other,
             'is not the same twice: draw with jax.random and the key alone')
  _check_facts(name, defense, after)
  zeros, nines = (
      _of_samples(play(strength, begun, _padded(x))) for x in (0, 9)
  )
  check_same(f'{name}: a round', zeros, nines,
             f'depends on what is in rows of padding: {_TELL}')
  _check_keys(name, defense, begun)
  drawn = _drawn(_hooks(defense, begun))
  _check_draws(name, drawn)
  _check_parties(name, defense)
  _check_number(name, defense, begun, drawn)


def _name(make: Callable) -> str:
  return getattr(make, '__name__', 'the defense')


def _padded(filled: float) -> Batch:
  """With rows of padding at the end, and this in them."""
  data = batch()
  return Batch(
      tuple(x.at[-PADDING:].set(filled) for x in data.features),
      data.labels.at[-PADDING:].set(0),
  )


def _of_samples(played: tuple[State, Round]) -> Any:
  after, seen = played
  return after, seen.loss, [d[:-PADDING] for d in seen.messages.down]


def _check_messages(name: str, defense: Defense, begun: State) -> None:
  """Before a round, in which another party's network would be in the way."""
  own, key = begun.parties[1].params['defense'], jax.random.key(0)
  plain = jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32)
  both = jax.eval_shape(defense.send, own, key, plain)
  if not isinstance(both, (tuple, list)) or len(both) != 2:
    raise ValueError(
        f'{name}: send must return (the message, a penalty), with '
        f'jnp.float32(0) for none; it returns a {type(both).__name__}.'
    )
  sent, penalty = both
  if sent.shape != plain.shape or penalty.shape:
    raise ValueError(
        f'{name}: send makes {sent.shape} and a penalty {penalty.shape} of a '
        f'message {plain.shape}; a message keeps its shape, and a penalty is '
        'one number.'
    )
  found = jax.eval_shape(
      defense.gradient, begun.defense, key, (plain,), batch().labels
  )
  if len(found) != 2 or [d.shape for d in found[0]] != [plain.shape]:
    raise ValueError(
        f'{name}: gradient must return (the gradients of all passive parties, '
        'each of its shape; the memory): as `defense.each` does of a function '
        'on one of them.'
    )


def _check_round(name: str, begun: State, after: State, seen: Round) -> None:
  shapes = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
  if shapes(begun) != shapes(after):
    raise ValueError(
        f'{name}: a round changes shapes or types of what is carried to the '
        'next, so that rounds cannot be scanned: cast with astype, and return '
        'the state beside the gradients.'
    )
  check_finite(name, (after, seen))


def _check_facts(name: str, defense: Defense, state: State) -> None:
  for fact, x in defense.facts(state.defense).items():
    if jnp.shape(x):
      raise ValueError(
          f'{name}: its fact {fact!r} has the shape {jnp.shape(x)}, and a fact '
          f'is one number. Give its mean, or one fact each: {fact}_0, {fact}_1.'
      )


def _message() -> Array:
  return jnp.arange(1.0, ROWS + 1)[:, None] * jnp.linspace(0.01, 0.02, WIDTH)


def _hooks(
    defense: Defense, begun: State, padding: int = 0
) -> dict[str, Callable[[Array], Array]]:
  """By name key -> [rows, ...], what becomes of samples; with rows of padding
  after them, if so many."""
  more = lambda x: jnp.pad(x, ((0, padding), (0, 0)))
  x, labels, memory = more(_message()), more(batch().labels), begun.defense
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
      return run(key)[:ROWS]

  return {name: partial(of_samples, run) for name, run in hooks.items()}


def _hooks_of_all(defense: Defense) -> dict[str, Callable[[Array], Array]]:
  """By name key -> [2, rows, ...], of two passive parties' equal messages."""
  data, txs = batch(parties=3), TXS[:1] * 3
  begun = jax.jit(lambda key: protocol.init(
      key, federation(3), defense, txs, data, auxiliary=data
  ))(jax.random.key(0))
  active, memory = begun.parties[0].params['defense'], begun.defense
  x = _message()
  return dict(
      receive=lambda key: jnp.stack(
          defense.receive(active, memory, key, (x, x), data.labels)[0]
      ),
      gradient=lambda key: jnp.stack(
          defense.gradient(memory, key, (x, x), data.labels)[0]
      ),
  )


def _drawn(
    hooks: dict[str, Callable[[Array], Array]], whose: int = ROWS
) -> dict[str, np.ndarray]:
  """By name [draws, rows or so many others, numbers] of a hook.

  All in one program, as each would be compiled for longer than it runs.
  """
  def of_all(key: Array) -> dict[str, Array]:
    one = jax.vmap(lambda key: {name: run(key) for name, run in hooks.items()})
    return one(jax.random.split(key, DRAWS))

  return {
      name: np.asarray(seen, np.float64).reshape(DRAWS, whose, -1)
      for name, seen in jax.jit(of_all)(jax.random.key(5)).items()
  }


def _go_together(seen: np.ndarray) -> bool:
  """Whether what becomes of two of the second axis by luck is one luck."""
  whose = np.repeat(np.arange(seen.shape[1]), seen.shape[2])
  seen = seen.reshape(len(seen), -1)
  drawn = seen.std(0) > 1e-6 * np.abs(seen).max()
  others = whose[drawn][:, None] != whose[drawn]
  if not others.any():
    return False
  together = np.abs(np.corrcoef(seen[:, drawn].T))
  return together[others].max() > 6 / DRAWS**0.5


def _check_keys(name: str, defense: Defense, begun: State) -> None:
  """That no hook draws by a key that it makes: the same in every round."""
  for hook, run in _hooks(defense, begun).items():
    if _makes_keys(jax.make_jaxpr(run)(jax.random.key(0)).jaxpr):
      raise ValueError(
          f'{name}: {hook} has a key of its own. What it draws by that is the '
          'same in every round, or for equal data: draw with the key that it '
          'is given, and in `init` what is to stay.'
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


def _check_draws(name: str, drawn: dict[str, np.ndarray]) -> None:
  """That what becomes of two rows by luck does not go together."""
  for hook, seen in drawn.items():
    if _go_together(seen):
      raise ValueError(
          f'{name}: rows share what {hook} draws, so that it is gone from '
          'their difference: draw numbers of shape (len(x), ...).'
      )


def _check_parties(name: str, defense: Defense) -> None:
  """That what becomes of two passive parties' messages does not either: they
  may be one and the same behind the back of the active one."""
  try:
    of_all = _hooks_of_all(defense)
    for run in of_all.values():
      jax.eval_shape(run, jax.random.key(0))
  except ValueError:  # Made for one passive party: a number for each, say.
    return
  for hook, seen in _drawn(of_all, 2).items():
    if _go_together(seen):
      raise ValueError(
          f'{name}: passive parties share what {hook} draws, so that it is '
          'gone from their difference: jax.random.split(key, len(messages)), '
          'as `defense.each` does.'
      )


def _check_number(
    name: str, defense: Defense, begun: State, drawn: dict[str, np.ndarray]
) -> None:
  """That samples do not fare otherwise beside rows of padding, of which there
  are thrice as many; with another draw the spread alone can tell."""
  beside = _drawn(_hooks(defense, begun, 3 * ROWS))
  for hook, one in drawn.items():
    other = beside[hook]
    if np.allclose(one, other, rtol=10 * TINY, atol=TINY * np.abs(one).max()):
      continue
    still = one.std(0) <= 1e-6 * np.abs(one).max()
    spread = other.std(0)[~still] / one.std(0)[~still]
    # Of counting them it would be 2 or 4; what is not drawn has none.
    if still.any() or not 1 / 1.5 < np.median(spread) < 1.5:
      raise ValueError(
          f'{name}: with rows of padding in the round {hook} makes something '
          f'else of the samples: {_TELL}.'
      )
