"""Streaming gives the numbers of `train.fit`, and says what it cannot do."""
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, nets, stream, train
from vfljax.adversary import Adversary
from vfljax.data import scale
from vfljax.defense import none
from vfljax.defenses.dp_gaussian import dp_gaussian
from vfljax.defenses.kdk import kdk
from vfljax.types import Batch, Net

KEY = jax.random.key(3)


def images(tmp_path):
  """uint8 images in files that are mapped into memory, and their labels."""
  draw = np.random.default_rng(0)
  halves = []
  for k in range(2):
    file = tmp_path / f'{k}.npy'
    np.save(file, draw.integers(0, 256, (50, 3, 2, 1), np.uint8))
    halves.append(np.load(file, mmap_mode='r'))
  return Batch(tuple(halves), np.eye(2, dtype=np.float32)[np.arange(50) % 2])


def plan(defense=None, **options):
  vfl = algorithms.vhnn([nets.mlp(4)] * 2, nets.mlp(2))
  return train.Plan(
      vfl, defense or dp_gaussian(0.1), (optax.sgd(0.01, 0.9),) * 2, 3, 8,
      **options,
  )


def validate(key, state):
  return dict(size=sum((x**2).sum() for x in jax.tree.leaves(state.parties)))


@pytest.mark.parametrize('options', [
    pytest.param({}, id='plain'),
    pytest.param(dict(
        remainder='pad', every=2, validate=validate, best='-size',
        watch=lambda key, played: jnp.square(played.messages.down[0]).sum(),
    ), id='watched', marks=pytest.mark.slow),
])
def test_the_numbers_are_those_of_training_in_memory(tmp_path, options):
  data = images(tmp_path)
  whole = data._replace(
      features=tuple(scale.images(x) for x in data.features),
      labels=jnp.asarray(data.labels),
  )
  scaled = lambda features: tuple(map(scale.images, features))
  own = plan(**options)
  begun = train.start(KEY, own, whole)  # Eager, as streaming begins.
  run, known = jax.jit(
      lambda run: train.advance(own, run, whole, 0, 3)
  )(begun)
  expected = train.finish(run)
  # 6 or 7 rounds an epoch: chunks of 4 and of the rest.
  state, history = stream.fit(KEY, own, data, 4, scaled)
  assert jax.tree.structure(history) == jax.tree.structure(known)
  for ours, theirs in zip(
      jax.tree.leaves((state, history)), jax.tree.leaves((expected, known))
  ):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_another_seed_compiles_nothing(tmp_path):
  data, traced = images(tmp_path), []

  def scaled(features):
    traced.extend(x for x in features if isinstance(x, jax.core.Tracer))
    return tuple(map(scale.images, features))

  own = plan()
  one, _ = stream.fit(KEY, own, data, 4, scaled)
  before = len(traced)
  other, _ = stream.fit(jax.random.key(4), own, data, 4, scaled)
  assert before and len(traced) == before
  again, _ = stream.fit(KEY, own, data, 4, scaled)
  leaves = [jax.tree.leaves(x.parties) for x in (one, other, again)]
  assert all((a == c).all() for a, _, c in zip(*leaves))
  assert any((a != b).any() for a, b, _ in zip(*leaves))


def test_what_has_changed_in_a_transforms_object_is_seen(tmp_path):
  """As by `sweep`: of a method, each call has another one."""
  own, data = types.SimpleNamespace(by=1.0), images(tmp_path)

  class Scaled:
    def call(self, features):
      return tuple(own.by * scale.images(x) for x in features)

  losses = []
  made, scaled = plan(), Scaled()
  for own.by in (1.0, 3.0):
    losses.append(stream.fit(KEY, made, data, 4, scaled.call)[1]['loss'])
  assert (losses[0] != losses[1]).any()


@pytest.mark.parametrize('txs', [list, tuple])
def test_a_plan_made_anew_of_the_same_parts_is_the_same(txs):
  first = plan()
  again = first._replace(txs=txs(first.txs))
  assert stream._Same(first._replace(txs=txs(first.txs)), abs) == (
      stream._Same(again, abs)
  )
  assert stream._Same(again, abs) != stream._Same(again, max)
  assert stream._Same(again, abs) != (
      stream._Same(again._replace(batch_size=again.batch_size + 1), abs)
  )


def test_rows_are_gathered_by_their_place_among_those_trained_on():
  data = Batch(
      (np.arange(10) * 10, None), np.eye(10, 2, dtype=np.float32)
  )
  found = stream.gather(data, [[2, 0], [1, 3]], np.array([4, 7, 5]))
  np.testing.assert_array_equal(found.features[0], [[50, 40], [70, 0]])
  assert found.features[1] is None and found.labels.shape == (2, 2, 2)


def test_what_cannot_be_streamed_is_refused(tmp_path):
  data = images(tmp_path)
  for wrong, match in (
      (plan(remainder='keep'), 'one size'),
      (plan(adversary=Adversary(parties=(1,))), 'adversaries'),
      (plan(kdk(0.3)), 'prepares'),
      (plan(patience=2, best='size', validate=validate), 'stop early'),
  ):
    with pytest.raises(ValueError, match=match):
      stream.fit(KEY, wrong, data, 4)
  for chunk in 0, 1.5, None:
    with pytest.raises(ValueError, match='chunk must be an integer'):
      stream.fit(KEY, plan(), data, chunk)


def test_padding_is_zeros_whatever_transforms_the_samples(tmp_path):
  data = images(tmp_path)
  row = jax.tree.map(lambda x: x[0], data)
  padded = jax.tree.map(lambda x: np.stack([x, 0 * x])[None], row)
  look = lambda key, played: played.batch.features[1]
  own = plan(remainder='pad', watch=look)
  run = train.start(KEY, own, data._replace(
      features=tuple(map(scale.images, data.features))
  ))
  run, rows = stream.play(
      own, run, padded, jax.random.split(KEY, 1), True,
      lambda features: tuple(scale.images(x) + 1 for x in features),
  )
  assert rows['watch'][0, 0].min() >= 1 and not rows['watch'][0, 1].any()


def test_samples_without_a_label_are_no_padding():
  """Also where a party's features are several arrays."""
  own = nets.mlp(2)
  net = Net(
      lambda key, x: own.init(key, x['a']),
      lambda params, x: own.apply(params, x['a']) + x['b'],
  )
  look = lambda key, played: jax.tree.map(jnp.sum, played.batch.features[1])
  many = train.Plan(
      algorithms.vsnn([net], nets.mlp(2)), none(), (optax.sgd(0.1),) * 2, 1, 4,
      remainder='pad', watch=look,
  )
  x = dict(a=np.ones((5, 3), np.float32), b=np.ones((5, 1), np.float32))
  labels = np.eye(5, 2, dtype=np.float32)  # Three have none.
  _, history = stream.fit(
      KEY, many, Batch((None, x), labels), 1,
      lambda features: jax.tree.map(lambda x: x + 1, features),
  )
  assert history['watch']['a'].sum() == 30 and history['watch']['b'].sum() == 10


def test_streaming_is_no_part_of_a_program():
  """JAX told of an array that is traced, and not what to do."""
  x, labels = np.ones((16, 3), 'float32'), np.eye(2, dtype='float32')
  data = Batch((x, x), labels[[0, 1] * 8])  # pyright: ignore
  with pytest.raises(ValueError, match='outside of jit.* train.fit can be'):
    jax.eval_shape(lambda key: stream.fit(key, plan(), data, 1), KEY)
  with pytest.raises(ValueError, match='outside of jit'):
    jax.eval_shape(lambda data: stream.fit(KEY, plan(), data, 1), data)
