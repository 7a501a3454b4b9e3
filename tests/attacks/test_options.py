"""Every option of every attack is asked: another value is another program.

By tracing alone: nothing is compiled. An option that is accepted and forgotten
leaves the program, what the attack wants, or what it is told, as they were.
"""
from collections import namedtuple
import contextlib
import functools
import inspect
import re
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.attacks.test_contract import (
    EVERY_ATTACK, EVERY_BACKDOOR, SHORT, view_of,
)
from tests.contracts import SAMPLES, batch, federation, recipe_named
from vfljax import algorithms, attacks, nets
from vfljax.attack import recipe, recipe_of
from vfljax.defense import Defense
from vfljax.nets import cafe as network
from vfljax.scene import Amounts, Ground, Scene

# Other values of options; `another` finds most of a new attack's by itself.
OTHER = dict(
    amplify=3.0, batch_size=2, between='linear', bottom_rate=0.5,
    center='batch', defended=False,
    epochs=5, head=(7,), iterations=3, learning_rate=0.25, norm='batch',
    optimizer='sgd', rate=0.5, restarts=3, samples=3, schedule='cosine',
    shadow='fc', shadow_steps=5, stages=3, standardize=True, std=3.0, steps=5,
    targets=2, triggered=0.5, tune=False, variation=0.25, weight_decay=0.25,
)
# Baselines share the options of what they are baselines of.
OF_OTHERS = {
    'local_model': {'bottom_rate', 'standardize', 'tune'},
    'constant_image': {'defended', 'shadow', 'shadow_steps', 'variation'},
    'mean_image': {'defended', 'shadow', 'shadow_steps', 'variation'},
}
NOISY = Defense(send=lambda own, key, u: (
    u + jax.random.normal(key, u.shape, u.dtype), jnp.zeros(())
))


def options_of(names):
  return [
      (name, field) for name in names
      for field in recipe_named(name).options._fields
      if field not in OF_OTHERS.get(name, ())
  ]


def program(run, *arguments):
  """Its text, without where its functions lie in memory."""
  return re.sub('0x[0-9a-f]+', '', str(jax.make_jaxpr(run)(*arguments)))


@functools.cache
def made(name, **changed):
  """All that an attack does, in words."""
  recipe = recipe_named(name)
  options = recipe.options()
  short = {k: v for k, v in SHORT.items() if k in options._fields}
  options = options._replace(**short | changed)
  own = lambda widths, norm: nets.mlp(*widths, norm=norm)
  scene, vfl = Scene(classes=2, own=own), federation()
  if recipe.why_not(name, scene):
    scene, vfl = scene._replace(linear=True), algorithms.vlr(2, 2)
  attack = recipe.make(options, scene, vfl)
  view = jax.eval_shape(lambda: view_of(attack.view))
  told = attack.against(NOISY).run if attack.against else None
  return (
      program(attack.run, jax.random.key(0), view), attack.wants,
      told and program(told, jax.random.key(0), view),
  )


def another(name, field):
  """A value that is not the default, of its type and not refused."""
  if field in OTHER:
    return OTHER[field]
  default = getattr(recipe_named(name).options(), field)
  for value in others(default):
    with contextlib.suppress(ValueError):
      made(name, **{field: value})
      return value
  pytest.fail(
      f'No other value than {default!r} of {name}.{field} is known: give it a '
      'line in OTHER of tests/attacks/test_options.py.'
  )


def others(default):
  """Values of the same type."""
  if isinstance(default, bool):
    return (not default,)
  if isinstance(default, (int, float)):
    one = type(default)(1)
    found = default / 2, default + one / 4, default + one, default - one
    return [type(default)(x) for x in found if type(default)(x) != default]
  if isinstance(default, tuple):
    return default[:-1] or (7,), default + (7,)
  return ()


@pytest.mark.parametrize(
    'name, field', options_of(sorted({*EVERY_ATTACK} - {'cafe'}))
)
def test_an_option_of_an_attack_is_asked(name, field):
  assert made(name, **{field: another(name, field)}) != made(name)


@pytest.mark.parametrize('default', [True, 0, 1, 0.0, 1.0, (), (3,), (3, 4)])
def test_another_value_is_of_the_type_of_the_default(default):
  found = others(default)
  assert found and all(type(x) is type(default) for x in found)
  assert all(x != default for x in found)


def test_a_value_that_is_refused_is_no_other_value(monkeypatch):
  def below_one(power=1.0):
    if power != 2:
      raise ValueError(power)
    return attacks.norm_scoring()

  monkeypatch.setitem(attacks.REGISTRY, 'picky', recipe(
      options=namedtuple('Options', ['power', 'word'], defaults=(1.0, 'sum'))
  )(lambda power, word: below_one(power)))
  assert another('picky', 'power') == 2
  with pytest.raises(pytest.fail.Exception, match=r"'sum' of picky\.word"):
    another('picky', 'word')


def test_an_attack_who_is_told_of_a_defense_reckons_with_it():
  plain, _, told = made('model_inversion')
  assert told and plain != told


@functools.cache
def planted(name, **changed):
  """All that a backdoor does, in words, and whose it is."""
  recipe, data = recipe_named(name), batch()
  options = recipe.options()._replace(**dict(
      dict(targets=1) if name == 'label_replacement' else {}, **changed
  ))
  own, parties = (data.features[1],) * 2, (1, 2)

  def whole(key):
    k_plant, k_rows, k_own, k_sent, k_back = jax.random.split(key, 5)
    found = recipe.plant(options, Ground(
        k_plant, parties, own, data.labels, SAMPLES
    ))
    assert found.training.parties == found.inference.parties == parties
    return (
        found.training.rows(k_rows, jnp.arange(SAMPLES)),
        found.training.features((), k_own, own),
        found.training.send((), k_sent, own),
        found.training.receive((), k_back, own),
        found.inference.features((), k_sent, own),
    )

  return program(whole, jax.random.key(0))


@pytest.mark.parametrize('name, field', options_of(EVERY_BACKDOOR))
def test_an_option_of_a_backdoor_is_asked(name, field):
  assert planted(name, **{field: OTHER[field]}) != planted(name)


def test_options_of_cafe_are_asked(monkeypatch):
  """It is made for images, which take long to trace."""
  own, seen = recipe_named('cafe'), []
  monkeypatch.setattr(
      sys.modules['vfljax.attacks.cafe'], 'cafe',
      lambda layer, how: seen.append(how) or own.factory(layer, how),
  )
  vfl = algorithms.vhnn([network.cafe()] * 2, nets.mlp(2))
  options = own.options(pool=30, batch=10, steps=7, restarts=3)
  attack = own.make(options, Scene(2, network='cafe'), vfl)
  assert seen[0][:2] == (7, 3) and attack.wants == (30, 10)
  own.make(options._replace(published=True), Scene(2, network='cafe'), vfl)
  np.testing.assert_allclose(
      [seen[1].gradients, seen[1].variation], [1e-4, 1e-5]
  )
  assert seen[1][:2] == (7, 3)


# What attacks cannot work with.


@pytest.mark.parametrize('name', ['direct_label', 'gradient_inversion'])
def test_embeddings_that_are_not_added_up_hide_the_logits(name):
  why_not = lambda way: recipe_named(name).why_not(
      name, Scene(2, trainable_top=False, aggregation=way)
  )
  found = {way: bool(why_not(way)) for way in algorithms.AGGREGATIONS}
  summed = dict(concat=False, sum=False, mean=False)
  assert found == summed | dict(max=True, product=True)


def test_an_own_aggregation_may_say_that_it_adds_up(monkeypatch):
  own = Scene(2, trainable_top=False, aggregation='own')
  assert recipe_named('direct_label').why_not('direct_label', own)
  monkeypatch.setattr(algorithms, 'ADDED', algorithms.ADDED | {'own'})
  assert not recipe_named('direct_label').why_not('direct_label', own)


def test_cafe_needs_the_network_that_it_was_made_for():
  own = recipe_named('cafe')
  assert not own.why_not('cafe', Scene(2, network='cafe'))
  assert own.why_not('cafe', Scene(2, network='cafe', linear=True))


@pytest.mark.parametrize('name', ['cafe', 'model_inversion'])
@pytest.mark.parametrize('scale', ['none', 'minmax', 'standard'])
def test_pixels_are_looked_for_in_features_that_are_not_scaled(name, scale):
  own = recipe_named(name)
  here = Amounts(400, 80, 10, 10, 7, scale, (8, 8, 1))
  check = lambda: own.check(own.options(), Scene(2), here)
  if scale == 'none':
    check()
  else:
    with pytest.raises(ValueError, match='--config.data.scale=none'):
      check()


def test_attackers_who_are_compared_differ_in_one_thing():
  """Who trains otherwise is not in the federation of who does not; images
  are inverted, and guessed without embeddings, from the same draws, and CAFE
  that knows a defense plays the rounds of the one that does not."""
  of_group = lambda group: {
      name: recipe for name, make in attacks.REGISTRY.items()
      if (recipe := recipe_of(make)).group == group
  }
  completion = of_group('completion')
  passive = {n for n, r in completion.items() if not r.optimizer}
  passive -= {n for n, r in completion.items() if r.is_baseline}
  assert set(completion['active_completion'].apart) == passive != set()
  alike = {
      n for n, make in attacks.REGISTRY.items() if recipe_of(make).one_luck
  }
  inversion = of_group('model_inversion')
  assert len(inversion) > 1 and alike == {*inversion, 'cafe'}


def test_the_same_options_are_the_same_text():
  """Else two programs would differ whatever the option."""
  for name in 'scratch', 'mixmatch', 'model_inversion':
    assert made.__wrapped__(name) == made(name)


def test_a_registered_attack_is_shown_with_its_options():
  show = lambda name: repr(attacks.REGISTRY[name])
  assert show('norm_scoring') == '<attack norm_scoring; options: none>'
  assert show('model_completion').startswith(
      '<attack model_completion; options: epochs, '
  )


class Scoring:
  """Scores by a sum."""

  def __init__(self):
    self.factory = 'of its own'

  def __call__(self, power=1.0):
    return attacks.norm_scoring()


@pytest.mark.parametrize('made, called', [
    (functools.partial(attacks.median_scoring), 'median_scoring'),
    (functools.partial(Scoring(), power=2.0), 'Scoring'),
    (Scoring(), 'Scoring'),
])
def test_a_factory_without_a_name_has_that_of_what_is_behind(made, called):
  """As a partial and an object, whose variables are not the recipe's."""
  found = recipe_of(made)
  assert (found.__name__, found.group, found.factory) == (called, called, made)


@pytest.mark.parametrize('module', [
    None, types.ModuleType('__main__', 'Made for IPython.'),
])
def test_a_partial_is_described_by_what_is_behind(monkeypatch, module):
  """In a notebook: neither in functools' words nor in IPython's."""
  monkeypatch.setattr(inspect, 'getmodule', lambda of: module)
  made = functools.partial(Scoring(), power=2.0)
  assert recipe_of(made).summary == 'Scores by a sum.'
