"""What a compiled program consists of, counted in XLA's text of it.

Facts about the program, not times: kernels that are started, loops whose length
is not known (their end is asked for by the host, so they stay outside of a CUDA
graph), calls of the host, bytes that kernels write, and how many of these are
a TPU's padding.
"""
from collections.abc import Iterator
import math
import re
from typing import NamedTuple

# What names a value and starts nothing.
FREE = frozenset(
    'parameter constant get-tuple-element tuple bitcast after-all opt-barrier '
    'copy-done async-done slice-done dynamic-slice-done partition-id '
    'replica-id custom-call-done fusion-done'.split()
)
BYTES = dict(
    pred=1, s8=1, u8=1, s16=2, u16=2, bf16=2, f16=2, s32=4, u32=4, f32=4, s64=8,
    u64=8, f64=8,
)
_HEAD = re.compile(r'^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$')
_LINE = re.compile(r'^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$')
_LAYOUT = re.compile(r'\{[^{}]*\}|/\*index=\d+\*/')
_CODE = re.compile(r'(?:^|[\s)])([a-z][a-z0-9\-]*)\(')
_ARRAY = re.compile(r'(\w+)\[([\d,]*)\](?:\{([\d,]*)(?::([^{}]*))?\})?')
_TRIP = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


class Op(NamedTuple):
  """An instruction: its code, and all that stands after '='."""

  code: str
  text: str

  def named(self, what: str) -> str:
    """The computation that is its `what`."""
    found = re.search(rf'{what}=%?([\w.\-]+)', self.text)
    return found[1] if found else ''


class Counts(NamedTuple):
  """Of a computation, with the rounds of loops of known length.

  Attributes:
    kernels: That are started.
    written: Bytes that they write, as arrays.
    padded: The same with a TPU's padding.
    open: Loops of unknown length, each counted as one round.
    host: Calls of the host.
  """

  kernels: int = 0
  written: int = 0
  padded: int = 0
  open: int = 0
  host: int = 0

  def plus(self, other: 'Counts', times: int = 1) -> 'Counts':
    rounds = (times, times, times, 1, 1)
    return Counts(*(a + n * b for a, b, n in zip(self, other, rounds)))


class Program:
  """A compiled program's text, taken apart."""

  def __init__(self, text: str):
    self._parts: dict[str, list[Op]] = {}
    self._known: dict[str, Counts] = {}
    self._entry, inside = '', ''
    for line in text.splitlines():
      head = _HEAD.match(line)
      if head:
        inside = head[2]
        self._parts[inside] = []
        self._entry = inside if head[1] else self._entry
      elif line.startswith('}'):
        inside = ''
      elif inside and (found := _LINE.match(line)):
        code = _CODE.search(_LAYOUT.sub('', found[2]))
        self._parts[inside].append(Op(code[1] if code else '?', found[2]))

  def whole(self) -> Counts:
    """Of all that the program does."""
    return self._of(self._entry)

  def round(self, rounds: int) -> Counts | None:
    """Of one round of the longest loop of so many, if there is such a loop."""
    found = [
        self._of(op.named('body')) for op in self._loops()
        if self._trips(op) == rounds
    ]
    return max(found, default=None)

  def _loops(self) -> Iterator[Op]:
    for part in self._parts.values():
      yield from (op for op in part if op.code == 'while')

  def _trips(self, op: Op) -> int | None:
    """How often a loop goes round, where that stands in the program."""
    told = _TRIP.search(op.text)
    if told:
      return int(told[1])
    # For a TPU it is not told: what the counter is compared with.
    test = self._parts.get(op.named('condition'), [])
    numbers = [
        int(found[1]) for own in test
        if (found := re.match(r's32\[\]\S* constant\((\d+)\)', own.text))
    ]
    plain = {own.code for own in test} <= {
        'parameter', 'get-tuple-element', 'constant', 'compare', 'bitcast'
    }
    return numbers[0] if plain and len(numbers) == 1 else None

  def _of(self, name: str) -> Counts:
    if name not in self._known:
      total = Counts()
      for op in self._parts.get(name, []):
        total = total.plus(*self._of_op(op))
      self._known[name] = total
    return self._known[name]

  def _of_op(self, op: Op) -> tuple[Counts, int]:
    if op.code in FREE:
      return Counts(), 1
    if op.code == 'while':
      trips, body = self._trips(op), self._of(op.named('body'))
      if trips is None:
        return body.plus(Counts(open=1)), 1
      return body, trips
    if op.code == 'conditional':
      names = re.search(r'branch_computations=\{([^}]*)\}', op.text)
      some = [op.named('true_computation'), op.named('false_computation')]
      if names:
        some = [x.strip().lstrip('%') for x in names[1].split(',')]
      return max(self._of(x) for x in some).plus(Counts(kernels=1)), 1
    if op.code == 'call':
      return self._of(op.named('to_apply')), 1
    asks = op.code == 'custom-call' and 'callback' in op.text
    result = op.text.split(f' {op.code}(')[0]
    arrays, padded = sizes(result)
    return Counts(1, arrays, padded, 0, int(asks)), 1


def sizes(text: str) -> tuple[int, int]:
  """Bytes of the arrays in a type, and the same with their padding."""
  plain = padded = 0
  for kind, shape, order, tiles in _ARRAY.findall(text):
    if kind not in BYTES:
      continue
    sides = [int(n) for n in shape.split(',') if n]
    plain += BYTES[kind] * math.prod(sides)
    padded += BYTES[kind] * math.prod(_filled(sides, order, tiles))
  return plain, padded


def _filled(sides: list[int], order: str, tiles: str) -> list[int]:
  """An array's sides as they lie in memory: whole tiles."""
  tile = re.match(r'T\(([\d,]+)\)', tiles)
  if not tile or not sides:
    return sides
  inner = [int(n) for n in tile[1].split(',')]
  if len(inner) > len(sides):
    inner = [math.prod(inner)]
  major_first = [int(n) for n in order.split(',')][::-1]
  full = list(sides)
  for axis, side in zip(major_first[-len(inner):], inner):
    full[axis] = -(-full[axis] // side) * side
  return full
