"""Before and after the rounds: the initial state, and inference."""
from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer
import jax.numpy as jnp

from vfljax import adversary as adversaries, check, crossing, passed, samples
from vfljax.adversary import HONEST, Adversary, pick, put
from vfljax.check import Misfit
from vfljax.defense import Defense, Slots, Spec, checked
from vfljax.descent import check_weights
from vfljax.returned import check_slots
from vfljax.types import (
    VFL, Array, Batch, Key, Net, Params, PartyState, State, Transforms,
)


def init(
    key: Key, vfl: VFL, defense: Defense, txs: Transforms, batch: Batch,
    adversary: Adversary = HONEST, auxiliary: Batch | None = None,
) -> State:
  """Draws every party's weights, optimizer states and the defense's slots.

  Args:
    key, vfl, defense, adversary, auxiliary: As in `train.Plan`.
    txs: One optax transformation per party, the active party's first.
    batch: Any batch of the shapes to come.

  Raises:
    ValueError: if `vfl`, `txs` and `batch` differ in their number of parties,
      an argument is not of its type, or a network does not fit its input.
  """
  _check_defense(defense)
  adversaries.check(adversary)
  _check_parties(key, vfl, txs, batch)
  defense, parties = checked(defense), len(vfl.bottoms)
  vfl = vfl._replace(top=defense.top(vfl.top))
  k_top, k_defense, k_adversary, *k_bottoms = jax.random.split(key, 3 + parties)
  bottoms = [
      net.init(k, x) if net else ()
      for net, k, x in zip(vfl.bottoms, k_bottoms, batch.features)
  ]
  embeddings = _embedding_shapes(vfl, bottoms, batch)
  k_slots, k_receive = jax.random.split(k_defense)
  slots = defense.init(k_slots, Spec(
      embeddings[1:], batch.labels.shape[-1], vfl, tuple(bottoms[1:]),
      jax.eval_shape(lambda x: x, batch.features[1:]), auxiliary,
  ))
  check_slots(slots, parties - 1)
  arriving = _arriving(k_receive, defense, slots, embeddings, batch.labels)
  top = _first_top(vfl.top, k_top, arriving)
  _check_logits(vfl, defense, slots, top, arriving, batch.labels)
  passive = zip(bottoms[1:], slots.passive)
  params = [dict(bottom=bottoms[0], top=top, defense=slots.active)]
  params += [dict(bottom=b, defense=d) for b, d in passive]
  check_weights(params)
  states = tuple(PartyState(p, tx.init(p)) for p, tx in zip(params, txs))
  own = pick(batch.features, adversary.parties)
  return State(states, slots.state, adversary.init(k_adversary, own))


def _embedding_shapes(
    vfl: VFL, bottoms: Sequence[Params], batch: Batch
) -> tuple[Any, ...]:
  """The shape of each party's embedding; `None` of one without a network.

  Raises:
    ValueError: if one is no embedding.
  """
  shapes: tuple[Any, ...] = tuple(
      jax.eval_shape(net.apply, p, x) if net else None
      for net, p, x in zip(vfl.bottoms, bottoms, batch.features)
  )
  _check_embeddings(vfl.bottoms, shapes, len(batch.labels))
  return shapes


def _arriving(
    key: Key, defense: Defense, slots: Slots, embeddings: tuple[Any, ...],
    labels: Array,
) -> tuple[Any, ...]:
  """Zeros in the shapes in which all embeddings arrive at the top.

  A defense may change them on the way (`receive`). The top's initial weights
  depend on shapes alone, so zeros will do.
  """
  own, *up = embeddings
  received = jax.eval_shape(lambda: defense.receive(
      slots.active, slots.state, key, _zeros(up), labels
  )[0])
  return _zeros((own, *received))


def _first_top(top: Net, key: Key, arriving: tuple[Any, ...]) -> Any:
  """The top's initial weights; ValueError if its `init` takes no tuple."""
  try:
    return top.init(key, arriving)
  except jax.errors.JAXTypeError:
    raise
  except (AttributeError, TypeError) as error:
    shapes = ', '.join(str(getattr(u, 'shape', None)) for u in arriving)
    raise Misfit(
        f'The top must take the tuple of embeddings, ({shapes}), and failed. '
        'For a top that takes a single array use algorithms.aggregate(top). '
        f'{type(error).__name__}: {error}'
    ) from error


def _zeros(shapes: Sequence[Any]) -> tuple[Any, ...]:
  """Arrays of these shapes; `None` where there is none."""
  return tuple(u and jnp.zeros(u.shape, u.dtype) for u in shapes)


def predict(
    key: Key, vfl: VFL, defense: Defense, state: State,
    features: tuple[Any, ...], present: Sequence | Array | None = None,
    adversary: Adversary = HONEST,
) -> Array:
  """Joint inference: logits [batch, classes].

  Args:
    key: Seeds what a defense draws at inference.
    features: As in `Batch`; no labels are needed.
    present: One number per passive party: 1 if it takes part, 0 if it has quit,
      when its embedding is replaced by zeros. May be traced. Zeros add nothing
      to a sum or a layer's input, but wipe out an element-wise product.
    adversary: Who deviates at inference. Only its hooks `features` and `send`
      are called, with () for their state.

  Raises:
    ValueError: if `present` has not one entry per passive party, has one that
      is neither 0 nor 1, or leaves out every party that has features; if a hook
      of the defense returns a wrong result.
  """
  check.key(key)
  passed.state(state)
  passed.features(features, len(vfl.bottoms))
  adversaries.check(adversary)
  active, defense = state.parties[0], checked(defense)
  if present is not None:
    _check_present(present, vfl)
  k_send, k_active = jax.random.split(key)
  k_lie, k_tamper = jax.random.split(jax.random.fold_in(key, 2))
  liars, lying = adversary.parties, tuple(k - 1 for k in adversary.parties)
  own = adversary.features((), k_lie, pick(features, liars))
  features = put(features, liars, own, 'features')
  up = tuple(
      embed(k_send, vfl, defense, state, k, features[k])
      for k in range(1, len(state.parties))
  )
  lies = adversary.send((), k_tamper, pick(up, lying))
  up = crossing.sent('up', put(up, lying, lies, 'send'))
  if present is not None:
    up = tuple(u * jnp.asarray(p, u.dtype) for u, p in zip(up, present))
  params = active.params
  vfl = vfl._replace(top=defense.top(vfl.top))
  received, _ = defense.receive(
      params['defense'], state.defense, k_active, up, None
  )
  u0 = (
      vfl.bottoms[0].apply(params['bottom'], features[0])
      if vfl.bottoms[0] else None
  )
  logits = vfl.top.apply(params['top'], (u0, *received))
  return defense.decode(state.defense, logits)


def embed(
    key: Key, vfl: VFL, defense: Defense, state: State, k: int, x: Array
) -> Array:
  """Passive party k's message for its features x [batch, ...], at inference.

  Raises:
    ValueError: if k is not one of 1..K.
  """
  check.passive(k, len(state.parties) - 1)
  defense = checked(defense)
  net = defense.bottom(state.defense, k, vfl.bottom(k))
  params = state.parties[k].params
  u = net.apply(params['bottom'], x)
  return defense.send(params['defense'], jax.random.fold_in(key, k), u)[0]


def check_round(
    key: Key, vfl: VFL, defense: Any, txs: Transforms, state: State,
    batch: Batch,
) -> None:
  """Raises ValueError for arguments of other types, parties or shapes."""
  check.key(key)
  _check_defense(defense)
  passed.state(state)
  if not (hasattr(batch, 'features') and hasattr(batch, 'labels')):
    raise ValueError(
        'batch must be a Batch((x_0, x_1, ...), labels); got '
        f'{check.kind(batch)}. It comes after the state.'
    )
  _check_parties(key, vfl, txs, batch)
  if len(state.parties) != len(vfl.bottoms):
    raise Misfit(
        f'The state has {len(state.parties)} parties, the federation '
        f'{len(vfl.bottoms)}: make a state that fits with `init`.'
    )
  samples.check(batch)
  if not len(batch.labels):
    raise ValueError('A round needs a sample or more; the batch has none.')


def _check_defense(defense: Any) -> None:
  if not isinstance(defense, Defense):
    raise ValueError(
        f'defense must be a Defense; got {defense!r}. A factory has to be '
        'called: none(), not none.'
    )


def _check_embeddings(
    bottoms: Sequence[Net | None], shapes: Sequence[Any], rows: int
) -> None:
  """Raises ValueError unless each bottom makes floats [rows, ...].

  The active party's may make integers, as they are no message.
  """
  for k, (net, u) in enumerate(zip(bottoms, shapes)):
    array = isinstance(u, jax.ShapeDtypeStruct)
    if net is None or array and u.shape[:1] == (rows,) and (
        not k or jnp.issubdtype(u.dtype, jnp.floating)
    ):
      continue
    got = f'{u.dtype} of shape {u.shape}' if array else check.kind(u)
    raise ValueError(
        f'The bottom network of party {k} must make one array of floats, '
        f'[samples, ...]; of {rows} samples it makes {got}. If it takes one '
        'sample, map it over the batch: jax.vmap(net, (None, 0)).'
    )


def _check_logits(
    vfl: VFL, defense: Defense, slots: Slots, top: Params,
    arriving: tuple[Any, ...], labels: Array,
) -> None:
  """Raises ValueError unless decoded logits are [samples, classes]."""
  logits = jax.eval_shape(
      lambda top, us: defense.decode(slots.state, vfl.top.apply(top, us)),
      top, arriving,
  )
  classes = labels.shape[-1]
  if logits.shape != labels.shape:
    raise ValueError(
        'The top network must make logits [samples, classes]; of '
        f'{labels.shape[0]} samples with {classes} classes it makes '
        f'{logits.shape}. Give it one output per class; for two classes '
        '`nets.binary` makes two of one output.'
    )


def _check_present(present: Sequence | Array, vfl: VFL) -> None:
  parties = len(vfl.bottoms) - 1
  if len(present) != parties:
    raise ValueError(
        f'present has {len(present)} entries; there are {parties} passive'
        ' parties.'
    )
  if any(isinstance(p, Tracer) for p in (present, *present)):
    return  # Traced values have no numbers yet: the caller has to check them.
  there = [float(p) for p in present]
  if not set(there) <= {0.0, 1.0}:
    raise ValueError(f'present must be 0 or 1 for each party; got {there}.')
  if not (any(there) or vfl.bottoms[0]):
    raise ValueError(
        'All passive parties are absent and the active party has labels only: '
        'there is nobody whose features could predict anything.'
    )


def _check_parties(
    key: Key, vfl: VFL, txs: Transforms, batch: Batch
) -> None:
  check.key(key)
  passed.kinds(vfl, txs)
  counts = len(vfl.bottoms), len(txs), len(batch.features)
  if len(set(counts)) > 1 or counts[0] < 2:
    raise ValueError(
        'A federation needs two or more parties, each with a bottom network '
        '(or None at 0), an optimizer and features; got %d, %d, %d. An active '
        'party with labels only has None as its features, features[0].'
        % counts
    )
  if (vfl.bottoms[0] is None) != (batch.features[0] is None):
    raise ValueError(
        'The active party needs both a bottom network and features, or '
        'neither, as with --config.model.algorithm=vsnn.'
    )
  for k, (net, x) in enumerate(zip(vfl.bottoms, batch.features)):
    if k and (net is None or x is None):
      raise ValueError(
          f'Passive party {k} needs a bottom network and features: without '
          'them it has nothing to send. Leave it out of all three.'
      )
