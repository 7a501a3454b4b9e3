"""What a script of one's own measures, solves or shares wrongly is said.

Each row is a call and what its ValueError says, as in `test_misuse`.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import (
    algorithms, check, club, measure, metrics, nets, sampling, train,
)
from vfljax.attack import Attack
from vfljax.defense import none
from vfljax.defenses import marvell
from vfljax.mpc import fixed_point, ring, sharing
from vfljax.types import Batch
from vfljax.views import CutGradients

KEY = jax.random.key(0)
ONES = np.ones(6, np.float32)
X = np.ones((6, 3), np.float32)
Y = np.eye(2, dtype=np.float32)[[0, 1] * 3]
IMAGE = np.ones((9, 9), np.float32)
CODES = np.ones((1, 5, 5, 2), np.int64)
KERNEL = np.ones((2, 2, 2, 3), np.int64)


def watched(guess, facts=lambda view: {}):
  """A round of 6 with embeddings of 2, and an attack of one's own."""
  attack = Attack(CutGradients, lambda key, view: guess(view), facts)
  vfl = algorithms.vhnn([nets.mlp(3)] * 2, nets.mlp(2))
  watch, _ = measure.watcher(dict(mine=attack), none())
  plan = train.Plan(vfl, none(), [optax.sgd(0.1)] * 2, 1, 6, watch=watch)
  data = Batch((X, X), Y)  # pyright: ignore
  jax.eval_shape(lambda: train.advance(
      plan, train.start(KEY, plan, data), data, 0, 1
  ))


def solve(**changed):
  own = dict(u=1.0, v=2.0, d=3, g=1.0, p=0.4, power=1.0) | changed
  return marvell.solve(**own)


MISUSES = {
    'labels in a column': (
        lambda: metrics.accuracy(Y, Y[:, :1]), r'got \(6, 1\)'
    ),
    'scores in a column': (
        lambda: metrics.roc_auc(Y[:, :1], Y[:, 0]), r'scores \(6, 1\)'
    ),
    'labels of three': (
        lambda: metrics.roc_auc(Y[:, 0], Y[:3, 0]), r'labels \(3,\)'
    ),
    'weights in a column': (
        lambda: metrics.leak_auc(Y[:, 0], Y[:, 1], ONES[:, None]), 'weights'
    ),
    'half a rank': (lambda: metrics.top_k(Y, Y, 1.5), 'k must be'),
    'a window of one': (
        lambda: metrics.ssim(IMAGE, IMAGE, window=1), 'window must be'
    ),
    'a range of 0': (lambda: metrics.psnr(IMAGE, IMAGE, 0), 'data_range'),
    'names of classes': (
        lambda: metrics.accuracy(Y, np.array(['a', 'b'] * 3)),
        'array of <U1. Names of classes become .*searchsorted.classes',
    ),
    'names in a list as scores': (
        lambda: metrics.roc_auc(['u', 'v'], [0, 1]), 'array of <U1. Names'
    ),
    'dates as labels': (
        lambda: metrics.accuracy(Y, np.zeros(6, 'M8[D]')),
        r'array of datetime64.D.\.$',
    ),
    'names as scores': (
        lambda: metrics.roc_auc(np.array(['u', 'v']), [0, 1]), 'are needed'
    ),
    'a weight below 0': (
        lambda: metrics.accuracy(Y, Y, -ONES), 'A weight must be .* at least 0'
    ),
    'distances of nobody': (
        lambda: metrics.distance_correlation(X[:0], X[:0]), '0 samples'
    ),
    'a guess at something else': (
        lambda: watched(lambda v: v.received), 'mine must return scores'
    ),
    'a guess at some': (lambda: watched(lambda v: Y[1:]), r'returned \(5, 2'),
    'no guess': (lambda: watched(lambda v: None), 'returned NoneType'),
    'complex scores': (
        lambda: watched(lambda v: Y + 0j), r'returned \(6, 2\) complex'
    ),
    'facts of each sample': (
        lambda: watched(lambda v: Y, lambda v: dict(sure=ONES)),
        r"mine: its fact 'sure' has the shape \(6,\)",
    ),
    'facts without names': (
        lambda: watched(lambda v: Y, lambda v: 0.5), 'mine: facts must return'
    ),
    'no stages': (lambda: measure.of_completion(X, Y), r'\(stages, 6'),
    'no completion': (
        lambda: measure.of_completion(None, Y), 'it is NoneType'
    ),
    'a complex completion': (
        lambda: measure.of_completion(Y[None] + 0j, Y), r'it is .* complex'
    ),
    'no images': (
        lambda: measure.of_images(None, IMAGE[None, ..., None]),
        'the guess NoneType',
    ),
    'a guess at other samples': (
        lambda: measure.of_completion(Y[None, 1:], Y), r'it is \(1, 5, 2\)'
    ),
    'how positive of three': (
        lambda: measure.check_guess('mine', Y[:, 0], np.eye(3)[[0, 1, 2] * 2]),
        r'scores of shape \(6, 3\) for .* jax.nn.one_hot\(guess, 3\)',
    ),
    'a table as an image': (
        lambda: measure.of_images(np.ones((9, 9)), np.ones((9, 9))),
        'measured as images, .* give the recipe measure=',
    ),
    'a guess at other images': (
        lambda: measure.of_images(IMAGE[None, ..., None], IMAGE[None, None]),
        'measured as images',
    ),
    # Marvell's problem.
    'a variance below 0': (lambda: solve(u=-1), 'solve: u'),
    'no width': (lambda: solve(d=0), 'solve: d'),
    'no positives': (lambda: solve(p=0), 'solve: p'),
    'a power that is none': (lambda: solve(power=np.nan), 'solve: power'),
    # Shares.
    'half a bit': (lambda: fixed_point.encode(X, 23.5), 'fraction bits'),
    'a bound of 0': (lambda: fixed_point.encode(X, 24, 0.0), 'bound must be'),
    'a bound below it': (lambda: fixed_point.encode(X, 24, -1.0), 'bound must'),
    'no bound': (lambda: fixed_point.encode(X, 24, np.nan), 'bound must be'),
    'shares of nobody': (lambda: sharing.reconstruct(CODES[:0]), 'got none'),
    'shares of two values': (
        lambda: sharing.reconstruct([CODES, CODES[0]]), 'its shape'
    ),
    'half a party': (lambda: sharing.share(KEY, CODES, 2.5), 'parties'),
    'padding by no name': (
        lambda: ring.conv(CODES, KERNEL, padding='same'), "one of 'SAME'"
    ),
    'half a stride': (lambda: ring.conv(CODES, KERNEL, 1.5), 'conv: strides'),
}


@pytest.mark.parametrize('misuse', MISUSES)
def test_misuse_is_refused(misuse):
  call, message = MISUSES[misuse]
  with pytest.raises(ValueError, match=message):
    call()


def test_what_is_complex_is_no_real_number():
  for x in (1j * X, jnp.asarray(1j * X)):
    with pytest.raises(TypeError, match='must be real; got complex64'):
      fixed_point.encode(x)


def test_information_of_numpys_arrays():
  log_q = lambda h, y: -((h - y) ** 2).sum(-1)
  x = np.arange(6.0, dtype=np.float32)[:, None]
  np.testing.assert_allclose(club.upper_bound(log_q, x, x), 35 / 6, rtol=1e-6)


def test_one_hot_labels_may_be_whole_numbers():
  rows, labels = sampling.per_class(KEY, jnp.asarray(Y, jnp.int32), 2)
  assert labels.dtype == jnp.float32
  np.testing.assert_array_equal(labels, Y[rows])


def test_no_attacker_errs_less_than_never():
  found = marvell.error_lower_bound(np.array([0.0, 1.0, 4.0, 9.0, np.inf]))
  np.testing.assert_allclose(found, [0.5, 0.25, 0, 0, 0])


@pytest.mark.parametrize('value, said', [
    (3, 'an int'), ([], 'a list'), (None, 'None'), (nets.mlp(2), 'a Net'),
    (np.ones(2), 'a NumPy array'), (jnp.ones(2), 'an array'),
])
def test_what_a_message_calls_a_value(value, said):
  assert check.kind(value) == said
