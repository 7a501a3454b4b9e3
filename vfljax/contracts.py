"""What every defense and every attack keeps to: to be asked of one's own.

  contracts.check_defense(my_defense, 0.1)  # ValueError with what is wrong
  contracts.check_attack(my_attack())

Both try it in a small federation of two parties and two classes and take some
seconds. It is the larger part of what vfljax's own tests ask of all that is
registered, and says nothing of whether a formula is right.
"""
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import algorithms, audit, crossing, nets, protocol, views
from vfljax.attack import Attack
from vfljax.defense import Defense, none
from vfljax.types import VFL, Array, Batch, Round, State

ROWS, WIDTH, PADDING, DRAWS = 16, 6, 4, 400
_TXS = (optax.sgd(0.05, momentum=0.9),) * 2
_TINY = 1e-5  # What rounding may make of equal numbers.
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
      rows of padding count, or if rows share what a hook draws.
  """
  name, defense = _name(make), make(*arguments, **options)
  begun = protocol.init(
      jax.random.key(0), _federation(), defense, _TXS, _batch(),
      auxiliary=_batch(),
  )

  _check_messages(name, defense, begun)
  audit.check(defense, _federation(), _TXS, _batch(), auxiliary=_batch())

  def round_(strength, state, data):
    own = make(*strength, *arguments[1:], **options)
    key = jax.random.key(1)
    return protocol.play_round(key, _federation(), own, _TXS, state, data)

  # Two programs: what is drawn while one is traced is a constant of it.
  play, again = jax.jit(round_), jax.jit(lambda *given: round_(*given))
  strength = tuple(jnp.asarray(x, jnp.float32) for x in arguments[:1])
  try:
    after, seen = play(strength, begun, _batch())
  except jax.errors.ConcretizationTypeError as error:
    raise ValueError(
        f'{name}: a sweep traces its strength, the first argument: use '
        'jnp.where in place of `if`, and no int() or float() of it.'
    ) from error
  _check_round(name, begun, after, seen)
  other = again(strength, begun, _batch())
  _check_same(f'{name}: a round', (after, seen), other,
              'is not the same twice: draw with jax.random and the key alone')
  _check_facts(name, defense, after)
  zeros, nines = (
      _of_samples(play(strength, begun, _padded(x))) for x in (0, 9)
  )
  _check_same(f'{name}: a round', zeros, nines,
              f'depends on what is in rows of padding: {_TELL}')
  _check_draws(name, defense, begun)
  _check_number(name, defense, begun)


def check_attack(attack: Attack, vfl: VFL | None = None) -> None:
  """Has an attack guess, in a round or after training, as its view says.

  Args:
    attack: The attack.
    vfl: What it is made for, of two parties, which have 4 and 5 features, and
      two classes, such as `algorithms.vlr(2, 2)`; by default networks.

  Raises:
    ValueError: if its guesses have another shape than they need, are not
      finite or not a function of key and view, or count rows of padding; for a
      view of neither a round nor a trained federation.
  """
  view, run = _view(attack.view, vfl or _federation()), jax.jit(attack.run)
  name, key = 'the attack', jax.random.key(2)
  guess = run(key, view)
  shape = jnp.shape(guess)
  if attack.view in views.OF_A_ROUND:
    if shape not in ((ROWS,), (ROWS, 2)):
      raise ValueError(
          f'{name} guesses {shape}; in a round guesses are scores, [batch] or '
          f'[batch, classes]: {(ROWS,)} or {(ROWS, 2)} here.'
      )
  elif not attack.wants.samples and (len(shape), shape[1:]) != (3, (ROWS, 2)):
    raise ValueError(
        f'{name} guesses {shape}; of a trained federation guesses are [stages, '
        f'samples, classes], one stage if it has no more: (1, {ROWS}, 2) here.'
    )
  _check_finite(name, guess)
  _check_same(name, run(key, view), guess,
              'does not guess the same twice: draw with jax.random and the key')
  if attack.view in views.OF_A_ROUND:
    zeros, nines = (run(key, _padded_view(view, x)) for x in (0, 9))
    _check_same(name, zeros[:-PADDING], nines[:-PADDING],
                'counts rows of padding: view.valid tells which these are')


def _name(make: Callable) -> str:
  return getattr(make, '__name__', 'the defense')


def _federation() -> VFL:
  return algorithms.vhnn(
      [nets.mlp(8, WIDTH)] * 2, nets.binary(nets.mlp(8, 1))
  )


def _batch() -> Batch:
  one, two = jax.random.split(jax.random.key(3))
  own, theirs = jax.random.normal(one, (ROWS, 4)), jax.random.normal(
      two, (ROWS, 5)
  )
  positive = (jnp.arange(ROWS) % 3 == 0).astype(int)
  return Batch((own, theirs), jax.nn.one_hot(positive, 2))


def _padded(filled: float) -> Batch:
  """With rows of padding at the end, and this in them."""
  data = _batch()
  return Batch(
      tuple(x.at[-PADDING:].set(filled) for x in data.features),
      data.labels.at[-PADDING:].set(0),
  )


def _of_samples(played: tuple[State, Round]) -> Any:
  after, seen = played
  return after, seen.loss, [d[:-PADDING] for d in seen.messages.down]


def _padded_view(view: Any, filled: float) -> Any:
  def rows(field: str, x: Any) -> Any:
    if getattr(x, 'shape', ())[:1] != (ROWS,):
      return x
    return x.at[-PADDING:].set(0 if field in ('valid', 'known') else filled)

  return view._replace(**{k: rows(k, x) for k, x in view._asdict().items()})


def _view(kind: type, vfl: VFL) -> Any:
  """From a real round of an undefended federation."""
  data, plain = _batch(), none()
  key, see = jax.random.split(jax.random.key(4))
  state = protocol.init(key, vfl, plain, _TXS, data)
  if kind in views.OF_A_ROUND:
    _, seen = protocol.play_round(key, vfl, plain, _TXS, state, data)
    return views.in_training(kind, see, 1, plain, seen)
  known = jax.tree.map(lambda x: x[:6], data)
  return views.after_training(kind, see, 1, views.Finished(
      vfl, plain, state, known, data, ROWS, data, data
  ))


def _check_messages(name: str, defense: Defense, begun: State) -> None:
  """Before a round, in which another party's network would be in the way."""
  own, key = begun.parties[1].params['defense'], jax.random.key(0)
  plain = jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32)
  sent, penalty = jax.eval_shape(defense.send, own, key, plain)
  if sent.shape != plain.shape or penalty.shape:
    raise ValueError(
        f'{name}: send makes {sent.shape} and a penalty {penalty.shape} of a '
        f'message {plain.shape}; a message keeps its shape, and a penalty is '
        'one number.'
    )
  found = jax.eval_shape(
      defense.gradient, begun.defense, key, (plain,), _batch().labels
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
  _check_finite(name, (after, seen))


def _check_finite(name: str, tree: Any) -> None:
  for path, x in jax.tree.leaves_with_path(tree):
    if not np.isfinite(x).all():
      raise ValueError(
          f'{name}: {jax.tree_util.keystr(path) or "its guess"} is not finite; '
          'a norm has no gradient at 0 and nothing is divided by it: '
          'jnp.maximum(norm, 1e-12).'
      )


def _check_same(who: str, one: Any, other: Any, otherwise: str) -> None:
  for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True):
    if not np.allclose(x, y, rtol=10 * _TINY, atol=_TINY):
      raise ValueError(f'{who} {otherwise}.')


def _check_facts(name: str, defense: Defense, state: State) -> None:
  for fact, x in defense.facts(state.defense).items():
    if jnp.shape(x):
      raise ValueError(
          f'{name}: its fact {fact!r} has the shape {jnp.shape(x)}, and a fact '
          f'is one number. Give its mean, or one fact each: {fact}_0, {fact}_1.'
      )


def _hooks(
    defense: Defense, begun: State, padding: int = 0
) -> dict[str, Callable[[Array], Array]]:
  """By name key -> [rows, ...], what becomes of samples; with rows of padding
  after them, if so many."""
  x = jnp.arange(1.0, ROWS + 1)[:, None] * jnp.linspace(0.01, 0.02, WIDTH)[None]
  more = lambda x: jnp.pad(x, ((0, padding), (0, 0)))
  x, labels, memory = more(x), more(_batch().labels), begun.defense
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


def _drawn(run: Callable[[Array], Array]) -> np.ndarray:
  """[draws, rows, numbers] of a hook."""
  keys = jax.random.split(jax.random.key(5), DRAWS)
  seen = jax.jit(jax.vmap(run))(keys)
  return np.asarray(seen, np.float64).reshape(DRAWS, ROWS, -1)


def _check_draws(name: str, defense: Defense, begun: State) -> None:
  """That what becomes of two rows by luck does not go together."""
  for hook, run in _hooks(defense, begun).items():
    seen = _drawn(run)
    row = np.repeat(np.arange(ROWS), seen.shape[2])
    seen = seen.reshape(DRAWS, -1)
    drawn = seen.std(0) > 1e-6 * np.abs(seen).max()
    others = row[drawn][:, None] != row[drawn]
    if not others.any():
      continue
    together = np.abs(np.corrcoef(seen[:, drawn].T))
    if together[others].max() > 6 / DRAWS**0.5:
      raise ValueError(
          f'{name}: rows share what {hook} draws, so that it is gone from '
          'their difference: draw numbers of shape (len(x), ...).'
      )


def _check_number(name: str, defense: Defense, begun: State) -> None:
  """That samples do not fare otherwise beside rows of padding, of which there
  are thrice as many; with another draw the spread alone can tell."""
  alone, beside = (_hooks(defense, begun, n) for n in (0, 3 * ROWS))
  for hook in alone:
    one, other = _drawn(alone[hook]), _drawn(beside[hook])
    if np.allclose(one, other, rtol=10 * _TINY, atol=_TINY * np.abs(one).max()):
      continue
    still = one.std(0) <= 1e-6 * np.abs(one).max()
    spread = other.std(0)[~still] / one.std(0)[~still]
    # Of counting them it would be 2 or 4; what is not drawn has none.
    if still.any() or not 1 / 1.5 < np.median(spread) < 1.5:
      raise ValueError(
          f'{name}: with rows of padding in the round {hook} makes something '
          f'else of the samples: {_TELL}.'
      )
