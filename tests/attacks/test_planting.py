"""What a runner plants: targets, known samples, triggers and noise."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import attacks
from vfljax.attack import TRAINING
from vfljax.attacks import label_replacement, missing_features, noisy_sample
from vfljax.attacks.label_replacement import _known_well
from vfljax.scene import Ground

KEY = jax.random.key(0)


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


@pytest.mark.parametrize('split', range(3))
def test_a_class_that_a_split_leaves_out_is_no_target(split):
  """Samples of another class were then known as of the target."""
  options = label_replacement.options(triggered=0.3, targets=2)
  here = ground(0)
  labels = jnp.eye(3)[(jnp.arange(12) % 2 + split) % 3]  # Not of the third.
  rows = jnp.zeros(6, jnp.int32)

  @jax.jit
  def planted(key):
    made = label_replacement.plant(
        options, here._replace(key=key, labels=labels)
    )
    return made.target, made.training.rows(key, rows)[-2:]

  for seed in range(8):
    target, chosen = planted(jax.random.key(seed))
    assert (np.argmax(labels, -1)[np.asarray(chosen)] == target).all()


def test_a_class_with_enough_samples_is_as_likely_a_target_as_a_larger_one():
  is_of = np.repeat(np.eye(4, dtype=bool), [2, 9, 1, 5], axis=0)
  found = [
      int(_known_well(jnp.int32(k), is_of, targets))
      for targets in (1, 2, 7, 99) for k in range(4)
  ]
  # Where none has so many, the one with the most.
  assert found == [0, 1, 2, 3] + [0, 1, 3, 3] + [1] * 8


def test_of_a_class_that_is_too_rare_what_there_is_is_known():
  options = label_replacement.options(triggered=0.3, targets=7)
  made = label_replacement.plant(options, ground(0))
  draw = jax.vmap(lambda k: made.training.rows(k, jnp.zeros(6, jnp.int32))[-2:])
  chosen = np.unique(draw(jax.random.split(KEY, 40)))
  assert (chosen % 3 == made.target).all() and len(chosen) == 4
