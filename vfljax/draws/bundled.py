"""Combines independent random draws of a function into single operations.

Initialising a network takes a key and a draw for each of its weights, and each
of them puts Threefry's 20 rounds into the program again. They were half of the
instructions of programs that initialise networks, and compile time grows with
the number of instructions. Here all keys that can be derived at the same time
are one operation, and so are the draws of initial weights. The bits are the
same, because a word depends only on its key and its position. Slicing or
concatenating arrays costs a kernel each, so keys stay together until one of
them is needed.
"""
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
import itertools
from typing import Any, NamedTuple

import jax
from jax.core import Tracer, eval_jaxpr
from jax.extend import core
import jax.numpy as jnp

from vfljax.draws import words
from vfljax.types import Array

_BITS = 'random_bits'
# Not gammas: drawn together, their last digit may differ.
_DRAWS = _BITS, 'random_fold_in', 'random_split'
_LOOPS = 'scan', 'while', 'cond'
_FUNCTIONS = core.Jaxpr, core.ClosedJaxpr
_CALLS = 'jit', 'pjit', 'closed_call', 'core_call'
_NOTHING = jax.make_jaxpr(lambda: ())().jaxpr
_MANY = 3  # So many shapes of draws at once are initial weights, not a round's.


def bundled(fn: Callable) -> Callable:
  """`fn` with its draws combined, also in its loops and in functions it calls.

  Args:
    fn: A function of pytrees of arrays. It is traced at each call of the result
      (inside `jit`, once for each program).

  Returns:
    A function of the same arguments. In a program its results are the same bit
    for bit. Called with numbers it is `fn` itself: nothing is compiled then
    that could be shorter.
  """

  @wraps(fn)
  def run(*arguments: Any, **named: Any) -> Any:
    given = jax.tree.leaves((arguments, named))
    if not any(isinstance(x, Tracer) for x in given):
      return fn(*arguments, **named)
    traced, out = jax.make_jaxpr(fn, return_shape=True)(*arguments, **named)
    return jax.tree.unflatten(jax.tree.structure(out), _run(traced, *given))

  return run


class _Slot:
  """A place for an array, empty until the operation that makes it is done.

  Attributes:
    whole: If it was made together with others, all of them, [arrays, ...].
    index: Its position in `whole`.
  """

  def __init__(self, *value: Any):
    self._value = value
    self.whole: Any = None
    self.index = 0

  @property
  def there(self) -> bool:
    return bool(self._value) or self.whole is not None

  @property
  def value(self) -> Any:
    if not self._value:
      self._value = (self.whole[self.index],)
    return self._value[0]

  @property
  def kind(self) -> Any:
    """Its type and shape."""
    if self.whole is None:
      return jax.typeof(self.value)
    own = jax.typeof(self.whole)
    return own.update(shape=own.shape[1:])

  def fill(self, value: Any) -> None:
    self._value = (value,)

  def be_part(self, whole: Array, index: int) -> None:
    """Makes the slot a part of `whole`, which is sliced only if it is read."""
    self.whole, self.index = whole, index


class _Step(NamedTuple):
  """An operation, with the slots that it reads and writes."""

  eqn: core.JaxprEqn
  reads: list[_Slot]
  writes: list[_Slot]

  @property
  def ready(self) -> bool:
    return all(slot.there for slot in self.reads)

  @property
  def drawn(self) -> bool:
    """Whether it is a draw by Threefry; XLA's own generator is left alone."""
    return self.eqn.primitive.name in _DRAWS and str(
        self.reads[0].kind
    ).startswith('key<fry>')

  @property
  def values(self) -> list[Any]:
    return [slot.value for slot in self.reads]

  def fill(self, values: Sequence[Any]) -> None:
    for slot, value in zip(self.writes, values, strict=True):
      slot.fill(value)


def _run(traced: core.ClosedJaxpr, *arguments: Any) -> list[Any]:
  """Runs all operations that are ready, then all ready draws, and repeats."""
  steps: list[_Step] = []
  results = _flatten(traced, [_Slot(x) for x in arguments], steps)
  while steps:
    later, draws = [], []
    for step in steps:
      if not step.ready:
        later.append(step)
      elif step.drawn:
        draws.append(step)
      else:
        step.fill(_done(step.eqn, step.values))
    for alike in _groups(draws):
      _draw(alike)
    steps = later
  return [slot.value for slot in results]


def _flatten(
    traced: core.ClosedJaxpr, given: Sequence[_Slot], steps: list[_Step]
) -> list[_Slot]:
  """Appends the operations to `steps`; calls that draw are inlined.

  Returns:
    The slots of the results.
  """
  slots = dict(zip(traced.jaxpr.invars, given, strict=True))
  slots |= zip(traced.jaxpr.constvars, map(_Slot, traced.consts))
  find = lambda v: _Slot(v.val) if isinstance(v, core.Literal) else slots[v]
  for eqn in traced.jaxpr.eqns:
    reads = [find(v) for v in eqn.invars]
    if eqn.primitive.name in _CALLS and _draws(eqn):
      (called,) = _inner(eqn)
      writes = _flatten(called, reads, steps)
    else:
      writes = [_Slot() for _ in eqn.outvars]
      steps.append(_Step(eqn, reads, writes))
    slots |= zip(eqn.outvars, writes)
  return [find(v) for v in traced.jaxpr.outvars]


def _inner(eqn: core.JaxprEqn) -> list[core.ClosedJaxpr]:
  """The functions that an operation calls."""
  found = jax.tree.leaves(
      list(eqn.params.values()), is_leaf=lambda x: isinstance(x, _FUNCTIONS)
  )
  return [_closed(x) for x in found if isinstance(x, _FUNCTIONS)]


def _closed(function: Any) -> core.ClosedJaxpr:
  if isinstance(function, core.ClosedJaxpr):
    return function
  return core.ClosedJaxpr(function, ())


def _draws(eqn: core.JaxprEqn) -> bool:
  return eqn.primitive.name in _DRAWS or any(
      _draws(each) for called in _inner(eqn) for each in called.jaxpr.eqns
  )


def _done(eqn: core.JaxprEqn, values: Sequence[Any]) -> Sequence[Any]:
  """Runs one operation as traced, with the draws inside a loop combined."""
  if eqn.primitive.name in _LOOPS and _draws(eqn):
    eqn = eqn.replace(
        params={name: _rewritten(x) for name, x in eqn.params.items()}
    )
  given = {
      v: x for v, x in zip(eqn.invars, values)
      if not isinstance(v, core.Literal)
  }
  alone = _NOTHING.replace(
      invars=list(given), outvars=eqn.outvars, eqns=[eqn]
  )
  return eval_jaxpr(alone, [], *given.values())


def _rewritten(param: Any) -> Any:
  """A loop's parameter; functions in it get their draws combined."""
  if isinstance(param, tuple) and any(isinstance(x, _FUNCTIONS) for x in param):
    return tuple(map(_rewritten, param))
  if not isinstance(param, _FUNCTIONS):
    return param
  closed = _closed(param)
  found = jax.make_jaxpr(partial(_run, closed))(*closed.in_avals)
  if isinstance(param, core.ClosedJaxpr):
    return found  # With constants of the functions that it calls.
  assert not found.consts, 'A loop has no constants but its own.'
  return found.jaxpr


def _groups(draws: Sequence[_Step]) -> Iterator[list[_Step]]:
  """Groups of draws that are made by one operation each."""
  kinds = defaultdict(list)
  for step in draws:
    kinds[_kind(step)].append(step)
  plain = [kind for kind, alike in kinds.items() if _plain(alike[0])]
  if len(plain) >= _MANY:
    yield [step for kind in plain for step in kinds.pop(kind)]
  yield from kinds.values()


def _kind(step: _Step) -> str:
  """Equal for draws that one operation on an array of keys can make."""
  kinds = [slot.kind for slot in step.reads]
  return f'{step.eqn.primitive.name} {kinds} {step.eqn.params}'


def _plain(step: _Step) -> bool:
  """Whether it draws 32-bit words of one key, each independent of the rest."""
  return (
      step.eqn.primitive.name == _BITS and step.eqn.params['bit_width'] == 32
      and not step.reads[0].kind.shape
      and jax.config.jax_threefry_partitionable  # pyright: ignore
  )


def _draw(alike: Sequence[_Step]) -> None:
  """Makes draws by one operation: words of several shapes, or equal draws."""
  first = alike[0].eqn
  if any(step.eqn.params != first.params for step in alike):
    found = words.words(
        _stacked([step.reads[0] for step in alike]),
        [step.eqn.params['shape'] for step in alike],
    )
    for step, value in zip(alike, found, strict=True):
      step.fill([value])
    return
  stacked = [_stacked(slots) for slots in zip(*(s.reads for s in alike))]
  whole = first.primitive.bind(*stacked, **first.params)
  for i, step in enumerate(alike):
    step.writes[0].be_part(whole, i)


def _stacked(slots: Sequence[_Slot]) -> Array:
  """The slots' arrays, stacked to [slots, ...]."""
  parts = []
  for _, some in itertools.groupby(slots, lambda slot: id(slot.whole)):
    some = list(some)
    whole = some[0].whole
    if whole is None:
      parts.append(jnp.stack([slot.value for slot in some]))
      continue
    which = [slot.index for slot in some]
    if which != list(range(len(whole))):
      whole = words.at(whole, words.table(which))
    parts.append(whole)
  return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
