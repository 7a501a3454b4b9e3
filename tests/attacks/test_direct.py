"""Attacks called from Python: on arrays of NumPy, and on what does not fit."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import (
    attacks, check, completion, measure, metrics, nets, protocol, views,
)
from vfljax.attacks.cafe import FirstLinear, Recovery
from vfljax.attacks.cafe import measured as of_cafe
from vfljax.attacks.cafe_layer import first_linear
from vfljax.attacks.gradient_inversion import Search
from vfljax.attacks.mixmatch import MixMatch
from vfljax.attacks.model_inversion import Inversion
from vfljax.defense import none
from vfljax.defenses.mid import mid
from vfljax.nets import bottleneck
from vfljax.types import VFL, Batch, Net

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
KNOWN, CLASSES = 5, 3
X, OTHERS = RNG.random((2, KNOWN, 4), np.float32)
LABELS = np.eye(CLASSES, dtype='f4')[np.arange(KNOWN) % CLASSES]
W = RNG.random((4, CLASSES), np.float32)


def linear(width):
  return Net(lambda key, x: jnp.ones((4, width)), lambda w, x: x @ w)


def on_top(width):
  """The received embedding times a weight, as logits."""
  start = lambda key, us: jnp.ones((CLASSES, width))
  return Net(start, lambda w, us: us[1] @ w)


BOTTOM = linear(CLASSES)
FEDERATION = VFL(
    (None, BOTTOM), on_top(CLASSES), optax.softmax_cross_entropy
)
HEAD = Net(lambda key, u: jnp.eye(CLASSES), lambda w, u: u @ w)
SHORT = completion.Schedule(epochs=2, stages=1, batch_size=2)
MIXED = MixMatch(epochs=1, iterations=2, batch_size=2, stages=1)
INVERSION = Inversion(shadow_steps=2, shadow_batch=2, steps=2)
LAYER = FirstLinear(
    lambda weights, x: (x, x @ weights['bottom']),
    lambda g: (g['bottom'], g['bottom'].sum(0)),
)
TOP = views.TrainedTop(
    dict(top=np.eye(CLASSES, dtype='f4'), bottom=()), X @ W,
    Batch((None, X), LABELS),
)
WHITE = views.WhiteBox(
    dict(bottom=W), dict(bottom=np.stack([W, W])),
    np.array([[0, 1], [4, 2]]), np.zeros_like(X),
)
UNLABELED = views.UnlabeledBottom(W, X, LABELS, OTHERS, OTHERS)
OF_NUMPY = dict(
    cafe=lambda: (attacks.cafe(LAYER, Recovery(2)), WHITE),
    mixmatch=lambda: (attacks.mixmatch(BOTTOM, HEAD, MIXED), UNLABELED),
    model_completion=lambda: (
        attacks.model_completion(BOTTOM, HEAD, SHORT),
        views.TrainedBottom(W, X, LABELS, OTHERS),
    ),
    model_inversion=lambda: (
        attacks.model_inversion(FEDERATION, BOTTOM, INVERSION), TOP
    ),
)


@pytest.mark.parametrize('name', OF_NUMPY)
def test_a_view_may_be_of_numpy(name):
  attack, view = OF_NUMPY[name]()
  found = attack.run(KEY, view)
  again = jax.jit(attack.run)(KEY, view)
  np.testing.assert_allclose(found, again, rtol=1e-5, atol=1e-6)


def test_samples_of_numpy_are_completed():
  logits = lambda theta, x: x @ theta
  guess = lambda *x: completion.complete(
      KEY, SHORT, logits, jnp.asarray(W), completion.Samples(*x)
  )
  np.testing.assert_allclose(
      guess(X, LABELS, OTHERS), guess(*map(jnp.asarray, (X, LABELS, OTHERS)))
  )


def test_a_party_may_have_several_arrays():
  """Its bottom network reads them together."""
  apart = lambda x: dict(left=x[:, :1], right=x[:, 1:])
  joined = BOTTOM._replace(apply=lambda w, x: BOTTOM.apply(
      w, jnp.concatenate([x['left'], x['right']], 1)
  ))
  found = [
      attacks.model_completion(net, HEAD, SHORT).run(
          KEY, views.TrainedBottom(W, see(X), LABELS, see(OTHERS))
      ) for net, see in ((BOTTOM, jnp.asarray), (joined, apart))
  ]
  np.testing.assert_allclose(*found, rtol=1e-6)


def test_a_rate_is_of_weights_that_there_are():
  """Of others by that name it would be ignored."""
  slow = SHORT._replace(bottom_rate=0.5, optimizer='sgd')
  theta = dict(stolen=jnp.asarray(W), head=jnp.eye(CLASSES))
  logits = lambda theta, x: x @ theta['stolen'] @ theta['head']
  samples = completion.Samples(X, LABELS, OTHERS)
  with pytest.raises(ValueError, match="bottom must be one of .*'stolen'"):
    completion.complete(KEY, slow, logits, theta, samples, bottom='bottom')


@pytest.mark.parametrize('head, tune', [(HEAD, False), (None, True)])
def test_weights_that_are_not_trained_have_no_rate(head, tune):
  slow = SHORT._replace(bottom_rate=0.5)
  with pytest.raises(ValueError, match='needs a head, and .*tune=True'):
    attacks.model_completion(BOTTOM, head, slow, tune)
  attacks.model_completion(BOTTOM, head, SHORT, tune)


def test_nobody_learns_from_samples_without_a_label():
  """A row of zeros has no loss: the guess would be of random weights."""
  attack = attacks.model_completion(BOTTOM, HEAD, SHORT)
  view = views.TrainedBottom(W, X, LABELS * 0, OTHERS)
  with pytest.raises(ValueError, match='No known sample has a label'):
    attack.run(KEY, view)
  one = np.where(np.arange(KNOWN)[:, None] == 1, LABELS, 0)
  attack.run(KEY, view._replace(labeled=one))


@pytest.mark.parametrize('head, labels', [
    (HEAD, np.arange(KNOWN)[:, None] % 3.0),  # Class numbers in a column.
    (HEAD, np.arange(KNOWN) % 3.0),
    (Net(lambda key, u: jnp.ones((3, 1)), lambda w, u: u @ w), LABELS),
])
def test_labels_have_a_column_for_each_logit(head, labels):
  """A column of one would be broadcast, and the guess would be of noise."""
  view = views.UnlabeledBottom(W, X, labels, OTHERS, OTHERS)
  completed = attacks.model_completion(BOTTOM, head, SHORT)
  with pytest.raises(ValueError, match='a column for each of its logits'):
    completed.run(KEY, views.TrainedBottom(*view[:4]))
  with pytest.raises(ValueError, match='column for each|must be .known, clas'):
    attacks.mixmatch(BOTTOM, head, MIXED).run(KEY, view)
  check.alike('nobody', LABELS, LABELS)


@pytest.mark.parametrize('name', ['gradient_clustering', 'learned_gradient'])
def test_a_column_of_class_numbers_is_not_one_class(name):
  view = views.RecordedGradients(X, LABELS.argmax(-1)[:, None], X)
  with pytest.raises(ValueError, match=r'got labels of shape \(5, 1\)'):
    attacks.REGISTRY[name]().run(KEY, view)


@pytest.mark.parametrize('wrong, why', [
    (dict(labeled=LABELS[:-1]), 'of 1 samples or more; got labels'),
    (dict(labeled=np.concatenate([LABELS, LABELS])), 'of 1 samples or more'),
    (dict(labeled_features=X[:0], labeled=LABELS[:0]), 'of 1 samples or more'),
    (dict(unlabeled=X[:0]), 'needs unlabeled samples'),
    (dict(unlabeled=X.astype(int)), 'whole numbers have no mixtures'),
    (dict(labeled_features=X.astype(int)), 'whole numbers have no mixtures'),
])
def test_mixmatch_needs_rows_of_samples_that_can_be_mixed(wrong, why):
  with pytest.raises(ValueError, match=why):
    attacks.mixmatch(BOTTOM, HEAD, MIXED).run(KEY, UNLABELED._replace(**wrong))


@pytest.mark.parametrize(
    'name', ['images', 'labels', 'none', 'pixels', 'width']
)
def test_an_inversion_needs_rows_of_pixels_at_both_parties(name):
  auxiliary, why = dict(
      images=(Batch((None, X[:3]), LABELS), 'have 3 rows'),
      labels=(Batch((None, X), LABELS[:, :1]), 'two or more classes'),
      none=(Batch((None, X[:0]), LABELS[:0]), 'there are none'),
      pixels=(Batch((None, 255 * X), LABELS), r'pixels in \[0, 1\]'),
      width=(TOP.auxiliary, r'embeddings are \(5, 1\)'),
  )[name]
  received = TOP.received[:, :1] if name == 'width' else TOP.received
  view = TOP._replace(auxiliary=auxiliary, received=received)
  attack = attacks.model_inversion(FEDERATION, BOTTOM, INVERSION)
  with pytest.raises(ValueError, match=why):
    attack.run(KEY, view)


@pytest.mark.parametrize('name', ['constant_image', 'mean_image'])
def test_a_mean_of_no_images_is_refused(name):
  """It would be NaN everywhere."""
  nothing = TOP._replace(auxiliary=Batch((None, X[:0]), LABELS[:0]))
  with pytest.raises(ValueError, match=f'{name} needs auxiliary samples'):
    attacks.REGISTRY[name]().run(KEY, nothing)


@pytest.mark.parametrize('name, value', [
    ('output_rate', -1.0), ('input_rate', 0.0), ('sample_rate', np.nan),
    ('inputs', -1.0), ('gradients', -1.0), ('variation', -1.0),
    ('smooth', np.nan),
])
def test_cafe_searches_downhill(name, value):
  with pytest.raises(ValueError, match=f'cafe: {name} must be a number'):
    attacks.cafe(LAYER, Recovery(2)._replace(**{name: value}))


@pytest.mark.parametrize('wrong, why', [
    (dict(rows=WHITE.rows + 1), r'whole number in \[0, 4\]'),
    (dict(rows=WHITE.rows - 1), r'whole number in \[0, 4\]'),
    (dict(rows=WHITE.rows[:1]), 'of as many rounds'),
    (dict(rows=WHITE.rows[0]), 'of as many rounds'),
    (dict(blank=np.zeros((5, 4), np.uint8)), 'the pool has uint8'),
])
def test_rounds_are_of_the_pool(wrong, why):
  """Of a sample outside of it JAX would take the last one."""
  with pytest.raises(ValueError, match=why):
    attacks.cafe(LAYER, Recovery(2)).run(KEY, WHITE._replace(**wrong))


@pytest.mark.parametrize('party', [0, 2, -1])
def test_nobody_attacks_a_party_that_is_not_passive(party):
  """Party 0 would be the attacker itself."""
  state = protocol.init(
      KEY, FEDERATION, none(), (optax.sgd(0.1),) * 2, TOP.auxiliary
  )
  data = TOP.auxiliary
  finished = views.Finished(
      FEDERATION, none(), state, data, data, 2, data, data
  )
  for kind in (views.TrainedTop, views.TrainedBottom):
    with pytest.raises(ValueError, match='Passive parties are 1 to 1'):
      views.after_training(kind, KEY, party, finished)
  with pytest.raises(ValueError, match='Passive parties are 1 to 1'):
    first_linear(None, FEDERATION, party=party)


@pytest.mark.parametrize('wrong', [
    dict(gradients=np.stack([W, W])),  # Of two rounds.
    dict(gradients=W[:, :1]), dict(valid=np.ones(1)),
])
def test_gradients_are_of_one_round_of_all_weights(wrong):
  view = views.ModelGradients(X, W, W, np.ones(KNOWN))._replace(**wrong)
  attack = attacks.gradient_inversion(BOTTOM, CLASSES, Search(1, 1))
  with pytest.raises(ValueError, match='one round|must be .batch.'):
    attack.run(KEY, view)


@pytest.mark.parametrize('classes', [2, 3])
def test_padding_is_no_sample_of_the_first_class(classes):
  """All guesses are right, but for those at rows without a label."""
  truth = np.eye(classes, dtype='f4')[np.arange(6) % classes]
  labels = jnp.asarray(np.concatenate([truth, np.zeros((4, classes))]))
  scores = np.concatenate([truth, np.eye(classes)[[1] * 4]])
  found = measure.of_labels(
      measure.Guessed(jnp.asarray(scores), labels, jnp.ones(10))
  )
  assert set(map(float, found.values())) == {1.0}


@pytest.mark.parametrize('labels', [[1, 2, 3], [-1, 0, 1], [0, 0.5, 1]])
def test_class_numbers_are_of_logits(labels):
  """Of a class that no logit has, no guess is right."""
  logits, labels = np.eye(3), np.array(labels)
  for measured in (metrics.accuracy, lambda *x: metrics.top_k(*x[:2], 2)):
    with pytest.raises(ValueError, match='class numbers must be a whole num'):
      measured(logits, labels)
  left_out = np.array([0.0, 1, 0])
  if labels[1] == 0:
    assert float(metrics.accuracy(logits[[0, 0, 0]], labels, left_out)) == 1


def test_class_numbers_may_be_closed_over():
  """In a program JAX would trace what is done with them."""
  labels, weights = jnp.arange(3), jnp.array([1.0, 0, 1])
  measured = jax.jit(lambda z: metrics.accuracy(z, labels, weights))
  assert float(measured(jnp.eye(3))) == 1


def test_images_are_measured_between_0_and_1():
  image = jnp.asarray(RNG.random((1, 7, 7, 1), np.float32))
  assert float(measure.of_images(image, image)['ssim']) > 0.999
  close = image / image.max() + 1e-4
  assert float(measure.of_images(close, close)['ssim']) > 0.999
  jax.jit(lambda x: measure.of_images(x, image))(image)
  for wrong in (image + 0.5, image - 0.9, image * jnp.nan):
    for measured in (measure.of_images, of_cafe):
      with pytest.raises(ValueError, match=r'must be pixels in \[0, 1\]'):
        measured(image, wrong)


def test_a_network_takes_no_rows_for_what_they_are():
  """A guess at no samples is empty."""
  net = nets.mlp(2)
  weights = net.init(KEY, X)
  assert net.apply(weights, X[:0]).shape == (0, 2)
  found = attacks.model_completion(net, None).run(
      KEY, views.TrainedBottom(weights, X[:0], LABELS[:0], X)
  )
  assert found.shape == (1, KNOWN, 2)
  with pytest.raises(ValueError, match='one or more known samples'):
    attacks.model_completion(net, nets.mlp(3), SHORT).run(
        KEY, views.TrainedBottom(weights, X[:0], LABELS[:0], X)
    )


def test_a_layer_is_of_the_party_that_is_attacked():
  """Behind a bottleneck CAFE starts from what that party's network sends."""
  encoder, decoder = bottleneck.bottleneck(CLASSES, hidden=0)
  u = jnp.zeros((1, CLASSES))
  own = bottleneck.Bottleneck(
      decoder.init(KEY, u), encoder.init(jax.random.key(1), u)
  )
  tripled = Net(BOTTOM.init, lambda w, x: 3 * (x @ w))
  vfl = FEDERATION._replace(bottoms=(None, BOTTOM, tripled))
  weights = dict(bottom=jnp.asarray(W), defense=own)
  alone = FEDERATION._replace(bottoms=(None, tripled))
  expected = first_linear(None, alone).around(weights, X)
  found = first_linear(None, vfl, party=2).around(weights, X)
  jax.tree.map(np.testing.assert_array_equal, found, expected)
  other = first_linear(None, vfl).around(weights, X)[0]
  assert np.abs(np.asarray(other) - found[0]).max() > 1e-3
  defense = mid(1.0, 'passive', hidden=0, parties=(1, 2))
  penalties = [
      float(first_linear(None, *given).penalty(weights, X))
      for given in ((vfl, defense, 2), (alone, defense), (vfl, defense))
  ]
  assert penalties[0] == penalties[1] != penalties[2]
