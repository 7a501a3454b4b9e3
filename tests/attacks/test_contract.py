"""One contract for every attack in the registry, and BUILD.md's example."""
import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.contracts import (
    ATTACKS, PARTIES, SAMPLES, TXS, WIDTH, batch, federation, make,
    one_round, recipe_named,
)
from vfljax import algorithms, attacks, measure, nets, protocol, views
from vfljax.attack import REPLAYED, ROUND, TRAINED, TRAINING, Attack, recipe
from vfljax.attacks.cafe import FirstLinear, Recovery
from vfljax.attacks.mixmatch import MixMatch
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers
from vfljax.scene import Ground, Scene

EVERY_BACKDOOR = sorted(
    name for name in ATTACKS if recipe_named(name).stage == TRAINING
)
EVERY_ATTACK = sorted({*ATTACKS} - {*EVERY_BACKDOOR})


def view_of(kind):
  """A view of the given kind from one real round."""
  data, defense = batch(), make('none')
  if kind is views.ModelGradients:  # Of a linear bottom, which can be solved.
    played = one_round(algorithms.vlr(2, 2))[1]
    return views.model_gradients(jax.random.key(2), 1, defense, played)
  state, seen = one_round()
  known = jax.tree.map(lambda x: x[:6], data)
  if kind is views.UnlabeledBottom:
    return views.unlabeled_bottom(
        jax.random.key(2), 1, defense, state, known, data, data
    )
  if kind is views.TrainedTop:
    return views.trained_top(defense, state, seen.messages.up[0], known)
  if kind is views.RecordedGradients:
    rounds = jax.tree.map(lambda x: x[None], seen._replace(state=()))
    return views.recorded_gradients(jax.random.key(2), 1, rounds, 3)[0]
  if kind is views.WhiteBox:
    one = jax.tree.map(lambda x: x[None], views.own_gradients(1, seen))
    rows = jnp.arange(SAMPLES)[None]
    return views.white_box(
        jax.random.key(2), 1, defense, state, one, rows, data.features[1]
    )
  if kind is views.TrainedBottom:
    return views.trained_bottom(
        jax.random.key(2), 1, defense, state, known, data
    )
  view = views.in_training(kind, jax.random.key(2), 1, defense, seen)
  if kind is views.KnownPositive:  # One that does not become padding.
    view = view._replace(known=jnp.eye(SAMPLES)[0])
  return view


def first_layer():
  """The first linear layer of the federation's bottoms, for CAFE."""
  part = lambda weights: weights['bottom']['Dense_0']['Dense_0']
  return FirstLinear(
      lambda w, x: (x, x @ part(w)['kernel'] + part(w)['bias'][None]),
      lambda g: (part(g)['kernel'], part(g)['bias']),
  )


# What makes an attack's own training short, where it has such an option.
SHORT = dict(
    epochs=4, stages=2, iterations=2, steps=4, restarts=2, shadow_steps=4,
    samples=4,
)


def made_for(name, scene):
  """As a runner makes it, in the federation that a scene is about."""
  made = recipe_named(name)
  options = made.options()
  options = options._replace(
      **{k: v for k, v in SHORT.items() if k in options._fields}
  )
  own = lambda widths, norm: nets.mlp(*widths, norm=norm)
  if scene.linear:
    vfl = algorithms.vlr(PARTIES, scene.classes)
  elif not scene.trainable_top:
    bottoms = (nets.mlp(8, scene.classes),) * PARTIES
    vfl = federation()._replace(bottoms=bottoms, top=algorithms.plain())
  else:
    vfl = federation()
  return made.make(options, scene._replace(own=own), vfl)


def make_attack(name):
  """As a runner makes it, in the first federation that it works on."""
  if name == 'cafe':  # For images; here it starts at another layer.
    return attacks.cafe(first_layer(), Recovery(4, 2))
  if name == 'mixmatch':  # Batch normalization of 16 rows magnifies rounding.
    bottom = nets.mlp(8, WIDTH)
    return attacks.mixmatch(bottom, nets.mlp(2), MixMatch(4, 2, stages=2))
  scene = Scene(classes=2)
  if recipe_named(name).why_not(name, scene):
    scene = scene._replace(linear=True)
  assert not recipe_named(name).why_not(name, scene)
  return made_for(name, scene)


# Of whose guesses the test's federation makes something else than of others':
# embeddings are no logits there, so that there are as many classes as columns.
OTHER_SHAPES = dict(direct_label=(SAMPLES, WIDTH))


def check_shape(name, attack, shape):
  """That guesses have the shape which they need when the attack strikes.

  What a recipe has a `measure` for may be guesses at anything, but for
  features, which it `wants`.
  """
  made = recipe_named(name)
  if attack.wants.samples:
    assert shape == (SAMPLES, 5), 'Guesses at features have their shape.'
  elif made.measure:
    pass
  elif made.stage == TRAINED:
    assert len(shape) == 3 and shape[1:] == (SAMPLES, 2), (
        f'{name} guesses {shape}: an attack on the trained federation needs '
        '[stages, samples, classes], one stage if it has no more.'
    )
  else:
    labels = (SAMPLES,), (SAMPLES, 2), OTHER_SHAPES.get(name)
    assert shape in labels, f'{name} guesses {shape}: [batch] or [.., classes].'


STRIKES = {  # Others see a round.
    views.RecordedGradients: REPLAYED, views.WhiteBox: REPLAYED,
    views.TrainedBottom: TRAINED, views.TrainedTop: TRAINED,
    views.UnlabeledBottom: TRAINED,
}


@pytest.mark.parametrize('name', EVERY_ATTACK)
def test_attacks_strike_when_there_is_what_they_see(name):
  view = make_attack(name).view
  assert recipe_named(name).stage == STRIKES.get(view, ROUND)


def by_seeds(attack):
  """(seeds, view) -> the guesses of each, compiled."""
  one = lambda seed, view: attack.run(jax.random.key(seed), view)
  return jax.jit(jax.vmap(one, (0, None)))


@functools.cache
def seeded(name):
  """An attack, and (seeds, view) -> its guesses, by default of one view."""
  attack = make_attack(name)
  one, run = view_of(attack.view), by_seeds(attack)
  return attack, lambda *seeds, view=one: np.asarray(run(np.array(seeds), view))


SAME = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
LONG = {  # Whose second program compiles for seconds.
    'active_completion', 'cafe', 'gradient_inversion', 'mixmatch',
    'model_completion', 'model_inversion', 'scratch',
}
LONGEST = {'active_completion', 'gradient_inversion', 'mixmatch'}


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow) if name in LONGEST else name
    for name in EVERY_ATTACK
])
def test_attacks_are_pure_functions_of_key_and_view(name):
  """A row is its key's, wherever it is and whatever the other row's key is."""
  attack, rows = seeded(name)
  assert not {'labels', 'truth'} & set(attack.view._fields)
  many = rows(3, 4)
  np.testing.assert_array_equal(many, rows(3, 4))
  assert np.isfinite(many).all()
  check_shape(name, attack, many.shape[1:])
  SAME(rows(4, 3), many[::-1])
  SAME(rows(3, 3), many[[0, 0]])


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
    for name in EVERY_ATTACK
])
def test_an_attack_alone_is_a_row_of_many(name):
  attack, rows = seeded(name)
  one = lambda seed, view: attack.run(jax.random.key(seed), view)
  many, alone = rows(3, 4), jax.jit(one)(3, view_of(attack.view))
  assert alone.shape == many.shape[1:]
  SAME(many[0], alone)


def diverged(view):
  """The same without a number in what was sent, received or trained."""
  lost = lambda x: jnp.full_like(x, jnp.nan) if jnp.isdtype(
      jnp.result_type(x), 'real floating'
  ) else x
  return view._replace(**{
      k: jax.tree.map(lost, x) for k, x in view._asdict().items()
      if k in ('weights', 'gradients', 'sent', 'received', 'known_received',
               'means', 'medians')
  })


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
    for name in EVERY_ATTACK if not attacks.is_baseline(name)
])
def test_what_diverged_is_guessed_at_by_nobody(name):
  """Else it would pass for a defense that leaks nothing."""
  attack, rows = seeded(name)
  guesses = rows(3, 4, view=diverged(view_of(attack.view)))
  if name == 'residue_reconstruction':  # Logits of two classes, (0, -d).
    guesses = guesses[..., 1]
  assert np.isnan(guesses).all()


def padded(view, filled):
  """The same with four rows of padding at the end, and this in them."""

  def rows(field, x):
    if getattr(x, 'shape', ())[:1] != (SAMPLES,):
      return x
    return x.at[-4:].set(0 if field in ('valid', 'known') else filled)

  return view._replace(**{k: rows(k, x) for k, x in view._asdict().items()})


OF_ROUNDS = [
    name for name in EVERY_ATTACK
    if 'valid' in make_attack(name).view._fields
]


@pytest.mark.parametrize('name', OF_ROUNDS)
def test_guesses_owe_nothing_to_rows_of_padding(name):
  """Whatever a view has there: what counts is its `valid`."""
  attack = make_attack(name)
  view, seeds = view_of(attack.view), np.array((3, 4))
  run = by_seeds(attack)
  zeros, nines = (run(seeds, padded(view, x))[:, :-4] for x in (0, 9))
  most = np.abs(zeros).max()
  assert most > 0
  np.testing.assert_allclose(zeros, nines, rtol=1e-4, atol=1e-4 * most)


@pytest.mark.parametrize('name', [
    name for name in EVERY_ATTACK if recipe_named(name).skips_blank
])
def test_known_samples_without_labels_are_skipped_by_who_says_so(name):
  """Between those with labels and after them, whatever their features are."""
  attack = make_attack(name)
  view = view_of(attack.view)
  place = np.array([0, 1, 3, 4, 5, 7])  # Of the six with labels, in ten.
  assert len(view.labeled) == len(place)
  among = lambda x, filled: jnp.full(
      (10, *x.shape[1:]), filled, x.dtype
  ).at[place].set(x)
  run = jax.jit(attack.run)
  found = run(jax.random.key(3), view)
  SAME(found, run(jax.random.key(3), view._replace(
      labeled=among(view.labeled, 0),
      labeled_features=among(view.labeled_features, 9),
  )))


@pytest.mark.parametrize('changed', [
    dict(), dict(head=(), optimizer='sgd'), dict(tune=False, norm='batch'),
    dict(standardize=True), dict(bottom_rate=0.5, batch_size=2),
    dict(bottom_rate=2.0),
])
def test_attacks_with_one_name_for_their_rest_do_the_same(changed):
  bottoms = [nets.mlp(4)] * 2
  vfl = algorithms.vhnn(bottoms, nets.mlp(3))
  scene, texts = Scene(
      3, network='one with a name', own=lambda widths, norm: nets.then(
          vfl.bottom(1), nets.mlp(*widths, norm=norm)
      ),
  ), {}
  for name, own in attacks.REGISTRY.items():
    if own.group != 'completion':
      assert not own.rest(own.options(), scene)
      continue
    options = own.options(**changed)
    attack = own.make(options, scene, vfl)
    view = views.TrainedBottom(
        vfl.bottom(1).init(jax.random.key(1), jnp.zeros((1, 5))),
        jnp.zeros((6, 5)), jnp.eye(6, 3), jnp.zeros((2, 5)),
    )
    start, rest = attack.halves
    begun = jax.eval_shape(start, jax.random.key(2), view)
    kind = own.rest(options, scene) or name
    texts.setdefault(kind, {})[name] = str(jax.make_jaxpr(rest)(begun, view))
  plain = not changed.keys() & {'tune', 'standardize', 'bottom_rate'}
  assert len(texts['completion']) == 3 + plain
  for kind, alike in texts.items():
    assert len(set(alike.values())) == 1, kind


def turned(view):
  """The samples that are guessed at in the opposite order, and their axis."""
  if type(view) in views.OF_A_ROUND:
    return view._replace(**{
        k: x[::-1] for k, x in view._asdict().items()
        if getattr(x, 'shape', ())[:1] == (SAMPLES,)
    }), 0
  of = 'features' if hasattr(view, 'features') else 'received'
  place = -2 if of == 'features' else 0
  return view._replace(**{of: getattr(view, of)[::-1]}), place


# Who draws by place, and what.
BY_PLACE = dict(
    gradient_inversion='made-up labels and embeddings to start from',
    model_inversion='features to start from',
)


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
    for name in EVERY_ATTACK
    if name not in BY_PLACE and name != 'cafe'  # Its samples have numbers.
])
def test_samples_in_another_order_are_guessed_in_that_order(name):
  attack, rows = seeded(name)
  other, place = turned(view_of(attack.view))
  found = rows(3, 4)
  axis = place if place < 0 else place + 1  # After that of the seeds.
  back = np.flip(rows(3, 4, view=other), axis)
  most = np.abs(found).max()
  np.testing.assert_allclose(back, found, rtol=1e-4, atol=1e-4 * most)


@pytest.mark.parametrize('name', EVERY_ATTACK)
def test_attacks_run_in_a_program_without_implicit_casts(name):
  """By tracing alone: nothing is compiled."""
  with (
      jax.numpy_dtype_promotion('strict'), jax.numpy_rank_promotion('raise'),
  ):
    attack = make_attack(name)
    view = jax.eval_shape(lambda: view_of(attack.view))
    jax.eval_shape(attack.run, jax.random.key(0), view)


# Of two classes; without a trainable top; of three classes and linear bottoms.
SCENES = Scene(2), Scene(2, trainable_top=False), Scene(3, linear=True)
# What is known of ours: of a new attack nothing has to be written here, as its
# recipe says what it needs.
CANNOT = dict(
    cafe=(True, True, True), residue_reconstruction=(True, True, False),
    direct_label=(True, False, False), gradient_inversion=(True, False, False),
    mixmatch=(False, False, True),
) | {
    f'{what}_scoring': (False, False, True)
    for what in ('direction', 'mean', 'median', 'norm', 'residual', 'value')
}


ANYWHERE = dict.fromkeys((
    'active_completion', 'constant_image', 'gradient_clustering',
    'learned_gradient', 'local_model', 'mean_image', 'model_completion',
    'model_inversion', 'scratch',
), (False,) * 3)


@pytest.mark.parametrize('name', EVERY_ATTACK)
def test_attacks_say_where_they_cannot_work(name):
  """Each reason is a sentence about the attack, and where it has none it can
  be made."""
  found = [recipe_named(name).why_not(name, scene) for scene in SCENES]
  known = (ANYWHERE | CANNOT).get(name)
  assert known in (None, tuple(map(bool, found)))
  for scene, why in zip(SCENES, found):
    assert not why or why.startswith(f'{name} ') and why.endswith('.')
    assert why or made_for(name, scene).run


@pytest.mark.parametrize('shape', [(SAMPLES, 2), (1, SAMPLES), (SAMPLES,)])
def test_a_trained_federations_attack_without_stages_is_refused(
    monkeypatch, shape
):
  made = recipe(stage=TRAINED)(lambda: Attack(
      views.TrainedBottom, lambda key, view: jnp.zeros(shape)
  ))
  monkeypatch.setitem(attacks.REGISTRY, 'bare', made)
  with pytest.raises(AssertionError, match='stages, samples, classes'):
    test_attacks_are_pure_functions_of_key_and_view('bare')


def test_an_attack_that_counts_padding_is_refused(monkeypatch):
  """As of a sample's distance to the middle of all rows."""
  run = lambda key, view: jnp.square(
      view.received - view.received.mean(0)[None]
  ).sum(-1)
  made = recipe()(lambda: Attack(views.CutGradients, run))
  monkeypatch.setitem(attacks.REGISTRY, 'bare', made)
  with pytest.raises(AssertionError, match='Not equal'):
    test_guesses_owe_nothing_to_rows_of_padding('bare')


def test_every_attack_is_summed_up_in_a_line():
  for name in ATTACKS:
    summary = recipe_named(name).summary
    assert summary and '\n' not in summary, name


def make_backdoor(name):
  if name != 'label_replacement':
    return recipe_named(name).factory()
  return attacks.label_replacement(
      1, jnp.array([0, 3]), (batch().features[1][:4],), per_round=2
  )


@pytest.mark.parametrize('name', EVERY_BACKDOOR)
def test_backdoors_train_and_strike(name):
  """Rounds scan, nothing but the key is random, seeds vmap, and the messages of
  the attackers owe nothing to labels; at inference the logits change."""
  backdoor, data, defense = make_backdoor(name), batch(), make('none')
  state = protocol.init(
      jax.random.key(0), federation(), defense, TXS, data, backdoor.training
  )

  def step(key, labels):
    i = backdoor.training.rows(key, jnp.arange(SAMPLES))
    assert i.shape == (SAMPLES,)
    here = jax.tree.map(lambda x: x[i], data._replace(labels=labels))
    return protocol.play_round(
        key, federation(), defense, TXS, state, here, backdoor.training
    )

  keys = jnp.stack([jax.random.key(3), jax.random.key(4)])
  many = jax.jit(jax.vmap(step, (0, None)))
  after, seen = many(keys, data.labels)
  first = jax.tree.map(lambda x: x[0], after)
  chex.assert_trees_all_equal_shapes_and_dtypes(first, state)
  chex.assert_tree_all_finite((after, seen.messages))
  chex.assert_trees_all_equal(many(keys, data.labels)[1].messages,
                              seen.messages)
  flipped = many(keys, data.labels[:, ::-1])[1]
  chex.assert_trees_all_equal(flipped.messages.up, seen.messages.up)
  predict = jax.jit(lambda adversary: protocol.predict(
      jax.random.key(5), federation(), defense, state, data.features,
      adversary=adversary,
  ), static_argnums=0)
  clean, attacked = predict(protocol.HONEST), predict(backdoor.inference)
  assert (np.abs(clean - attacked).max(-1) > 0).all()
  assert np.isfinite(attacked).all()


def test_no_attack_is_scored_where_it_knows_the_label():
  """It says what it knows of a round; all else counts."""
  made = {name: make_attack(name) for name in EVERY_ATTACK}
  told = {
      name: attack._replace(run=lambda key, view: view.known)
      for name, attack in made.items()
      if attack.view in views.OF_A_ROUND and 'known' in attack.view._fields
  }
  assert {'direction_scoring', 'mean_scoring', 'median_scoring'} <= {*told}
  watch, _ = measure.watcher(told, make('none'))
  seen = watch(jax.random.key(3), one_round()[1])
  for name in told:
    known, weights = seen[name].guessed.scores, seen[name].guessed.weights
    assert known.any()
    np.testing.assert_array_equal(weights, 1 - known, name)


@pytest.mark.parametrize('name', EVERY_ATTACK)
def test_no_attack_draws_from_a_key_twice(name):
  """By tracing alone; see tests/test_keys.py."""
  core = pytest.importorskip('jax.experimental.key_reuse._core')
  attack = make_attack(name)
  core.check_key_reuse(attack.run, jax.random.key(0), view_of(attack.view))


@pytest.mark.parametrize('name', EVERY_BACKDOOR)
def test_no_backdoor_draws_from_a_key_twice(name):
  core = pytest.importorskip('jax.experimental.key_reuse._core')
  recipe, data = recipe_named(name), batch()
  options = recipe.options()
  if name == 'label_replacement':
    options = options._replace(targets=3)

  def whole(key):
    k_plant, k_rows, k_own, k_sent, k_strike = jax.random.split(key, 5)
    own = data.features[1:] * 2
    made = recipe.plant(options, Ground(
        k_plant, (1, 2), own, data.labels, SAMPLES
    ))
    return (
        made.training.rows(k_rows, jnp.arange(SAMPLES)),
        made.training.features((), k_own, own),
        made.training.send((), k_sent, own),
        made.inference.features((), k_strike, own),
    )

  core.check_key_reuse(whole, jax.random.key(0))


@pytest.mark.parametrize('given, got', [
    ((0, 3), 'an int'), ((0,), 'no view'), ((), 'no view'),
])
def test_what_is_no_view_is_refused_in_a_sentence(given, got):
  attack = attacks.REGISTRY['norm_scoring']()
  with pytest.raises(ValueError) as error:
    attack.run(*given)
  assert str(error.value) == (
      'norm_scoring: run(key, view) needs a CutGradients, as '
      f'vfljax.views.cut_gradients makes it; got {got}.'
  )
  with pytest.raises(AttributeError, match=r'call it, norm_scoring\(...\).kn'):
    made = dict(own=attacks.REGISTRY['norm_scoring'])
    measure.watcher(made, None)[0](jax.random.key(0), None)
  with pytest.raises(AttributeError, match=r'call it, norm_scoring\(...\).run'):
    attacks.REGISTRY['norm_scoring'].run(*given)
  with pytest.raises(AttributeError, match=r'norm_scoring\(...\).view$'):
    print(attacks.REGISTRY['norm_scoring'].view)


def test_who_makes_a_view_of_a_users_own_is_not_known():
  class Own(NamedTuple):
    x: int

  @recipe(stage=ROUND)
  def mine(options, scene, vfl):
    return Attack(Own, lambda key, view: view.x)

  assert mine(None, None, None).run(None, Own(3)) == 3
  with pytest.raises(ValueError, match=r'^mine: .* needs a Own; got no view.$'):
    mine(None, None, None).run(None)


def test_an_attack_on_training_says_what_it_plants():
  with pytest.raises(TypeError, match='on training itself needs `plant`'):
    recipe(stage=TRAINING)(lambda: None)


@pytest.mark.parametrize('name', ['mine', 'mine:variant'])
def test_an_attack_that_there_is_not_is_told(name):
  with pytest.raises(UserError, match="no attack 'mine', see --list attacks"):
    attackers.recipe(name)
