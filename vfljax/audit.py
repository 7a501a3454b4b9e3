"""An audit of what crosses between parties in a round, proved from its trace.

`play_round` is traced with shapes in place of numbers, every input is given its
owner, and `vfljax.flow` follows it. A message may depend on what its sender
knows, and what a party keeps for the next round on its own, on the messages it
was sent, and on what all know: the round's key and which rows are samples
(`crossing.rows` of the labels that came into the round, which have to be
distributions or zeros). What a defense has two parties compute with is declared
in one place, `Defense.lent`.

  audit.check(defense, vfl, txs, batch)    # ValueError with the way of a leak
  audit.report(defense, vfl, txs, batch)   # what crosses, and all leaks

What it does not say: the key is everybody's, so whether noise is a secret is
not looked at; nor what messages tell, which is what attacks are for. `init`,
`prepare` and `epoch` are not part of a round: by their arguments they are the
active party's, and what `epoch` puts into memory that is lent (`Defense.lent`)
goes to those parties unseen by the audit. What a defense closes over is taken
as public, unless it has an axis as long as the round has samples:
`Report.constants` lists arrays, but not numbers, which are part of the program.
A hook may proceed otherwise in a round of another size: one report is of one
size. The round is traced as for a CPU; on a GPU it adds up in another order.
"""
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from vfljax import crossing, flow, protocol, target
from vfljax.adversary import HONEST, Adversary
from vfljax.defense import Defense
from vfljax.types import VFL, Batch, PartyState, State, Transforms

KEY, LABELS, MEMORY = 'the key', 'labels', 'memory of the defense'
ROWS, PER_ROW = crossing.ROWS, 'a constant with a row for each sample'
EVIL = 'memory of the adversary'
Parties = frozenset[int]


class Crossing(NamedTuple):
  """A message of passive party `party`: 'up' from it, or 'down' to it."""

  party: int
  direction: str
  shape: tuple[int, ...]
  dtype: str
  bytes: int


class Leak(NamedTuple):
  """Something that a party may not learn, and the way it took to that party.

  Attributes:
    source: What leaks, such as 'labels' or 'features of party 1'.
    sink: Where it comes to, such as 'message up, party 2'.
    path: Functions with file and line, from the source to the sink.
  """

  source: str
  sink: str
  path: tuple[str, ...]

  def __str__(self) -> str:
    return ' -> '.join([self.source, *self.path, self.sink])


class Report(NamedTuple):
  """What crosses between the parties of a round.

  Attributes:
    crossing: The messages, party by party.
    leaks: What crosses beside them; () if nothing does.
    constants: Shapes and types of the arrays that the round closes over.
    samples: In the round.
    borrowers: Passive parties that compute with memory which the defense lends
      them (`Defense.lent`).
  """

  crossing: tuple[Crossing, ...]
  leaks: tuple[Leak, ...]
  constants: tuple[tuple[tuple[int, ...], str], ...]
  samples: int
  borrowers: tuple[int, ...] = ()

  def bytes_a_sample(self, direction: str) -> float:
    """Of all passive parties' messages 'up' or 'down'."""
    own = sum(c.bytes for c in self.crossing if c.direction == direction)
    return own / self.samples


def check(
    defense: Defense, vfl: VFL, txs: Transforms, batch: Batch,
    adversary: Adversary = HONEST, auxiliary: Batch | None = None,
) -> Report:
  """The report on a round in which nothing but messages crosses.

  Args: as of `report`.

  Raises:
    ValueError: if something else does, with its way; if a round cannot be
      followed.
  """
  found = report(defense, vfl, txs, batch, adversary, auxiliary)
  if found.leaks:
    ways = '\n'.join(f'  {leak}' for leak in found.leaks)
    raise ValueError(
        'Something crosses between parties that is no message:\n'
        f'{ways}\nHooks must use their arguments alone; what two parties '
        'compute with is declared by `Defense.lent`.'
    )
  return found


def report(
    defense: Defense, vfl: VFL, txs: Transforms, batch: Batch,
    adversary: Adversary = HONEST, auxiliary: Batch | None = None,
) -> Report:
  """What crosses in a round; by tracing alone, nothing is computed.

  Args:
    defense, vfl, txs, adversary: The federation's.
    batch: Arrays, or their shapes (`jax.ShapeDtypeStruct`).
    auxiliary: The active party's own samples, for defenses that need some.

  Raises:
    ValueError: if the round has side effects, or marks a message twice.
  """
  def init(key, batch, auxiliary):
    return protocol.init(key, vfl, defense, txs, batch, adversary, auxiliary)

  def play(key, state, batch):
    return protocol.play_round(
        key, vfl, defense, txs, state, batch, adversary
    )

  key = jax.eval_shape(lambda: jax.random.key(0))
  state = jax.eval_shape(init, key, batch, auxiliary)
  with target.tracing_for('cpu'):  # Where the sum of a row is one step.
    traced, (after, played) = jax.make_jaxpr(play, return_shape=True)(
        key, state, batch
    )
  ledger = _Ledger(len(state.parties), adversary.parties, len(batch.labels))
  names = KEY, _of_state(defense, state, ledger), _of_batch(batch, ledger)
  taints = flow.follow(
      traced, jax.tree.leaves(names), flow.Rules(ledger.constant, ledger.mark)
  )
  kept = jax.tree.leaves(_of_state(defense, after, ledger))
  for name, taint in zip(kept, taints):
    ledger.judge(name, taint)
  ledger.all_marked()
  return Report(
      _crossing(played.messages), tuple(ledger.leaks.values()),
      tuple(ledger.constants), len(batch.labels),
      tuple(sorted(ledger.borrowers)),
  )


class _Ledger:
  """Who may know what, and who was found to know more."""

  def __init__(self, parties: int, liars: Sequence[int], rows: int):
    everyone = frozenset(range(parties))
    self.parties, self.liars, self.rows = parties, frozenset(liars), rows
    self.who: dict[str, Parties] = {
        KEY: everyone, ROWS: everyone, LABELS: frozenset({0}),
        PER_ROW: frozenset(), EVIL: self.liars,
    }
    for k in range(1, parties):
      for way in ('up', 'down'):
        self.who[crossing.name(way, k)] = self.allies(k) | {0}
    self.leaks: dict[tuple[str, str], Leak] = {}
    self.constants: list[tuple[tuple[int, ...], str]] = []
    self.marked: set[str] = set()
    self.borrowers: set[int] = set()

  def allies(self, k: int) -> Parties:
    """Who knows what party k knows: parties that deviate work together."""
    return self.liars if k in self.liars else frozenset({k})

  def own(self, what: str, k: int) -> str:
    """The name of what party k has."""
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
    """Notes what a sink depends on that one who has the sink may not know."""
    knowing = self.who[sink] if knowing is None else knowing
    for source, way in taint.items():
      if not knowing <= self.who[source]:
        leak = Leak(source, sink, flow.path(way))
        self.leaks.setdefault((source, sink), leak)

  def mark(self, name: str, taint: flow.Taint, made_by: Any) -> flow.Taint:
    """What is known of a marked value's sources behind the mark."""
    if name == ROWS:
      # One step from the labels: the sum itself.
      way = taint.get(LABELS)
      plain = len(taint) == 1 and way is not None and way.before is None
      return {ROWS: None} if plain and _adds_up_rows(made_by) else taint
    for k in range(1, self.parties):
      for way, sender in (('up', self.allies(k)), ('down', frozenset({0}))):
        if name == crossing.name(way, k):
          self.once(name)
          self.judge(name, taint, sender)
          return {name: None}
    return taint

  def once(self, name: str) -> None:
    """Notes a mark that `protocol` makes, and nobody else may."""
    if name in self.marked:
      raise ValueError(f'The {name!r} is marked twice in a round.')
    self.marked.add(name)

  def constant(self, value: Any) -> str:
    shape = tuple(getattr(value, 'shape', ()))
    if shape and (shape, str(value.dtype)) not in self.constants:
      self.constants.append((shape, str(value.dtype)))
    return PER_ROW if self.rows in shape else ''

  def all_marked(self) -> None:
    missing = {
        crossing.name(way, k)
        for k in range(1, self.parties) for way in ('up', 'down')
    } - self.marked
    if missing:
      raise ValueError(
          f'No mark of {", ".join(sorted(missing))} in the traced round: the '
          'audit does not know its messages.'
      )


def _adds_up_rows(eqn: Any) -> bool:
  """Whether an equation adds up each row of a matrix, which tells no class."""
  return (
      eqn is not None and eqn.primitive.name == 'reduce_sum'
      and eqn.invars[0].aval.ndim == 2 and tuple(eqn.params['axes']) == (1,)
  )


def _named(tree: Any, name: str) -> Any:
  return jax.tree.map(lambda leaf: name, tree)


def _of_batch(batch: Batch, ledger: _Ledger) -> Batch:
  """By leaf, the name of what it is."""
  features = tuple(
      _named(x, ledger.own('features', k))
      for k, x in enumerate(batch.features)
  )
  return Batch(features, _named(batch.labels, LABELS))


def _of_state(defense: Defense, state: State, ledger: _Ledger) -> State:
  """By leaf, the name of what it is."""
  parties = tuple(
      PartyState(
          _named(p.params, ledger.own('weights', k)),
          _named(p.opt, ledger.own('optimizer', k)),
      ) for k, p in enumerate(state.parties)
  )
  leaves, tree = jax.tree.flatten(state.defense)
  numbered = jax.tree.unflatten(tree, range(len(leaves)))
  users: list[set[int]] = [set() for _ in leaves]
  for k in range(1, len(state.parties)):
    for i in jax.tree.leaves(defense.lent(numbered, k)):
      users[i].add(k)
  memory = [ledger.lent(frozenset(parties)) for parties in users]
  return State(
      parties, jax.tree.unflatten(tree, memory), _named(state.adversary, EVIL)
  )


def _crossing(messages: Any) -> tuple[Crossing, ...]:
  return tuple(
      Crossing(
          k, way, tuple(m.shape), str(m.dtype), m.size * m.dtype.itemsize
      )
      for k, pair in enumerate(zip(messages.up, messages.down), start=1)
      for way, m in zip(('up', 'down'), pair)
  )
