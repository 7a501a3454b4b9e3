"""An audit of what crosses between parties in a round, proved from its trace.

`play_round` is traced with shapes in place of numbers, every input is given its
owner, and `vfljax.flow` follows it. A message may depend on what its sender
knows, and what a party keeps for the next round on its own, on the messages it
was sent, and on what all know: the round's key and which rows are samples
(`crossing.rows` of the labels that came into the round, which have to be
distributions or zeros). What a defense has two parties compute with is declared
in one place, `Defense.lent`.

  audit.check(defense, vfl, txs, batch)    # ValueError with a leak's path
  audit.report(defense, vfl, txs, batch)   # what crosses, and all leaks

`init` is traced, too: the initial state of a passive party must not depend on
the active party's auxiliary samples. So is `predict`, where messages go up
alone, of honest parties. And so is `expose`: a view shows of a party's weights
nothing that the party does not know. `prepare` and `epoch` have arguments of
the active party only. What `epoch` puts into lent memory reaches the borrowing
parties between two epochs; that is no leak, as it is declared, but
`Report.handed` says what it depends on.

Not checked: whether noise is secret, since all parties have the key; and what
messages reveal, which is what attacks are for. Nor what Python keeps between
two programs: labels that `prepare` puts into a global are a constant of the
rounds, if they are there when a round is traced. What a defense closes over is
taken as public, unless it has an axis as long as the round has samples and a
round with one more sample cannot be traced. `Report.constants` lists the arrays
closed over, but not numbers, which are part of the program. A hook may act
otherwise in a round of another size: a report is of one size. The round is
traced as for a CPU; on a GPU sums have another order.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from vfljax import flow, protocol, target
from vfljax.adversary import HONEST, Adversary
from vfljax.defense import Defense
from vfljax.hooks import Holdings, borrowers
from vfljax.ledger import (
    AUXILIARY, EVIL, KEY, LABELS, PER_ROW, Leak, Ledger,
)
from vfljax.types import VFL, Batch, Key, PartyState, State, Transforms


class Crossing(NamedTuple):
  """A message of passive party `party`: 'up' from it, or 'down' to it."""

  party: int
  direction: str
  shape: tuple[int, ...]
  dtype: str
  bytes: int


class Handed(NamedTuple):
  """What `Defense.epoch` hands to passive party `party` in lent memory.

  Attributes:
    made_of: Inputs on which it may depend and which that party does not know.
  """

  party: int
  made_of: tuple[str, ...]


class Report(NamedTuple):
  """What crosses between the parties of a round.

  Attributes:
    crossing: The messages of a round, party by party.
    leaks: What crosses otherwise, at inference, too; () if nothing does.
    constants: Shapes and types of the arrays that the round closes over.
    samples: Number of samples in the round.
    borrowers: Passive parties that compute with memory which the defense lends
      them (`Defense.lent`).
    handed: What `Defense.epoch` hands to them in that memory.
  """

  crossing: tuple[Crossing, ...]
  leaks: tuple[Leak, ...]
  constants: tuple[tuple[tuple[int, ...], str], ...]
  samples: int
  borrowers: tuple[int, ...] = ()
  handed: tuple[Handed, ...] = ()

  def bytes_a_sample(self, direction: str) -> float:
    """Bytes a sample of all passive parties' messages 'up' or 'down'."""
    own = sum(c.bytes for c in self.crossing if c.direction == direction)
    return own / self.samples

  @property
  def made_anew_of(self) -> tuple[str, ...]:
    """All inputs in `handed`, over all parties, sorted."""
    return tuple(sorted({x for own in self.handed for x in own.made_of}))


def check(
    defense: Defense, vfl: VFL, txs: Transforms, batch: Batch,
    adversary: Adversary = HONEST, auxiliary: Batch | None = None,
) -> Report:
  """Checks that nothing but messages crosses in a round: the report.

  Args: as in `report`.

  Raises:
    ValueError: if something else crosses, with its path; as `report`.
  """
  return refuse(report(defense, vfl, txs, batch, adversary, auxiliary))


def refuse(found: Report) -> Report:
  """The same report; ValueError with their paths if it has leaks."""
  if found.leaks:
    ways = '\n'.join(f'  {leak}' for leak in found.leaks)
    raise ValueError(
        'Something crosses between parties that is not a message:\n'
        f'{ways}\nHooks must use their arguments alone; what two parties '
        'compute with is declared by `Defense.lent`.'
    )
  return found


def report(
    defense: Defense, vfl: VFL, txs: Transforms, batch: Batch,
    adversary: Adversary = HONEST, auxiliary: Batch | None = None,
) -> Report:
  """What crosses in a round, found by tracing; nothing is computed.

  Start and inference are looked at for leaks alone.

  Args:
    defense, vfl, txs, adversary: The federation's.
    batch: Arrays, or their shapes (`jax.ShapeDtypeStruct`).
    auxiliary: The active party's own samples, for defenses that need some.

  Raises:
    ValueError: if the start, the round, a prediction, `expose` or (with lent
      memory) an epoch has side effects, or a message is marked twice.
  """
  def init(key, batch, auxiliary):
    return protocol.init(key, vfl, defense, txs, batch, adversary, auxiliary)

  def play(key, state, batch):
    return protocol.play_round(
        key, vfl, defense, txs, state, batch, adversary
    )

  key = jax.eval_shape(lambda: jax.random.key(0))
  begun, state = jax.make_jaxpr(init, return_shape=True)(key, batch, auxiliary)
  with target.tracing_for('cpu'):  # Where the sum of a row is one step.
    traced, (after, played) = jax.make_jaxpr(play, return_shape=True)(
        key, state, batch
    )
  ledger = Ledger(len(state.parties), adversary.parties, len(batch.labels))
  data, own = _of_batch(batch, ledger), _of_state(defense, state, ledger)
  _judge_all(ledger, own, flow.follow(
      begun, jax.tree.leaves((KEY, data, _named(auxiliary, AUXILIARY)))
  ))
  rules = flow.Rules(ledger.constant, ledger.mark)
  _judge_all(ledger, _of_state(defense, after, ledger), flow.follow(
      traced, jax.tree.leaves((KEY, own, data)), rules
  ))
  ledger.all_marked()
  _judge_views(defense, key, state, ledger)
  _judge_inference(defense, vfl, key, state, batch, ledger)
  leaks = [*ledger.leaks.values()]
  if PER_ROW in {leak.source for leak in leaks} and _fits_more(
      play, key, state, batch
  ):
    leaks = [leak for leak in leaks if leak.source != PER_ROW]
  return Report(
      _crossing(played.messages), tuple(leaks), tuple(ledger.constants),
      len(batch.labels), tuple(sorted(ledger.borrowers)),
      _handed(defense, vfl, key, state, auxiliary, ledger),
  )


def _judge_all(ledger: Ledger, names: Any, taints: list[flow.Taint]) -> None:
  """Checks a program's first outputs, named by the leaves of `names`."""
  for name, taint in zip(jax.tree.leaves(names), taints):
    ledger.judge(name, taint)


def _judge_views(defense: Defense, key: Key, state: State, ledger: Ledger):
  """Checks what `expose` says that each passive party reads."""
  for k in range(1, len(state.parties)):
    def read(key, memory, weights, k=k):
      return defense.expose(memory, key, k, weights)

    given, names = (
        (s.defense, s.parties[k].params['bottom'])
        for s in (state, _of_state(defense, state, ledger))
    )
    traced = jax.make_jaxpr(read)(key, *given)
    for taint in flow.follow(traced, jax.tree.leaves((KEY, *names))):
      ledger.judge(f'what party {k} reads', taint, frozenset({k}))


def _judge_inference(
    defense: Defense, vfl: VFL, key: Key, state: State, batch: Batch,
    ledger: Ledger,
) -> None:
  """Checks a prediction's messages, and that it is made of them."""
  def predict(key, state, features):
    return protocol.predict(key, vfl, defense, state, features)

  ledger.inference()
  traced = jax.make_jaxpr(predict)(key, state, batch.features)
  names = _of_state(defense, state, ledger), _of_batch(batch, ledger).features
  for taint in flow.follow(
      traced, jax.tree.leaves((KEY, *names)), flow.Rules(mark=ledger.mark)
  ):
    ledger.judge('a prediction', taint, frozenset({0}))
  ledger.all_marked(('up',))


def _handed(
    defense: Defense, vfl: VFL, key: Key, state: State,
    auxiliary: Batch | None, ledger: Ledger,
) -> tuple[Handed, ...]:
  """`Report.handed`: what an epoch puts into memory lent to passive parties."""
  def epoch(memory, key, params, auxiliary):
    return defense.epoch(memory, key, Holdings(vfl, params, auxiliary))

  if not ledger.borrowers:
    return ()
  params, own = state.parties[0].params, _of_state(defense, state, ledger)
  traced, after = jax.make_jaxpr(epoch, return_shape=True)(
      state.defense, key, params, auxiliary
  )
  taints = flow.follow(traced, jax.tree.leaves((
      own.defense, KEY, own.parties[0].params, _named(auxiliary, AUXILIARY)
  )))
  found: dict[int, set[str]] = {}
  users = borrowers(defense, after, len(state.parties) - 1)
  for parties, taint in zip(users, taints, strict=True):
    for k in parties:
      new = {source for source in taint if k not in ledger.who[source]}
      found.setdefault(k, set()).update(new)
  return tuple(
      Handed(k, tuple(sorted(new))) for k, new in sorted(found.items()) if new
  )


def _fits_more(play: Callable, key: Key, state: State, batch: Batch) -> bool:
  """Whether a round with one more sample can be traced.

  A constant with a row per sample of this round does not fit there; a matrix
  that has an axis of that length by chance (Winograd's has 16 rows) does.
  """
  more = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct((x.shape[0] + 1, *x.shape[1:]), x.dtype),
      batch,
  )
  try:
    jax.eval_shape(play, key, state, more)
  except Exception:
    return False
  return True


def _named(tree: Any, name: str) -> Any:
  return jax.tree.map(lambda leaf: name, tree)


def _of_batch(batch: Batch, ledger: Ledger) -> Batch:
  """By leaf, the name of what it is."""
  features = tuple(
      _named(x, ledger.own('features', k))
      for k, x in enumerate(batch.features)
  )
  return Batch(features, _named(batch.labels, LABELS))


def _of_state(defense: Defense, state: State, ledger: Ledger) -> State:
  """By leaf, the name of what it is."""
  parties = tuple(
      PartyState(
          _named(p.params, ledger.own('weights', k)),
          _named(p.opt, ledger.own('optimizer', k)),
      ) for k, p in enumerate(state.parties)
  )
  users = borrowers(defense, state.defense, len(state.parties) - 1)
  memory = jax.tree.unflatten(
      jax.tree.structure(state.defense),
      [ledger.lent(frozenset(parties)) for parties in users],
  )
  return State(parties, memory, _named(state.adversary, EVIL))


def _crossing(messages: Any) -> tuple[Crossing, ...]:
  return tuple(
      Crossing(
          k, way, tuple(m.shape), str(m.dtype), m.size * m.dtype.itemsize
      )
      for k, pair in enumerate(zip(messages.up, messages.down), start=1)
      for way, m in zip(('up', 'down'), pair)
  )
