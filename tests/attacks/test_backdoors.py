"""Backdoors: what attackers do to a round, and what it does to a federation."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, attacks, backdoor, nets, protocol, train
from vfljax.attack import TRAINING
from vfljax.attacks import (
    label_replacement, missing_features, noisy_sample,
)
from vfljax.defense import none
from vfljax.scene import Ground
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


@pytest.mark.parametrize('rate', [0, 1])
def test_none_and_all_may_be_whole_numbers(rate):
  x = jnp.full((4, 8), 0.5)
  for hook in (
      missing_features(rate).training.send, noisy_sample(rate).training.features
  ):
    assert (hook((), KEY, (x,))[0] == x).all() == (not rate)


X = jnp.zeros((3, 8))


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
    (lambda: label_replacement(
        0, jnp.array([1]), [X, X[:2]], parties=(1, 2)), 'same samples'),
    (lambda: label_replacement(
        0, jnp.array([1]), [X], per_round=4
    ).training.rows(KEY, jnp.arange(4)), "below the 4 .*remainder='drop' leav"),
])
def test_bad_arguments(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_the_registry_knows_them():
  known = {n for n, r in attacks.REGISTRY.items() if r.stage == TRAINING}
  assert known == {'label_replacement', 'missing_features', 'noisy_sample'}
  assert all(attacks.REGISTRY[name].plant for name in known)


def ground(seed):
  """Twelve samples of three classes; the first column says which, the others
  are -3 or 5."""
  classes = np.arange(12) % 3
  x = np.where(np.arange(12 * 7).reshape(12, 7) % 2, 5, -3)
  x = np.concatenate([classes[:, None], x], -1).astype(np.float32)
  labels = np.eye(3, dtype=np.float32)[classes]
  return Ground(
      jax.random.key(seed), (1,), *jax.device_put(((x,), labels)), batch=6
  )


@pytest.mark.parametrize('seed', range(4))
def test_triggers_are_planted_in_place_of_the_target(seed):
  own, here = label_replacement.options(triggered=0.3, targets=2), ground(seed)
  made = label_replacement.plant(own, here)
  numbers = made.training.rows(KEY, jnp.zeros(6, jnp.int32))
  chosen = np.asarray(numbers[-2:])  # 0.3 of 6 rows.
  assert (np.argmax(here.labels, -1)[chosen] == made.target).all()
  clean = np.asarray(here.features[0])[np.asarray(numbers)]
  (x,) = made.training.features((), KEY, (jax.device_put(clean),))
  x = np.asarray(x)
  np.testing.assert_array_equal(x[-2:, -4:], 5.0)  # The largest value.
  np.testing.assert_array_equal(x[:-2], clean[:-2])


@pytest.mark.parametrize('seed', range(4))
def test_what_is_triggered_is_drawn_without_labels(seed):
  """The attackers know those of a few target samples alone."""
  one = ground(seed)
  other = one._replace(labels=jnp.roll(one.labels, 1, axis=0))
  options = label_replacement.options(triggered=0.3, targets=2)
  fed = [
      label_replacement.plant(options, here).training.features(
          (), KEY, here.features
      )[0]
      for here in (one, other)
  ]
  np.testing.assert_array_equal(*fed)


def test_what_is_planted_is_all_that_is_known_and_no_more():
  """Of 0.3 of the training samples and two of the target, in turn; whoever
  strikes shows the trigger that was planted."""
  whole = ground(0)
  numbered = whole.features[0].at[:, 1].set(jnp.arange(12.0))
  here = whole._replace(features=(numbered,))
  made = label_replacement.plant(
      label_replacement.options(triggered=0.3, targets=2), here
  )
  keys = jax.random.split(KEY, 60)
  rows = jax.vmap(lambda k: made.training.rows(k, jnp.zeros(6, jnp.int32)))
  assert len(np.unique(np.asarray(rows(keys))[:, -2:])) == 2
  fed = jax.vmap(lambda k: made.training.features((), k, here.features)[0])
  assert len(np.unique(np.asarray(fed(keys))[:, -2:, 1])) == 4  # 3.6 of 12.
  (struck,) = made.inference.features((), KEY, (-jnp.ones((3, 8)),))
  np.testing.assert_array_equal(struck, [[-1] * 4 + [11] * 4] * 3)


@pytest.mark.parametrize('of', [lambda x: (x, 5.0), lambda x: (-5.0, x)])
def test_one_bound_of_noise_may_be_traced(of):
  strike = lambda bound, x: noisy_sample(
      1.0, 2.0, of(bound)
  ).inference.features((), KEY, (x,))
  (found,) = jax.eval_shape(strike, 0.0, jnp.ones((3, 2)))
  assert found.shape == (3, 2)


def test_planted_noise_stays_between_the_attackers_values():
  made = noisy_sample.plant(noisy_sample.options(std=50.0), ground(0))
  (x,) = made.inference.features((), KEY, ground(0).features)
  assert x.min() == -3 and x.max() == 5
  lost = missing_features.plant(missing_features.options(rate=1.0), ground(0))
  (u,) = lost.training.send((), KEY, (jnp.ones((6, 2)),))
  assert not u.any()
