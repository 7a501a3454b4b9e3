"""The contract of defenses."""
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import audit, check, measure, protocol, samples
from vfljax.contracts import luck, several
from vfljax.contracts.little import (
    PADDING, ROWS, TELL, TXS, WIDTH, batch, check_finite, check_same,
    each_key_once, federation, replaying,
)
from vfljax.defense import Defense, Holdings, checked
from vfljax.types import Batch, Round, State


@replaying
def check_defense(
    make: Callable[..., Defense], *arguments: Any, **options: Any
) -> None:
  """Plays rounds with a defense, its strength traced as in a sweep.

  Args:
    make: The defense's factory.
    arguments, options: The factory's arguments, the strength first.

  Raises:
    ValueError: for what is no factory; if anything but messages crosses between
      parties (`audit.check`); if `prepare` changes which rows are samples; if
      rounds cannot be scanned, are not finite or are no function of their key;
      if messages or facts have wrong shapes; if rows of padding have an effect;
      if a hook draws with a key that it makes or keeps, or from one key twice;
      if its random numbers are shared between rows; or, unless it is for one
      passive party only, if something crosses between two of them, or if they
      share random numbers, are treated unlike, or get each other's gradients.
  """
  name, defense = _name(make), make(*arguments, **options)
  begun = protocol.init(
      jax.random.key(0), federation(), defense, TXS, batch(),
      auxiliary=batch(),
  )
  _check_messages(name, defense, begun)
  _check_rest(name, defense, begun)
  audit.check(defense, federation(), TXS, batch(), auxiliary=batch())
  several.check_crossing(defense)

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
             f'depends on what is in rows of padding: {TELL}')
  luck.check(name, defense, begun)
  several.check_parties(name, defense)


def _name(make: Any) -> str:
  """What messages call the factory.

  Raises:
    ValueError: if it is none, as a defense that was made.
  """
  if not callable(make):
    raise ValueError(
        'check_defense takes a factory and its arguments, as in '
        f'check_defense(iso, 5.0); got {check.kind(make)}.'
    )
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
        f'jnp.float32(0) for none; it returns {check.kind(both)}.'
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
  pair = isinstance(found, (tuple, list)) and len(found) == 2
  cut = found[0] if pair else ()
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
  """What comes before and after the rounds: its shapes, and prepared labels."""
  own, key, data = checked(defense, name), jax.random.key(0), batch()
  vfl = federation()
  has = Holdings(
      vfl._replace(top=own.top(vfl.top)), state.parties[0].params, data
  )
  jax.eval_shape(lambda key: own.epoch(state.defense, key, has), key)
  jax.eval_shape(
      lambda key: protocol.predict(key, vfl, own, state, data.features), key
  )
  if own.prepare:
    labels = _padded(0).labels
    samples.check_prepared(
        labels, own.prepare(key, data.features[0], labels), name
    )


def _check_facts(name: str, defense: Defense, state: State) -> None:
  found = defense.facts(state.defense)
  for fact in found if isinstance(found, dict) else ():
    measure.check_fact(name, str(fact))
  check.facts(name, found)
