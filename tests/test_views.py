"""What views show: whose, of which samples, and how a defense lets it be read.
"""
import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import SAMPLES, batch, federation, make, play, start
from vfljax import algorithms, attacks, defenses, nets, protocol, views
from vfljax.defense import Defense, chain, none, slots
from vfljax.defenses import fedpass, vmask
from vfljax.defenses.shadow import Attacker
from vfljax.nets import named_layers
from vfljax.types import Batch, Messages, Round
from vfljax.views.rounds import majority

KEY = jax.random.key(0)
# What a party can read of its weights says whose they are.
SHIFTED = Defense(
    expose=lambda state, key, k, weights: jax.tree.map(
        lambda x: x + 100 * k, weights
    )
)


def like(seed, tree):
  """Of NumPy's numbers, which nothing is compiled for."""
  draw = np.random.default_rng(seed).standard_normal

  def leaf(x):
    if jnp.issubdtype(x.dtype, jnp.floating):
      return jax.device_put(draw(x.shape, np.float32))
    return jnp.zeros(x.shape, x.dtype)

  return jax.tree.map(leaf, tree)


def finished(defense=none(), wanted=5):
  """A federation (which has not trained) and its samples."""
  data = batch()
  known = jax.tree.map(lambda x: x[:3], data)
  state = like(40, jax.eval_shape(
      functools.partial(start, KEY, defense), data
  ))
  return views.Finished(
      federation(), defense, state, known, data, wanted, data, known
  )


@pytest.mark.parametrize('kind', [views.TrainedBottom, views.UnlabeledBottom])
def test_a_party_reads_its_weights_as_the_defense_lets_it(kind):
  seen = finished(SHIFTED)
  view = views.after_training(kind, KEY, 1, seen)
  true = seen.state.parties[1].params['bottom']
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b + 100, rtol=1e-6),
      view.weights, true,
  )
  np.testing.assert_array_equal(view.features, seen.test.features[1])
  np.testing.assert_array_equal(view.labeled, seen.known.labels)


def test_the_active_party_gets_embeddings_of_the_samples_it_wants():
  seen = finished(wanted=5)
  view = views.after_training(views.TrainedTop, KEY, 1, seen)
  first = seen.test.features[1][:5]
  np.testing.assert_array_equal(views.wanted_features(1, seen), first)
  net, own = seen.vfl.bottom(1), seen.state.parties
  np.testing.assert_allclose(
      view.received, net.apply(own[1].params['bottom'], first), rtol=1e-6
  )
  assert set(view.weights) == {'bottom', 'top', 'defense'}
  jax.tree.map(
      np.testing.assert_array_equal, view.weights['top'], own[0].params['top']
  )


def test_each_kind_is_of_its_stage():
  seen = finished()
  played = jax.jit(lambda state, data: play(KEY, none(), state, data)[1])(
      seen.state, seen.training
  )
  cut = views.in_training(views.CutGradients, KEY, 1, none(), played)
  assert len(cut.received) == SAMPLES
  with pytest.raises(ValueError, match='not a view of a round'):
    views.in_training(views.TrainedTop, KEY, 1, none(), played)
  with pytest.raises(ValueError, match='not a view of a trained'):
    views.after_training(views.CutGradients, KEY, 1, seen)


# Of three parties, number 2 attacks or is attacked, in a round made by hand.

TXS = (optax.sgd(0.1),) * 3
VFL = algorithms.vhnn([nets.mlp(3, 2)] * 3, nets.mlp(2))
ROWS = 8
TOLD = jnp.arange(ROWS) < 4  # After training party 2 knows these labels.
ALL = functools.partial(vmask.vmask, 0.5, 'all')
CASES = dict.fromkeys(sorted(defenses.REGISTRY)) | {
    'none': none(), 'vmask all': ALL(), 'fedpass passive':
    fedpass.fedpass(side='passive'),
    # Of eight auxiliary samples its attacker has to leave some of each class.
    'vmask': vmask.vmask(0.5, attacker=Attacker(known=1)),
    'iso, vmask all': chain(make('iso'), ALL()),
    'fedpass, vmask all': chain(fedpass.fedpass(), ALL()),
    'vmask all, fedpass': chain(ALL(), fedpass.fedpass()),
}
READ_OTHERWISE = {name for name in CASES if 'vmask' in name or name in (
    'fedpass', 'fedpass passive')}


@functools.cache
def data_of_three():
  x = np.random.default_rng(9).normal(size=(3, ROWS, 4)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[np.arange(ROWS) % 2]
  return Batch(tuple(jnp.asarray(a) for a in x), jnp.asarray(labels))


@functools.cache
def scene(name) -> tuple[Defense, Round]:
  """A defense, and a round of it whose numbers are all different."""
  defense, data = CASES[name] or make(name), data_of_three()
  init = lambda data: protocol.init(
      KEY, VFL, defense, TXS, data, auxiliary=data
  )
  if name in READ_OTHERWISE:  # Only by its own memory can it be read.
    state = init(data)
  else:
    state = like(40, jax.eval_shape(init, data))
  u = jnp.asarray(np.random.default_rng(7).normal(size=(4, ROWS, 2)), 'f4')
  own = [p.params for p in state.parties[1:]]
  return defense, Round(
      state, data, Messages(tuple(u[:2]), tuple(u[2:])), jnp.zeros(()),
      *(tuple(like(seed + k, p[part]) for k, p in enumerate(own))
        for seed, part in ((10, 'bottom'), (20, 'defense'), (30, 'bottom')))
  )


def first_rounds(played, rounds=2):
  return jax.tree.map(lambda x: jnp.asarray(np.stack([x] * rounds)), played)


def view_of(kind, name, played, k=2, count=1) -> Any:
  """Party k's view, or the active one's of it."""
  defense = scene(name)[0]
  if kind in views.OF_A_ROUND:
    return views.in_training(kind, KEY, k, defense, played)
  if kind is views.RecordedGradients:
    seen = first_rounds(played._replace(state=(), gradients=(), read=()))
    return views.recorded_gradients(KEY, k, seen, count)[0]
  if kind is views.WhiteBox:
    own = first_rounds(views.own_gradients(k, played))
    rows = jnp.arange(2 * ROWS).reshape(2, ROWS)
    x = played.batch.features[k]
    return views.white_box(KEY, k, defense, played.state, own, rows, x)
  known = jax.tree.map(lambda x: x[TOLD], played.batch)
  return views.after_training(kind, KEY, k, views.Finished(
      VFL, defense, played.state, known, played.batch, ROWS, played.batch,
      known,
  ))


EVERY_VIEW = [
    *views.OF_A_ROUND, views.RecordedGradients, views.WhiteBox,
    *views.OF_A_TRAINED_FEDERATION,
]
OF_WEIGHTS = [
    views.ModelGradients, views.WhiteBox, views.TrainedBottom,
    views.UnlabeledBottom,
]


@pytest.fixture(scope='module', params=sorted(CASES))
def name(request):
  """Of a defense, so that all its tests come one after the other."""
  return request.param


def test_weights_in_a_view_are_those_that_can_be_read(name):
  defense, played = scene(name)
  own = played.state.parties[2].params
  read = defense.expose(played.state.defense, KEY, 2, own['bottom'])
  assert (read is not own['bottom']) == (name in READ_OTHERWISE)
  for kind in OF_WEIGHTS:
    seen = view_of(kind, name, played).weights
    if kind is views.WhiteBox:
      chex.assert_trees_all_equal(seen['defense'], own['defense'])
      seen = seen['bottom']
    chex.assert_trees_all_equal(seen, read)


def test_gradients_in_a_view_are_the_partys_and_of_the_weights_in_it(name):
  played = scene(name)[1]
  expected = dict(bottom=played.read[1], defense=played.added[1])
  seen = view_of(views.ModelGradients, name, played)
  chex.assert_trees_all_equal(seen.gradients, expected['bottom'])
  chex.assert_trees_all_equal(seen.features, played.batch.features[2])
  chex.assert_trees_all_equal(
      view_of(views.WhiteBox, name, played).gradients, first_rounds(expected)
  )
  trained = played._replace(read=())  # What is read is what is trained.
  seen = view_of(views.ModelGradients, name, trained)
  chex.assert_trees_all_equal(seen.gradients, played.gradients[1])


def moved(tree):
  return jax.tree.map(lambda x: jnp.asarray(np.asarray(x) + 1000), tree)


def others_moved(played, keep=(2,)):
  """All that belongs to parties not in `keep` is far away."""
  swap = lambda parts, first: tuple(
      part if k in keep else moved(part)
      for k, part in enumerate(parts, start=first)
  )
  state, up, down = played.state, *played.messages
  return Round(
      state._replace(parties=swap(state.parties, 0)),
      played.batch._replace(features=swap(played.batch.features, 0)),
      Messages(swap(up, 1), swap(down, 1)), played.loss + 1000,
      swap(played.gradients, 1), swap(played.added, 1), swap(played.read, 1),
  )


def test_nothing_of_another_party_is_in_a_view(name):
  played = scene(name)[1]
  for kind in EVERY_VIEW:
    if kind is not views.TrainedTop:
      chex.assert_trees_all_equal(
          view_of(kind, name, played),
          view_of(kind, name, others_moved(played)),
      )
  # The active party sees its own weights and what it is sent; of its auxiliary
  # samples it has everything.
  seen, again = (
      view_of(views.TrainedTop, name, p)._replace(auxiliary=())
      for p in (played, others_moved(played, keep=(0, 2)))
  )
  chex.assert_trees_all_equal(seen, again)


def relabeled(played, rows):
  """Other labels in `rows`."""
  y = played.batch.labels
  new = jnp.where(rows[:, None], y[:, ::-1], y)
  return played._replace(batch=played.batch._replace(labels=new))


def known_of(kind, played):
  """The rows whose labels an attacker knows."""
  if kind in (views.KnownPositive, views.ClassCenters):
    return view_of(kind, 'none', played).known > 0
  return TOLD if kind in views.OF_A_TRAINED_FEDERATION else jnp.zeros(ROWS) > 0


@pytest.mark.parametrize('kind', sorted(
    {*EVERY_VIEW} - {views.RecordedGradients}, key=str
))
def test_no_label_is_in_a_view_but_those_known(kind):
  """A sample's label is unknown: another one leads to the same view."""
  _, played = scene('none')
  rows = ~known_of(kind, played)
  if kind is views.KnownPositive:  # Another positive could be the known one.
    rows = rows & (played.batch.labels[:, 1] > 0)
  assert rows.any()
  chex.assert_trees_all_equal(
      view_of(kind, 'none', played),
      view_of(kind, 'none', relabeled(played, rows)),
  )


def test_of_recorded_gradients_no_label_is_in_the_view_but_those_known():
  """A row's other label may make it a known one, and is then no test."""
  _, played = scene('none')
  seen = first_rounds(played._replace(state=(), gradients=(), read=()))
  view, known = views.recorded_gradients(KEY, 2, seen, 1)
  tried = 0
  for i in np.flatnonzero(np.asarray(known) == 0):
    r, row = divmod(int(i), ROWS)
    labels = seen.batch.labels.at[r, row].set(seen.batch.labels[r, row, ::-1])
    other, again = views.recorded_gradients(KEY, 2, seen._replace(
        batch=seen.batch._replace(labels=labels)
    ), 1)
    if (again == known).all():
      tried += 1
      chex.assert_trees_all_equal(other, view)
  assert known.sum() == 2 and tried > 3


@pytest.mark.parametrize('kind', [
    kind for kind in views.OF_A_ROUND if 'known' in kind._fields
])
def test_what_is_known_or_padding_is_not_left_to_guess(kind):
  _, played = scene('none')
  padded = played._replace(batch=played.batch._replace(
      labels=played.batch.labels.at[-2:].set(0)
  ))
  view = view_of(kind, 'none', padded)
  known = np.asarray(view.known) > 0
  assert known.any()
  expected = ~known & (np.arange(ROWS) < ROWS - 2)
  np.testing.assert_array_equal(views.unknown(view), expected)


@pytest.mark.parametrize('name', ['vmask all', 'iso, vmask all'])
@pytest.mark.parametrize('kind', EVERY_VIEW)
def test_no_view_has_the_weights_of_a_layer_in_shares(name, kind):
  """Neither those that the party knew of nor those with noise."""
  _, played = scene(name)
  memory = played.state.defense
  memory = memory if hasattr(memory, 'offset') else memory[1]
  own = played.state.parties[2].params['bottom']
  true = jax.tree.map(jnp.add, own, memory.offset[1])
  seen = [
      np.asarray(x) for x in jax.tree.leaves(view_of(kind, name, played))
  ]
  for tree in own, true:
    layers = named_layers.arrays(tree)
    assert len(layers) == 2
    for array in (a for layer in layers.values() for a in layer.values()):
      assert not any(
          x.shape == array.shape and np.isclose(x, array).any() for x in seen
      )


def test_samples_without_labels_are_those_of_training():
  seen = finished()
  training = jax.tree.map(lambda x: x[4:9] + 1, seen.test)
  view = views.after_training(
      views.UnlabeledBottom, KEY, 1, seen._replace(training=training)
  )
  np.testing.assert_array_equal(view.unlabeled, training.features[1])
  np.testing.assert_array_equal(view.features, seen.test.features[1])


def test_the_active_party_sees_no_feature_of_the_pool():
  view = view_of(views.WhiteBox, 'none', scene('none')[1])
  assert view.blank.shape == (ROWS, 4) and not view.blank.any()


def hand_made(d, labels):
  """A round in which party 1 received `d`."""
  d = (jnp.asarray(d, jnp.float32),)
  batch = Batch((None, *d), jnp.asarray(labels))
  return Round((), batch, Messages(d, d), jnp.zeros(()), ())


def test_centers_are_means_and_medians_of_the_known_half():
  rng = np.random.default_rng(0)
  d, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
  played, odd = hand_made(d, np.eye(2)[y]), set()
  seen_by = jax.jit(lambda key, played: views.class_centers(key, 1, played))
  for seed in range(6):
    view = seen_by(jax.random.key(seed), played)
    for c in 0, 1:
      own = d[(np.asarray(view.known) > 0) & (y == c)]
      odd.add(len(own) % 2)
      np.testing.assert_allclose(view.means[c], own.mean(0), rtol=1e-4)
      np.testing.assert_allclose(view.medians[c], np.median(own, 0), rtol=1e-4)
  assert odd == {0, 1}


def test_a_class_without_a_known_sample_has_zeros_for_centers():
  """Gradients on the other side of 0 than those known are then nearer to it."""
  labels = np.eye(2, dtype=np.float32)[np.zeros(16, int)]
  d = np.random.default_rng(0).normal(2, 0.1, (16, 3)).astype('f4')
  view = views.class_centers(KEY, 1, hand_made(d, labels))
  np.testing.assert_array_equal([view.means[1], view.medians[1]], 0)
  assert 0 < view.known.sum() < 16
  both = view._replace(received=jnp.concatenate([d, -d]))
  for attack in attacks.mean_scoring(), attacks.median_scoring():
    np.testing.assert_array_equal(
        attack.run(KEY, both), np.repeat([0, 1], 16)
    )


def test_a_class_with_few_samples_has_no_other_one_known():
  y = np.eye(2, dtype=np.float32)[[[0, 0, 0, 1], [0, 0, 0, 0]]]
  one = hand_made(np.arange(4)[:, None], y[0])
  played = jax.tree.map(
      lambda x: jnp.asarray(np.stack([x, np.asarray(x) + 10])), one
  )
  played = played._replace(batch=played.batch._replace(labels=jnp.asarray(y)))
  for seed in range(4):
    view, known = views.recorded_gradients(jax.random.key(seed), 1, played, 3)
    known = np.asarray(known)
    assert known.sum() == 4 and known[3] == 1  # One of the second class.
    np.testing.assert_array_equal(np.sum(view.known_labels, 0), [3, 1])
    mine = np.asarray(view.known_labels).sum(1) > 0
    np.testing.assert_array_equal(
        np.sort(np.asarray(view.known_received)[mine, 0]),
        np.sort(np.asarray(view.received)[known > 0, 0]),
    )


def test_the_majority_of_mixed_labels_is_one_class_and_padding_has_none():
  labels = np.float32([[0.2, 0.5, 0.3], [1, 0, 0], [0, 0, 0], [0, 0.4, 0.6]])
  want = [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
  np.testing.assert_array_equal(majority(labels), want)


def test_padding_is_no_known_sample():
  labels = np.eye(2, dtype=np.float32)[np.arange(32) % 2]
  labels[16:] = 0
  view = views.class_centers(KEY, 1, hand_made(np.ones((32, 1)), labels))
  known = np.asarray(view.known)
  assert known[:16].any() and not known[16:].any()


def test_the_luck_of_who_is_known_is_the_keys():
  """Any positive may be the known one; of centers any half of the round."""
  y = np.eye(2, dtype=np.float32)[np.arange(200) % 2]
  played = hand_made(np.ones((200, 1)), y)
  keys = jax.random.split(KEY, 40)
  alone, half = (
      jax.jit(jax.vmap(lambda key, make=make: make(key, 1, played).known))(keys)
      for make in (views.known_positive, views.class_centers)
  )
  assert len(np.unique(np.argmax(alone, -1))) > 20
  np.testing.assert_allclose(np.mean(half), 0.5, atol=0.03)
  assert np.ptp(np.mean(half, 0)) < 0.7  # No sample is always known.


def test_the_active_party_gets_embeddings_as_the_defense_sends_them():
  noisy = Defense(send=lambda own, key, u: (u + 5, jnp.zeros(())))
  plain, sent = (
      views.after_training(
          views.TrainedTop, KEY, 1, finished()._replace(defense=defense)
      ).received for defense in (none(), noisy)
  )
  np.testing.assert_allclose(sent, plain + 5, rtol=1e-5)


def test_the_active_party_is_not_shown_what_is_lent_to_others():
  """FedPass keeps each passive party's passports in the defense's memory."""
  lending = Defense(
      init=lambda key, spec: slots(
          spec, state=dict(own=jnp.ones(3), lent=jnp.ones(3))
      ),
      lent=lambda state, k: state['lent'],
  )
  seen = finished(lending)
  memory = views.after_training(views.TrainedTop, KEY, 1, seen).memory
  np.testing.assert_array_equal(memory['own'], seen.state.defense['own'])
  assert np.asarray(seen.state.defense['lent']).all()
  assert not np.asarray(memory['lent']).any()


@pytest.mark.parametrize('k', [-1, 0, 2])
@pytest.mark.parametrize('see', [
    lambda k, seen, state: views.model_gradients(KEY, k, none(), seen),
    lambda k, seen, state: views.own_gradients(k, seen),
    lambda k, seen, state: views.recorded_gradients(
        KEY, k, jax.tree.map(lambda x: x[None], seen), 1
    ),
    lambda k, seen, state: views.trained_bottom(
        KEY, k, none(), state, batch(), batch()
    ),
    lambda k, seen, state: protocol.embed(
        KEY, federation(), none(), state, k, batch().features[1]
    ),
])
def test_nobody_else_stands_in_for_a_party_that_is_not_there(k, see):
  """Index 0 - 1 is the last party's, and party 0 has the labels."""
  data = batch()
  state = like(41, jax.eval_shape(functools.partial(start, KEY, none()), data))
  up = (jnp.ones((SAMPLES, 6)),)
  seen = Round(
      state, data, Messages(up, up), jnp.zeros(()),
      (state.parties[1].params['bottom'],), ((),),
  )
  with pytest.raises(ValueError, match=f'1 to 1; there is no {k}'):
    see(k, seen, state)
