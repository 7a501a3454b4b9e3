"""VMask: layers in secret shares, as many as a leakage budget asks for.

A passive party that knows its bottom network can complete it into a classifier
of the labels. VMask (Tan et al., NDSS 2025) keeps some layers' weights in
secret shares between the passive and the active party, who compute these layers
together; the passive party cannot read them. After every epoch the active party
simulates the attack on a shadow of the bottom network (`shadow`) and hides the
layers with the largest accumulated gradients, one by one, until the attack's
score is within the budget (Algorithm 2).

This is the fast mode: training computes in plain arithmetic what the shares
would, and `expose` shows what the passive party can read, hidden layers
redrawn. Algorithm 1's noise, which the active party adds to its share when a
layer is hidden or shown again, is in `offset`, apart from the weights that the
passive party knows. What computing on shares costs is measured in `mpc`.

The budget bounds the simulated attacker's score on the shadow, not that of a
stronger attacker; and one who records a masked layer's inputs and outputs
learns its weights (experiments/vmask/README.md). Other than in Algorithm 2, the
set of all layers is tried too, so that `leakage` is that of the chosen set; it
exceeds the budget where even hiding all layers does not meet it.

The search is a loop that ends at the first set within the budget, so that fewer
hidden layers cost less. With seeds in a loop (a sweep on a CPU) each pays for
its own search; under vmap all pay for the longest one.
"""
from functools import partial
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp
import numpy as np

from vfljax import check, nets, samples
from vfljax.defense import Defense, Holdings, Slots, Spec, slots
from vfljax.defenses import shadow
from vfljax.defenses.layer_selection import SELECTIONS, choose
from vfljax.defenses.shadow import Attacker, Learning
from vfljax.nets import named_layers
from vfljax.types import Array, Batch, Key, Net, Params

ALL = 'all'


class Memory(NamedTuple):
  """What the active party remembers, with one entry per passive party.

  Attributes:
    masked: bool [layers], hidden now.
    offset: Noise added so far to the bottom network's weights.
    shadows: Weights of the shadows; zeros where all layers are hidden.
    norms: [layers] accumulated L1 norms of their gradients, or means.
    leakage: The simulated attacker's score at the last selection; 0 before.
    ratio: Share of layers hidden, averaged over the epochs played.
    epochs: Number of epochs played, a scalar.
  """

  masked: tuple[Array, ...]
  offset: tuple[Params, ...]
  shadows: tuple[Params, ...]
  norms: tuple[Array, ...]
  leakage: tuple[Array, ...]
  ratio: tuple[Array, ...]
  epochs: Array


class Rule(NamedTuple):
  """The arguments of `vmask`."""

  budget: Any
  selection: Any
  among: tuple[str, ...]
  noise: Any
  attacker: Attacker
  shadows: Learning
  norms: str
  least: int

  @property
  def hides_all(self) -> Any:
    """Whether all layers are hidden; traced if the selection is."""
    everything = ALL if isinstance(self.selection, str) else len(SELECTIONS)
    return self.selection == everything

  @property
  def shadowed(self) -> bool:
    """Whether layers may be chosen, for which shadows are needed."""
    return isinstance(self.hides_all, Tracer) or not self.hides_all

  def candidates(self, params: Params) -> np.ndarray:
    """bool [layers]: which layers of a network may be hidden."""
    known = named_layers.existing(params, 'vmask: ')
    return named_layers.mask(params, self.among or known)


def vmask(
    budget, selection: Any = 'critical', *, among: tuple[str, ...] = (),
    noise=0.01, attacker: Attacker = Attacker(),
    shadows: Learning = Learning(), norms: str = 'sum', least: int = 0,
) -> Defense:
  """Masks layers of every passive party's bottom network.

  Args:
    budget: The accuracy (two classes: AUC) that an attacker may reach, from
      chance, 1 / classes, to 1; may be traced. VMask: 0.25 for ten classes.
    selection: 'critical' chooses anew after every epoch (VMask),
      'accumulative' adds to the layers already hidden (-AS), 'random' hides
      as many random layers as 'critical' would (-RS), and 'all' hides all
      (-ALLS), whatever the budget. They may also be given as 0 to 3, which
      may be traced; there must be auxiliary samples if it is.
    among: Names of layers to choose from (`named_layers.names`); all if empty.
    noise: Deviation of Algorithm 1's noise, 0 or more; may be traced. VMask:
      0.01, which it calls a "standard variance".
    attacker: The attacker that the active party simulates.
    shadows: How the shadows learn.
    norms: What ranks the layers: the 'sum' of the absolute gradients, as in
      Algorithm 2, or their 'mean', as in the authors' code, where large layers
      are not first because of their size.
    least: Number of layers hidden whatever the attack's score, 0 or more.
      Algorithm 2 may hide none; the authors' code hides at least 1.

  Raises:
    ValueError: if an argument is out of its range; when training starts, if the
      budget is under chance, a layer of `among` does not exist, a bottom
      network's weights have no named layers, there are no auxiliary samples
      (selection 'all' needs none), or these leave the simulated attacker none
      to guess (`shadow.check_scored`). In a traced program the last is not
      checked: the leakage is then NaN, and all layers are hidden.
  """
  rule = Rule(budget, selection, among, noise, attacker, shadows, norms, least)
  _check(rule)
  return Defense(
      init=partial(_init, rule), bottom=_bottom, epoch=partial(_epoch, rule),
      facts=facts, expose=_expose,
      # The passive party computes with Algorithm 1's noise, inside its shares,
      # and is told which layers are in shares.
      lent=lambda state, k: (state.offset[k - 1], state.masked[k - 1]),
  )


def _init(rule: Rule, key: Key, spec: Spec) -> Slots:
  _check_start(rule, spec, isinstance(key, Tracer))
  count = len(spec.bottoms) + 1
  masked = tuple(jnp.asarray(_start(rule, spec, k)) for k in range(1, count))
  nothing = tuple(jax.tree.map(jnp.zeros_like, p) for p in spec.bottoms)
  zeros = tuple(jnp.zeros((), jnp.float32) for _ in masked)
  return slots(spec, state=Memory(
      masked, _shifted(key, nothing, masked, rule.noise),
      jax.tree.map(partial(jnp.where, rule.hides_all), nothing, spec.bottoms),
      tuple(jnp.zeros(len(m), jnp.float32) for m in masked), zeros, zeros,
      jnp.zeros((), jnp.int32),
  ))


def _bottom(state: Memory, k: int, net: Net) -> Net:
  shift = lambda p: jax.tree.map(jnp.add, p, state.offset[k - 1])
  return nets.with_weights(net, shift)


def _epoch(rule: Rule, state: Memory, key: Key, holdings: Holdings) -> Memory:
  state = _counted(state)
  select = partial(_select, rule, key=key, holdings=holdings)
  if isinstance(rule.hides_all, Tracer):
    return lax.cond(rule.hides_all, lambda state: state, select, state)
  return state if rule.hides_all else select(state)


def _select(rule: Rule, state: Memory, key: Key, holdings: Holdings) -> Memory:
  """Teaches the shadows, and chooses the layers to hide from now on."""
  k_shadow, k_select, k_noise = jax.random.split(key, 3)
  shadows, found = shadow.update(
      k_shadow, holdings, state.shadows, rule.shadows, rule.norms
  )
  add = lambda old, new: old + new.astype(old.dtype)
  state = state._replace(
      shadows=shadows, norms=jax.tree.map(add, state.norms, found)
  )
  chosen, leaked = zip(*(
      _selected(rule, jax.random.fold_in(k_select, k), state, k, holdings)
      for k in range(1, len(shadows) + 1)
  ))
  changed = tuple(a != b for a, b in zip(chosen, state.masked))
  return state._replace(
      masked=chosen, leakage=tuple(x.astype(jnp.float32) for x in leaked),
      offset=_shifted(k_noise, state.offset, changed, rule.noise),
  )


def _selected(
    rule: Rule, key: Key, state: Memory, k: int, holdings: Holdings
) -> tuple[Array, Array]:
  """Passive party k's layers to hide from now on, and the leakage then."""
  aux: Batch = holdings.auxiliary  # pyright: ignore
  params = state.shadows[k - 1]
  k_known, key = jax.random.split(key)
  known = shadow.known_samples(k_known, rule.attacker, aux.labels)

  def leak(key, hidden):
    return shadow.leakage(
        key, rule.attacker, holdings.vfl.bottom(k), params, hidden,
        aux.features[k], aux.labels, known,
    )

  return choose(
      key, rule.selection, state.norms[k - 1], state.masked[k - 1],
      jnp.asarray(rule.candidates(params)), rule.budget, leak, rule.least,
  )


def _expose(state: Memory, key: Key, k: int, weights: Params) -> Params:
  theirs = jax.tree.map(jnp.add, weights, state.offset[k - 1])
  return named_layers.select(
      state.masked[k - 1], theirs, named_layers.redraw(key, theirs)
  )


def facts(state: Memory) -> dict[str, Array]:
  """Means over the passive parties, and the largest leakage among them.

  'mask_ratio' is the share of layers hidden, averaged over the epochs played;
  'masked' is that share after the last selection.
  """
  now = [m.mean(dtype=jnp.float32) for m in state.masked]
  return dict(
      mask_ratio=jnp.stack(state.ratio).mean(),
      masked=jnp.stack(now).mean(),
      simulated_leakage=jnp.stack(state.leakage).max(),
  )


def _check(rule: Rule) -> None:
  if not isinstance(rule.selection, Tracer):
    known = (*SELECTIONS, ALL)
    numbers = range(len(known))
    check.one_of('vmask: selection', rule.selection, (*known, *numbers))
  check.inside('vmask: budget', rule.budget, 0, 1)
  check.at_least('vmask: noise', rule.noise, 0)
  check.above('vmask: learning_rate', rule.shadows.learning_rate, 0)
  check.count('vmask: batch_size', rule.shadows.batch_size)
  check.whole('vmask: least', rule.least, 0)
  check.one_of('vmask: norms', rule.norms, tuple(named_layers.NORMS))
  shadow.check('vmask: attacker', rule.attacker)


def _check_start(rule: Rule, spec: Spec, tracing: bool) -> None:
  """Raises the errors of a training's start; see `vmask`."""
  if not spec.bottoms or spec.vfl is None:
    raise ValueError(
        'vmask: needs the bottom networks and their weights: give `Spec` its '
        'fields vfl and bottoms.'
    )
  if not rule.shadowed:
    return
  check.inside(
      f'vmask: budget, which chance meets at 1/{spec.classes},', rule.budget,
      1 / spec.classes, 1,
  )
  if spec.auxiliary is None or not len(spec.auxiliary.labels):
    raise ValueError(
        'vmask: the shadows learn from auxiliary samples of the active party, '
        'but there are none: set --config.auxiliary.samples, or give '
        "`auxiliary` to `fit` and `init`. selection='all' needs none."
    )
  if samples.at_hand(spec.auxiliary.labels, tracing):
    shadow.check_scored('vmask: attacker', rule.attacker, spec.auxiliary.labels)


def _start(rule: Rule, spec: Spec, k: int) -> Array | np.ndarray:
  """The layers hidden in the first epoch: the candidate nearest the input."""
  params = spec.bottoms[k - 1]
  among = rule.candidates(params)
  if not rule.shadowed:
    return among
  assert spec.vfl is not None
  names = named_layers.names(params)
  met = named_layers.flow(spec.vfl.bottom(k), params, spec.features[k - 1])
  first = next(name for name in met if among[names.index(name)])
  return jnp.where(rule.hides_all, among, named_layers.mask(params, [first]))


def _shifted(key: Key, offset, changed, noise) -> tuple[Params, ...]:
  """Offsets with fresh noise in the layers that were just hidden or shown."""
  moved = []
  for i, (old, which) in enumerate(zip(offset, changed)):
    drawn = named_layers.noise(jax.random.fold_in(key, i), old, noise)
    new = jax.tree.map(jnp.add, old, drawn)
    moved.append(named_layers.select(which, old, new))
  return tuple(moved)


def _counted(state: Memory) -> Memory:
  """Adds the epoch just played to the mean share of hidden layers."""
  epochs = state.epochs + 1
  ratio = tuple(
      r + (m.mean(dtype=r.dtype) - r) / epochs.astype(r.dtype)
      for r, m in zip(state.ratio, state.masked)
  )
  return state._replace(ratio=ratio, epochs=epochs)
