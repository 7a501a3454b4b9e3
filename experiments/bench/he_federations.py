"""Small federations under every protocol of vfljax.he, and their plain twins.

For `bench.he` and for tests: `ALL[name](keys, rows, inputs, hidden)` makes one,
has it take one step on real ciphertexts, and has `protocol.play_round` take the
same step in the clear.
"""
from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.bench.he_plain import (
    CLASSES, LOGITS, RATE, TANH, chained, data, given, learner, linear,
    of_both, of_sum, plain_step, start, taylor,
)
from vfljax.he import acml, blindfl, ckks, hardy, local, party, sfa, spnn
from vfljax.he.encoding import decode
from vfljax.he.packing import Sums
from vfljax.types import Round


class Run(NamedTuple):
  """A federation that has taken one step.

  Attributes:
    line: What was said.
    again: Takes another step on the same batch.
    cost: What the formula says of one step.
    found: () -> what was counted so far, with what came before training.
    compared: (what it has trained, the same of plain training), one after
      another; the former is a function, for `again` goes on.
    plain: The round in the clear.
    own: By party, what it can take away from the last batch's messages.
  """

  line: party.Channel
  again: Callable[[], Any]
  cost: party.Cost
  found: Callable[[], party.Cost]
  compared: list[tuple[Callable[[], Any], Any]]
  plain: Round
  own: Callable[[], dict[str, dict[str, Any]]]

  @property
  def error(self) -> float:
    """The largest difference to plain training, of any weight."""
    pairs = [
        pair for mine, theirs in self.compared
        for pair in zip(jax.tree.leaves(mine()), jax.tree.leaves(theirs))
    ]
    return max(float(np.abs(np.asarray(a) - b).max()) for a, b in pairs)


def _run(
    parties: list[party.Party], line: party.Channel, again: Callable,
    cost: party.Cost, compared: list, plain: Round,
) -> Run:
  again()
  found = lambda: party.cost(parties, line)
  own = lambda: {one._name: one._masks for one in parties}
  return Run(line, again, cost, found, compared, plain, own)


def run_acml(
    keys, rows: int = 4, inputs: int = 10, hidden: int = 3, workers: int = 1
) -> Run:
  """The embedding is as wide as the layer after it."""
  batch = data(rows, inputs)
  n, m = batch.x.shape[1], batch.x0.shape[1]
  net = chained(linear(0, n, hidden), TANH)
  own, top = linear(2, m, hidden), chained(TANH, linear(3, hidden, CLASSES))
  passive = acml.Passive(
      learner(net), (hidden, hidden), keys[0], workers=workers
  )
  params = dict(bottom=start(own), top=start(top))
  active = acml.Active(
      local.Top(of_both(own, top), params, RATE),
      start(linear(1, hidden, hidden))['w'], RATE, passive.public, workers,
  )
  layer = lambda: decode(passive._noise + active._weights, acml.FRACTION)
  whole = chained(net, given(layer()))
  state, plain = plain_step([own, whole], top, batch)
  line = acml.channel(passive.public)
  ours, theirs = (p.params for p in state.parties)
  return _run(
      [passive, active], line,
      lambda: acml.step(
          passive, active, line, batch.x, (batch.x0, batch.labels)
      ),
      acml.cost(rows, hidden, hidden, passive.public.bits), [
          (layer, theirs['bottom'][1]['w']),
          (lambda: passive._bottom.params, theirs['bottom'][0]),
          (lambda: active._top.params,
           dict(bottom=ours['bottom'], top=ours['top'])),
      ], plain,
  )


def run_spnn(
    keys, rows: int = 4, inputs: int = 10, hidden: int = 3, workers: int = 1,
    how: str = 'single',
) -> Run:
  """`how`: 'single', 'packed' or 'ckks'."""
  batch = data(rows, inputs)
  private = ckks.PrivateContext() if how == 'ckks' else keys[0]
  scheme: Any = private.public if how == 'ckks' else Sums(
      keys[0].public, 2, how == 'packed'
  )
  first = [linear(k, x.shape[1], hidden)
           for k, x in enumerate((batch.x0, batch.x))]
  middle = chained(TANH, linear(2, hidden, hidden), TANH)
  top = linear(3, hidden, CLASSES)
  state, plain = plain_step(first, chained(middle, top), batch)
  passive = spnn.Passive(learner(first[1]), scheme, workers)
  active = spnn.Active(
      learner(first[0]), local.Top(of_sum(top), start(top), RATE), scheme,
      workers,
  )
  server = spnn.Server(learner(middle, local.Middle), private, scheme)
  line = spnn.channel(private.public)
  ours, theirs = (p.params for p in state.parties)
  return _run(
      [passive, active, server], line,
      lambda: spnn.step(
          passive, active, server, line, batch.x, (batch.x0, batch.labels),
          hidden,
      ),
      spnn.cost(scheme, rows, hidden, hidden), [
          (lambda: passive._bottom.params, theirs['bottom']),
          (lambda: active._bottom.params, ours['bottom']),
          (lambda: (server._middle.params, active._top.params), ours['top']),
      ], plain,
  )


def run_sfa(
    keys, rows: int = 4, inputs: int = 10, hidden: int = 3, workers: int = 1,
    packed: bool = False,
) -> Run:
  """Two parties."""
  batch = data(rows, inputs)
  sums = Sums(keys[0].public, 2, packed, masked=True)
  bottoms = [chained(linear(k, x.shape[1], hidden), TANH)
             for k, x in enumerate((batch.x0, batch.x))]
  top = linear(3, hidden, CLASSES)
  state, plain = plain_step(bottoms, top, batch)
  passive = sfa.Passive(1, learner(bottoms[1]), sums, keys[0], workers)
  active = sfa.Active(
      learner(bottoms[0]), local.Top(of_sum(top), start(top), RATE), sums,
      workers,
  )
  line = sfa.channel(sums)
  ours, theirs = (p.params for p in state.parties)
  return _run(
      [passive, active], line,
      lambda: sfa.step(
          [passive], active, line, [batch.x], (batch.x0, batch.labels)
      ),
      sfa.cost(sums, rows, hidden), [
          (lambda: passive._bottom.params, theirs['bottom']),
          (lambda: active._bottom.params, ours['bottom']),
          (lambda: active._top.params, ours['top']),
      ], plain,
  )


def run_blindfl(
    keys, rows: int = 4, inputs: int = 10, hidden: int = 3, workers: int = 1
) -> Run:
  """The weights' first step; what was told before training is not in `cost`."""
  batch = data(rows, inputs)
  n, m = batch.x.shape[1], batch.x0.shape[1]
  draw = lambda seed, k: np.asarray(start(linear(seed, k, hidden))['w'])
  u, v, u0, v0 = draw(0, n), draw(1, n), draw(2, m), draw(3, m)
  top = chained(TANH, linear(4, hidden, CLASSES))
  passive = blindfl.Passive(
      blindfl.P, keys[0], keys[1].public, (u, v0), rows, workers
  )
  active = blindfl.Active(
      local.Top(of_sum(top), start(top), RATE), RATE, keys[1],
      keys[0].public, (u0, v), rows, workers,
  )
  line = blindfl.channel(passive.public, active.public)
  blindfl.meet(passive, active)
  once = blindfl.cost(rows, n, m, hidden, passive.public.bits)
  before = party.cost([passive, active], line).count
  whole = lambda a, b: decode(a + b, blindfl.FRACTION)
  sums = [
      given(whole(one._own, other._theirs))
      for one, other in ((active, passive), (passive, active))
  ]
  state, plain = plain_step(sums, top, batch)
  ours, theirs = (p.params for p in state.parties)
  return _run(
      [passive, active], line,
      lambda: blindfl.step(
          passive, active, line, batch.x, (batch.x0, batch.labels)
      ),
      once._replace(count=before.plus(once.count)), [
          (lambda: whole(passive._own, active._theirs), theirs['bottom']['w']),
          (lambda: whole(active._own, passive._theirs), ours['bottom']['w']),
          (lambda: active._top.params, ours['top']),
      ], plain,
  )


def run_hardy(
    keys, rows: int = 4, inputs: int = 10, hidden: int = 1, workers: int = 1,
    masked: bool = False,
) -> Run:
  """Logistic regression: `hidden` is not used."""
  del hidden
  batch = data(rows, inputs, 2)
  n, m = batch.x.shape[1], batch.x0.shape[1]
  w0, w = linear(0, m, 1), linear(1, n, 1)
  state, plain = plain_step([w0, w], LOGITS, batch, taylor)
  more = RATE, keys[0].public, masked, workers
  passive = hardy.Passive(hardy.P, start(w)['w'][:, 0], *more)
  active = hardy.Active(hardy.A, start(w0)['w'][:, 0], *more)
  coordinator = hardy.Coordinator(keys[0])
  line = hardy.channel(keys[0].public)
  ours, theirs = (p.params for p in state.parties)
  return _run(
      [passive, active, coordinator], line,
      lambda: hardy.step(
          passive, active, coordinator, line, batch.x,
          (batch.x0, batch.labels[:, 1]),
      ),
      hardy.cost(rows, n, m, keys[0].public.bits, masked), [
          (lambda: passive._weights, theirs['bottom']['w'][:, 0]),
          (lambda: active._weights, ours['bottom']['w'][:, 0]),
      ], plain,
  )


ALL: dict[str, Callable[..., Run]] = {
    'acml': run_acml,
    'spnn': run_spnn,
    'spnn packed': functools.partial(run_spnn, how='packed'),
    'spnn ckks': functools.partial(run_spnn, how='ckks'),
    'sfa': run_sfa,
    'sfa packed': functools.partial(run_sfa, packed=True),
    'blindfl': run_blindfl,
    'hardy': run_hardy,
    'hardy masked': functools.partial(run_hardy, masked=True),
}
