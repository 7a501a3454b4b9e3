"""Inside of `jax.shard_map`, which refuses loops that begin with shared values.

Types alone say whether it does, so nothing is compiled.
"""
import functools

import jax
from jax.sharding import PartitionSpec
import jax.numpy as jnp
import pytest

from tests.contracts import TXS, batch, federation, make
from vfljax import metrics, target, train

SHARDS = PartitionSpec('shards')


def traced(fn, *args):
  """What a function of shards returns, which is all its own: its types."""
  auto, one = (jax.sharding.AxisType.Auto,), jax.devices()[:1]
  mesh = jax.make_mesh((1,), ('shards',), auto, devices=one)
  return jax.eval_shape(
      jax.shard_map(fn, mesh=mesh, in_specs=SHARDS, out_specs=SHARDS), *args
  )


def fitted(key, name='none', **options):
  _, history = train.fit(
      key, federation(), make(name), TXS, batch(), auxiliary=batch(),
      batch_size=8, **options
  )
  return history


def score(key, state):
  return dict(score=jax.tree.leaves(state.parties[0].params)[0].sum())


@pytest.mark.parametrize('kind, name, options', [
    ('cpu', 'rvfr', dict(epochs=1)),  # Its top's statistics begin with 0.
    ('cpu', 'vmask', dict(epochs=1)),
    ('cpu', 'none', dict(epochs=3, every=2, validate=score, best='score')),
    ('gpu', 'none', dict(epochs=3, every=2, validate=score, best='score')),
])
def test_each_shard_trains_its_own_federations(kind, name, options):
  keys = jax.random.split(jax.random.key(0), 2)
  with target.tracing_for(kind):
    fit = functools.partial(fitted, name=name, **options)
    history = traced(jax.vmap(fit), keys)
  assert history['loss'].shape == (2, options['epochs'])


def test_patience_in_a_shard():
  fit = lambda keys: jax.tree.map(lambda x: x[None], fitted(
      keys[0], epochs=3, validate=score, best='score', patience=1
  ))
  keys = jax.random.split(jax.random.key(0), 1)
  assert traced(fit, keys)['loss'].shape == (1, 3)


def test_areas_of_a_shards_scores():
  scores, labels = jnp.arange(8.0), jnp.arange(8) % 2
  area = lambda s, y: metrics.roc_auc(s, y)[None]
  assert traced(area, scores, labels).shape == (1,)
  assert traced(lambda s: area(s, labels), scores).shape == (1,)
  assert traced(lambda y: area(scores, y), labels).shape == (1,)
