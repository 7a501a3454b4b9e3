"""Training: what an epoch sees, and that pieces equal the whole."""
import functools
import typing

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, nets, protocol, train
from vfljax.defense import Defense, none, slots
from vfljax.types import Batch

SAMPLES = 22
TXS = (optax.sgd(0.1),) * 2
VFL = algorithms.vsnn([nets.mlp(4, 2)], nets.binary(nets.mlp(1)))


def data():
  x = jax.random.normal(jax.random.key(0), (SAMPLES, 3))
  labels = jax.nn.one_hot((x[:, 0] > 0).astype(int), 2)
  # The last column tells which sample it is.
  return Batch((None, x.at[:, 2].set(jnp.arange(SAMPLES))), labels)


@functools.cache
def fit(seed=0, **options):
  options = dict(epochs=4, batch_size=5) | options
  return jax.jit(
      lambda key: train.fit(key, VFL, none(), TXS, data(), **options)
  )(jax.random.key(seed))


def ids(key, played):
  return jnp.where(
      played.batch.labels.sum(-1) > 0, played.batch.features[1][:, 2], -1
  )


@pytest.mark.parametrize('remainder, seen', [('drop', 20), ('pad', 22)])
def test_an_epoch_sees_every_sample_once_in_a_new_order(remainder, seen):
  _, history = fit(remainder=remainder, watch=ids)
  orders = np.asarray(history['watch']).reshape(4, -1)
  for order in orders:
    real = order[order >= 0]
    assert len(set(real)) == len(real) == seen
  assert len({tuple(order) for order in orders}) == 4


def test_keep_plays_one_smaller_round():
  _, history = fit(remainder='keep', watch=ids)
  full, rest = history['watch']
  assert full.shape == (4, 4, 5) and rest.shape == (4, 1, 2)
  for a, b in zip(full, rest):
    assert sorted([*np.ravel(a), *np.ravel(b)]) == list(range(SAMPLES))


def test_pad_and_keep_train_alike():
  """A padded last round equals a smaller one, in weights and in loss."""
  padded, _ = fit(remainder='pad')
  kept, _ = fit(remainder='keep')
  chex.assert_trees_all_close(padded.parties, kept.parties, atol=1e-5)


def test_editors_know_every_field_of_a_plan():
  fields = typing.get_type_hints(train.Plan)
  known = typing.get_type_hints(train.Options)
  assert known == {k: fields[k] for k in train.Plan._field_defaults}


def test_pieces_equal_the_whole():
  plan = train.Plan(VFL, none(), TXS, 4, 5)
  run = train.start(jax.random.key(0), plan, data())
  advance = jax.jit(
      lambda run, first: train.advance(plan, run, data(), first, 2)
  )
  run, one = advance(run, 0)
  run, two = advance(run, 2)
  whole, history = fit()
  chex.assert_trees_all_equal(train.finish(run), whole)
  losses = np.concatenate([one['loss'], two['loss']])
  np.testing.assert_array_equal(losses, history['loss'])


def test_measuring_less_often_changes_nothing_else():
  validate = lambda key, state: dict(one=jnp.ones(()))
  often, all_of_it = fit(epochs=5, watch=ids, validate=validate)
  seldom, some = fit(epochs=5, watch=ids, validate=validate, every=2)
  chex.assert_trees_all_equal(often.parties, seldom.parties)
  np.testing.assert_array_equal(some['measured'], [0, 1, 0, 1, 1])
  np.testing.assert_array_equal(some['loss'], all_of_it['loss'])
  np.testing.assert_array_equal(
      some['watch'][np.asarray(some['measured'])],
      all_of_it['watch'][np.asarray(some['measured'])],
  )


def test_best_epoch_is_kept_and_patience_stops():
  scores = jnp.array([0.1, 0.9, 0.3, 0.2, 0.95, 1.0])
  counting = Defense(
      init=lambda key, spec: slots(spec, state=jnp.array(-1)),
      epoch=lambda state, key, holdings: state + 1,
  )
  validate = lambda key, state: dict(score=scores[state.defense])
  options = dict(epochs=6, batch_size=5, validate=validate, best='score')
  run = lambda **more: jax.jit(lambda key: train.fit(
      key, VFL, counting, TXS, data(), **options, **more
  ))(jax.random.key(0))
  best, history = run()
  assert int(best.defense) == 5 and np.asarray(history['measured']).all()
  stopped, history = run(patience=2)
  assert int(stopped.defense) == 1
  np.testing.assert_array_equal(history['measured'], [1, 1, 1, 1, 0, 0])
  assert np.isnan(history['loss'][4:]).all()
  first, _ = fit(epochs=2)
  chex.assert_trees_all_close(stopped.parties, first.parties, atol=1e-6)
  least, _ = jax.jit(lambda key: train.fit(
      key, VFL, counting, TXS, data(), **(options | dict(best='-score'))
  ))(jax.random.key(0))
  assert int(least.defense) == 0


def test_prepared_labels_are_trained_on_and_the_truth_is_watched():
  flip = Defense(prepare=lambda key, features, labels: labels[:, ::-1])
  truth = lambda key, played: (
      played.batch.labels - data().labels[
          played.batch.features[1][:, 2].astype(int)]
  )
  state, history = jax.jit(lambda key: train.fit(
      key, VFL, flip, TXS, data(), epochs=2, batch_size=5, watch=truth
  ))(jax.random.key(0))
  assert not np.asarray(history['watch']).any()
  flipped = data()._replace(labels=data().labels[:, ::-1])
  expected, _ = jax.jit(lambda key: train.fit(
      key, VFL, none(), TXS, flipped, epochs=2, batch_size=5
  ))(jax.random.key(0))
  chex.assert_trees_all_close(state.parties, expected.parties, atol=1e-6)


def test_a_federation_learns():
  state, history = fit(epochs=400)
  assert history['loss'][-1] < 0.6 * history['loss'][0]
  logits = protocol.predict(
      jax.random.key(0), VFL, none(), state, data().features
  )
  right = logits.argmax(-1) == data().labels.argmax(-1)
  assert right.mean() > 0.8


@pytest.mark.parametrize('option, message', [
    (dict(epochs=0), 'epochs must be 1'),
    (dict(batch_size=0), 'between 1 and the 22'),
    (dict(batch_size=23), 'between 1 and the 22'),
    (dict(every=0), 'every must be 1'),
    (dict(best='auc'), 'needs `validate`'),
    (dict(patience=2), 'patience'),
    (dict(patience=-1), 'patience'),
    (dict(remainder='wrap'), 'keep'),
])
def test_bad_plans_are_refused(option, message):
  with pytest.raises(ValueError, match=message):
    fit(**option)


def test_a_best_that_is_never_a_number_is_the_last_epoch():
  validate = lambda key, state: dict(score=jnp.nan)
  options = dict(validate=validate, best='score')
  kept, _ = fit(**options)
  last, _ = fit()
  chex.assert_trees_all_close(kept.parties, last.parties, atol=1e-6)


def test_strides_may_go_past_the_end():
  plan = train.Plan(VFL, none(), TXS, 4, 5)
  advance = jax.jit(
      lambda run, first: train.advance(plan, run, data(), first, 3)
  )
  run, _ = advance(train.start(jax.random.key(0), plan, data()), 0)
  run, history = advance(run, 3)
  whole, _ = fit()
  chex.assert_trees_all_close(train.finish(run), whole, atol=1e-6)
  np.testing.assert_array_equal(history['measured'], [1, 0, 0])
