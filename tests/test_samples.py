"""Samples that make no sense are refused before anything is trained on them."""
import jax
from jax.experimental.sparse import BCOO
import numpy as np
import optax
import pandas as pd
import pytest
import scipy.sparse

from vfljax import algorithms, nets, samples, stream, sweep, train
from vfljax.defense import none
from vfljax.types import Batch

ROWS = 12
VFL = algorithms.vhnn([nets.mlp(2)] * 2, nets.binary(nets.mlp(1)))
PLAN = train.Plan(VFL, none(), (optax.sgd(0.1),) * 2, 1, 4)


def batch(rows=(ROWS, ROWS), labels=None):
  """NumPy's, as a user has them; nothing is compiled to make them."""
  draw = np.random.default_rng(0)
  features = tuple(draw.normal(size=(n, 3)).astype('float32') for n in rows)
  if labels is None:
    labels = np.eye(2, dtype='float32')[np.arange(ROWS) % 2]
  return Batch(features, labels)  # pyright: ignore


def spoiled(part, value=np.nan):
  """A batch with one number of `part` that is none."""
  data = batch()
  where = data.labels if part == 'labels' else data.features[part]
  where[5, 1] = value
  return data


def begin(data):
  return train.start(jax.random.key(0), PLAN, data)


def traced(data):
  jax.eval_shape(begin, data)


def streamed(data):
  return stream.fit(jax.random.key(0), PLAN, data, 2)


def swept(data):
  return sweep.sweep(lambda key, s, data: s, 1, [0.0], data)


ENTRIES = [begin, traced, streamed, swept]
MISFITS = {
    '256 and 200 rows': (batch((ROWS, 9)), 'party 1 have 9 rows, the'),
    'an active party': (batch((9, ROWS)), 'party 0 have 9 rows'),
    'class numbers': (batch(labels=np.arange(ROWS) % 2), 'one_hot'),
    'one column': (batch(labels=np.ones((ROWS, 1), 'float32')), 'one_hot'),
    'three axes': (batch(labels=np.ones((ROWS, 1, 2), 'float32')), 'one_hot'),
    'whole': (batch(labels=np.eye(2, dtype=int)[[0, 1] * 6]), 'astype'),
    'one array': (
        batch()._replace(features=np.zeros((2, ROWS, 3), 'float32')),
        'a tuple with those of each party; got a',
    ),
}


@pytest.mark.parametrize('entry', ENTRIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize('misfit', MISFITS)
def test_parts_that_do_not_fit_are_refused(misfit, entry):
  data, message = MISFITS[misfit]
  with pytest.raises(ValueError, match=message):
    entry(data)


@pytest.mark.parametrize('data, what', [
    (spoiled(1), 'features of party 1 have 1 numbers that are NaN'),
    (spoiled(0, -np.inf), 'features of party 0'),
    (spoiled('labels'), 'labels'),
])
@pytest.mark.parametrize(
    'entry', [begin, streamed, swept, lambda data: begin(jax.device_put(data))]
)
def test_numbers_that_are_none_are_refused(data, what, entry):
  with pytest.raises(ValueError, match=what):
    entry(data)


@pytest.mark.parametrize('value, kind, said', [
    (2**40, 'int64', '36 numbers, of 36, too large for int32'),
    (2**33, 'uint64', 'too large for uint32'), (-(2**40), 'int64', 'int32'),
    (1e300, 'float64', 'too large for float32'),
])
def test_numbers_that_jax_would_change_are_refused(value, kind, said):
  """It would take an id of 41 bits for its last 32."""
  odd = np.full((ROWS, 3), value, kind)
  data = batch()._replace(features=(batch().features[0], odd))
  with pytest.raises(ValueError, match=f'party 1 have .*{said}'):
    begin(data)
  small = data._replace(features=(odd // value, batch().features[1]))
  samples.check_numbers(small)
  with jax.enable_x64(True):
    samples.check_numbers(data)


@pytest.mark.parametrize('odd_one', [-(2**40), 2**40])
def test_of_many_whole_numbers_the_ends_are_looked_at(odd_one, monkeypatch):
  monkeypatch.setattr(samples, 'LOOKED_AT', 4)
  odd = np.zeros((ROWS, 3), np.int64)
  data = batch()._replace(features=(batch().features[0], odd))
  samples.check_numbers(data)
  odd[-1, -1] = odd_one
  with pytest.raises(ValueError, match='1 numbers, of 36, too large for int32'):
    samples.check_numbers(data)
  far = batch()._replace(features=(batch().features[0], odd * 1e100))
  samples.check_numbers(far)  # Of many floats nothing is read.


def test_numpys_numbers_are_looked_at_inside_jit_too():
  with pytest.raises(ValueError, match='NaN'):
    jax.eval_shape(
        lambda key: train.start(key, PLAN, spoiled(1)), jax.random.key(0)
    )


def test_a_trace_waits_for_no_device(monkeypatch):
  data = jax.device_put(spoiled(1))
  monkeypatch.setattr(samples.jax, 'device_get', pytest.fail)
  jax.eval_shape(lambda key: train.start(key, PLAN, data), jax.random.key(0))


def test_large_arrays_are_not_read(monkeypatch):
  monkeypatch.setattr(samples, 'LOOKED_AT', 5)
  samples.check_numbers(spoiled(1))


def test_mapped_files_are_not_read(tmp_path):
  """Which may be larger than memory, whatever is in them."""
  np.save(tmp_path / 'x.npy', np.full((ROWS, 3), np.nan, 'float32'))
  mapped = np.load(tmp_path / 'x.npy', mmap_mode='r')
  samples.check_numbers(batch()._replace(features=(mapped, mapped)))


def test_auxiliary_samples_are_checked():
  for wrong in batch((ROWS, 3)), spoiled(1):
    plan = PLAN._replace(auxiliary=wrong)
    with pytest.raises(ValueError, match='auxiliary features of party 1'):
      train.start(jax.random.key(0), plan, batch())


@pytest.mark.parametrize('odd', [
    [1.0] * ROWS, np.array(['a'] * ROWS), np.array([None] * ROWS),
    np.float32(1), pd.Series([1.0] * ROWS), np.zeros((ROWS, 2), '>f4'),
    np.ma.zeros((ROWS, 2)),
])
def test_features_are_arrays_of_numbers(odd):
  data = batch()._replace(features=(batch().features[0], odd))
  with pytest.raises(ValueError, match='features of party 1'):
    samples.check(data)


@pytest.mark.parametrize('sparse, how', [
    (scipy.sparse.csr_matrix, 'toarray'),  # todense() makes an np.matrix.
    (lambda x: BCOO((x[:1, 0], np.int32([[0, 0]])), shape=x.shape), 'todense'),
], ids=['scipy', 'jax'])
def test_sparse_features_are_told_what_to_become(sparse, how):
  """JAX's are pytrees, whose numbers were taken for a sample each."""
  data = batch()
  own = data.features[0], sparse(data.features[1])
  with pytest.raises(ValueError, match=f'party 1 .* which {how}.. makes one'):
    samples.check(data._replace(features=own))


def test_a_party_without_columns_is_none():
  """It would send its bias; next to other arrays an empty one is fine."""
  data, empty = batch(), np.zeros((ROWS, 0), 'float32')
  own = dict(numbers=empty, words=data.features[1])
  samples.check(data._replace(features=(data.features[0], own)))
  for odd in empty, dict(numbers=empty):
    with pytest.raises(ValueError, match='of party 1 have no columns'):
      samples.check(data._replace(features=(data.features[0], odd)))


def test_what_fits_passes():
  data = batch()
  own = dict(words=np.zeros((ROWS, 4), 'int32'), picture=data.features[0])
  for features in [(None, data.features[1]), (data.features[0], own)]:
    fine = data._replace(features=features)
    samples.check(fine)
    samples.check_numbers(fine)


def test_a_guard_on_transfers_lets_constants_pass_and_samples_not():
  """Outside of jit even `jnp.zeros` copies a number to the device."""
  data, key = jax.device_put(batch()), jax.random.key(0)
  with jax.transfer_guard('disallow'):
    run = train.start(key, PLAN, data)
    jax.block_until_ready(train.finish(run))
    with pytest.raises(Exception, match='Disallowed host-to-device'):
      train.start(key, PLAN, batch())


def test_fit_runs_under_a_guard_on_transfers():
  data, key = jax.device_put(batch()), jax.random.key(0)
  with jax.transfer_guard('disallow'):
    _, history = train.fit(
        key, VFL, none(), PLAN.txs, data, epochs=1, batch_size=ROWS
    )
  assert np.isfinite(history['loss']).all()


def test_a_sweep_of_nothing_is_refused():
  for seeds, strengths in [(0, [1.0]), (1, [])]:
    with pytest.raises(ValueError, match='a seed and a strength'):
      sweep.sweep(lambda key, s: s, seeds, strengths)
