"""Attacks at the edges: of what they refuse, and of what they measure."""
import copy
import pickle
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import devices
from vfljax import algorithms, attacks, importing, leakage, nets
from vfljax.attack import recipe, recipe_of
from vfljax.attacks.cafe import measured
from vfljax.attacks.inversion_shadow import network
from vfljax.attacks.model_completion import Options, baselines, head_of
from vfljax.attacks.model_inversion import Inversion, model_inversion
from vfljax.attacks.residue_reconstruction import linear_gradient
from vfljax.likeness import finds_its_own
from vfljax.scene import Amounts, Scene
from vfljax.types import VFL
from vfljax.views import RecordedGradients

NET = nets.mlp(2, 3)


@pytest.mark.parametrize('wrong', [
    dict(steps=0), dict(shadow_steps=0), dict(variation=-0.1),
    dict(shadow_batch=0), dict(shadow_rate=-1e-3), dict(learning_rate=0.0),
])
def test_an_inversion_has_steps_and_a_variation(wrong):
  vfl = algorithms.vhnn([NET, NET], NET)
  model_inversion(vfl, NET, Inversion(steps=1, shadow_steps=1, variation=0))
  with pytest.raises(ValueError, match=f'model_inversion: {[*wrong][0]}'):
    model_inversion(vfl, NET, Inversion()._replace(**wrong))


@pytest.mark.parametrize('parties', [1, 3])
def test_an_inversion_is_for_two_parties(parties):
  vfl = algorithms.vhnn([NET] * parties, NET)
  with pytest.raises(ValueError, match='is for two parties'):
    model_inversion(vfl, NET)


@pytest.mark.parametrize('size, structure', [(6, False), (7, True)])
def test_structure_is_compared_where_its_window_fits(size, structure):
  images = np.random.default_rng(0).random((2, size, size, 1), np.float32)
  found = jax.eval_shape(measured, images, images)
  assert ('ssim' in found) == structure


def test_a_rebuilt_image_is_compared_with_the_mean_image():
  rng = np.random.default_rng(0)
  truth, guess = rng.random((2, 4, 3, 3, 1), np.float32)
  found = jax.jit(measured)(guess, truth)
  for name, x in dict(psnr=guess, mean_image_psnr=truth.mean(0)).items():
    errors = ((x - truth) ** 2).mean((1, 2, 3))
    expected = (-10 * np.log10(errors)).mean()
    np.testing.assert_allclose(found[name], expected, rtol=1e-5)


def test_a_guess_tells_its_image_from_the_others():
  """The first is nearest to its own, two are exchanged; the mean tells none."""
  truth = np.random.default_rng(0).random((4, 8, 8, 1), np.float32)
  noise = np.random.default_rng(1).random(truth.shape, np.float32) - 0.5
  guess = truth[[0, 2, 1, 3]] + 0.2 * noise
  found = jax.jit(measured)(guess, truth)
  assert float(found['own_image']) == 0.5
  mean = np.broadcast_to(truth.mean(0), truth.shape)
  told = jax.jit(measured)(mean, truth)
  assert float(told['own_image']) == 0.25
  for name in ('psnr', 'ssim'):
    for one in (found, told):
      np.testing.assert_allclose(
          one[f'mean_image_{name}'], told[name], rtol=1e-5
      )
  assert abs(found['mean_image_ssim'] - found['ssim']) > 1e-3
  with pytest.raises(ValueError, match='one shape'):
    finds_its_own(guess, truth[:3])


KERNEL, BIAS = np.ones((3, 2)), np.ones(2)


def test_the_gradient_of_one_linear_layer_is_told_apart():
  kernel, bias = linear_gradient(dict(bias=BIAS, kernel=KERNEL))
  assert kernel is KERNEL and bias is BIAS
  kernel, bias = linear_gradient(dict(kernel=KERNEL))
  assert kernel is KERNEL and bias is None


@pytest.mark.parametrize('gradients', [
    [BIAS], [KERNEL, KERNEL], [KERNEL, BIAS, BIAS],
    [KERNEL, np.ones((1, 2, 3))], [KERNEL, BIAS, np.ones(())],
])
def test_other_networks_gradients_are_refused(gradients):
  with pytest.raises(ValueError, match='a bottom network of one linear layer'):
    linear_gradient(gradients)


@pytest.mark.parametrize('name', [
    'gradient_inversion', 'local_model', 'mixmatch', 'model_completion',
    'model_inversion', 'scratch',
])
def test_an_attacker_has_its_own_bottom_and_no_others(name):
  asked = []

  class Watched(VFL):

    def bottom(self, k):
      asked.append(k)
      return super().bottom(k)

  made = recipe_of(attacks.REGISTRY[name])
  vfl = Watched(*algorithms.vhnn([NET, NET], NET))
  own = lambda widths, norm: nets.mlp(*widths, 2)
  scene = Scene(2, widths=(3,), own=own)
  made.make(made.options(), scene, vfl)
  assert set(asked) <= {1} and asked != [] or name == 'local_model'


COMPLETING = dict(
    norm=[
        (dict(norm='batch', head=(8,)), {}, ''),
        (dict(norm='batch', head=()), {}, 'there are none'),
        (dict(norm='batch', head=(8,)), dict(linear=True), 'there are none'),
        (dict(head=()), dict(linear=True), ''),
    ],
    bottom_rate=[
        (dict(bottom_rate=0.5), {}, ''),
        (dict(tune=False), {}, ''),
        (dict(), dict(linear=True), ''),
        (dict(bottom_rate=0.5, tune=False), {}, 'is for a stolen bottom'),
        (dict(bottom_rate=0.5), dict(linear=True), 'is for a stolen bottom'),
    ],
)


@pytest.mark.parametrize(
    'given, scene, why', [x for rows in COMPLETING.values() for x in rows]
)
def test_settings_of_completion_that_change_nothing_are_refused(
    given, scene, why
):
  made = recipe_of(attacks.REGISTRY['model_completion'])
  amounts = Amounts(40, 20, 10, 10, 7, 'none', (8, 8, 1))
  check = lambda: made.check(
      made.options()._replace(**given), Scene(2, **scene), amounts
  )
  if not why:
    check()
  else:
    with pytest.raises(ValueError, match=why):
      check()


def test_baselines_say_that_they_are():
  """In the listing, where another attack of their file has its first line."""
  made = {name: recipe_of(make) for name, make in attacks.REGISTRY.items()}
  own = ['constant_image', 'local_model', 'mean_image', 'scratch']
  assert [name for name, m in sorted(made.items()) if m.is_baseline] == own
  assert [name for name in sorted(made) if attacks.is_baseline(name)] == own
  assert own == [
      name for name, m in sorted(made.items())
      if m.summary.startswith('Baseline: ')
  ]


def test_leakage_is_read_as_the_attack_says():
  """Also of a variant; a name that nobody knows has none."""
  for name, made in attacks.REGISTRY.items():
    assert attacks.known(name).score is recipe_of(made).score
  completion = recipe_of(attacks.REGISTRY['model_completion']).score
  assert attacks.known('model_completion:linear').score is completion
  assert attacks.known('nobody').score is leakage.NOBODYS
  assert not attacks.is_baseline('nobody')


def test_logistic_regression_is_completed_by_a_linear_head():
  """Or by none, which needs no labels: then there is nothing to compare."""
  for linear, widths, others in (
      (False, [5, 2], ('local_model', 'scratch')), (True, [2], ())
  ):
    scene = Scene(2, linear=linear)
    head = head_of(Options(head=(5,)), scene)
    drawn = jax.eval_shape(head.init, jax.random.key(0), np.ones((4, 3), 'f4'))
    biases = [len(w) for w in jax.tree.leaves(drawn) if w.ndim == 1]
    assert biases == widths and baselines(scene) == others


def test_directions_are_put_on_the_scale_of_those_that_are_known(monkeypatch):
  """However little they vary: here by a few thousandths."""
  module, seen = sys.modules['vfljax.attacks.learned_gradient'], []

  def complete(key, schedule, logits, start, samples):
    seen.append(samples)
    return jnp.zeros((1, 12, 2))

  monkeypatch.setattr(module, 'complete', complete)
  d = np.random.default_rng(0).normal(size=(12, 3)) * 0.01 + [0, 0, 5]
  labels = np.eye(2)[np.arange(6) % 2]
  view = RecordedGradients(jnp.asarray(d[:6]), labels, jnp.asarray(d))

  @jax.jit
  def run():
    attacks.learned_gradient().run(jax.random.key(0), view)
    return seen[0].known, seen[0].wanted

  known, wanted = map(np.asarray, run())
  np.testing.assert_allclose(known.mean(0), 0, atol=1e-2)
  np.testing.assert_allclose(known.std(0)[:2], 1, rtol=5e-3)
  assert np.abs(known.std(0)[2]) < 1  # It hardly varies, and stays so.
  # Of what hardly varies a length's last bit is a hundredth: a GPU may round it
  # otherwise for the one than for the other.
  atol = [1e-4, 1e-4, 1e-4 if devices.KIND == 'cpu' else 0.05]
  assert (np.abs(wanted[:6] - known) < atol).all()


@pytest.mark.parametrize('hidden', [(), (5, 4)])
def test_a_head_on_gradients_is_as_deep_as_asked(hidden, monkeypatch):
  module, seen = sys.modules['vfljax.attacks.learned_gradient'], []

  def complete(key, schedule, logits, start, samples):
    seen.extend(len(w) for w in jax.tree.leaves(start) if w.ndim == 1)
    return jnp.zeros((1, 6, 2))

  monkeypatch.setattr(module, 'complete', complete)
  d = np.arange(18, dtype=np.float32).reshape(6, 3)
  labels = np.eye(2, dtype=np.float32)[np.arange(6) % 2]
  jax.eval_shape(
      attacks.learned_gradient(hidden).run, jax.random.key(0),
      RecordedGradients(d, labels, d),
  )
  assert seen == [*hidden, 2]


def test_gradients_are_read_by_the_head_that_has_learned_longest(monkeypatch):
  stages = np.arange(3, dtype='f4')[:, None, None] * np.ones((3, 6, 2), 'f4')
  module = sys.modules['vfljax.attacks.learned_gradient']
  monkeypatch.setattr(module, 'complete', lambda *given: stages)
  d, labels = np.ones((6, 3), 'f4'), np.ones((6, 2), 'f4')
  found = jax.jit(attacks.learned_gradient().run)(
      jax.random.key(0), RecordedGradients(d, labels, d)
  )
  np.testing.assert_array_equal(found, 2)


@pytest.mark.parametrize('again', [
    lambda asked: pickle.loads(pickle.dumps(asked)), copy.deepcopy,
])
def test_a_registered_attack_goes_to_another_process_by_its_name(again):
  for name in attacks.REGISTRY.values():
    asked = recipe_of(name)
    assert again(asked) is asked


@pytest.mark.parametrize('name', ['__main__', 'of_ones_own'])
def test_an_attack_of_ones_own_goes_by_its_code(name, monkeypatch):
  """Another process may have no such name: cloudpickle sends what it is."""
  cloudpickle = pytest.importorskip('cloudpickle')  # Of the extra `ray`.
  module = types.ModuleType(name)
  module.attacks = attacks  # pyright: ignore[reportAttributeAccessIssue]
  exec('def mine():\n  return attacks.norm_scoring()', module.__dict__)
  module.__dict__['mine'] = recipe(stage=attacks.norm_scoring.stage)(
      module.__dict__['mine']
  )
  monkeypatch.setitem(sys.modules, name, module)
  if name != '__main__':
    cloudpickle.register_pickle_by_value(module)
  sent = cloudpickle.dumps(module.__dict__['mine'])
  del module.__dict__['mine']
  found = cloudpickle.loads(sent)
  assert found().view is attacks.norm_scoring().view


def test_an_attack_of_a_module_of_ones_own_goes_by_its_name(monkeypatch):
  """As a function does, unless something else has its name by now."""
  module = types.ModuleType('a_module')
  made = recipe(stage=attacks.norm_scoring.stage)(attacks.norm_scoring.factory)
  made.__module__, made.__name__ = 'a_module', 'mine'
  module.__dict__.update(mine=made, alias=made)
  monkeypatch.setitem(sys.modules, 'a_module', module)
  assert pickle.loads(pickle.dumps(made)) is made
  assert pickle.dumps(module.__dict__['alias']) == pickle.dumps(made)
  module.__dict__['mine'] = None
  assert not importing.goes_by_name(made)


@pytest.mark.parametrize('registered', ['a_package', 'a_package.inside'])
def test_what_cloudpickle_was_told_of_a_package_counts(registered, monkeypatch):
  cloudpickle = pytest.importorskip('cloudpickle')  # Of the extra `ray`.
  made = recipe(stage=attacks.norm_scoring.stage)(attacks.norm_scoring.factory)
  made.__module__, made.__name__ = 'a_package.inside', 'mine'
  for name in ('a_package', 'a_package.inside', 'a_pack'):
    module = types.ModuleType(name)
    module.__dict__['mine'] = made
    monkeypatch.setitem(sys.modules, name, module)
  cloudpickle.register_pickle_by_value(sys.modules['a_pack'])  # Another.
  assert importing.goes_by_name(made)
  cloudpickle.register_pickle_by_value(sys.modules[registered])
  try:
    assert not importing.goes_by_name(made)
  finally:
    for name in (registered, 'a_pack'):
      cloudpickle.unregister_pickle_by_value(sys.modules[name])


def test_a_recipe_has_no_word_that_nobody_reads():
  with pytest.raises(TypeError, match='unknown colour'):
    recipe(colour='red')(nets.mlp)
  with pytest.raises(TypeError, match='unknown stage'):
    recipe(stage='never')(nets.mlp)


def test_a_fully_connected_shadow_has_256_hidden_units():
  """Kang et al., Table 17: where the victim's network is not known."""
  x = np.zeros((2, 6, 5, 1), np.float32)
  shadow = network('fc', Scene(classes=2), nets.mlp(7))
  params = shadow.init(jax.random.key(0), x)
  shapes = sorted(w.shape for w in jax.tree.leaves(params) if w.ndim == 2)
  assert shapes == [(30, 256), (256, 7)]
  assert shadow.apply(params, x).shape == (2, 7)
