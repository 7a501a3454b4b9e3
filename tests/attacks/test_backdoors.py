"""Backdoors: what attackers do to a round, and what it does to a federation."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, backdoor, nets, protocol, train
from vfljax.attacks import label_replacement, missing_features, noisy_sample
from vfljax.defense import none
from vfljax.scene import Scene
from vfljax.types import Batch

KEY = jax.random.key(0)
TXS = (optax.adam(0.02),) * 3


def samples(n=240, parties=2, width=8, seed=0):
  """Classes that every party's columns show, all columns in [0, 1]."""
  rng = np.random.default_rng(seed)
  y = rng.integers(0, 3, n)
  parts = []
  for _ in range(parties):
    x = rng.normal(0.5, 0.12, (n, width))
    x[np.arange(n), y] += 0.3
    parts.append(x.clip(0, 1).astype(np.float32))
  labels = np.eye(3, dtype=np.float32)[y]
  return jax.device_put(Batch(tuple(parts), labels)), y


def federation(parties=2):
  bottoms = tuple(nets.mlp(16, 3) for _ in range(parties))
  return algorithms.vhnn(bottoms, nets.mlp(3), 'sum')._replace(
      top=algorithms.plain()
  )


def test_the_trigger_is_the_checkerboard_in_the_corner():
  x = jnp.zeros((2, 5, 6, 3))
  found = np.asarray(backdoor.stamp(x, 0.9))
  lit = {(int(i), int(j)) for i, j in np.argwhere(found[0, ..., 0] > 0)}
  assert lit == {(4, 5), (3, 4), (4, 3), (2, 5)}
  np.testing.assert_array_equal(found[0], found[1])
  np.testing.assert_allclose(found.max(), 0.9)
  table = np.asarray(backdoor.stamp(jnp.zeros((2, 6)), 2.0))
  np.testing.assert_array_equal(table[0], [0, 0, 2, 2, 2, 2])
  least = np.asarray(backdoor.stamp(jnp.zeros((1, 3, 3, 1))))[0, ..., 0]
  np.testing.assert_array_equal(least, [[0, 0, 1], [0, 1, 0], [1, 0, 1]])
  for small in (2, 9), (9, 2):
    with pytest.raises(ValueError, match='3 x 3'):
      backdoor.stamp(jnp.zeros((1, *small, 1)))


def test_a_round_with_replacement_written_out():
  """The rows' loss is that of the active party's own known sample with the
  triggered embedding, and the gradient reaches the weights through it."""
  data, y = samples(12)
  known = jnp.asarray(np.flatnonzero(y == 2)[:2])
  poison = data.features[1][:1]  # One, so that there is nothing to draw.
  made = label_replacement(
      2, known, (poison,), per_round=2, amplify=3.0
  )
  rows = np.asarray(made.training.rows(KEY, jnp.arange(12)))
  np.testing.assert_array_equal(rows[:-2], np.arange(10))
  assert set(rows[-2:]) <= set(np.asarray(known).tolist())
  batch = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[rows]), data)
  vfl, txs = federation(), (optax.sgd(1.0),) * 2

  state = protocol.init(KEY, vfl, none(), txs, batch, made.training)
  after, seen = jax.jit(lambda state: protocol.play_round(
      KEY, vfl, none(), txs, state, batch, made.training
  ))(state)
  fed = np.array(batch.features[1])
  fed[-2:] = backdoor.stamp(poison)[0]
  w0, w1 = (p.params['bottom'] for p in state.parties)

  @jax.jit
  def loss(w1, weights):
    z = vfl.bottom(0).apply(w0, batch.features[0])
    z = z + vfl.bottom(1).apply(w1, fed)
    each = optax.softmax_cross_entropy(z, batch.labels)
    return (weights * each).mean()

  weights = np.array([1] * 10 + [3] * 2, np.float32)
  expected = jax.tree.map(
      lambda w, g: np.asarray(w) - np.asarray(g), w1,
      jax.jit(jax.grad(loss))(w1, weights),
  )
  for a, b in zip(
      jax.tree.leaves(expected),
      jax.tree.leaves(after.parties[1].params['bottom']),
  ):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(seen.loss, loss(w1, np.ones(12, 'f4')), rtol=1e-5)
  np.testing.assert_array_equal(np.argmax(batch.labels, -1)[-2:], [2, 2])


def trained(made, data, vfl, epochs=20):
  """Not in `jit`, where drawing the weights would be compiled with the rest."""
  return train.fit(
      KEY, vfl, none(), TXS[: len(vfl.bottoms)], data, epochs=epochs,
      batch_size=24, adversary=made.training,
  )[0]


def outcome(made, state, test, vfl):

  @jax.jit
  def run(state, test):
    logits = [
        protocol.predict(KEY, vfl, none(), state, test.features, adversary=a)
        for a in (protocol.HONEST, made.inference)
    ]
    return backdoor.measured(made, logits[0], logits[1], test.labels)

  return {name: float(x) for name, x in run(state, test).items()}


@pytest.mark.slow
@pytest.mark.parametrize('parties', [2, 3])
def test_replacement_turns_triggered_samples(parties):
  """It works where it is on (VFLAIR's crashes), for colluders too, and only on
  triggered samples."""
  data, y = samples(parties=parties)
  vfl, liars = federation(parties), tuple(range(1, parties))
  made = label_replacement(
      0, jnp.asarray(np.flatnonzero(y == 0)[:60]),
      [data.features[k][y != 0][:40] for k in liars], parties=liars,
      per_round=4, amplify=8.0,
  )
  state = trained(made, data, vfl)
  found = outcome(made, state, samples(seed=1, parties=parties)[0], vfl)
  assert found['backdoor_accuracy'] > 0.7
  assert found['untriggered'] < 0.1


@pytest.mark.slow
def test_without_the_attack_the_trigger_means_nothing():
  data, y = samples()
  made = label_replacement(
      0, jnp.asarray(np.flatnonzero(y == 0)[:10]), [data.features[1][:20]]
  )
  honest = made._replace(training=protocol.HONEST)
  state = trained(honest, data, federation())
  found = outcome(made, state, samples(seed=1)[0], federation())
  assert found['backdoor_accuracy'] < 0.2 and found['untriggered'] < 0.1


def test_noise_hits_its_share_of_samples_and_its_party_alone():
  data, _ = samples(2000)
  made = noisy_sample(0.25, 2.0)
  (x,) = made.training.features((), KEY, data.features[1:])
  changed = np.asarray((x != data.features[1]).any(-1))
  np.testing.assert_allclose(changed.mean(), 0.25, atol=0.04)
  assert np.asarray(x).min() == 0 and np.asarray(x).max() == 1
  (all_noisy,) = noisy_sample(0.0, 2.0, None).inference.features(
      (), KEY, data.features[1:]
  )
  np.testing.assert_allclose(
      np.std(np.asarray(all_noisy - data.features[1])), 2.0, rtol=0.03
  )
  assert made.training.parties == (1,)


def test_missing_embeddings_are_zeros_in_training_and_at_inference():
  u = np.random.default_rng(0).normal(size=(4000, 3)).astype(np.float32)
  made = missing_features(0.25)
  sent = np.asarray(jax.jit(made.training.send)((), KEY, (u,))[0])
  gone = ~sent.any(-1)
  np.testing.assert_allclose(gone.mean(), 0.25, atol=0.03)
  np.testing.assert_array_equal(sent[~gone], u[~gone])
  (none_left,) = made.inference.send((), KEY, (u,))
  assert not np.asarray(none_left).any()
  data, _ = samples()
  vfl = federation()
  state = trained(missing_features(0.0), data, vfl)
  test, y = samples(seed=1)
  found = outcome(made, state, test, vfl)
  alone = jax.jit(lambda state, x: protocol.predict(
      KEY, vfl, none(), state, x, (0,)
  ))(state, test.features)
  expected = (np.argmax(alone, -1) == y).mean()
  np.testing.assert_allclose(found['attacked_accuracy'], expected)
  assert found['drop'] > 0.02


def test_what_is_measured():
  labels, clean, attacked = np.eye(3, dtype=np.float32)[
      [[0, 1, 1, 2], [0, 1, 2, 2], [0, 2, 2, 2]]
  ]
  aimed = backdoor.Backdoor(protocol.HONEST, protocol.HONEST, 2)
  found = backdoor.measured(aimed, clean, attacked, labels)
  # Of the three samples that are not of class 2.
  np.testing.assert_allclose(found['backdoor_accuracy'], 2 / 3)
  np.testing.assert_allclose(found['untriggered'], 1 / 3)
  np.testing.assert_allclose(found['drop'], 0.25)
  without = backdoor.measured(aimed._replace(target=None), clean, attacked,
                              labels)
  assert set(without) == {'attacked_accuracy', 'drop'}
  for wrong in (3, -1, 0.5):  # Nothing is taken for it: it scored 0.
    with pytest.raises(ValueError, match='Backdoor.target must be a whole'):
      backdoor.measured(aimed._replace(target=wrong), clean, attacked, labels)


AIMED = backdoor.Backdoor(protocol.HONEST, protocol.HONEST, 2)


def test_a_sample_of_several_classes_counts_once_as_of_the_largest():
  labels = np.array(
      [[0.4, 0, 0.6], [0.9, 0.1, 0], [0, 1, 0], [0, 0, 1]], np.float32
  )
  clean, attacked = np.eye(3, dtype=np.float32)[[[0, 2, 1, 2], [2, 0, 0, 2]]]
  found = backdoor.measured(AIMED, clean, attacked, labels)
  assert found['untriggered'] == 0.5  # Of the second and the third sample.
  assert found['backdoor_accuracy'] == 0
  assert found['attacked_accuracy'] == 0.75 and found['drop'] == -0.25


@pytest.mark.parametrize('target', [None, 2])
def test_class_numbers_are_no_labels(target):
  """The number of hits stood where their share is meant: 3.0."""
  logits, numbers = np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 1, 2])
  with pytest.raises(ValueError, match=r'measured needs labels \[samples, cl'):
    backdoor.measured(AIMED._replace(target=target), logits, logits, numbers)


def test_a_traced_target_that_is_no_class_has_no_share():
  eye = jnp.eye(3)
  found = jax.jit(lambda target: backdoor.measured(
      AIMED._replace(target=target), eye, eye, eye
  ))
  for target, nan in (3, True), (-1, True), (2, False):
    assert np.isnan(found(target)['backdoor_accuracy']) == nan


def test_half_precision_is_converted_explicitly():
  x = jnp.linspace(0, 1, 16).reshape(2, 8).astype(jnp.bfloat16)
  labels, number = jnp.eye(3, dtype=jnp.bfloat16), jnp.float32(0.5)
  with jax.numpy_dtype_promotion('strict'):
    low, high = backdoor.value_range([x, x.astype(jnp.float32) + 1])
    assert low == 0 and high == 2
    made = noisy_sample(1.0, number, (low, number))
    assert made.inference.features((), KEY, (x,))[0].dtype == x.dtype
    planted = label_replacement(0, [0], [x], amplify=number, value=number)
    (d,) = planted.training.receive((), KEY, (x,))
    np.testing.assert_array_equal(d[-1], x[-1] / 2)
    assert backdoor.measured(AIMED, jnp.eye(3), jnp.eye(3), labels)


@pytest.mark.parametrize('rate', [0, 1])
def test_none_and_all_may_be_whole_numbers(rate):
  x = jnp.full((4, 8), 0.5)
  for hook in (
      missing_features(rate).training.send, noisy_sample(rate).training.features
  ):
    assert (hook((), KEY, (x,))[0] == x).all() == (not rate)


X = jnp.zeros((3, 8))
BYTES = jnp.zeros((3, 8), jnp.uint8)


def fed(poison, own):
  made = label_replacement(0, [0], [poison])
  return made.training.features((), KEY, (own,))[0]


@pytest.mark.parametrize('make, message', [
    (lambda: noisy_sample(1.5), 'rate'),
    (lambda: noisy_sample(0.1, -1.0), 'std'),
    (lambda: noisy_sample(0.1, 1.0, (1.0, 0.0)), 'bound'),
    (lambda: missing_features(-0.1), 'rate'),
    (lambda: missing_features(0.1, parties=()), 'one or more parties'),
    (lambda: noisy_sample(0.1, parties=()), 'one or more parties'),
    (lambda: label_replacement(-1, jnp.array([1]), [X]), 'target'),
    (lambda: label_replacement(0.5, jnp.array([1]), [X]), 'target'),
    (lambda: label_replacement(0, jnp.array([-1]), [X]), 'known'),
    (lambda: label_replacement(0, jnp.array([1.7]), [X]), 'known .*float32'),
    (lambda: label_replacement(0, jnp.array(1), [X]), 'known'),
    (lambda: label_replacement(0, jnp.array([1]), [X], per_round=0), 'per_'),
    (lambda: label_replacement(0, jnp.array([1]), [X], amplify=0.0), 'ampl'),
    (lambda: label_replacement(0, jnp.array([1]), [X, X]), 'parties'),
    (lambda: label_replacement(0, jnp.array([], int), [X]), 'known'),
    (lambda: label_replacement(0, [2**32 + 1], [X]), 'known'),
    (lambda: label_replacement(0, np.array([2**32 - 1], 'u4'), [X]), 'known'),
    (lambda: label_replacement(0, [1], [X], parties=1), 'more parties; got 1'),
    (lambda: noisy_sample(0.1, parties=1), 'one or more parties; got 1'),
    (lambda: noisy_sample().inference.features((), KEY, (BYTES,)), 'to floats'),
    (lambda: backdoor.stamp(BYTES, 0.5), 'value must be a whole number'),
    (lambda: backdoor.stamp(BYTES, 300), r'value .* in \[0, 255\]; got 300'),
    (lambda: backdoor.stamp(X, np.nan), 'value must be a number'),
    (lambda: backdoor.stamp(X, np.ones(4)), r'several, of shape \(4,\)'),
    (lambda: fed(X[:, :1], X), r'poisons .* \(n, 8,\); got .* \(3, 1\)'),
    (lambda: fed(X, BYTES), 'poisons .* uint8 of .*; got float32'),
    (lambda: label_replacement(
        0, jnp.array([1]), [X, X[:2]], parties=(1, 2)), 'same samples'),
    (lambda: label_replacement(
        0, jnp.array([1]), [X], per_round=4
    ).training.rows(KEY, jnp.arange(4)), "below the 4 .*remainder='drop' leav"),
])
def test_bad_arguments(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_what_hosts_hold_is_planted_alike():
  x = np.random.default_rng(0).random((4, 8)).astype(np.float32)
  there, here = (
      label_replacement(1, of([2]), [of(x)], value=3) for of in (
          jnp.asarray, np.asarray
      )
  )
  for hook in 'training', 'inference':
    one, other = (
        getattr(made, hook).features((), KEY, (own,))[0]
        for made, own in ((there, jnp.asarray(x)), (here, x))
    )
    np.testing.assert_array_equal(one, other)


def test_a_lost_embedding_is_zeros_also_where_it_overflowed():
  u = jnp.full((2, 3), jnp.inf)
  (lost,) = missing_features(1.0).training.send((), KEY, (u,))
  np.testing.assert_array_equal(lost, np.zeros((2, 3)))


def test_numbers_of_categories_have_no_noise():
  why = lambda **of: noisy_sample.why_not('noisy_sample', Scene(2, **of))
  assert 'category or word' in why(numbered=True) and not why()


@pytest.mark.parametrize('remainder, last', [
    ('drop', 21), ('keep', 21), ('pad', 22)
])
def test_a_round_of_samples_that_are_not_there_is_nan(remainder, last):
  """It had the last sample in their place."""
  data, y = samples(22)
  vfl, tx = federation(), (optax.sgd(0.1),) * 2

  @jax.jit
  def loss(number):
    known = jnp.stack([number])
    made = label_replacement(0, known, [data.features[1][:2]]).training
    state, history = train.fit(
        KEY, vfl, none(), tx, data, epochs=1, batch_size=6, adversary=made,
        remainder=remainder,
    )
    return history['loss'], jax.tree.leaves(state.parties[1].params)[0]

  for number, nan in (0, False), (last, False), (last + 1, True), (-1, True):
    for found in loss(number):
      assert np.isnan(found).all() == nan


@pytest.mark.parametrize('shift', [17, -1])
def test_numbers_that_are_known_are_refused(shift):
  data, _ = samples(22)
  liar = protocol.HONEST._replace(
      parties=(1,), rows=lambda key, i: np.arange(6) + shift
  )
  with pytest.raises(ValueError, match=r'rows must be .* in \[0, 21\]'):
    jax.eval_shape(lambda: train.fit(
        KEY, federation(), none(), TXS[:2], data, epochs=1, batch_size=6,
        adversary=liar,
    ))


def test_bits_are_stamped_with_a_bit():
  found = backdoor.stamp(np.zeros((1, 6), bool), True)
  assert found.tolist() == [[False, False, True, True, True, True]]
