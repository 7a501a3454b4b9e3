"""Taint analysis of a jaxpr: which inputs each output depends on, and how.

An output depends on an input if there is a chain of equations from one to the
other. Nested programs (jit, scan, while, cond, custom derivatives, checkpoints,
shard_map) are followed, loops until nothing is added; the outputs of any other
nested program count as depending on all its inputs. So no dependence is missed,
but one that is found may cancel out: x - x depends on x.
"""
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
import sysconfig
from typing import Any, NamedTuple

import jax
from jax.extend import core
import jax.numpy as jnp

STANDARD = sysconfig.get_paths()['stdlib']
# Primitives with one nested program, whose inputs and outputs are their own.
CALLS = (
    'checkpoint', 'closed_call', 'core_call', 'custom_jvp_call',
    'custom_vjp_call', 'jit', 'pjit', 'remat', 'remat2', 'shard_map',
)
# Primitives that cannot be followed, some of which JAX lists without effects.
OUTSIDE = (
    'buffer_callback', 'call_tf', 'debug_callback', 'ffi_call', 'io_callback',
    'pure_callback',
)


class Step(NamedTuple):
  """A step of a dependence's path: an equation, and the steps before it.

  Few paths are ever told, so the equation's place is only looked up then.
  """

  eqn: Any
  before: Any  # A Step, or None


# By source, the last step of a path from it; `None` if the value is the source
# as it was, after no step. In a wider type its numbers are what they were.
Taint = dict[str, Step | None]


class Rules(NamedTuple):
  """What is known of a program's values beside its inputs.

  Attributes:
    constant: (array that a program closes over) -> its source; '' for none.
    mark: (name, taint, equation that made the value) -> taint, for a value
      named by `jax.ad_checkpoint.checkpoint_name`.
  """

  constant: Callable[[Any], str] = lambda value: ''
  mark: Callable[[str, Taint, Any], Taint] = lambda name, taint, made_by: taint


def path(step: Step | None) -> tuple[str, ...]:
  """The steps' names, from the source on, without repetitions in a row."""
  names: list[str] = []
  while step is not None:
    name = _place(step.eqn)
    if not names or names[-1] != name:
      names.append(name)
    step = step.before
  return tuple(reversed(names))


def follow(
    traced: Any, sources: Sequence[str], rules: Rules = Rules()
) -> list[Taint]:
  """The sources that each output of a program depends on.

  Args:
    traced: From `jax.make_jaxpr`; since JAX 0.11 of another class than before.
    sources: A name for each input; '' for one that does not matter.
    rules: The sources of constants and marked values.

  Raises:
    ValueError: if the program has side effects, which cannot be followed.
  """
  effects = {*map(str, traced.effects), *_outside(traced)}
  if effects:
    raise ValueError(
        f'A program with side effects ({", ".join(sorted(effects))}) cannot be '
        'audited: take out its callbacks, prints and mutable arrays.'
    )
  return _inside(traced, [_begin(s) for s in sources], rules)


def _outside(program: Any) -> Iterator[str]:
  """Names of primitives in a program that call Python or a library."""
  for eqn in getattr(program, 'jaxpr', program).eqns:
    if eqn.primitive.name in OUTSIDE:
      yield eqn.primitive.name
    for part in _programs(eqn):
      yield from _outside(part)


def _programs(eqn: Any) -> Iterator[Any]:
  """The programs inside of an equation."""
  for part in jax.tree.leaves(eqn.params):
    if hasattr(getattr(part, 'jaxpr', part), 'eqns'):
      yield part


def _constants(program: Any) -> Iterator[Any]:
  """The arrays and numbers that a program and those inside of it close over.

  Whether an array is an operand or stands in an equation, as a number does, is
  an option of JAX's (`jax_use_simplified_jaxpr_constants`).
  """
  yield from getattr(program, 'consts', ())
  for eqn in getattr(program, 'jaxpr', program).eqns:
    yield from (v.val for v in eqn.invars if isinstance(v, core.Literal))
    for part in _programs(eqn):
      yield from _constants(part)


def _begin(source: str) -> Taint:
  return {source: None} if source else {}


def _run(
    jaxpr: Any, consts: Sequence[Taint], ins: Sequence[Taint], rules: Rules
) -> list[Taint]:
  known: dict[Any, Taint] = dict(zip(jaxpr.constvars, consts))
  known |= dict(zip(jaxpr.invars, ins))
  made_by: dict[Any, Any] = {}

  def of(v: Any) -> Taint:
    if isinstance(v, core.Literal):  # An array, too: see `_constants`.
      return _begin(rules.constant(v.val))
    return known.get(v, {})

  for eqn in jaxpr.eqns:
    if eqn.primitive.name == 'name':
      own = eqn.invars[0]
      maker = None if isinstance(own, core.Literal) else made_by.get(own)
      outs = [rules.mark(eqn.params['name'], of(own), maker)]
    else:
      outs = _through(eqn, [of(v) for v in eqn.invars], rules)
    known |= dict(zip(eqn.outvars, outs))
    made_by |= dict.fromkeys(eqn.outvars, eqn)
  return [of(v) for v in jaxpr.outvars]


def _through(eqn: Any, ins: list[Taint], rules: Rules) -> list[Taint]:
  """What an equation's outputs depend on."""
  special = SPECIAL.get(eqn.primitive.name)
  if special:
    return special(eqn, ins, rules)
  if eqn.primitive.name == 'convert_element_type' and _widens(eqn):
    return ins
  inner = eqn.params.get('jaxpr', eqn.params.get('call_jaxpr'))
  if eqn.primitive.name in CALLS and inner is not None:
    if eqn.primitive.name == 'shard_map':  # A device sees a part.
      ins = [_step(eqn, t) for t in ins]
    jaxpr = getattr(inner, 'jaxpr', inner)
    counts = len(jaxpr.invars), len(jaxpr.outvars)
    if counts == (len(eqn.invars), len(eqn.outvars)):
      return _inside(inner, ins, rules)
  kept = [rules.constant(x) for p in _programs(eqn) for x in _constants(p)]
  return [_step(eqn, _union(*ins, *map(_begin, kept)))] * len(eqn.outvars)


def _widens(eqn: Any) -> bool:
  """Whether a conversion keeps every number: from a float to a wider one."""
  one, other = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
  if not all(jnp.issubdtype(t, jnp.floating) for t in (one, other)):
    return False
  a, b = jnp.finfo(one), jnp.finfo(other)
  return a.nmant <= b.nmant and a.minexp >= b.minexp and a.maxexp <= b.maxexp


def _inside(inner: Any, ins: Sequence[Taint], rules: Rules) -> list[Taint]:
  consts = [_begin(rules.constant(x)) for x in getattr(inner, 'consts', ())]
  return _run(getattr(inner, 'jaxpr', inner), consts, ins, rules)


def _scan(eqn: Any, ins: list[Taint], rules: Rules) -> list[Taint]:
  inner = eqn.params['jaxpr']
  # Counted here, as JAX's parameters changed with 0.11: a step sees scanned
  # values with one axis less.
  scanned = _axes_less(eqn.invars, inner.in_avals)
  carried = len(eqn.outvars) - _axes_less(eqn.outvars, inner.out_avals)
  consts = len(ins) - scanned - carried
  first, carry = ins[:consts], ins[consts : consts + carried]
  xs = [_step(eqn, t) for t in ins[consts + carried :]]  # A step sees a part.

  def body(carry):
    return _inside(inner, [*first, *carry, *xs], rules)

  carry, outs = _settled(carry, body)
  return [_step(eqn, out) for out in (*carry, *outs[carried:])]


def _axes_less(outside: Sequence[Any], inside: Sequence[Any]) -> int:
  """How many values have fewer axes in a loop's step than outside of it."""
  return sum(
      len(value.aval.shape) > len(step.shape)
      for value, step in zip(outside, inside, strict=True)
  )


def _while(eqn: Any, ins: list[Taint], rules: Rules) -> list[Taint]:
  of_cond, of_body = eqn.params['cond_nconsts'], eqn.params['body_nconsts']
  asked, first = ins[:of_cond], ins[of_cond : of_cond + of_body]
  carry, _ = _settled(
      ins[of_cond + of_body :],
      lambda c: _inside(eqn.params['body_jaxpr'], [*first, *c], rules),
  )
  # All outputs depend on the number of iterations.
  often, = _inside(eqn.params['cond_jaxpr'], [*asked, *carry], rules)
  return [_step(eqn, _union(c, often)) for c in carry]


def _cond(eqn: Any, ins: list[Taint], rules: Rules) -> list[Taint]:
  branches = [
      _inside(branch, ins[1:], rules) for branch in eqn.params['branches']
  ]
  return [_step(eqn, _union(*outs, ins[0])) for outs in zip(*branches)]


SPECIAL = dict(scan=_scan, cond=_cond) | {'while': _while}


def _settled(
    carry: Sequence[Taint], body: Callable[[Sequence[Taint]], Sequence[Taint]]
) -> tuple[list[Taint], Sequence[Taint]]:
  """What a loop's carry depends on after any number of iterations.

  `body` gives it after one more, and then what else a step returns. It is added
  to what was known before, until an iteration adds nothing. It ends: sources
  are never taken away, and a path that is known stays.

  Returns:
    (what the carry depends on, what `body` returns of it).
  """
  known = list(carry)
  while True:
    outs = body(known)
    more = [_either(a, b) for a, b in zip(known, outs)]
    if more == known:
      return more, outs
    known = more


def _either(one: Taint, other: Taint) -> Taint:
  """The taint of a value that is the one or the other; the first path counts.

  It is a source as it was (`None`) only if both are: a path replaces `None`.
  """
  changed = lambda taint: {s: step for s, step in taint.items() if step}
  return _union(changed(one), changed(other), one, other)


def _union(*taints: Mapping[str, Step | None]) -> Taint:
  """All sources; of several paths from one, the first."""
  return {s: step for taint in reversed(taints) for s, step in taint.items()}


def _step(eqn: Any, taint: Taint) -> Taint:
  if not taint:
    return {}
  return {source: Step(eqn, before) for source, before in taint.items()}


def _place(eqn: Any) -> str:
  """The place where an equation was written, 'function (file:line)'.

  Its primitive's name if that is unknown.
  """
  traceback = eqn.source_info.traceback
  for frame in traceback.frames if traceback else ():
    file = frame.file_name
    library = 'site-packages' in file or file.startswith(STANDARD)
    if not library and not file.startswith('<'):
      return f'{frame.function_name} ({Path(file).name}:{frame.line_num})'
  return eqn.primitive.name
