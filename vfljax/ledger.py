"""`audit`'s ledger: which party may know what in a round, and leaks found.

`vfljax.flow` finds what a value depends on; for the program's constants and the
marks of `vfljax.crossing` it asks the ledger.
"""
from collections.abc import Sequence
from typing import Any, NamedTuple

from vfljax import check, crossing, flow

KEY, LABELS, MEMORY = 'the key', 'labels', 'memory of the defense'
ROWS, PER_ROW = crossing.ROWS, 'a constant with a row for each sample'
EVIL, AUXILIARY = 'memory of the adversary', 'auxiliary samples'
Parties = frozenset[int]


class Leak(NamedTuple):
  """A dependence on something that a party may not know.

  Attributes:
    source: What leaks, such as 'labels' or 'features of party 1'.
    sink: Where it arrives, such as 'message up, party 2'.
    path: Functions with file and line, from the source to the sink.
  """

  source: str
  sink: str
  path: tuple[str, ...]

  def __str__(self) -> str:
    return ' -> '.join([self.source, *self.path, self.sink])


class Ledger:
  """Which party may know which source, and the leaks found so far.

  Args:
    parties: How many there are, the active one with them.
    liars: The passive ones that deviate, from 1.
    rows: Of a batch.

  Raises:
    ValueError: for numbers that are none of parties or rows.
  """

  def __init__(self, parties: int, liars: Sequence[int], rows: int):
    check.count('parties', parties)
    check.count('rows', rows)
    for liar in liars:
      check.count('A party that deviates', liar, 1, parties - 1)
    everyone = frozenset(range(parties))
    self.parties, self.liars, self.rows = parties, frozenset(liars), rows
    self.who: dict[str, Parties] = {
        KEY: everyone, ROWS: everyone, LABELS: frozenset({0}),
        PER_ROW: frozenset(), EVIL: self.liars, AUXILIARY: frozenset({0}),
    }
    for k in range(1, parties):
      for direction in ('up', 'down'):
        self.who[crossing.name(direction, k)] = self.allies(k) | {0}
    self.leaks: dict[tuple[str, str], Leak] = {}
    self.constants: list[tuple[tuple[int, ...], str]] = []
    self.marked: set[str] = set()
    self.when = ''
    self.borrowers: set[int] = set()

  def allies(self, k: int) -> Parties:
    """The parties that know what party k knows: those that deviate collude.

    Raises:
      ValueError: if nobody is at k.
    """
    check.count('k', k, 0, self.parties - 1)
    return self.liars if k in self.liars else frozenset({k})

  def own(self, what: str, k: int) -> str:
    """The name of a source that party k owns, such as its features."""
    name = f'{what} of party {k}'
    self.who[name] = self.allies(k)
    return name

  def lent(self, parties: Parties) -> str:
    """The name of the part of the defense's memory that passive parties use."""
    self.borrowers |= parties
    listed = ', '.join(map(str, sorted(parties)))
    name = f'{MEMORY}, lent to party {listed}' if parties else MEMORY
    self.who[name] = parties.union({0}, *map(self.allies, parties))
    return name

  def judge(
      self, sink: str, taint: flow.Taint, knowing: Parties | None = None
  ) -> None:
    """Records a leak for each source that the sink's owners may not know."""
    knowing = self.who[sink] if knowing is None else knowing
    for source, last_step in taint.items():
      if not knowing <= self.who[source]:
        leak = Leak(source, sink, flow.path(last_step))
        self.leaks.setdefault((source, sink), leak)

  def mark(self, name: str, taint: flow.Taint, made_by: Any) -> flow.Taint:
    """The taint of a marked value after the mark.

    A message is a source of its own from here on, if its sender knew all that
    it is made of. So is `crossing.rows`, if it is the labels' sum over classes.
    """
    if name == ROWS:
      step = taint.get(LABELS)
      one_step = step is not None and step.before is None
      plain = len(taint) == 1 and one_step and _adds_up_rows(made_by)
      return {ROWS: None} if plain else taint
    for k in range(1, self.parties):
      senders = dict(up=self.allies(k), down=frozenset({0}))
      for direction, sender in senders.items():
        if name == crossing.name(direction, k):
          self.once(name)
          self.judge(name + self.when, taint, sender)
          return {name: None}
    return taint

  def once(self, name: str) -> None:
    """Records a mark of `protocol`'s; raises ValueError if it occurs twice."""
    if name in self.marked:
      raise ValueError(f'The {name!r} is marked twice in a round.')
    self.marked.add(name)

  def constant(self, value: Any) -> str:
    shape = tuple(getattr(value, 'shape', ()))
    if shape and (shape, str(value.dtype)) not in self.constants:
      self.constants.append((shape, str(value.dtype)))
    return PER_ROW if self.rows in shape else ''

  def inference(self) -> None:
    """From here on messages are those of a prediction."""
    self.marked, self.when = set(), ', at inference'

  def all_marked(self, directions: Sequence[str] = ('up', 'down')) -> None:
    missing = {
        crossing.name(direction, k)
        for k in range(1, self.parties) for direction in directions
    } - self.marked
    if missing:
      raise ValueError(
          f'No mark of {", ".join(sorted(missing))} in the traced '
          f'{"prediction" if self.when else "round"}: the audit does not know '
          'its messages.'
      )


def _adds_up_rows(eqn: Any) -> bool:
  """Whether an equation sums each row of a matrix, which reveals no class."""
  return (
      eqn is not None and eqn.primitive.name == 'reduce_sum'
      and eqn.invars[0].aval.ndim == 2 and tuple(eqn.params['axes']) == (1,)
  )
