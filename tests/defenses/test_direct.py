"""Defenses called from Python, on arrays and numbers as somebody has them.

NumPy's arrays, whole numbers, half precision, several arrays of a party, and
strengths that are several.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, club, defenses, metrics, nets, protocol
from vfljax.completion import Schedule
from vfljax.defenses import (
    dcor, discrete_sgd, dp_gaussian, dp_weights, gan, gradient_compression, kdk,
    label_dp, mid, mixup, multi_head, plugvfl, shadow,
)
from vfljax.types import Batch, Net

KEY = jax.random.key(5)
SEED = np.random.default_rng(0)
ODD = 601  # Rows, of which there is no count in bfloat16.
CLASSES = SEED.integers(0, 2, ODD)
FULL = np.eye(2, dtype=np.float32)[CLASSES]
HALF = jnp.asarray(FULL, jnp.bfloat16)
D = SEED.normal(size=(ODD, 3)).astype(np.float32)
ONE_STRENGTH = [n for n, m in defenses.REGISTRY.items() if m.strengths]


def test_noise_on_whole_numbers_is_not_rounded():
  """A gradient of whole numbers got no noise below 0.5, or a whole one."""
  cut, labels = np.arange(8).reshape(4, 2), np.eye(2)[[0, 1, 1, 0]]
  hook = dp_gaussian.dp_gaussian(0.1, None).gradient
  of = lambda cut: hook((), KEY, (cut,), labels)[0][0]
  found = of(cut)
  assert found.dtype == jnp.float32
  np.testing.assert_array_equal(found, of(cut.astype(np.float32)))


def test_a_residual_of_whole_numbers_is_not_rounded():
  residual = gradient_compression.gradient_compression(0.5, residual=True)
  kept = (np.full((2, 2), 0.25, np.float32),)
  cut = (np.array([[1, -5], [9, 2]]),)
  sent, left = residual.gradient(kept, KEY, cut, np.eye(2))
  np.testing.assert_array_equal(sent[0], [[0, -4.75], [9.25, 0]])
  np.testing.assert_array_equal(left[0], [[1.25, 0], [0, 2.25]])


@pytest.mark.parametrize('name', ONE_STRENGTH)
def test_several_strengths_are_not_one(name):
  """They were stretched over a gradient's, or the labels', columns."""
  method = defenses.REGISTRY[name]
  with pytest.raises(ValueError, match=r'got several, of shape \(2,\)'):
    method(np.asarray(method.strengths[:2]))


@pytest.mark.parametrize('kind', [jnp.bfloat16, jnp.float16])
def test_responses_to_labels_in_half_precision_are_those_in_full(kind):
  """For epsilon 6 a label was flipped in 0.17 % of cases, and not in 0.25 %."""
  labels = np.tile(np.eye(3, dtype=np.float32)[1:], (500, 1))
  flip = jax.jit(label_dp.flip)
  found = flip(KEY, jnp.asarray(labels, kind), 3.0)
  assert found.dtype == kind
  np.testing.assert_array_equal(
      found.astype(jnp.float32), flip(KEY, labels, 3.0)
  )


def test_negatives_of_half_weights_are_as_likely_as_others():
  """Equal draws were many, and of those the first row was taken."""
  rows, even = jnp.arange(ODD), jnp.ones(ODD)
  draw = jax.jit(club.negatives)
  np.testing.assert_array_equal(
      draw(KEY, rows, even.astype(jnp.bfloat16)), draw(KEY, rows, even)
  )


def test_noise_on_half_weights_has_tails():
  gradients = dict(bottom=jnp.zeros(20000, jnp.bfloat16))
  found = dp_weights.dp_weights(1.0).share(KEY, gradients)['bottom']
  assert found.dtype == jnp.bfloat16
  assert np.abs(found.astype(jnp.float32)).max() > 3.5


def summed(labels):
  """The loss of multi-head training with logits that are the embedding."""
  predict = lambda us: (jnp.zeros((1, 1)) if us[0] is None else us[0])
  objective = multi_head.multi_head().objective
  return objective((), KEY, predict, (D[:, :2],), labels)


def counted(labels):
  """PlugVFL's counts of classes after a round."""
  defense = plugvfl.plugvfl(0.5, psi_hidden=())
  psi = nets.mlp(2).init(KEY, D[:1])
  state = dict(psi=(psi,), counts=jnp.zeros(2))
  return defense.adapt(state, KEY, None, (D,), labels)['counts']


COUNTS = dict(
    compressed=lambda labels: gradient_compression.compress(
        D, 0.5, weights=labels.sum(-1)
    ),
    discrete=lambda labels: discrete_sgd.discretize(
        D, 6, weights=labels.sum(-1)
    ),
    divergence=lambda labels: mid.divergence(D, D, labels.sum(-1)),
    gans=lambda labels: gan.mean(D[:, 0] + 1, labels.sum(-1)),
    learned=lambda labels: club.learning_loss(
        club.log_categorical, D[:, :2], labels, labels.sum(-1)
    ),
    summed=summed, counted=counted,
)


@pytest.mark.parametrize('name', COUNTS)
def test_labels_in_half_precision_count_all_rows(name):
  """In bfloat16 there is no 601."""
  of = jax.jit(lambda full, half: (COUNTS[name](full), COUNTS[name](half)))
  for a, b in zip(*map(jax.tree.leaves, of(FULL, HALF)), strict=True):
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_numpys_samples_are_mixed_inside_a_users_program():
  batch = Batch((None, D), FULL)
  mix = mixup.mixup(2).batch
  inside = jax.jit(lambda key: mix(key, batch))(KEY)
  outside = jax.jit(mix)(KEY, batch)
  np.testing.assert_array_equal(inside.features[1], outside.features[1])


def test_negatives_are_rows_of_numpys_labels_too():
  """PlugVFL's of the batch ended its training on NumPy's samples."""
  inside = jax.jit(lambda key: club.negatives(key, FULL, FULL.sum(-1)))
  outside = jax.jit(club.negatives)(KEY, FULL, FULL.sum(-1))
  np.testing.assert_array_equal(inside(KEY), outside)


def test_several_arrays_of_a_party_are_mixed_alike():
  parts = dict(a=D[:, :1], b=D[:, 1:])
  whole, apart = jax.jit(lambda: [
      mixup.mixup(2).batch(KEY, Batch((None, x), FULL)) for x in (D, parts)
  ])()
  both = np.concatenate([apart.features[1]['a'], apart.features[1]['b']], 1)
  np.testing.assert_array_equal(both, whole.features[1])


def test_a_teacher_learns_from_numpys_arrays_and_from_several():
  labels = np.eye(3, dtype=np.float32)[SEED.integers(0, 3, 24)]
  prepare = kdk.kdk(0.3, 2, hidden=(), epochs=2, batch_size=12).prepare
  expected = jax.jit(prepare)(KEY, D[:24], labels)
  parts = dict(a=D[:24, :1], b=D[:24, 1:])
  np.testing.assert_array_equal(prepare(KEY, D[:24], labels), expected)
  np.testing.assert_array_equal(prepare(KEY, parts, labels), expected)


def test_the_likeliest_class_of_a_soft_label_is_the_true_one():
  """Every class of it counted as true, and the first ones as rivals."""
  labels, teacher = np.array([[0.6, 0.3, 0.1, 0]]), np.array([[4.0, 1, 3, 2]])
  found = kdk.soften(teacher, labels, 3, 0.2)
  np.testing.assert_allclose(found, [[0.48, 0.24, 0.18, 0.1]], rtol=1e-6)


def test_embeddings_are_decorrelated_from_all_arrays_of_a_party():
  """NoPeek's penalty is of the party's features, here of two arrays."""
  x = dict(a=D[:9, :1], b=D[:9, 1:])
  flat = lambda x: jnp.concatenate([x['a'], x['b']], 1)
  own = lambda w, x: flat(x) @ w
  net = Net(lambda key, x: jnp.ones((3, 2)), own)
  vfl = algorithms.vsnn([net], nets.mlp(2))
  data = Batch((None, x), FULL[:9])
  txs = (optax.sgd(0.1),) * 2

  @jax.jit
  def slope(weight):
    defense = dcor.dcor(weight, 'passive', log=False)
    state = protocol.init(KEY, vfl, defense, txs, data)
    w = jnp.asarray(D[9:12, :2])
    passive = state.parties[1]._replace(
        params=state.parties[1].params | dict(bottom=w)
    )
    state = state._replace(parties=(state.parties[0], passive))
    return protocol.play_round(KEY, vfl, defense, txs, state, data)[
        1
    ].gradients[0]

  term = lambda w: metrics.distance_correlation(own(w, x), D[:9])
  expected = jax.jit(jax.grad(term))(D[9:12, :2])
  np.testing.assert_allclose(slope(1.0) - slope(0.0), expected, atol=1e-6)


@pytest.mark.parametrize('make', [
    lambda widths: kdk.kdk(0.4, hidden=widths),
    lambda widths: plugvfl.plugvfl(0.1, psi_hidden=widths),
    lambda widths: gan.networks(widths), lambda widths: gan.networks((), widths)
])
@pytest.mark.parametrize('widths', [64, '64', '', (4, 0), np.float32(3)])
def test_widths_are_listed(make, widths):
  """A number was not iterable, somewhere, when training started."""
  with pytest.raises(ValueError, match='tuple of widths|an integer of at'):
    make(widths)
  make(())
  make([3, 4])


def test_a_shadow_may_read_several_arrays():
  """Where a passive party has several, its network reads them together."""
  net, x = nets.mlp(3), D[:12]
  two = net._replace(apply=lambda w, x: net.apply(w, jnp.concatenate(x, 1)))
  who = shadow.Attacker(Schedule(1, 2, 1, 0.3, 'sgd'), 1, ())
  labels, weights = FULL[:12], net.init(KEY, x)
  known = shadow.known_samples(KEY, who, labels)
  leak = lambda net, x: shadow.leakage(
      KEY, who, net, weights, np.zeros(1, bool), x, labels, known
  )
  found = jax.jit(lambda: [leak(net, x), leak(two, (x[:, :1], x[:, 1:]))])()
  assert found[0] == found[1]
