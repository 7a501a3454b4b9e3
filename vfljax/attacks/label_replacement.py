"""Label replacement backdoor (Zou et al. 2022; Liu et al. 2020).

Passive parties want samples with their trigger to be classified as a class of
their choice, the target, and know a few samples of it. They put one or more of
those into every round, and in these rows feed triggered samples of their own to
their networks. With the rows' labels, the target's, the active party's
gradients teach those networks that the trigger means the target.

The authors append a triggered and a known sample to each batch, send the
triggered one's embedding in place of the known one's and backpropagate the
known one's gradient through the triggered one. Replacing the known sample's
features by the triggered ones does both in one: the row's loss is that of the
active party's own features of the known sample and the triggered embedding.
(The code of VFLAIR that does it crashes on an undefined variable. It draws the
pair once an epoch and takes the triggered samples out of the training set; ours
draws in every round, and those samples stay.)

In an experiment triggered samples are drawn from all, as in the papers: the
attackers know the labels of `targets` samples of the target class and no
others. Triggered samples that happen to be of the target class teach nothing
about the trigger.
"""
from collections.abc import Sequence
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import check
from vfljax.adversary import Adversary
from vfljax.attack import TRAINING, recipe
from vfljax.backdoor import Backdoor, some, stamp, value_range
from vfljax.leakage import DIVERTED
from vfljax.scene import Amounts, Ground, Scene
from vfljax.types import Array, Key
from vfljax.views import majority


_MOST = 2**31 - 1  # Samples are numbered in 32 bits.


class Options(NamedTuple):
  """The attack in an experiment; see `label_replacement`."""

  triggered: float = 0.01  # share of a round that carries a trigger
  targets: int = 10  # samples that it knows to be of its target class
  amplify: float = 1.0  # factor on its gradients


def check_options(options: Options, scene: Scene, samples: Amounts) -> None:
  """Raises ValueError if the backdoor cannot be planted."""
  del scene
  name, most = 'attack.label_replacement.', max(1, samples.least)
  if not 1 <= options.targets <= most:
    raise ValueError(
        f'{name}targets must be between 1 and {most} known samples of the '
        f'target class; got {options.targets}.'
    )
  share, batch = options.triggered, samples.batch
  if not 0 < share < 1 or _rows(share, batch) >= batch:
    raise ValueError(
        f'{name}triggered is a share of each round, inside (0, 1), that leaves '
        f'some of its {batch} samples; got {share}.'
    )
  check.above(f'{name}amplify', options.amplify, 0)


def _plant(options: Options, ground: Ground) -> Backdoor:
  k_target, k_known, k_poison = jax.random.split(ground.key, 3)
  labels = ground.labels
  is_of = majority(labels) > 0
  target = _known_well(
      jax.random.randint(k_target, (), 0, labels.shape[-1]), is_of,
      options.targets,
  )
  is_target = jnp.take(is_of, target, axis=-1)
  count = math.ceil(options.triggered * len(labels))
  poisons = _some(k_poison, jnp.ones_like(is_target), count)
  return label_replacement(
      target, _some(k_known, is_target, options.targets),
      [x[poisons] for x in ground.features], parties=ground.parties,
      per_round=_rows(options.triggered, ground.batch),
      amplify=options.amplify, value=value_range(ground.features)[1],
  )


def _known_well(drawn: Array, is_of: Array, targets: int) -> Array:
  """The class `drawn`, or the next one with as many samples as are known.

  A split may leave fewer of a rare class, or none. Where no class has so many,
  it is one of those with the most.

  Args:
    drawn: A class.
    is_of: [samples, classes] whether a sample is of a class.
    targets: How many samples of the class attackers know.
  """
  many = jnp.minimum(is_of.sum(0, dtype=jnp.int32), targets)
  classes = is_of.shape[-1]
  turn = (drawn + jnp.arange(classes, dtype=drawn.dtype)) % classes
  return turn[jnp.argmax((many == many.max())[turn])]


def _some(key: Key, eligible: Array, count: int) -> Array:
  """Indices of `count` random samples among those eligible.

  If there are fewer, one of them is repeated.
  """
  lot = jax.random.uniform(key, eligible.shape, jnp.float32)
  found = jax.lax.top_k(jnp.where(eligible, lot, -1.0), count)[1]
  return jnp.where(eligible[found], found, found[0])


def _rows(share: float, batch: int) -> int:
  """The number of a round's rows that carry a trigger."""
  return max(1, round(share * batch))


def _checked(
    known: Array, poisons: Sequence[Array], parties: tuple[int, ...]
) -> Array:
  """`known` of JAX; ValueError if these do not match, are none, or no samples.
  """
  if not isinstance(known, jax.Array):  # JAX would cut 64 bits to 32.
    known = np.asarray(known)
  some('label_replacement', parties)
  if len(poisons) != len(parties):
    raise ValueError(
        'label_replacement needs one or more parties and samples of each; got '
        f'{len(parties)} and {len(poisons)}.'
    )
  if not known.size or not all(len(x) == len(poisons[0]) > 0 for x in poisons):
    raise ValueError(
        'label_replacement needs one or more known samples of its target, and '
        'the same samples to trigger at every party.'
    )
  # Rows are gathered by these without a check: -1 would be the last sample.
  if known.ndim != 1 or not jnp.issubdtype(known.dtype, jnp.integer):
    raise ValueError(
        'label_replacement: known must be [known] whole numbers, of samples; '
        f'got {known.dtype} of shape {known.shape}.'
    )
  check.whole('label_replacement: known', known, 0, _MOST, many=True)
  return jnp.asarray(known)


def _check_round(rows: int, per_round: int) -> None:
  """Raises ValueError if all rows of a round would carry a trigger."""
  if rows <= per_round:
    raise ValueError(
        f'label_replacement: per_round must be below the {rows} rows of a '
        f'round; got {per_round}. The last round of an epoch may be smaller: '
        "train.remainder='drop' leaves it out."
    )


def _check_fit(own: Sequence[Array], triggered: Sequence[Array]) -> None:
  """Raises ValueError unless triggered samples can stand for the parties' own.

  A column would be stretched over all, and parts of numbers would be cut off.
  """
  for x, t in zip(own, triggered):
    whole = jnp.issubdtype(x.dtype, jnp.integer)
    cut = whole and jnp.issubdtype(t.dtype, jnp.floating)
    if t.shape[1:] != x.shape[1:] or cut:
      raise check.Misfit(
          'label_replacement: poisons must be samples as the party has them, '
          f'{x.dtype} of shape (n, {str(x.shape[1:])[1:]}; got {t.dtype} of '
          f'shape {t.shape}.'
      )


@recipe(
    stage=TRAINING, options=Options, plant=_plant, check=check_options,
    score=DIVERTED,
)
def label_replacement(
    target: Array | int, known: Array, poisons: Sequence[Array], *,
    parties: tuple[int, ...] = (1,), per_round: int = 1,
    amplify: float | Array = 1.0, value: float | Array = 1.0,
) -> Backdoor:
  """A backdoor from a trigger to a class.

  Args:
    target: The class, 0 or more; may be traced.
    known: [known] indices of training samples of that class, 1 or more; may be
      traced. One past the last sample makes its round NaN.
    poisons: For each colluding party, [poisons, ...] its own features of the
      samples to trigger, the same at each party, without the trigger.
    parties: Who colludes, 1..K: each adds its trigger to the same samples.
    per_round: Rows of each round that carry a trigger, 1 or more and fewer than
      a round has. They replace other samples. In the paper 1 % of all samples
      carry it, which leaves open how many of a batch.
    amplify: Factor on the gradients of those rows, above 0; may be traced.
    value: The value of the trigger's pixels, see `backdoor.stamp`.

  Raises:
    ValueError: if an argument is out of its range or poisons and parties do not
      match; in a round, if the party has samples of another shape or type.
  """
  check.whole('label_replacement: target', target, 0)
  check.count('label_replacement: per_round', per_round)
  check.above('label_replacement: amplify', amplify, 0)
  known = _checked(known, poisons, parties)
  triggered = tuple(stamp(x, value) for x in poisons)

  def rows(key, numbers):
    _check_round(len(numbers), per_round)
    chosen = jax.random.choice(key, known, (per_round,))
    return numbers.at[-per_round:].set(chosen.astype(numbers.dtype))

  def features(state, key, own):
    del state
    lot = jax.random.randint(key, (per_round,), 0, len(triggered[0]))
    _check_fit(own, triggered)
    return tuple(
        jnp.asarray(x).at[-per_round:].set(t[lot].astype(x.dtype))
        for x, t in zip(own, triggered)
    )

  def receive(state, key, own):
    del state, key
    by = jnp.asarray(amplify)
    return tuple(d.at[-per_round:].multiply(by.astype(d.dtype)) for d in own)

  def strike(state, key, own):
    del state, key
    return tuple(stamp(x, value) for x in own)

  return Backdoor(
      Adversary(parties, rows=rows, features=features, receive=receive),
      Adversary(parties, features=strike), target,
  )
