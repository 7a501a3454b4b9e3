"""Defenses that change the labels: LabelDP, KDk and CoAE."""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments import quickstart
from vfljax import algorithms, defenses, nets, numerics, train
from vfljax import data as datasets
from vfljax.defense import Spec
from vfljax.defenses import coae, kdk, label_dp
from vfljax.runner.checking import checks
from vfljax.runner.errors import UserError
from vfljax.types import Batch

GOLDEN = pathlib.Path(__file__).parents[1] / 'golden'
KEY = jax.random.key(0)
flip = jax.jit(label_dp.flip)
soften = jax.jit(kdk.soften, static_argnums=2)


def golden(name):
  return np.load(GOLDEN / f'{name}.npz')


def one_hot(classes, n, padding=0):
  rows = np.eye(classes, dtype=np.float32)[np.arange(n) % classes]
  rows[n - padding :] = 0
  return rows


# LabelDP


@pytest.mark.parametrize('classes', [2, 3, 10])
@pytest.mark.parametrize('epsilon', [0.1, 0.5, 1.0, 3.0, 8.0])
def test_the_response_is_secretflows(classes, epsilon):
  expected = golden('label_dp_secretflow')[
      f'onehot_c{classes}_eps{epsilon}_prob_table'
  ]
  found = label_dp.transition_matrix(epsilon, classes)
  np.testing.assert_allclose(found, expected, rtol=2e-6)


@pytest.mark.parametrize('epsilon', [0.0, 0.3, 3.0, 200.0])
def test_no_response_tells_more_than_epsilon(epsilon):
  """P(response | label) <= e^epsilon P(response | other label), and tight."""
  table = np.asarray(label_dp.transition_matrix(epsilon, 7), np.float64)
  np.testing.assert_allclose(table.sum(1), 1, rtol=1e-6)
  if epsilon > 80:  # e^-200 is 0 in 32 bits: the identity.
    np.testing.assert_array_equal(table, np.eye(7))
    return
  worst = np.log(table.max(0) / table.min(0)).max()
  np.testing.assert_allclose(worst, epsilon, atol=1e-6)


def test_labels_are_flipped_as_often_as_the_table_says():
  labels = one_hot(3, 30000, padding=3000)
  found = np.asarray(flip(KEY, labels, 1.0))
  assert set(np.unique(found)) == {0, 1}
  np.testing.assert_array_equal(found.sum(1), labels.sum(1))
  share = labels.T @ found / labels.sum(0)[:, None]
  keep = np.e / (np.e + 2)
  expected = np.full((3, 3), (1 - keep) / 2) + np.eye(3) * (1.5 * keep - 0.5)
  # Four standard errors of 9000 draws.
  np.testing.assert_allclose(share, expected, atol=0.021)


def test_the_budgets_ends():
  labels = one_hot(4, 4000)
  np.testing.assert_array_equal(flip(KEY, labels, 1e4), labels)
  kept = (np.asarray(flip(KEY, labels, 0.0)) * labels).sum(1).mean()
  np.testing.assert_allclose(kept, 0.25, atol=0.03)


def federation():
  return algorithms.vhnn([nets.mlp(4)] * 2, nets.mlp(2))


def data(n=12):
  x = jax.random.normal(KEY, (n, 3), jnp.float32)
  return Batch((x, -x), jnp.asarray(one_hot(2, n)))


def plan(defense, epochs):
  return train.Plan(
      federation(), defense, (optax.sgd(0.1),) * 2, epochs, 4,
      watch=lambda key, played: played.batch.labels.sum(0),
  )


@pytest.mark.parametrize('name, strength', [('label_dp', 0.0), ('kdk', 0.45)])
def test_a_run_prepares_its_labels_once(name, strength):
  """What a run trains on is drawn before it starts and stays; what is
  measured is the truth."""
  batch = data()

  @jax.jit
  def both(key):
    todo = plan(defenses.REGISTRY[name](strength), 2)
    run = train.start(key, todo, batch)
    after, history = train.advance(todo, run, batch, 0, 2)
    return run.labels, after.labels, history

  before, after, history = both(jax.random.key(3))
  np.testing.assert_array_equal(before, after)
  assert not np.array_equal(before, batch.labels)
  np.testing.assert_allclose(before.sum(1), 1, atol=1e-6)
  np.testing.assert_array_equal(history['watch'].sum(1), [[6, 6], [6, 6]])


@pytest.mark.parametrize('epsilon', [-1.0, float('nan'), 'much'])
def test_a_bad_budget_is_refused(epsilon):
  with pytest.raises(ValueError, match='label_dp: epsilon'):
    label_dp.label_dp(epsilon)


# KDk


@pytest.mark.parametrize('case', ['n16c10', 'n8c2', 'n1c4'])
@pytest.mark.parametrize('k', [2, 3, 5])
@pytest.mark.parametrize('smoothing', [0.35, 0.65])
def test_soft_labels_are_the_authors_where_theirs_sum_to_one(
    case, k, smoothing
):
  file = golden('kdk_soft_labels')
  name = f'{case}_k{k}_eps{smoothing}'
  if name not in file:  # More neighbours than classes: they have none.
    assert case != 'n16c10'
    return
  expected = file[name]
  probs, truth = file[f'{case}_teacher_probs'], file[f'{case}_labels']
  labels = np.eye(probs.shape[1], dtype=np.float32)[truth]
  found = np.asarray(soften(probs, labels, k, smoothing))
  whole = np.isclose(expected.sum(1), 1)
  assert whole.any() or case == 'n1c4'
  np.testing.assert_allclose(found[whole], expected[whole], rtol=1e-6)
  np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
  np.testing.assert_allclose((found * labels).sum(1), 1 - smoothing, rtol=1e-6)
  np.testing.assert_array_equal((found > 0).sum(1), k)


def test_fewer_classes_than_neighbours_and_padding():
  labels = one_hot(2, 6, padding=2)
  found = soften(np.full((6, 2), 0.5, np.float32), labels, 3, 0.45)
  expected = np.where(labels > 0, 0.55, 0.45) * labels.sum(1, keepdims=True)
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_teacher_knows_which_classes_are_alike():
  """Four clusters on a line: the neighbour is the likeliest other class."""
  rng = np.random.default_rng(0)
  truth = rng.integers(0, 4, 600)
  x = (truth + rng.normal(size=600) * 0.4)[:, None].astype(np.float32)
  labels = np.eye(4, dtype=np.float32)[truth]
  defense = kdk.kdk(0.3, 2, learning_rate=0.01)
  prepare = defense.prepare
  assert prepare is not None
  found = np.asarray(jax.jit(prepare)(KEY, x, labels))
  np.testing.assert_allclose((found * labels).sum(1), 0.7, rtol=1e-6)
  other = np.where(labels > 0, 0, found).argmax(1)
  assert (abs(other - truth) == 1).mean() > 0.95
  lower = x[:, 0] < truth - 0.3
  inner = (truth > 0) & (truth < 3)
  assert (other < truth)[lower & inner].mean() > 0.8


def test_a_row_without_a_label_teaches_nothing():
  """Nor does it make the steps of plain descent smaller."""
  x = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
  teach = jax.jit(lambda x, y: kdk.teach(
      KEY, x, y, (5,), optax.sgd(0.5), epochs=3, batch_size=20
  ))
  alone = teach(x, one_hot(3, 9))
  more = np.concatenate([x, 9 + x[:6]])
  found = teach(more, one_hot(3, 15, padding=6))
  np.testing.assert_allclose(found[:9], alone, rtol=1e-4)
  assert np.isfinite(teach(x, 0 * one_hot(3, 9))).all()


def test_a_sure_teacher_still_knows_the_second_likeliest_class():
  """Of huge features; but for biases its order is that of smaller ones."""
  x = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
  labels = one_hot(5, 200)
  prepare = kdk.kdk(0.3, 2, epochs=1, learning_rate=1e-9).prepare
  assert prepare is not None
  soft = jax.jit(prepare)
  one, other = (
      np.where(labels > 0, 0, soft(KEY, x * size, labels)).argmax(1)
      for size in (30, 3e4)
  )
  assert (one == other).mean() > 0.95


def test_a_teacher_needs_features():
  prepare = kdk.kdk(0.45).prepare
  assert prepare is not None
  with pytest.raises(ValueError, match='labels only'):
    prepare(KEY, None, jnp.asarray(one_hot(2, 4)))


def test_an_experiment_without_them_is_refused_before_it_starts():
  config = quickstart.get_config()
  config.defenses, config.model.algorithm = 'kdk', 'vsnn'
  config.data.split, config.data.ratios = 'even', ''
  with pytest.raises(UserError, match='labels only'):
    checks.make(config, datasets.load('breast_cancer'))


@pytest.mark.parametrize('arguments, message', [
    (dict(smoothing=1.1), 'smoothing'), (dict(smoothing=-0.1), 'smoothing'),
    (dict(smoothing=0.5, k=1), 'k must'),
    (dict(smoothing=0.5, epochs=0), 'epochs'),
    (dict(smoothing=0.5, learning_rate=0.0), 'learning_rate'),
])
def test_bad_arguments_of_kdk(arguments, message):
  with pytest.raises(ValueError, match=message):
    kdk.kdk(**arguments)


# CoAE


def secretflows():
  """The autoencoder of the golden vectors: ({part: layers}, gradients)."""
  file = golden('cae_loss_secretflow')

  def layers(kind, part):
    return [
        dict(kernel=file[f'c2_{kind}_{part}.{i}.weight'].T,
             bias=file[f'c2_{kind}_{part}.{i}.bias'])
        for i in (0, 2)
    ]

  read = lambda kind: {p: layers(kind, p) for p in ('encoder', 'decoder')}
  return file, read('w'), read('g')


def test_the_autoencoders_loss_is_secretflows():
  file, params, expected = secretflows()
  y = file['c2_y_sharpened_T0.025']
  encoded = coae.encode(params, y)
  decoded = jax.nn.softmax(coae.decode(params, jnp.log(encoded)))
  np.testing.assert_allclose(encoded, file['c2_y_dummy'], rtol=1e-5)
  np.testing.assert_allclose(decoded, file['c2_y_hat'], rtol=1e-5)
  entropy = coae.entropy(encoded)
  np.testing.assert_allclose(entropy, file['c2_loss_e'], rtol=1e-5)
  loss, gradients = jax.jit(jax.value_and_grad(coae.loss))(params, y, 2.0)
  np.testing.assert_allclose(loss, file['c2_loss_lambda2'], rtol=1e-5)
  for found, want in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected)):
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=2e-7)


def test_the_labels_it_learns_from_are_secretflows():
  file = golden('cae_loss_secretflow')
  found = numerics.sharpen(jax.nn.softmax(file['c2_raw']), coae.TEMPERATURE)
  np.testing.assert_allclose(
      found, file['c2_y_sharpened_T0.025'], rtol=1e-3, atol=1e-6
  )


@pytest.fixture(scope='module')
def autoencoders():
  """Slots' states for confusion 0 and 2, three classes."""
  spec = Spec((jax.ShapeDtypeStruct((4, 3), jnp.float32),), 3)

  def trained(confusion):
    return coae.coae(confusion).init(KEY, spec).state

  return jax.jit(jax.vmap(trained))(jnp.array([0.0, 2.0]))


def test_what_is_encoded_is_confused_and_decodes(autoencoders):
  """Confusion spreads a class over several; both can be decoded."""
  labels = np.eye(3, dtype=np.float32)

  @jax.jit
  @jax.vmap
  def used(params):
    encoded = coae.encode(params, labels)
    logits = coae.decode(params, jnp.log(encoded))
    return encoded, coae.entropy(encoded), logits, jax.nn.softmax(logits)

  every, entropies, *rest = map(np.asarray, used(autoencoders))
  for encoded, logits, decoded in zip(every, *rest):
    np.testing.assert_array_equal(logits.argmax(1), labels.argmax(1))
    assert (decoded * labels).sum(1).min() > 0.9
    assert (encoded * labels).sum(1).max() < 0.6  # Not the class itself.
  assert entropies[1] > entropies[0] + 0.05


def test_padding_has_no_encoding(autoencoders):
  params = jax.tree.map(lambda x: x[1], autoencoders)
  labels = jnp.asarray(one_hot(3, 6, padding=2))
  found = coae.coae().label(params, KEY, labels)
  np.testing.assert_array_equal(found[4:], 0)
  np.testing.assert_allclose(found[:4].sum(1), 1, rtol=1e-5)


def test_many_classes_need_a_width():
  u = jax.ShapeDtypeStruct((4, 3), jnp.float32)
  with pytest.raises(ValueError, match='100 classes need `hidden`'):
    coae.coae().init(KEY, Spec((u,), 100))
  most = jax.eval_shape(lambda: coae.coae().init(KEY, Spec((u,), 20)).state)
  assert most['encoder'][0]['kernel'].shape == (20, (2 + 6 * 20) ** 2)


@pytest.mark.parametrize('arguments, message', [
    (dict(confusion=-1), 'confusion'), (dict(samples=0), 'samples'),
    (dict(hidden=-1), 'hidden'), (dict(hidden=0), 'hidden'),
    (dict(learning_rate=0.0), 'learning_rate'),
])
def test_bad_arguments_of_coae(arguments, message):
  with pytest.raises(ValueError, match=message):
    coae.coae(**arguments)
