"""Draws that do not wait for each other, made as one.

A network's start is a key and a draw for each of its weights, and each of these
is Threefry's 20 rounds once more in the program: of programs that begin
networks half of the instructions were those, and compiling takes as long as
there are instructions. Here all keys that can be made at a time are one
operation, and so are all draws that begin something: the same bits, for a word
is made of its key and its place alone. Each array that is cut out of others, or
put together with others, is a kernel, so keys stay together until somebody asks
for one of them.
"""
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
import itertools
from typing import Any, NamedTuple

import jax
from jax.core import eval_jaxpr
from jax.extend import core
import jax.numpy as jnp

from vfljax.runner.compiled import words
from vfljax.types import Array

_BITS = 'random_bits'
# Not gammas: of two drawn as one the last digit may be another.
_DRAWS = _BITS, 'random_fold_in', 'random_split'
_LOOPS = 'scan', 'while', 'cond'
_FUNCTIONS = core.Jaxpr, core.ClosedJaxpr
_CALLS = 'jit', 'pjit', 'closed_call', 'core_call'
_NOTHING = jax.make_jaxpr(lambda: ())().jaxpr
_MANY = 3  # Shapes of draws at a time: they begin something, not train it.


def bundled(fn: Callable) -> Callable:
  """`fn` with its draws made so, also in its loops and what it calls.

  Args:
    fn: Of pytrees of arrays; traced once for each call of what is returned, so
      inside `jit` once for each program.

  Returns:
    A function of the same arguments, which gives the same bits.
  """

  def run(*arguments: Any) -> Any:
    traced, out = jax.make_jaxpr(fn, return_shape=True)(*arguments)
    found = _run(traced, *jax.tree.leaves(arguments))
    return jax.tree.unflatten(jax.tree.structure(out), found)

  return run


class _Slot:
  """A place for an array; empty until the operation that gives it is done.

  Attributes:
    whole: If it was made with others, theirs and its own, [arrays, ...].
    index: Which of these it is.
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
    """It is cut out when somebody asks for it: who makes more of all does not.
    """
    self.whole, self.index = whole, index


class _Step(NamedTuple):
  """An operation, and where its arrays come from and go to."""

  eqn: core.JaxprEqn
  reads: list[_Slot]
  writes: list[_Slot]

  @property
  def ready(self) -> bool:
    return all(slot.there for slot in self.reads)

  @property
  def drawn(self) -> bool:
    """Whether it draws, as others would beside it: not so with XLA's bits."""
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
  """Does all that can be done, then the draws that wait, and so on."""
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
  """Adds the operations, and those of what is called and draws.

  Returns:
    Where the results will be.
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
  """One operation as it was traced, but for the draws in a loop."""
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
  """A loop's parameter: a function of it, or several, with draws bundled."""
  if isinstance(param, tuple) and any(isinstance(x, _FUNCTIONS) for x in param):
    return tuple(map(_rewritten, param))
  if not isinstance(param, _FUNCTIONS):
    return param
  closed = _closed(param)
  found = jax.make_jaxpr(partial(_run, closed))(*closed.in_avals)
  assert not found.consts, 'A loop has no constants but its own.'
  return found if isinstance(param, core.ClosedJaxpr) else found.jaxpr


def _groups(draws: Sequence[_Step]) -> Iterator[list[_Step]]:
  """Those that are made as one."""
  kinds = defaultdict(list)
  for step in draws:
    kinds[_kind(step)].append(step)
  plain = [kind for kind, alike in kinds.items() if _plain(alike[0])]
  if len(plain) >= _MANY:
    yield [step for kind in plain for step in kinds.pop(kind)]
  yield from kinds.values()


def _kind(step: _Step) -> str:
  """The same for draws that are one of an array of keys."""
  kinds = [slot.kind for slot in step.reads]
  return f'{step.eqn.primitive.name} {kinds} {step.eqn.params}'


def _plain(step: _Step) -> bool:
  """Whether it is words of one key, each made by itself."""
  return (
      step.eqn.primitive.name == _BITS and step.eqn.params['bit_width'] == 32
      and not step.reads[0].kind.shape
      and jax.config.jax_threefry_partitionable  # pyright: ignore
  )


def _draw(alike: Sequence[_Step]) -> None:
  """Makes draws as one: words of many shapes, or what is drawn alike."""
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
  """Their arrays, [slots, ...]."""
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
