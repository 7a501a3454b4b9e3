"""Somebody's own defense or attack, checked by what `contracts` has for it."""
import contextlib
import functools
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from vfljax import algorithms, attacks, contracts, defenses, protocol
from vfljax.attack import Attack, Wants, in_halves
from vfljax.attacks.cafe import FirstLinear, Recovery
from vfljax.completion import Schedule
from vfljax.contracts import little, luck, of_attacks, several
from vfljax.defense import Defense, each, slots
from vfljax.views import (
    CutGradients, KnownPositive, RecordedGradients, TrainedBottom, WhiteBox,
)


@pytest.mark.parametrize('name', [
    'none', pytest.param('marvell', marks=pytest.mark.slow),
    pytest.param('mid', marks=pytest.mark.slow),
])
def test_ours_are_good(name):
  method = defenses.REGISTRY[name]
  contracts.check_defense(method, *method.strengths[:1])


def test_checks_stretch_no_axis_themselves():
  with jax.numpy_rank_promotion('raise'):
    contracts.check_defense(defenses.REGISTRY['none'])


def test_keys_that_checks_play_again_are_no_fault_of_the_method():
  with jax.debug_key_reuse(True):
    contracts.check_defense(defenses.REGISTRY['iso'], 5.0)
    contracts.check_attack(attacks.norm_scoring())
    assert jax.config.jax_debug_key_reuse


def test_a_memory_of_rows_is_good():
  """Which no other number of rows can be tried with."""
  contracts.check_defense(
      defenses.REGISTRY['gradient_compression'], 0.5, False, residual=True
  )


def test_luck_may_be_drawn_by_place():
  contracts.check_attack(Attack(CutGradients, lambda key, view: (
      view.received.sum(-1) + 1e-3 * jax.random.normal(key, (16,))
  ) * view.valid))


@pytest.mark.parametrize('times', [1, 2, 0.5])
def test_small_noise_is_compared_by_its_spread(times, monkeypatch):
  """Its numbers are others beside padding; twice as large they may not be, nor
  half as large."""
  drawn = lambda seed: 10 + np.random.default_rng(seed).normal(
      size=(luck.DRAWS, 16, 6)
  )
  monkeypatch.setattr(luck, '_hooks', lambda *_, **__: {'gradient': None})
  monkeypatch.setattr(luck, 'shape', lambda run: ())
  monkeypatch.setattr(luck, 'results', lambda hooks: {
      name: times * drawn(len(name)) for name in hooks
  })
  nothing: Any = None
  found = contextlib.nullcontext() if times == 1 else pytest.raises(
      ValueError, match='padding in the round change what gradient makes'
  )
  with found:
    luck._check_number('mine', nothing, nothing, dict(gradient=drawn(0)))


@pytest.mark.parametrize('padding, turned', [(0, False), (3, True)])
def test_hooks_are_tried_on_samples_alone(padding, turned):
  """Wherever padding is, rows come back in the samples' order without it."""
  party = types.SimpleNamespace(params=dict(defense=()))
  begun: Any = types.SimpleNamespace(defense=(), parties=(party, party))
  own = Defense(
      receive=lambda active, state, key, us, labels: ([2 * u for u in us], 0.0)
  )
  (name, run), = luck._hooks(own, begun, padding, turned).items()
  assert name == 'receive'
  np.testing.assert_array_equal(run(jax.random.key(0)), 2 * luck.message())


@pytest.mark.slow
def test_noise_that_is_drawn_otherwise_beside_padding_is_good():
  contracts.check_defense(on_gradients(
      lambda s, key, d, labels: d + s * jax.random.normal(
          jax.random.fold_in(key, len(d)), d.shape
      )
  ), 0.1)


@functools.cache
def begun():
  """The federation of the contracts, with nothing of a defense's."""
  return jax.jit(lambda: protocol.init(
      jax.random.key(0), little.federation(), defenses.none(), little.TXS,
      little.batch(), auxiliary=little.batch(),
  ))()


def check_luck(make, strength):
  """The part of a defense's contract about random numbers and rows."""
  luck.check('mine', make(strength), begun())
  several.check_parties('mine', make(strength))


@pytest.mark.parametrize('drawn', [
    lambda key, d: jax.random.cauchy(key, d.shape),
    lambda key, d: 99 * d * jax.random.bernoulli(key, 0.01, (len(d), 1)),
], ids=['without a variance', 'rare'])
def test_large_numbers_that_fall_together_once_are_no_shared_draw(drawn):
  check_luck(on_gradients(lambda s, key, d, labels: d + s * drawn(key, d)), 1.0)


def test_the_example_of_a_defense_is_good():
  contracts.check_defense(examples.DEFENSES['gradient_dropout'], 0.3)


def test_a_defense_may_be_made_for_one_passive_party():
  def gradient(state, key, cut, labels):
    d, = cut
    return (d + jax.random.normal(key, d.shape),), state

  contracts.check_defense(lambda: Defense(gradient=gradient))


def test_noise_alone_is_a_defense():
  """That ignores what it gets: nobody gets what is another one's."""
  check_luck(on_gradients(
      lambda s, key, d, labels: jax.random.normal(key, d.shape)
  ), 1.0)


def on_gradients(fn):
  """fn(strength, key, d, labels) -> d, as a factory."""
  return lambda s: Defense(gradient=each(functools.partial(fn, s)))


def numpys(s, key, d, labels):
  return d + s * np.random.default_rng().normal()


def clipped_to_the_mean(s, key, d, labels):
  size = jnp.linalg.norm(d, axis=1, keepdims=True)
  return d * jnp.minimum(1, size.mean() / jnp.maximum(size, 1e-12))


def noise_of_the_mean(s, key, d, labels):
  """Another draw where there is padding."""
  size = jnp.linalg.norm(d, axis=1).mean()
  return d + size * jax.random.normal(jax.random.fold_in(key, len(d)), d.shape)


def noise_of_the_first(s, key, d, labels):
  return d.at[:8].add(s * jax.random.normal(key, (8, d.shape[1])))


def labels_in_features(s):
  return Defense(batch=lambda key, b: b._replace(features=(
      b.features[0], b.features[1] + s * b.labels[:, 1:]
  )))


def an_if(s):
  scale = s if s > 0.5 else 1
  return Defense(gradient=each(lambda key, d, labels: d * scale))


def one_key_for_all(s):
  def gradient(state, key, cut, labels):
    noise = s * jax.random.normal(key, cut[0].shape)
    return tuple(d + noise for d in cut), state

  return Defense(gradient=gradient)


def the_first_only(s):
  def gradient(state, key, cut, labels):
    d, *others = cut
    return (d + s * jax.random.normal(key, d.shape), *others), state

  return Defense(gradient=gradient)


def turned_gradients(s):
  return Defense(gradient=lambda state, key, cut, labels: (
      tuple(s * d for d in cut[::-1]), state
  ))


def turned_messages(s):
  return Defense(receive=lambda active, state, key, up, labels: (
      tuple(s * u for u in up[::-1]), jnp.float32(0)
  ))


def at_heart(s, key, d, labels):
  return d + s * jax.random.normal(jax.random.key(0), d.shape)


def two_draws_by_one_key(s, key, d, labels):
  kept = jax.random.bernoulli(key, 0.5, d.shape)
  return jnp.where(kept, d, s * jax.random.normal(key, d.shape))


BAD = {
    'a key of its own': (
        on_gradients(at_heart), 'gradient has a key of its own'
    ),
    'two draws by one key': (
        on_gradients(two_draws_by_one_key), 'draws from one key twice'
    ),
    'a message alone': (
        lambda s: Defense(send=lambda passive, key, u: s * u),
        r'send must return \(the message, a penalty\).* a ShapeDtypeStruct'
    ),
    'a tuple of a message alone': (
        lambda s: Defense(send=lambda passive, key, u: (s * u,)),
        r'send must return \(the message, a penalty\)'
    ),
    'labels in features': (labels_in_features, 'not a message'),
    'a draw for all parties': (
        one_key_for_all, 'passive parties share what gradient draws',
    ),
    'the first party only': (the_first_only, 'treats passive parties unlike'),
    "another party's gradient": (
        turned_gradients, "gradient gives the first passive party what it",
    ),
    "another party's message": (
        turned_messages, "receive gives the first passive party what it",
    ),
    'an if': (an_if, 'jnp.where in place of `if`'),
    'another draw each time': (on_gradients(numpys), 'not the same twice'),
    'padding that counts': (
        on_gradients(clipped_to_the_mean), 'rows of padding in the',
    ),
    'padding that counts by its spread': (
        on_gradients(noise_of_the_mean), 'rows of padding in the',
    ),
    'a place that counts': (
        on_gradients(lambda s, key, d, labels: d.at[1:].add(-s * d[:-1])),
        'what gradient makes of a sample depends on its place',
    ),
    'noise for the first samples': (
        on_gradients(noise_of_the_first), 'depends on its place',
    ),
    'another width': (lambda s: Defense(send=lambda passive, key, u: (
        s * u[:, :3], jnp.zeros(())
    )), r'send makes \(16, 3\)'),
    'a penalty a row': (lambda s: Defense(send=lambda passive, key, u: (
        u, s * jnp.square(u).mean(-1)
    )), r'a penalty \(16,\)'),
    'a gradient of another width': (lambda s: Defense(
        gradient=lambda state, key, cut, labels: (
            tuple(s * d[:, :1] for d in cut), state
        )
    ), 'gradient must return'),
    'no memory returned': (lambda s: Defense(
        gradient=lambda state, key, cut, labels: tuple(s * d for d in cut)
    ), 'gradient must return'),
    'a forgotten return': (lambda s: Defense(
        gradient=lambda state, key, cut, labels: None
    ), 'gradient must return'),
    'not finite': (on_gradients(
        lambda s, key, d, labels: s * d / jnp.zeros(())
    ), 'is not finite'),
    'one draw for all': (on_gradients(
        lambda s, key, d, labels: d + s * jax.random.normal(key, (1, 6))
    ), 'rows share what gradient draws'),
    'a penalty of padding': (lambda s: Defense(
        send=lambda passive, key, u: (u, s * jnp.square(u).mean())
    ), 'rows of padding'),
    'a list of facts': (lambda s: Defense(
        facts=lambda state: dict(which=jnp.arange(3))
    ), "fact 'which' has the shape"),
    'a memory of another type': (lambda s: Defense(
        init=lambda key, spec: slots(spec, state=jnp.zeros((), jnp.int32)),
        adapt=lambda state, key, predict, up, labels: state + 0.5,
    ), 'in the shapes and types that init'),
}


# Found by what `check_defense` comes to last, as 'one draw for all' is: these
# are given to that alone.
LUCK = {
    'a draw for all parties', 'padding that counts',
    'padding that counts by its spread', 'a place that counts',
    'noise for the first samples', 'the first party only',
    "another party's gradient", "another party's message",
}


@pytest.mark.parametrize('bad', BAD)
def test_a_mistake_is_told(bad):
  make, said = BAD[bad]
  with pytest.raises(ValueError, match=said):
    (check_luck if bad in LUCK else contracts.check_defense)(make, 0.1)


def test_a_kept_key_is_found_in_a_program_within():
  kept, raw = jax.random.key(0), jax.random.PRNGKey(0)
  makes = [
      lambda key: jax.random.uniform(kept),
      lambda key: jax.jit(lambda: jax.random.uniform(jax.random.key(0)))(),
      lambda key: jax.random.uniform(raw),
      lambda key: jax.random.uniform(jax.random.split(key)[0]),
  ]
  found = [
      luck._makes_keys(jax.make_jaxpr(run)(kept).jaxpr) for run in makes
  ]
  assert found == [True, True, True, False]


@pytest.mark.parametrize('made', [
    attacks.norm_scoring(), attacks.direction_scoring(),
    examples.ATTACKS['sum_scoring'](),
    Attack(TrainedBottom, lambda key, view: (
        jnp.zeros((1, 16, 2)) + view.features.sum(-1)[None, :, None]
    )),
])
def test_good_attacks(made):
  contracts.check_attack(made)


def first_layer():
  """Of the bottom networks in which `contracts` tries attacks."""
  part = lambda weights: weights['bottom']['Dense_0']['Dense_0']
  return FirstLinear(
      lambda w, x: (x, x @ part(w)['kernel'] + part(w)['bias'][None]),
      lambda g: (part(g)['kernel'], part(g)['bias']),
  )


@pytest.mark.parametrize('made', [
    attacks.learned_gradient((), Schedule(2, 2, 1)),
    pytest.param(
        attacks.cafe(first_layer(), Recovery(2, 2))._replace(wants=Wants(9, 4)),
        marks=pytest.mark.slow,
    ),
])
def test_good_attacks_on_several_rounds(made):
  contracts.check_attack(made)


def test_several_rounds_are_those_of_the_views():
  """Of the pool that the attack wants, each row beside its gradients."""
  # Of VLR each row's gradient is its features' times what it was sent.
  vfl, never = algorithms.vlr(2, 2), lambda key, view: None
  box = of_attacks._view(Attack(WhiteBox, never, wants=Wants(9, 4)), vfl)
  assert box.rows.shape == (2, 4) and box.blank.shape == (9, 5)
  assert len({tuple(rows) for rows in box.rows.tolist()}) == 2
  assert max(box.rows.ravel()) < 9
  slopes, = (
      leaf for leaf in jax.tree.leaves(box.gradients['bottom'])
      if leaf.shape == (2, 5, 1)
  )
  x = np.asarray(little.batch(9).features[1])
  for rows, slope in zip(np.asarray(box.rows), np.asarray(slopes)):
    within = np.linalg.lstsq(x[rows].T, slope)[1]
    assert np.all(within < 1e-10)  # A sum of the rows' features.
  recorded = of_attacks._view(Attack(RecordedGradients, never), vfl)
  assert recorded.received.shape == (32, 1)
  assert recorded.known_labels.sum(0).tolist() == [3, 3]


@pytest.mark.parametrize('size', [1e-7, 0.5, 3e4])
def test_guesses_are_alike_by_their_own_size(size):
  """Those from gradients are small: measured by 1, any would be alike."""
  one = size * jnp.array([1.0, 2.0, -4.0])
  assert of_attacks._alike(one, one * (1 + 1e-6))
  assert not of_attacks._alike(one, one[::-1])
  assert not of_attacks._alike(one, one * (1 + 1e-3))
  assert of_attacks._alike(0 * one, 0 * one)


def test_an_attack_may_be_made_for_another_federation():
  contracts.check_attack(attacks.direct_label(), algorithms.vlr(2, 2))


@pytest.mark.parametrize('view, run, said', [
    (CutGradients, lambda key, view: jnp.zeros(3), r'guesses \(3,\)'),
    (CutGradients, lambda key, view: view.valid / 0, 'not finite'),
    (CutGradients, lambda key, view: jnp.square(
        view.received - view.received.mean(0)[None]
    ).sum(-1), 'counts rows of padding'),
    (KnownPositive, lambda key, view: (
        view.received - view.received.mean(0)[None]
    ) @ (view.known @ view.received), 'counts rows of padding'),
    (CutGradients, lambda key, view: view.received.cumsum(0).sum(-1),
     'at another place'),
    (CutGradients, lambda key, view: jnp.linalg.norm(
        view.received - view.received[:1], axis=1
    ) * view.valid, 'at another place'),  # Of 0.007 at most.
    (TrainedBottom, lambda key, view: jnp.zeros((1, 16, 2))
     + view.features.cumsum(0).sum(-1)[None, :, None], 'at another place'),
    (CutGradients, lambda key, view: np.random.default_rng().random(16),
     'the same twice'),
    (CutGradients, lambda key, view: jax.random.normal(key, (16,))
     + jax.random.uniform(key, (16,)), 'draws from one key twice'),
    (TrainedBottom, lambda key, view: jnp.zeros((16, 2)), 'one stage if'),
    (RecordedGradients, lambda key, view: jnp.zeros(16), r'\(32, 2\) here'),
    (WhiteBox, lambda key, view: view.blank, 'how many it wants'),
    (tuple, lambda key, view: jnp.zeros(16), 'not a view of'),
    ('WhiteBox', lambda key, view: view.blank, 'a class of vfljax.views as'),
    (CutGradients, lambda key, view: [0.5] * 16, 'it guesses with a list'),
    (CutGradients, lambda key, view: view.valid + 1j, 'an array of complex64'),
])
def test_a_bad_attack_is_told(view, run, said):
  with pytest.raises(ValueError, match=said):
    contracts.check_attack(Attack(view, run))


def test_facts_of_an_attack_are_numbers():
  with pytest.raises(ValueError, match="got 'sure', a str"):
    contracts.check_attack(Attack(
        CutGradients, lambda key, view: view.valid, lambda view: dict(sure='no')
    ))


def test_halves_that_guess_otherwise_are_told():
  good = in_halves(
      CutGradients, lambda key, view: jax.random.normal(key),
      lambda drawn, view: drawn + view.received.sum(-1) * view.valid,
  )
  contracts.check_attack(good)
  other = good.halves._replace(rest=lambda drawn, view: drawn * view.valid)
  with pytest.raises(ValueError, match='use in_halves'):
    contracts.check_attack(good._replace(halves=other))


def test_features_are_guessed_in_their_shape():
  made = Attack(
      WhiteBox, lambda key, view: view.blank[:, :2], wants=Wants(9, 1)
  )
  with pytest.raises(ValueError, match=r'\(9, 5\) here'):
    contracts.check_attack(made)


@pytest.mark.parametrize('made', [attacks.norm_scoring, Attack, 3])
def test_a_factory_is_no_attack(made):
  with pytest.raises(ValueError, match='A factory has to be called'):
    contracts.check_attack(made)


def test_a_defense_is_no_factory():
  with pytest.raises(ValueError, match='takes a factory and its arguments'):
    contracts.check_defense(Defense())
