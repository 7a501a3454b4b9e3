"""The contract of attacks."""
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import check, protocol, views
from vfljax.attack import Attack, Wants
from vfljax.contracts.little import (
    PADDING, ROWS, TXS, batch, check_finite, check_same, each_key_once,
    federation, replaying, same,
)
from vfljax.defense import none
from vfljax.telling import is_real
from vfljax.types import VFL, Batch, Round, State

ROUNDS, KNOWN = 2, 3  # In views of several rounds; known labels per class.
_NAME = 'the attack'
# Views of which one field has the samples to guess, and guesses have stages.
OF_QUERIES = dict.fromkeys(
    (views.TrainedBottom, views.UnlabeledBottom), 'features'
)


@replaying
def check_attack(attack: Attack, vfl: VFL | None = None) -> None:
  """Runs an attack on its view: of a round, of several, or after training.

  Args:
    attack: The attack.
    vfl: The federation that it is made for, with two parties that have 4 and 5
      features, and two classes, such as `algorithms.vlr(2, 2)`; by default
      networks.

  Raises:
    ValueError: if it is no `Attack` (a factory is none); if its guesses have a
      wrong shape, are not real or finite, are no function of key and view, are
      others in its `halves`, draw from one key twice, depend on rows of padding
      or, without luck, on the order of the samples; if its facts are no
      numbers; for a view that no federation gives, or, with a view of a pool of
      samples, if it does not say how many it `wants`.
  """
  if not isinstance(attack, Attack):
    raise ValueError(
        f'attack must be an Attack; got {check.kind(attack)}. A factory '
        'has to be called: check_attack(norm_scoring()).'
    )
  if not isinstance(attack.view, type):
    raise ValueError(
        f'{_NAME} needs a class of vfljax.views as its view; got '
        f'{check.kind(attack.view)}.'
    )
  view, run = _view(attack, vfl or federation()), jax.jit(attack.run)
  key = jax.random.key(2)
  guess = run(key, view)
  if not is_real(guess):
    raise ValueError(
        f'{_NAME} must guess with one array of real numbers; it guesses with '
        f'{check.kind(guess)}{_of_what(guess)}.'
    )
  _check_shape(attack, jnp.shape(guess))
  check_finite(_NAME, guess)
  # Traced again: numbers drawn while tracing are constants of a program.
  again = jax.jit(lambda *given: attack.run(*given))
  with each_key_once(_NAME):
    other = again(key, view)
  check_same(_NAME, other, guess,
             'does not guess the same twice: draw with jax.random and the key')
  if attack.halves:
    start, rest = attack.halves
    in_two = jax.jit(lambda key, view: rest(start(key, view), view))
    check_same(_NAME, in_two(key, view), guess,
               'guesses otherwise in `halves` than in `run`: use in_halves')
  if attack.view in views.OF_A_ROUND:
    zeros, nines = (run(key, _padded(view, x)) for x in (0, 9))
    if not _alike(zeros[:-PADDING], nines[:-PADDING]):
      raise ValueError(
          f'{_NAME} counts rows of padding: view.valid tells which these are.'
      )
  _check_order(attack, run, key, view, guess)
  check.facts(_NAME, attack.facts(view))


def _of_what(guess: Any) -> str:
  return f' of {guess.dtype}' if hasattr(guess, 'dtype') else ''


def _check_order(
    attack: Attack, run: Any, key: jax.Array, view: Any, guess: jax.Array
) -> None:
  """Checks that samples in another order are guessed in that order.

  An attack whose guesses change with its key may draw by place.
  """
  if attack.view is views.WhiteBox:
    return  # Its samples have numbers, by which rounds name them.
  axis = -2 if attack.view in OF_QUERIES else 0
  turned = jnp.flip(run(key, _turned(view)), axis)
  if _alike(guess, turned) or not _alike(guess, run(jax.random.key(6), view)):
    return
  raise ValueError(
      f'{_NAME} guesses another label for a sample that comes at another place '
      'of the round: numbers of one sample are along the last axes, and '
      'statistics over samples must not depend on their order.'
  )


def _alike(one: jax.Array, other: jax.Array) -> bool:
  """Whether guesses are the same: those from gradients are small numbers."""
  most = jnp.abs(one).max()
  most = jnp.where(most > 0, most, 1)
  return same(one / most, other / most)


def _turned(view: Any) -> Any:
  """The view with the samples that are guessed at in the opposite order."""
  if type(view) in views.OF_A_ROUND:
    return view._replace(**{
        k: x[::-1] for k, x in view._asdict().items()
        if getattr(x, 'shape', ())[:1] == (ROWS,)
    })
  field = OF_QUERIES.get(type(view), 'received')
  return view._replace(**{field: getattr(view, field)[::-1]})


def _check_shape(attack: Attack, shape: tuple[int, ...]) -> None:
  rows = ROWS
  if attack.view is views.WhiteBox:
    rows = attack.wants.samples
  if attack.wants.samples:
    if shape != (rows, 5):
      raise ValueError(
          f'{_NAME} returns {shape}; guesses at features must have their '
          f'shape, [samples, ...]: {(rows, 5)} here.'
      )
  elif attack.view in views.OF_A_TRAINED_FEDERATION:
    if (len(shape), shape[1:]) != (3, (rows, 2)):
      raise ValueError(
          f'{_NAME} guesses {shape}; of a trained federation guesses are '
          '[stages, samples, classes], one stage if it has no more: '
          f'{(1, rows, 2)} here.'
      )
  else:
    rows *= ROUNDS if attack.view is views.RecordedGradients else 1
    if shape not in ((rows,), (rows, 2)):
      raise ValueError(
          f'{_NAME} guesses {shape}; in a round guesses are scores, [batch] or '
          f'[batch, classes]: {(rows,)} or {(rows, 2)} here.'
      )


def _padded(view: Any, filled: float) -> Any:
  """The view with rows of padding at the end, filled with a number."""
  def rows(field: str, x: Any) -> Any:
    if getattr(x, 'shape', ())[:1] != (ROWS,):
      return x
    return x.at[-PADDING:].set(0 if field in ('valid', 'known') else filled)

  return view._replace(**{k: rows(k, x) for k, x in view._asdict().items()})


def _view(attack: Attack, vfl: VFL) -> Any:
  """The attack's view, of rounds of an undefended federation."""
  kind, data, plain = attack.view, batch(), none()
  key, see = jax.random.split(jax.random.key(4))
  state = protocol.init(key, vfl, plain, TXS, data)
  if kind in views.OF_A_ROUND:
    seen = _played(key, vfl, state, data)
    view = views.in_training(kind, see, 1, plain, seen)
    if kind is views.KnownPositive:  # One that does not become padding.
      view = view._replace(known=jnp.zeros_like(view.known).at[0].set(1))
    return view
  if kind is views.RecordedGradients:
    seen = _rounds(key, lambda key: _played(key, vfl, state, data))
    return views.recorded_gradients(see, 1, seen, KNOWN)[0]
  if kind is views.WhiteBox:
    return _white_box(key, attack.wants, vfl, state)
  known = jax.tree.map(lambda x: x[:6], data)
  return views.after_training(kind, see, 1, views.Finished(
      vfl, plain, state, known, data, ROWS, data, data
  ))


def _played(key: jax.Array, vfl: VFL, state: State, data: Batch) -> Round:
  """Plays a round and returns its `Round`."""
  _, seen = protocol.play_round(key, vfl, none(), TXS, state, data)
  return seen


def _rounds(key: jax.Array, play: Any) -> Any:
  """Several rounds of one state, stacked along a new first axis."""
  seen = [play(key)._replace(state=()) for key in jax.random.split(key, ROUNDS)]
  return jax.tree.map(lambda *xs: jnp.stack(xs), *seen)


def _white_box(
    key: jax.Array, wants: Wants, vfl: VFL, state: State
) -> views.WhiteBox:
  """The view of rounds of the pool that the attack wants."""
  if not 1 <= wants.batch <= wants.samples:
    raise ValueError(
        f'{_NAME} sees gradients of a pool of samples: say how many it wants, '
        f'Attack(..., wants=Wants(samples=8, batch=4)); got {wants}.'
    )
  pool, keys = batch(wants.samples), jax.random.split(key, ROUNDS)
  rows = jnp.stack([
      jax.random.permutation(key, wants.samples)[:wants.batch] for key in keys
  ])
  seen = [
      views.own_gradients(1, _played(
          key, vfl, state, jax.tree.map(lambda x, i=i: x[i], pool)
      )) for key, i in zip(keys, rows)
  ]
  gradients = jax.tree.map(lambda *xs: jnp.stack(xs), *seen)
  return views.white_box(
      key, 1, none(), state, gradients, rows, pool.features[1]
  )
