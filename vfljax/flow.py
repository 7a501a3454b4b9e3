"""From which inputs a traced program's outputs are computed, and by what steps.

Taint analysis of a jaxpr. An output depends on an input if there is a chain of
equations from one to the other; programs inside of programs (jit, scan, while,
cond, custom derivatives, checkpoints, shard_map) are followed, loops until
nothing is added. What is not known to be followed counts as depending on all
that goes in. So a dependence that is not found is not there, but one that is
found may cancel out: x - x depends on x.
"""
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
import sysconfig
from typing import Any, NamedTuple

import jax
from jax.extend import core

STANDARD = sysconfig.get_paths()['stdlib']
# One program inside, with the equation's own inputs and outputs.
CALLS = (
    'checkpoint', 'closed_call', 'core_call', 'custom_jvp_call',
    'custom_vjp_call', 'jit', 'pjit', 'remat', 'remat2', 'shard_map',
)


# Whom nobody can follow. Of some of them JAX says that they have no effects.
OUTSIDE = ('debug_callback', 'ffi_call', 'io_callback', 'pure_callback')


class Step(NamedTuple):
  """How something came to where it is: an equation, and the steps before."""

  name: str
  before: Any  # A Step, or None


Taint = dict[str, Step | None]  # By source, the last step of a way from it.


class Rules(NamedTuple):
  """What is known of a program's values beside its inputs.

  Attributes:
    constant: (array) -> source, of what a program closes over; '' is none.
    mark: (name, taint, equation that made the value) -> taint, of a value that
      `jax.ad_checkpoint.checkpoint_name` names.
  """

  constant: Callable[[Any], str] = lambda value: ''
  mark: Callable[[str, Taint, Any], Taint] = lambda name, taint, made_by: taint


def path(step: Step | None) -> tuple[str, ...]:
  """The steps' names from the source on, each place once in a row."""
  names: list[str] = []
  while step is not None:
    if not names or names[-1] != step.name:
      names.append(step.name)
    step = step.before
  return tuple(reversed(names))


def follow(
    traced: Any, sources: Sequence[str], rules: Rules = Rules()
) -> list[Taint]:
  """What each output of a program depends on.

  Args:
    traced: From `jax.make_jaxpr`; since JAX 0.11 of another class than before.
    sources: A name for each input; '' for one that does not matter.
    rules: What is known beside.

  Raises:
    ValueError: if the program has side effects, which nobody could follow.
  """
  effects = {*map(str, traced.effects), *_outside(traced)}
  if effects:
    raise ValueError(
        f'A program with side effects ({", ".join(sorted(effects))}) cannot be '
        'audited: take out its callbacks, prints and mutable arrays.'
    )
  return _inside(traced, [_begin(s) for s in sources], rules)


def _outside(program: Any) -> Iterator[str]:
  """Names of what calls Python, or a library, from anywhere in a program."""
  for eqn in getattr(program, 'jaxpr', program).eqns:
    if eqn.primitive.name in OUTSIDE:
      yield eqn.primitive.name
    for part in jax.tree.leaves(
        eqn.params, is_leaf=lambda x: hasattr(x, 'eqns') or hasattr(x, 'jaxpr')
    ):
      if hasattr(getattr(part, 'jaxpr', part), 'eqns'):
        yield from _outside(part)


def _begin(source: str) -> Taint:
  return {source: None} if source else {}


def _run(
    jaxpr: Any, consts: Sequence[Taint], ins: Sequence[Taint], rules: Rules
) -> list[Taint]:
  known: dict[Any, Taint] = dict(zip(jaxpr.constvars, consts))
  known |= dict(zip(jaxpr.invars, ins))
  made_by: dict[Any, Any] = {}
  of = lambda v: {} if isinstance(v, core.Literal) else known.get(v, {})
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
  inner = eqn.params.get('jaxpr', eqn.params.get('call_jaxpr'))
  if eqn.primitive.name in CALLS and inner is not None:
    if eqn.primitive.name == 'shard_map':  # A device sees a part.
      ins = [_step(eqn, t) for t in ins]
    jaxpr = getattr(inner, 'jaxpr', inner)
    counts = len(jaxpr.invars), len(jaxpr.outvars)
    if counts == (len(eqn.invars), len(eqn.outvars)):
      return _inside(inner, ins, rules)
  return [_step(eqn, _union(*ins))] * len(eqn.outvars)


def _inside(inner: Any, ins: Sequence[Taint], rules: Rules) -> list[Taint]:
  consts = [_begin(rules.constant(x)) for x in getattr(inner, 'consts', ())]
  return _run(getattr(inner, 'jaxpr', inner), consts, ins, rules)


def _scan(eqn: Any, ins: list[Taint], rules: Rules) -> list[Taint]:
  inner = eqn.params['jaxpr']
  # Counted here, for JAX says it in another way since 0.11: a step sees of what
  # is scanned one axis less.
  scanned = _axes_less(eqn.invars, inner.in_avals)
  carried = len(eqn.outvars) - _axes_less(eqn.outvars, inner.out_avals)
  consts = len(ins) - scanned - carried
  first, carry = ins[:consts], ins[consts : consts + carried]
  xs = [_step(eqn, t) for t in ins[consts + carried :]]  # A step sees a part.

  def body(carry):
    return _inside(inner, [*first, *carry, *xs], rules)

  carry = _settled(carry, lambda c: body(c)[:carried])
  return [_step(eqn, out) for out in (*carry, *body(carry)[carried:])]


def _axes_less(outside: Sequence[Any], inside: Sequence[Any]) -> int:
  """How many values have fewer axes in a loop's step than outside of it."""
  return sum(
      len(value.aval.shape) > len(step.shape)
      for value, step in zip(outside, inside, strict=True)
  )


def _while(eqn: Any, ins: list[Taint], rules: Rules) -> list[Taint]:
  of_cond, of_body = eqn.params['cond_nconsts'], eqn.params['body_nconsts']
  asked, first = ins[:of_cond], ins[of_cond : of_cond + of_body]
  carry = _settled(
      ins[of_cond + of_body :],
      lambda c: _inside(eqn.params['body_jaxpr'], [*first, *c], rules),
  )
  # How often it runs is in all that comes out.
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
) -> list[Taint]:
  """A loop's carry once nothing is added to it.

  It is unchanged, with no way from its source, if it is so after every step.
  """
  whole = lambda taints: [
      {source: way is None for source, way in t.items()} for t in taints
  ]
  while True:
    new = [_either(a, b) for a, b in zip(carry, body(carry))]
    if whole(new) == whole(carry):
      return new
    carry = new


def _either(one: Taint, other: Taint) -> Taint:
  """Of a value that is one or the other: a way is kept before none."""
  known = lambda t: {source: way for source, way in t.items() if way}
  return _union(known(one), known(other), one, other)


def _union(*taints: Mapping[str, Step | None]) -> Taint:
  """All sources; of several ways from one, the first."""
  return {s: way for taint in reversed(taints) for s, way in taint.items()}


def _step(eqn: Any, taint: Taint) -> Taint:
  if not taint:
    return {}
  name = _place(eqn)
  return {source: Step(name, before) for source, before in taint.items()}


def _place(eqn: Any) -> str:
  """Where an equation was written, 'function (file:line) primitive'."""
  traceback = eqn.source_info.traceback
  for frame in traceback.frames if traceback else ():
    file = frame.file_name
    library = 'site-packages' in file or file.startswith(STANDARD)
    if not library and not file.startswith('<'):
      return f'{frame.function_name} ({Path(file).name}:{frame.line_num})'
  return eqn.primitive.name
