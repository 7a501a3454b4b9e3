"""Training: what an epoch sees, and that pieces equal the whole."""
import functools
import typing

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, nets, protocol, target, train
from vfljax.defense import Defense, chain, none, slots
from vfljax.defenses import mixup
from vfljax.types import Batch

SAMPLES = 22
KEY = jax.random.key(0)
NONE = none()
TXS = (optax.sgd(0.1),) * 2
VFL = algorithms.vsnn([nets.mlp(4, 2)], nets.binary(nets.mlp(1)))


@functools.cache
def data():
  x = np.random.default_rng(0).normal(size=(SAMPLES, 3))
  labels = np.eye(2)[(x[:, 0] > 0).astype(int)]
  x[:, 2] = np.arange(SAMPLES)  # Which sample it is.
  with jax.ensure_compile_time_eval():  # Whoever asks first may be traced.
    part = jnp.asarray(x, jnp.float32)
    return Batch((None, part), jnp.asarray(labels, jnp.float32))


def trained(samples, defense=NONE, key=KEY, **options):
  """Not in `jit`, where drawing the weights would be compiled with the rest."""
  options = dict(epochs=4, batch_size=5) | options
  return train.fit(key, VFL, defense, TXS, samples, **options)


@functools.cache
def fit(**options):
  return trained(data(), **options)


@functools.cache
def fit_in_one_program():
  return jax.jit(lambda key: trained(data(), key=key))(KEY)


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
  padded, _ = fit(remainder='pad', watch=ids)
  kept, _ = fit(remainder='keep', watch=ids)
  chex.assert_trees_all_close(padded.parties, kept.parties, atol=1e-5)


def test_editors_know_every_field_of_a_plan():
  fields = typing.get_type_hints(train.Plan)
  known = typing.get_type_hints(train.Options)
  assert known == {k: fields[k] for k in train.Plan._field_defaults}


def test_pieces_equal_the_whole():
  plan = train.Plan(VFL, NONE, TXS, 4, 5)
  run = train.start(KEY, plan, data())
  advance = jax.jit(
      lambda run, first: train.advance(plan, run, data(), first, 2)
  )
  run, one = advance(run, 0)
  run, two = advance(run, 2)
  whole, history = fit_in_one_program()
  chex.assert_trees_all_equal(train.finish(run), whole)
  losses = np.concatenate([one['loss'], two['loss']])
  np.testing.assert_array_equal(losses, history['loss'])


def test_no_piece_goes_past_the_last_epoch(monkeypatch):
  """Not even where its length divides the plan's."""
  plan = train.Plan(VFL, NONE, TXS, 4, 5)
  play = lambda plan, run, rows, epoch: (
      run._replace(state=run.state + 1), dict(loss=1.0 + epoch)
  )
  monkeypatch.setattr(train, '_epoch', play)
  run, played = train.Run(KEY, 0, (), ()), []
  for first, epochs in ((0, 1), (np.int32(1), 2), (jnp.int32(3), 2), (4, 4)):
    run, row = train.advance(plan, run, data(), first, epochs)
    played += [*row['loss']]
  assert run.state == 4
  assert played == [1, 2, 3, 4, 0, 0, 0, 0, 0]


def test_a_traced_piece_may_begin_anywhere(monkeypatch):
  """Its length divides the plan's, but not where it begins."""
  plan = train.Plan(VFL, NONE, TXS, 4, 5)
  play = lambda plan, run, rows, epoch: (
      run._replace(state=run.state + 1), dict(loss=1.0 + epoch)
  )
  monkeypatch.setattr(train, '_epoch', play)
  advance = jax.jit(
      lambda run, first: train.advance(plan, run, data(), first, 2)
  )
  for first, want in ((0, [1, 2]), (1, [2, 3]), (3, [4, 0]), (5, [0, 0])):
    run, row = advance(train.Run(KEY, 0, (), ()), first)
    np.testing.assert_array_equal(row['loss'], want)
    assert run.state == np.count_nonzero(want)


def test_a_multiple_of_the_pieces_length_asks_nothing_of_an_epoch(monkeypatch):
  """What the command line compiles, and a first piece."""
  plan = train.Plan(VFL, NONE, TXS, 4, 5)
  play = lambda plan, run, rows, epoch: (run, dict(loss=1.0 * epoch))
  monkeypatch.setattr(train, '_epoch', play)
  run = train.Run(KEY, 0, (), ())

  def asks(first, epochs, aligned):
    return ' cond[' in str(jax.make_jaxpr(
        lambda: train.advance(plan, run, data(), first, epochs, aligned)[1]
    )())

  def asks_traced(epochs, aligned):
    return ' cond[' in str(jax.make_jaxpr(
        lambda first: train.advance(plan, run, data(), first, epochs, aligned)
    )(0))

  assert not asks_traced(2, True) and asks_traced(2, False)
  assert asks_traced(3, True)  # The last piece is longer than what is left.
  assert not asks(2, 2, False) and not asks(1, 3, False) and asks(3, 2, True)


@pytest.mark.parametrize('first, epochs, message', [
    (0, 0, 'advance: epochs must be an integer of at least 1'),
    (0, 1.5, 'advance: epochs must be an integer'),
    (-1, 2, 'advance: first must be a whole number of at'),
])
def test_a_piece_is_of_epochs_that_there_are(first, epochs, message):
  plan = train.Plan(VFL, NONE, TXS, 4, 5)
  with pytest.raises(ValueError, match=message):
    train.advance(plan, train.Run(KEY, 0, (), ()), data(), first, epochs)


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


@pytest.mark.parametrize('remainder', [
    pytest.param('keep', marks=pytest.mark.slow), 'pad'
])
def test_one_round_that_looks_when_told_to_or_two_are_the_same(remainder):
  """The first is compiled for CPUs, the second elsewhere."""
  validate = lambda key, state: dict(one=jax.random.uniform(key))
  options = dict(
      epochs=5, every=2, remainder=remainder, validate=validate, best='one',
      watch=lambda key, played: ids(key, played) + jax.random.uniform(key),
      digest=lambda *rows: sum(jnp.abs(x).sum() for x in rows),
  )
  one, found = trained(data(), **options)
  with target.tracing_for('cuda'):
    two, expected = trained(data(), **options)
  chex.assert_trees_all_close(one.parties, two.parties, rtol=1e-6)
  chex.assert_trees_all_close(found, expected, rtol=1e-6)
  for key in ('watch', 'validation'):
    blank = jax.tree.leaves(found[key])[0] == 0
    np.testing.assert_array_equal(blank, ~np.asarray(found['measured']))


def scored(*scores, best='score', **more):
  """A training whose epochs are validated with those numbers."""
  counting = Defense(
      init=lambda key, spec: slots(spec, state=jnp.array(-1)),
      epoch=lambda state, key, holdings: state + 1,
  )
  validate = lambda key, state: dict(score=jnp.array(scores)[state.defense])
  return trained(
      data(), counting, epochs=len(scores), validate=validate, best=best, **more
  )


def test_best_epoch_is_kept_and_patience_stops():
  run = functools.partial(scored, 0.1, 0.9, 0.3, 0.2, 0.95, 1.0)
  best, history = run()
  assert int(best.defense) == 5 and np.asarray(history['measured']).all()
  stopped, history = run(patience=2)
  assert int(stopped.defense) == 1
  np.testing.assert_array_equal(history['measured'], [1, 1, 1, 1, 0, 0])
  assert np.isnan(history['loss'][4:]).all()
  first, _ = fit(epochs=2)
  chex.assert_trees_all_close(stopped.parties, first.parties, atol=1e-6)
  least, _ = run(best='-score')
  assert int(least.defense) == 0
  least, _ = run(best='-score', every=2)  # The first epoch is not looked at.
  assert int(least.defense) == 3


@pytest.mark.parametrize('wide, dtype', [
    (False, jnp.bfloat16), (False, jnp.int32), (True, jnp.float32),
])
def test_a_score_may_be_of_any_type(wide, dtype):
  """By tracing alone: branches and loops keep the type of the best one."""
  with jax.enable_x64(wide):
    score = lambda key, state: dict(score=jnp.ones((), dtype))
    run = lambda key: trained(
        data(), key=key, validate=score, best='score', every=2
    )
    _, history = jax.eval_shape(run, KEY)
  assert history['validation']['score'].dtype == dtype


def test_patience_is_of_epochs_that_were_measured():
  _, history = scored(*[0.5] * 7, patience=1, every=2)
  np.testing.assert_array_equal(history['measured'], [0, 1, 0, 1, 0, 0, 0])
  np.testing.assert_array_equal(np.isnan(history['loss']), [0] * 4 + [1] * 3)


def test_patience_that_is_spent_does_not_wait_for_the_last_epoch():
  """The last is measured out of turn, and is not to be played any more."""
  state, history = scored(
      0, 0.5, 0, 0.4, 0, 0.4, 0.9, patience=2, every=2
  )
  np.testing.assert_array_equal(history['measured'], [0, 1, 0, 1, 0, 1, 0])
  assert int(state.defense) == 1


def test_patience_waits_for_a_first_best():
  nan = float('nan')
  state, history = scored(nan, nan, nan, 0.5, 0.4, 0.3, patience=1)
  np.testing.assert_array_equal(history['measured'], [1, 1, 1, 1, 1, 0])
  assert int(state.defense) == 3


def test_the_loss_of_an_epoch_is_the_mean_of_its_rounds():
  """The smaller one counts as the others do."""
  _, history = fit(remainder='keep', watch=lambda key, played: played.loss)
  rounds = np.concatenate(history['watch'], axis=1)
  assert rounds.shape == (4, 5)
  np.testing.assert_allclose(history['loss'], rounds.mean(1), rtol=1e-6)


def test_after_an_epoch_a_defense_has_what_the_active_party_holds():
  """Its weights of that moment, what it trains as its top, its samples."""
  defense = Defense(
      init=lambda key, spec: slots(spec, state=jnp.zeros((3, 2))),
      top=lambda net: net._replace(
          apply=lambda params, us: 3 * net.apply(params, us)
      ),
      epoch=lambda state, key, has: has.vfl.top.apply(
          has.params['top'], (None, has.auxiliary.features[1][:, :2])
      ),
  )
  own = data()._replace(labels=data().labels[:3], features=(None, jnp.eye(3)))
  state, _ = trained(data(), defense, epochs=2, auxiliary=own)
  top = state.parties[0].params['top']
  expected = 3 * VFL.top.apply(top, (None, jnp.eye(3)[:, :2]))
  np.testing.assert_allclose(state.defense, expected, rtol=1e-5)


def test_a_defense_may_draw_from_auxiliary_samples_of_numpys():
  """As samples are that are streamed."""
  own = jax.tree.map(np.asarray, data())

  def epoch(state, key, has):
    i = jax.random.randint(key, (), 0, SAMPLES)
    some = np.unique(np.asarray(has.auxiliary.labels))  # While it is traced.
    return state + has.auxiliary.features[1][i].sum() * len(some)

  defense = Defense(
      init=lambda key, spec: slots(spec, state=jnp.zeros(())), epoch=epoch
  )
  seen = [
      trained(data(), defense, epochs=2, auxiliary=some)[0].defense
      for some in (own, data())
  ]
  assert seen[0] == seen[1] != 0


def test_a_defense_prepares_labels_by_the_active_partys_own_features():
  """Which has none here."""
  told = []
  defense = Defense(
      prepare=lambda key, features, labels: told.append(features) or labels
  )
  train.start(KEY, train.Plan(VFL, defense, TXS, 1, 5), data())
  assert told == [None]


def test_labels_of_numpys_samples_are_prepared_in_a_traced_loop():
  """And they are those of the samples that are trained on."""
  def flipped(key, features, labels):
    del key, features
    return jax.lax.map(lambda i: labels[i, ::-1], jnp.arange(len(labels)))

  own = train.Plan(VFL, Defense(prepare=flipped), TXS, 1, 5)
  given = jax.tree.map(np.asarray, data())
  run = train.start(KEY, own, given)
  np.testing.assert_array_equal(run.labels, given.labels[:, ::-1])
  fewer = jax.tree.map(lambda x: x[:-1], given)
  with pytest.raises(ValueError, match='22 samples, and these are 21'):
    train.advance(own, run, fewer, 0, 1)


def test_prepared_labels_are_trained_on_and_the_truth_is_watched():
  flip = Defense(prepare=lambda key, features, labels: labels[:, ::-1])
  truth = lambda key, played: (
      played.batch.labels - data().labels[
          played.batch.features[1][:, 2].astype(int)]
  )
  state, history = trained(data(), flip, epochs=2, watch=truth)
  assert not np.asarray(history['watch']).any()
  flipped = data()._replace(labels=data().labels[:, ::-1])
  expected, _ = trained(flipped, epochs=2)
  chex.assert_trees_all_close(state.parties, expected.parties, atol=1e-6)


def test_mixed_samples_are_watched_whose_labels_were_prepared():
  """As the parties mixed them, with their true labels mixed alike."""
  prepare = lambda key, features, labels: labels[:, ::-1]
  defense = chain(Defense(prepare=prepare), mixup.mixup(2))
  plan, truth = train.Plan(VFL, defense, TXS, 1, 22), data()
  state = jax.jit(lambda: protocol.init(KEY, VFL, defense, TXS, truth))()
  flipped = truth._replace(labels=truth.labels[:, ::-1])
  expected, played = jax.jit(lambda state: (
      protocol.play_round(KEY, VFL, defense, TXS, state, flipped)[1],
      train.play_prepared(KEY, plan, state, truth, flipped.labels)[1],
  ))(state)
  mixed = expected.batch
  assert not np.array_equal(mixed.features[1], truth.features[1])
  np.testing.assert_allclose(played.batch.features[1], mixed.features[1])
  np.testing.assert_allclose(
      played.batch.labels, mixed.labels[:, ::-1], atol=1e-6
  )


def test_a_federation_learns():
  state, history = fit(epochs=400)
  assert history['loss'][-1] < 0.6 * history['loss'][0]
  logits = protocol.predict(KEY, VFL, NONE, state, data().features)
  right = logits.argmax(-1) == data().labels.argmax(-1)
  assert right.mean() > 0.8


@pytest.mark.parametrize('option, message', [
    (dict(epochs=0), 'epochs must be an integer of at least 1'),
    (dict(batch_size=0), 'between 1 and the 22'),
    (dict(batch_size=23), 'between 1 and the 22'),
    (dict(every=0), 'every must be an integer'),
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
  plan = train.Plan(VFL, NONE, TXS, 4, 5)
  advance = jax.jit(
      lambda run, first: train.advance(plan, run, data(), first, 3)
  )
  run, _ = advance(train.start(KEY, plan, data()), 0)
  run, history = advance(run, 3)
  whole, _ = fit()
  chex.assert_trees_all_close(train.finish(run), whole, atol=1e-6)
  np.testing.assert_array_equal(history['measured'], [1, 0, 0])


def test_a_run_owns_its_arrays():
  """Their memory may be given away, that of the samples stays."""
  samples = jax.tree.map(jnp.asarray, data())
  defense = NONE._replace(prepare=lambda key, features, labels: labels)
  plan = train.Plan(
      VFL, defense, TXS, 4, 5, best='score',
      validate=lambda key, state: dict(score=jnp.ones(())),
  )
  run = train.start(jax.random.key_data(KEY), plan, samples)
  places = [
      x.unsafe_buffer_pointer() for x in jax.tree.leaves((run, samples))
  ]
  assert len(places) == len({*places})
