"""What one attacker, one channel, one step or one draw would not show."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import adversary, algorithms, backdoor, nets, protocol
from vfljax.adversary import Adversary
from vfljax.attacks import (
    active_completion, inversion_shadow, label_replacement, median_scoring,
    missing_features, noisy_sample, residual_scoring, residue_reconstruction,
)
from vfljax.attacks.inversion_shadow import Sender
from vfljax.attacks.mixmatch import MixMatch, complete
from vfljax.attacks.model_completion import standardized
from vfljax.attacks.model_inversion import Inversion, train_shadow
from vfljax.attacks.residual_scoring import residuals
from vfljax.defense import none
from vfljax.scene import Pace, Scene
from vfljax.types import Batch, Net
from vfljax.views import (
    ClassCenters, CutGradients, ModelGradients, TrainedTop,
)

KEY = jax.random.key(0)
BOTH = 1, 2  # Attackers.


def test_attackers_in_any_order_get_what_is_theirs():
  put = adversary.put((1, 2, 3), (2, 0), (30, 10), 'send')
  assert put == (10, 2, 30)


def test_values_range_over_all_attackers():
  features = [jnp.array([0.0, 1.0]), jnp.array([-3.0, 7.0])]
  assert backdoor.value_range(features) == (-3, 7)


def test_a_trigger_is_in_every_channel():
  x = np.zeros((1, 5, 6, 3), np.float32)
  stamped = np.asarray(jax.jit(backdoor.stamp)(x, 0.9))
  assert stamped.any()
  np.testing.assert_array_equal(stamped, stamped[..., :1].repeat(3, -1))


def test_the_same_samples_are_missing_at_each_attacker():
  u = np.ones((500, 2), np.float32)
  attack = missing_features(0.5, parties=BOTH)
  one, other = jax.jit(attack.training.send)((), KEY, (u, u))
  assert 0 < np.mean(one) < 1
  np.testing.assert_array_equal(one, other)


def test_the_same_samples_are_noisy_at_each_attacker():
  x = np.zeros((500, 2), np.float32)
  attack = noisy_sample(0.5, parties=BOTH, bounds=None)
  run = jax.jit(attack.training.features)
  one, other = map(np.asarray, run((), KEY, (x, x)))
  lots = [(found != 0).any(-1) for found in (one, other)]
  assert 0 < lots[0].mean() < 1
  np.testing.assert_array_equal(*lots)
  assert not np.array_equal(one, other)  # The noise is each one's own.


def test_rounds_have_different_known_samples():
  attack = label_replacement(
      0, jnp.arange(50), [jnp.zeros((3, 8))], per_round=2
  )
  rows = {
      tuple(np.asarray(attack.training.rows(key, jnp.zeros(9, jnp.int32)))[-2:])
      for key in jax.random.split(KEY, 20)
  }
  assert len(rows) > 15


def test_attackers_learn_from_what_they_turned_the_gradient_into():
  """`update` has the gradient as it arrived."""
  seen = []
  liar = Adversary(
      (1,), receive=lambda s, key, own: tuple(9 + d for d in own),
      update=lambda s, key, sent, got: seen.append(got),
  )
  labels = np.eye(2, dtype=np.float32)[np.arange(6) % 2]
  data = Batch((jnp.ones((6, 3)),) * 2, jnp.asarray(labels))
  vfl = algorithms.vhnn([nets.mlp(2)] * 2, nets.mlp(2))
  txs = (optax.sgd(1.0),) * 2

  @jax.jit
  def both():
    state = protocol.init(KEY, vfl, none(), txs, data, liar)
    _, played = protocol.play_round(KEY, vfl, none(), txs, state, data, liar)
    return seen[-1][0], played.messages.down[0]

  got, sent = both()
  assert np.asarray(sent).any()
  np.testing.assert_array_equal(got, sent)


def test_residuals_of_a_padded_batch():
  rng = np.random.default_rng(0)
  sent = rng.normal(size=(30, 1)).astype(np.float32)
  got = rng.normal(size=(30, 2)).astype(np.float32)
  got[20:] = 0
  valid = (np.arange(30) < 20).astype(np.float32)
  left = jax.jit(residuals, static_argnums=3)
  found = np.asarray(left(sent, got, valid, 3))
  plain = left(sent[:20], got[:20], valid[:20], 3)
  np.testing.assert_allclose(found[:20], plain, atol=1e-4)
  assert not found[20:].any()


def test_the_gradients_of_padding_leave_no_residual():
  sent = np.arange(6, dtype='f4')[:, None]
  valid = np.float32([1, 1, 1, 1, 0, 0])
  left = jax.jit(residuals, static_argnums=3)
  found = np.asarray(left(sent, sent % 2 + 9, valid, 1))
  assert found[:4].any() and not found[4:].any()


def test_gradients_are_explained_by_no_higher_degree_than_asked():
  """A square is what a line leaves of itself: x^2 - 2, and of a square 0."""
  x = np.arange(-2, 3, dtype='f4')[:, None]
  view = CutGradients(x, x, x**2, np.ones(5, 'f4'))
  score = lambda degree: jax.jit(residual_scoring(degree).run)(KEY, view)
  np.testing.assert_allclose(score(1), -np.ravel(x**2 - 2) / 4, atol=1e-5)
  np.testing.assert_allclose(score(2), 0, atol=1e-5)


def test_as_many_terms_as_samples_explain_nothing():
  """The degree falls until there are fewer, with padding as without; where even
  a line passes through all samples nothing is left, in place of rounding."""
  rng = np.random.default_rng(0)
  sent, got = rng.normal(size=(2, 12, 2)).astype(np.float32)
  left = jax.jit(residuals, static_argnums=3)
  real = (np.arange(12) < 8).astype(np.float32)
  found = left(sent, got, real, 5)
  np.testing.assert_allclose(found, left(sent, got, real, 3), atol=1e-5)
  assert np.abs(found).max() > 1e-2
  few = left(sent[:3], got[:3], real[:3], 5)
  np.testing.assert_array_equal(few, 0)
  assert np.isnan(left(sent[:3], got[:3] * np.nan, real[:3], 5)).any()


def test_the_unit_of_residuals_is_of_samples_alone():
  x = np.arange(6, dtype='f4')[:, None]
  valid = np.float32([1, 1, 1, 1, 0, 0])
  left = jax.jit(residuals, static_argnums=3)
  one, other = (left(x, (x % 2).copy() + far * (x > 3), valid, 1)
                for far in (0, 1e4))
  np.testing.assert_allclose(one, other, atol=1e-6)


def test_residuals_are_scored_along_the_axis_whose_coordinates_sum_to_more():
  """An eigenvector comes with either sign: so in many directions."""
  x = np.float32([-2, -1, 0, 1, 2])[:, None]
  angles = np.linspace(0, 2 * np.pi, 16, endpoint=False) + 0.1
  axes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
  got = np.float32([np.outer(x**2 - 2, axis) for axis in axes])
  score = lambda got: residual_scoring(1).run(
      KEY, CutGradients(x, x, got, np.ones(5, 'f4'))
  )
  found = jax.jit(jax.vmap(score))(got)
  along = np.sign(axes.sum(1)) / abs(got).max((1, 2))
  np.testing.assert_allclose(found, -np.outer(along, x**2 - 2), atol=1e-5)


def test_the_median_of_a_batch_is_that_of_sums():
  d = np.float32([[5, -9], [1, 1], [0, 3]])
  view = ClassCenters(d, d, d, np.ones(3, 'f4'), np.zeros(3), d[:2], d[:2])
  found = jax.jit(median_scoring(center='batch').run)(KEY, view)
  np.testing.assert_array_equal(found, [0, 0, 1])


def test_padding_has_no_residue_and_a_bias_says_what_it_can():
  """Four samples of three features, and two rows that are none."""
  rng = np.random.default_rng(0)
  x, d = rng.normal(size=(6, 3)), rng.normal(size=(6, 1))
  d[4:] = 0
  weights = dict(kernel=x.T @ d, bias=d.sum(0))
  real = np.arange(6) < 4
  view = ModelGradients(*jax.tree.map(
      jnp.float32, (x, weights, weights, real)
  ))
  attack = residue_reconstruction()
  found = np.asarray(jax.jit(attack.run)(KEY, view))
  np.testing.assert_allclose(found[:, 1], -d[:, 0], rtol=1e-3, atol=1e-4)
  assert jax.jit(attack.facts)(view)['exact'] == 1


def test_a_standardized_head_trains_on_what_it_will_be_given():
  echo = Net(lambda key, u: (), lambda p, u: u, lambda p, key, u: (u, ()))
  known = np.float32([[1, 4], [3, 8]])
  run = lambda known: standardized(echo, known).run((), KEY, known)
  found, _ = jax.jit(run)(known)
  np.testing.assert_allclose(found, [[-1, -1], [1, 1]], rtol=1e-4)


def test_mixmatch_averages_weights_after_the_step():
  how = MixMatch(
      1, 1, batch_size=2, stages=1, learning_rate=1e-5, decay=1e4, average=0.9
  )
  linear = Net(lambda key, x: {}, lambda w, x: x @ w)
  w, x = np.float32([[1, 2], [3, -1]]), np.eye(2, dtype=np.float32)
  run = lambda w, x: complete(KEY, how, linear, w, x, x, x, x)
  found = jax.jit(run)(w, x)
  # The step leaves .9 w, which is nine tenths of the average.
  np.testing.assert_allclose(found[-1], (0.1 + 0.9 * 0.9) * w, atol=1e-3)


@pytest.fixture
def top_view():
  """A federation, and what a white box of its top shows."""
  x = np.random.default_rng(0).normal(size=(12, 3)).astype('f4')
  labels = np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)]
  vfl, u = algorithms.vsnn([nets.mlp(2)], nets.mlp(2)), jnp.zeros((12, 2))
  params = dict(bottom=(), top=vfl.top.init(KEY, (None, u)))
  samples = Batch((None, jnp.asarray(x)), jnp.asarray(labels))
  return vfl, TrainedTop(params, u, samples)


def test_a_shadow_pays_the_penalty_of_who_sends(top_view):
  vfl, view = top_view
  sender = Sender(
      lambda key, x: jnp.ones(2),
      lambda p, key, x: (jnp.zeros((len(x), 2)), (p**2).sum()), lambda p, x: x,
  )
  found = train_shadow(KEY, vfl, sender, view, Inversion(50, 12, 0.1))
  assert np.abs(found).max() < 0.5


def test_each_step_of_a_shadow_has_noise_of_its_own(top_view):
  """The slope is the step's draw: of one for all, Adam goes straight on."""
  vfl, view = top_view
  sender = Sender(
      lambda key, x: jnp.zeros(200),
      lambda p, key, x: (
          jnp.zeros((len(x), 2)), p @ jax.random.normal(key, (200,))
      ), lambda p, x: x,
  )
  found = train_shadow(KEY, vfl, sender, view, Inversion(20, 12, 0.1))
  assert np.abs(found).mean() < 1  # 2 is 20 steps of .1.


def test_a_convolutional_shadow_ends_as_the_network_does():
  scene = Scene(classes=2, channels=(2,), widths=(4,), final='relu')
  net = inversion_shadow.network('conv', scene, nets.mlp(4))
  x = np.random.default_rng(0).normal(size=(16, 8, 8, 1)).astype('f4')
  made = jax.jit(lambda x: net.apply(net.init(KEY, x), x))(x)
  assert (made >= 0).all()


def test_momentum_goes_on_without_a_gradient():
  tx = active_completion.optimizer(Pace('momentum', 0.1, True))

  @jax.jit
  def second(w):
    _, state = tx.update(jnp.ones(1), tx.init(w), w)
    return tx.update(jnp.zeros(1), state, w)[0]

  assert second(np.ones(1, np.float32))[0] != 0
