"""The shadow that an inverting attacker trains, and what it is trained on."""
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.small_networks import drawn
from vfljax import algorithms, nets
from vfljax.attacks.inversion_shadow import Sender, network, sender
from vfljax.attacks.model_inversion import (
    Inversion, Options, check_options, invert, train_shadow,
)
from vfljax.defense import Defense, slots
from vfljax.scene import Amounts, Scene
from vfljax.types import Batch, Net
from vfljax.views import TrainedTop

KEY = jax.random.key(0)


def test_a_structure_that_there_is_not_is_refused():
  with pytest.raises(ValueError, match="must be same, conv or fc; got 'deep'"):
    network('deep', Scene(2), nets.mlp(4))


@pytest.mark.parametrize('shape, fits', [
    ((7, 7, 1), True), ((6, 7, 1), False), ((7, 6, 3), False), ((49,), False),
])
def test_features_to_invert_are_images_of_some_size(shape, fits):
  amounts = Amounts(400, 80, 10, 10, 7, 'none', shape)
  check = lambda: check_options(Options(), Scene(2), amounts)
  if fits:
    check()
    return
  with pytest.raises(ValueError, match='of 7 x 7 pixels or more; party 1 has'):
    check()


@pytest.mark.parametrize('activation', ['relu', 'tanh'])
def test_another_structure_has_the_victims_activations(activation):
  """Kang et al., Table 17: windows of 5x5, or 256 hidden units."""
  scene = Scene(2, channels=(3,), widths=(4,), activation=activation)
  x = np.random.default_rng(0).random((2, 8, 8, 1), np.float32)
  dense = network('fc', scene, nets.mlp(4))
  params = drawn(dense, x)
  first, last = (params[k]['Dense_0'] for k in ('Dense_0', 'Dense_1'))
  hidden = x.reshape(2, -1) @ first['kernel'] + first['bias']
  hidden = dict(relu=lambda z: np.maximum(z, 0), tanh=np.tanh)[activation](
      np.asarray(hidden)
  )
  np.testing.assert_allclose(
      dense.apply(params, x), hidden @ last['kernel'] + last['bias'], atol=1e-5
  )
  shapes = jax.eval_shape(network('conv', scene, nets.mlp(4)).init, KEY, x)
  assert (25, 3) in [w.shape for w in jax.tree.leaves(shapes)]


def known(n=12):
  """Samples that are their numbers at both parties."""
  x = jnp.arange(float(n))[:, None]
  return Batch((x, x), jnp.eye(2)[jnp.arange(n) % 2])


def test_a_shadow_of_a_defended_party_is_all_of_it():
  """Its weights and the defense's are drawn apart; it pays what that costs."""
  draw = lambda key: jax.random.normal(key, (3,))
  net = Net(lambda key, x: draw(key), lambda w, x: 2 * x)
  defense = Defense(
      init=lambda key, spec: slots(spec, passive=(draw(key),)),
      send=lambda own, key, u: (u + 1, jnp.asarray(7.0)),
  )
  vfl, x = algorithms.vsnn([net], nets.mlp(2)), known().features[1]
  made = sender(net, vfl, known(), defense)
  params = made.init(KEY, x)
  assert not np.intersect1d(params['net'], params['defense']).size
  message, penalty = made.send(params, KEY, x)
  np.testing.assert_array_equal(message, 2 * x + 1)
  assert penalty == 7


def trained(send, how, start=0.0, defense=None):
  """A shadow of one weight, whose attacker embeds its features as they are;
  what the top was given at each step, and the loss as labels."""
  seen = []

  def top(weights, us):
    jax.debug.callback(lambda *u: seen.append(u), *us)
    return jnp.zeros((len(us[1]), 2))

  def loss(logits, labels):
    jax.debug.callback(lambda y: seen.append(y), labels)
    return logits.sum(-1)

  same = SimpleNamespace(apply=lambda params, x: x)
  vfl: Any = SimpleNamespace(
      bottoms=(same, None), loss=loss,
      top=SimpleNamespace(apply=top, run=lambda w, key, us: (top(w, us), ())),
  )
  data = known()
  view = TrainedTop(
      dict(bottom=(), top=(), defense=jnp.asarray(3.0)), data.features[1], data,
      jnp.asarray(0.5),
  )
  own = Sender(lambda key, x: jnp.asarray(start), send, lambda p, x: x)
  found = train_shadow(KEY, vfl, own, view, how, defense)
  jax.effects_barrier()
  return found, seen


def test_a_shadow_learns_from_random_samples_of_both_parties():
  _, seen = trained(lambda p, key, x: (x, 0 * p), Inversion(8, 3, 0.1))
  given = [one for one in seen if len(one) == 2]
  for mine, theirs in given:
    np.testing.assert_array_equal(mine, theirs)
  rows = {tuple(np.ravel(mine)) for mine, _ in given}
  assert len(rows) > 4 and len({row for one in rows for row in one}) > 6


def test_what_a_defense_has_at_the_active_party_is_the_attackers_own():
  """Its weights, its memory and what it makes of labels."""
  defense = Defense(
      receive=lambda active, state, key, up, labels: (
          tuple(active * u + state for u in up), jnp.zeros(())
      ),
      label=lambda state, key, labels: labels * state,
  )
  _, seen = trained(
      lambda p, key, x: (x, 0 * p), Inversion(1, 3, 0.1), defense=defense
  )
  (mine, theirs), = (one for one in seen if len(one) == 2)
  np.testing.assert_array_equal(theirs, 3 * mine + 0.5)
  labels, = (one for one in seen if len(one) == 3)
  np.testing.assert_array_equal(labels.sum(-1), 0.5)


def test_a_shadow_descends_the_loss_that_a_defense_has_in_its_place():
  defense = Defense(objective=lambda state, key, predict, up, labels: (
      predict(up).sum() + 2 * up[0].mean()
  ))
  found, seen = trained(
      lambda p, key, x: (x + p, 0 * p), Inversion(10, 3, 0.2), defense=defense
  )
  np.testing.assert_allclose(found, -2, rtol=1e-3)
  assert all(len(one) == 2 for one in seen)  # The federation's is not asked.


def test_a_shadow_learns_at_its_own_rate():
  """Down a slope of 1 Adam goes its rate at every step."""
  how = Inversion(10, 3, 0.2, learning_rate=0.05)
  found, _ = trained(lambda p, key, x: (x, p), how)
  np.testing.assert_allclose(found, -2, rtol=1e-3)


def test_images_are_inverted_each_for_itself():
  """Two of two pixels that are sent as they are: (x - u)^2 + 0.2 |x_1 - x_0|
  is least where each pixel has moved by 0.1 towards the other."""
  net: Any = SimpleNamespace(apply=lambda params, x: x.reshape(len(x), -1))
  sent = jnp.array([[0.2, 0.8], [0.9, 0.3]])
  how = Inversion(steps=400, learning_rate=0.01, variation=0.2)
  run = jax.jit(lambda start: invert(net, (), sent, start, how))
  found = run(jnp.full((2, 1, 2, 1), 0.5))
  np.testing.assert_allclose(
      found.reshape(2, 2), [[0.3, 0.7], [0.8, 0.4]], atol=0.02
  )
