"""The contract of defenses."""
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax.extend import core
import jax.numpy as jnp
import numpy as np

from vfljax import audit, crossing, measure, protocol
from vfljax.contracts.little import (
    PADDING, ROWS, TINY, TXS, WIDTH, batch, check_finite, check_same,
    each_key_once, federation,
)
from vfljax.defense import Defense, Holdings, checked
from vfljax.types import Array, Batch, Round, State

DRAWS = 400
_TELL = 'crossing.rows(labels) and crossing.counted(u) tell which these are'


def check_defense(
    make: Callable[..., Defense], *arguments: Any, **options: Any
) -> None:
  """Plays rounds with a defense, its strength traced as in a sweep.

  Args:
    make: The defense's factory.
    arguments, options: The factory's arguments, the strength first.

  Raises:
    ValueError: if anything but messages crosses between parties
      (`audit.check`); if rounds cannot be scanned, are not finite or are no
      function of their key; if messages or facts have wrong shapes; if rows of
      padding have an effect; if a hook draws with a key that it makes or keeps,
      or from one key twice; if its random numbers are shared between rows, or
      between two passive parties (unless it is for one party only).
  """
  name, defense = _name(make), make(*arguments, **options)
  begun = protocol.init(
      jax.random.key(0), federation(), defense, TXS, batch(),
      auxiliary=batch(),
  )
  _check_messages(name, defense, begun)
  _check_rest(name, defense, begun)
  audit.check(defense, federation(), TXS, batch(), auxiliary=batch())

  def round_(strength, state, data):
    own = make(*strength, *arguments[1:], **options)
    key = jax.random.key(1)
    return protocol.play_round(key, federation(), own, TXS, state, data)

  # Two programs: numbers drawn while tracing are constants of one.
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
  with each_key_once(f'{name}: a round'):
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
  _check_draws(name, defense, begun)
  _check_parties(name, defense)
  _check_number(name, defense, begun)


def _name(make: Callable) -> str:
  return getattr(make, '__name__', 'the defense')


def _padded(filled: float) -> Batch:
  """The batch with rows of padding at the end, filled with a number."""
  data = batch()
  return Batch(
      tuple(x.at[-PADDING:].set(filled) for x in data.features),
      data.labels.at[-PADDING:].set(0),
  )


def _of_samples(played: tuple[State, Round]) -> Any:
  after, seen = played
  return after, seen.loss, [d[:-PADDING] for d in seen.messages.down]


def _check_messages(name: str, defense: Defense, begun: State) -> None:
  """Checks shapes before a round, where networks would fail on wrong ones."""
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
  cut = found[0] if len(found) == 2 else ()
  if not isinstance(cut, (tuple, list)) or [
      d.shape for d in cut
  ] != [plain.shape]:
    raise ValueError(
        f'{name}: gradient must return (the gradients of all passive parties, '
        'each of its shape; the memory): as `defense.each` does of a function '
        'on one of them.'
    )


def _check_round(name: str, begun: State, after: State, seen: Round) -> None:
  shapes = lambda tree: jax.tree.map(
      lambda x: (jnp.shape(x), jnp.result_type(x)), tree
  )
  if shapes(begun) != shapes(after):
    raise ValueError(
        f'{name}: a round changes shapes or types of what is carried to the '
        'next, so that rounds cannot be scanned: cast with astype, and return '
        'the state beside the gradients.'
    )
  check_finite(name, (after, seen))


def _check_rest(name: str, defense: Defense, state: State) -> None:
  """What comes before and after the rounds; only its shapes are computed."""
  own, key, data = checked(defense, name), jax.random.key(0), batch()
  vfl = federation()
  vfl = vfl._replace(top=defense.top(vfl.top))
  has = Holdings(vfl, state.parties[0].params, data)
  jax.eval_shape(lambda key: own.epoch(state.defense, key, has), key)
  if own.prepare:
    jax.eval_shape(own.prepare, key, data.features[0], data.labels)


def _check_facts(name: str, defense: Defense, state: State) -> None:
  found = defense.facts(state.defense)
  if not isinstance(found, dict):
    raise ValueError(
        f'{name}: facts must return a dict of numbers by their names, as '
        f'dict(kept=...); it returns a {type(found).__name__}.'
    )
  for fact, x in found.items():
    measure.check_fact(name, fact)
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
  """{name: key -> [rows, ...]}: hooks applied to samples; `padding` further
  rows of padding follow the samples, and are cut off the results."""
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
  """{name: key -> [2, rows, ...]}: hooks on two parties' equal messages."""
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


def _drawn(run: Callable[[Array], Array], whose: int = ROWS) -> np.ndarray:
  """A hook's results for many keys, [draws, `whose`, numbers]."""
  keys = jax.random.split(jax.random.key(5), DRAWS)
  seen = jax.jit(jax.vmap(run))(keys)
  return np.asarray(seen, np.float64).reshape(DRAWS, whose, -1)


def _go_together(seen: np.ndarray) -> bool:
  """Whether random parts correlate between two entries of the second axis."""
  whose = np.repeat(np.arange(seen.shape[1]), seen.shape[2])
  seen = seen.reshape(len(seen), -1)
  drawn = seen.std(0) > 1e-6 * np.abs(seen).max()
  others = whose[drawn][:, None] != whose[drawn]
  if not others.any():
    return False
  together = np.abs(np.corrcoef(seen[:, drawn].T))
  return together[others].max() > 6 / DRAWS**0.5


def _check_keys(name: str, defense: Defense, begun: State) -> None:
  """Checks that no hook draws with a key that it makes itself."""
  for hook, run in _hooks(defense, begun).items():
    if _makes_keys(jax.make_jaxpr(run)(jax.random.key(0)).jaxpr):
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


def _check_draws(name: str, defense: Defense, begun: State) -> None:
  """Checks that random parts of two rows do not correlate."""
  for hook, run in _hooks(defense, begun).items():
    if _go_together(_drawn(run)):
      raise ValueError(
          f'{name}: rows share what {hook} draws, so that it cancels in their '
          'difference: draw numbers of shape (len(x), ...).'
      )


def _check_parties(name: str, defense: Defense) -> None:
  """The same for messages of two passive parties, which may collude."""
  try:
    of_all = _hooks_of_all(defense)
    for run in of_all.values():
      jax.eval_shape(run, jax.random.key(0))
  except ValueError:  # Made for one passive party: a number for each, say.
    return
  for hook, run in of_all.items():
    if _go_together(_drawn(run, 2)):
      raise ValueError(
          f'{name}: passive parties share what {hook} draws, so that it '
          'cancels in their difference: jax.random.split(key, len(messages)), '
          'as `defense.each` does.'
      )


def _check_number(name: str, defense: Defense, begun: State) -> None:
  """Checks that three times as many rows of padding do not change the samples'
  results; as other numbers are drawn, only the spread can be compared."""
  alone, beside = (_hooks(defense, begun, n) for n in (0, 3 * ROWS))
  for hook in alone:
    one, other = _drawn(alone[hook]), _drawn(beside[hook])
    if np.allclose(one, other, rtol=10 * TINY, atol=TINY * np.abs(one).max()):
      continue
    still = one.std(0) <= 1e-6 * np.abs(one).max()
    spread = other.std(0)[~still] / one.std(0)[~still]
    # If padding counted, the ratio would be 2 or 4.
    if still.any() or not 1 / 1.5 < np.median(spread) < 1.5:
      raise ValueError(
          f'{name}: rows of padding in the round change what {hook} makes of '
          f'the samples: {_TELL}.'
      )
