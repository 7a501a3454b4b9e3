"""Seeds and strengths in one program: the same numbers, however they run."""
import gc
import weakref

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np
import pytest

from tests.devices import of_a_cpu
from vfljax import sweep


def run(key, strength):
  """A toy training: a random walk scaled by the strength."""
  step = lambda x, k: (x + strength * jax.random.normal(k, (3,)), x.sum())
  end, path = jax.lax.scan(step, jnp.zeros(3), jax.random.split(key, 4))
  return dict(end=end, path=path)


STRENGTHS = (0.5, 2.0, 0.0)


@pytest.fixture(scope='module')
def expected():
  keys = [jax.random.key(seed) for seed in range(5)]
  one = jax.jit(run)
  rows = [[one(key, s) for key in keys] for s in STRENGTHS]
  return {
      name: np.array([[cell[name] for cell in row] for row in rows])
      for name in ('end', 'path')
  }


@pytest.mark.parametrize('options', [
    dict(), dict(loop=False), dict(cells_per_chunk=4), dict(cells_per_chunk=1),
    dict(devices=1), dict(devices=1, loop=False, cells_per_chunk=7),
])
def test_equals_one_run_after_another(options, expected):
  if 'devices' in options:
    options = options | dict(devices=jax.devices()[: options['devices']])
  found = sweep.sweep(run, 5, STRENGTHS, **options)
  assert found['end'].shape == (3, 5, 3) and found['path'].shape == (3, 5, 4)
  for name, value in found.items():
    np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6)


def test_looping_gives_the_same_bits_whatever_the_chunks():
  whole = sweep.sweep(run, 5, STRENGTHS)
  parts = sweep.sweep(run, 5, STRENGTHS, cells_per_chunk=2)
  one = sweep.sweep(run, 5, STRENGTHS, devices=jax.devices()[:1])
  for other in (parts, one):
    np.testing.assert_array_equal(whole['path'], other['path'])


@pytest.mark.parametrize('options', [
    dict(), dict(loop=False), dict(devices=1), dict(devices=1, loop=False),
])
def test_runs_go_on_as_cells_do_each_in_its_place(options):
  """With their own cells; what comes out beside them is in their order."""
  if 'devices' in options:
    options = options | dict(devices=jax.devices()[: options['devices']])

  def play(run, cell, shared):
    key, _ = jax.random.split(run['key'])
    moved = dict(at=run['at'] * shared + cell, key=key)
    return moved, run['at'].sum() - cell

  count = 4
  runs = dict(
      at=jnp.arange(2.0 * count).reshape(count, 2),
      key=jax.random.split(jax.random.key(0), count),
  )
  cells = 10 * jnp.arange(float(count))
  spread, shared = sweep.place(
      (runs, cells), jnp.array(3.0), options.get('devices')
  )
  found, rows = jax.jit(sweep.over_runs(play, **options))(*spread, shared)
  for i in range(count):
    own = jax.tree.map(lambda x, i=i: x[i], runs)
    moved, row = play(own, cells[i], 3.0)
    np.testing.assert_array_equal(found['at'][i], moved['at'])
    assert found['key'][i] == moved['key']
    assert rows[i] == row


@of_a_cpu  # Of which tests have two.
def test_all_devices_share_the_work():
  cells = jnp.arange(4.0)
  doubled = jax.jit(sweep.over_cells(lambda cell, shared: cell * shared))
  out = doubled(*sweep.place(cells, jnp.array(2.0)))
  np.testing.assert_array_equal(out, [0, 2, 4, 6])
  assert len(jax.devices()) > 1
  assert out.sharding.device_set == set(jax.devices())


def test_one_compilation_for_all_seeds_and_strengths():
  traces = []

  def counted(key, strength):
    traces.append(1)
    return run(key, strength)

  sweep.sweep(counted, 5, STRENGTHS, cells_per_chunk=4)
  assert len(traces) == 1


def counting(traces):
  """A training that says when it is traced."""
  def counted(key, strength, data=1.0):
    traces.append(1)
    return data * strength + jax.random.normal(key)

  return counted


def test_the_same_function_is_compiled_once_for_all_calls():
  traces = []
  counted = counting(traces)
  first = sweep.sweep(counted, 3, STRENGTHS)
  again = sweep.sweep(counted, [5, 6, 7], STRENGTHS)
  assert len(traces) == 1
  assert not np.array_equal(first, again)
  np.testing.assert_array_equal(sweep.sweep(counted, 3, STRENGTHS), first)


@pytest.mark.parametrize('other', [
    dict(loop=False), dict(seeds=5), dict(data=2.0),
    pytest.param(dict(devices=1), marks=of_a_cpu),  # Of which tests have two.
])
def test_what_makes_another_program_is_compiled(other):
  traces = []
  counted = counting(traces)
  sweep.sweep(counted, 3, STRENGTHS, loop=True)
  options = dict(seeds=3, loop=True) | other
  if 'devices' in options:
    options['devices'] = jax.devices()[: options['devices']]
  found = sweep.sweep(counted, options.pop('seeds'), STRENGTHS, **options)
  assert len(traces) == 2
  key = jax.random.key(1)
  expected = options.get('data', 1.0) * 2.0 + jax.random.normal(key)
  np.testing.assert_allclose(found[1, 1], expected, rtol=1e-6)


@pytest.mark.slow
def test_a_function_that_nobody_holds_is_not_kept():
  counted = counting([])
  alive = weakref.ref(counted)
  sweep.sweep(counted, 3, STRENGTHS)
  del counted
  gc.collect()
  assert alive() is None


class Unhashable:
  __hash__ = None

  def __call__(self, key, strength):
    return strength


class Method:
  def run(self, key, strength):
    return strength


@pytest.mark.parametrize('function', [Unhashable(), Method().run])
def test_what_cannot_be_remembered_is_swept_too(function):
  for _ in range(2):
    found = sweep.sweep(function, 1, STRENGTHS)
    np.testing.assert_array_equal(found[:, 0], STRENGTHS)


def test_data_is_handed_on_and_keys_may_be_given():
  keys = jax.random.split(jax.random.key(7), 2)
  found = sweep.sweep(
      lambda key, s, data: s * data.sum(), keys, [1.0, 3.0], jnp.ones(5)
  )
  np.testing.assert_allclose(found, [[5, 5], [15, 15]])


def test_keys_and_strengths_may_be_sharded_by_the_caller():
  """Over explicit axes, too, from which JAX does not gather by itself."""
  mesh = jax.make_mesh((2,), ('mine',))
  keys, values = jax.random.split(jax.random.key(7), 4), jnp.arange(2.0)
  draw = lambda key, s: s + jax.random.uniform(key)
  found = sweep.sweep(draw, *jax.device_put(
      (keys, values), NamedSharding(mesh, PartitionSpec('mine'))
  ))
  wanted = values[:, None] + jax.vmap(jax.random.uniform)(keys)
  np.testing.assert_array_equal(found, wanted)
  traced = jax.jit(lambda keys: sweep.sweep(draw, keys, [0.0, 1.0]))
  np.testing.assert_array_equal(traced(keys), wanted)


@pytest.mark.parametrize('listed', [lambda s: [0, s], lambda s: s * np.ones(2)])
def test_a_strength_may_be_traced(listed):
  found = jax.jit(lambda s: sweep.sweep(lambda key, s: s, 1, listed(s)))(3.0)
  np.testing.assert_array_equal(found, np.reshape(listed(3), (2, 1)))


@pytest.mark.parametrize('seeds, message', [
    (jax.random.key, 'seeds is one key'), (jax.random.PRNGKey, 'one key'),
    (float, 'seeds must be their number, an int'),
    (jnp.int32, 'seeds must be their number, an int'),
])
def test_one_key_is_no_list_of_seeds(seeds, message):
  """A key of the old kind is two numbers, but not two seeds."""
  with pytest.raises(ValueError, match=message):
    sweep.sweep(run, seeds(7), STRENGTHS)


def test_padding_repeats_the_last_cell():
  padded = sweep.pad(dict(x=jnp.arange(3)), 4)
  np.testing.assert_array_equal(padded['x'], [0, 1, 2, 2])


def test_a_strength_may_be_a_row_of_numbers():
  found = sweep.sweep(lambda key, s: s[0] - s[1], 1, [(1.5, 2), (0, 0.25)])
  np.testing.assert_array_equal(found, [[-0.5], [-0.25]])


def test_a_mesh_of_the_callers_is_told_where_to_go():
  mesh = jax.make_mesh((2,), ('mine',))
  with jax.set_mesh(mesh), pytest.raises(ValueError, match='of mine: call it'):
    sweep.sweep(run, 2, STRENGTHS)
  one = jax.devices()[:1]
  with jax.set_mesh(jax.make_mesh((1,), ('mine',), devices=one)):
    assert sweep.sweep(run, 2, STRENGTHS, devices=one)['end'].shape == (3, 2, 3)
