"""Repeats of an attack, in one call or in a call for each set of weights."""
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.devices import of_a_cpu
from tests.runner.compiled.test_families import found
from tests.runner.compiled.test_stolen import KNOWN, experiment, results
from vfljax import sweep
from vfljax.runner.compiled import attempts, cell, families, stolen
from vfljax.runner.compiled.making import Maker
from vfljax.runner.compiled.programs import Programs
from vfljax.runner.config import AuxiliaryConfig

CELLS, REPEATS = 2, 3
HIDING = dict(
    auxiliary=AuxiliaryConfig(samples=16), listed_attacks=('model_completion',)
)


def one(key, weights):
  return dict(read=weights['w'].sum(), luck=jax.random.uniform(key))


def whole(weights, seeds):
  """The means of each cell, without any calls."""
  keys = jax.vmap(lambda s: jax.random.split(jax.random.key(s), REPEATS))(seeds)
  return [
      attempts.over_repeats(
          one, keys[i],
          jax.tree.map(lambda x, i=i: jnp.asarray(x[i]), weights), None,
      ) for i in range(CELLS)
  ]


def in_calls(weights, seeds):
  """The same by calls of one program; the number of calls."""

  def cell(given):
    keys = jax.random.split(jax.random.key(given['seed']), REPEATS)
    return attempts.over_repeats(one, keys, given['weights'], given['played'])

  program = jax.jit(lambda given: jax.lax.map(cell, given))
  calls = attempts.arguments(weights, CELLS, REPEATS)
  results = [program(dict(seed=seeds) | call) for call in calls]
  assert program._cache_size() == 1  # pyright: ignore
  return attempts.mean(results, REPEATS), len(calls)


@pytest.mark.parametrize('sets', [1, REPEATS])
def test_calls_together_are_all_repeats(sets):
  """Each with its own weights and luck, of its own cell."""
  weights = dict(w=np.arange(CELLS * sets * 4.0).reshape(CELLS, sets, 4) ** 2)
  seeds = jnp.array([5, 7])
  means, calls = in_calls(weights, seeds)
  assert calls == sets
  for i, expected in enumerate(whole(weights, seeds)):
    for name, value in expected.items():
      np.testing.assert_array_equal(means[name][i], value)


def test_one_repeat_is_as_it_was():
  """Without an argument for something that there is one of."""
  weights = dict(w=np.ones((CELLS, 1, 4)))
  call, = attempts.arguments(weights, CELLS, 1)
  assert call == dict(weights=weights)
  assert attempts.shapes(weights, CELLS, 1).keys() == {'weights'}
  found = object()
  assert attempts.mean([found], 1) is found


@pytest.mark.parametrize('sets', [1, REPEATS])
def test_programs_are_told_the_shapes_of_calls(sets):
  """The same whether each repeat has its own weights, and of their own size."""
  weights = dict(w=jnp.ones((7, sets, 4), jnp.bfloat16))
  given = attempts.shapes(weights, CELLS, REPEATS)
  assert given['weights']['w'].shape == (CELLS, 1, 4)
  assert given['weights']['w'].dtype == jnp.bfloat16
  for call in attempts.arguments(
      dict(w=weights['w'][:CELLS]), CELLS, REPEATS
  ):
    told = jax.tree.map(lambda s: (s.shape, s.dtype), given)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), call) == told


@of_a_cpu
def test_who_hides_layers_shares_the_attacks_of_who_does_not():
  """Their programs were two, which differed in the number of repeats."""
  assert KNOWN.repeats > 1
  everything = found(experiment('none', 'vmask', alone=False, **HIDING))
  lowered = []
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(cell, 'attack', counted(cell.attack, lowered))
    maker = Maker(ThreadPoolExecutor(1), None)
    shared = families.families(everything).values()
    for family in {family.name: family for family in shared}.values():
      Programs(family, maker)
  asked = [sorted(job.setting.after_training) for job, *_ in lowered]
  assert asked.count(['model_completion', 'scratch']) == 1
  assert len(asked) == 2 and asked.count(['local_model']) == 1


def test_each_of_several_in_a_loop_has_its_own_metrics(monkeypatch):
  """Of each repeat: their metrics are [repeats, attacks] there."""
  names, keys = ['a', 'b'], jax.random.split(jax.random.key(3), REPEATS)

  def measured(setting, splits, names, k, key, read):
    own = jax.random.uniform(key) + jnp.arange(2.0) * 10 + read
    return dict(score=own)

  monkeypatch.setattr(stolen, '_alike', lambda setting: [names])
  monkeypatch.setattr(stolen, '_measured', measured)
  setting, read = SimpleNamespace(attackers=(1,)), {'1': jnp.ones(1)}
  lucks = np.array([jax.random.uniform(key) for key in keys])
  played = dict(first=jnp.int32(1), count=jnp.int32(2))
  rows = stolen.measured(setting, (), keys, read, played)
  means = stolen.measured(setting, (), keys, read)
  for i, name in enumerate(names):
    expected = np.array([0, *lucks[1:] + 10 * i + 1])
    np.testing.assert_allclose(rows[name]['score'], expected, rtol=1e-6)
    assert means[name]['score'] == pytest.approx(lucks.mean() + 10 * i + 1)


@pytest.mark.parametrize('which', [{}, dict(which=1)])
def test_a_cells_attacks_are_told_what_is_played(which, monkeypatch):
  """Of one attack and of all: they would play all repeats in each call."""
  job = found(experiment('none'))[0]
  monkeypatch.setattr(
      stolen, 'measured_of_one', lambda *given: ('of one', *given[4:])
  )
  monkeypatch.setattr(stolen, 'measured', lambda *given: ('all', *given[4:]))
  one_ = dict(seed=5, strength=0.0, others={})
  given = dict(cells=one_, weights={}, played='some') | which
  told = cell.attack(job, given, job.setting.samples)
  assert told == (('of one', 1, 'some') if which else ('all', 'some'))


@of_a_cpu
@pytest.mark.parametrize('sets', [1, 2])
def test_each_attack_plays_each_repeat_once(sets, monkeypatch):
  """With the weights of its cell and repeat; without compiling any."""
  job = found(experiment('none', alone=False))[0]
  repeats, own = KNOWN.repeats, object.__new__(Programs)
  assert repeats == 2
  own._family = families.families([job])[job.program]
  cells = 2 * own._family.attack_cells

  def do(given, samples):
    which = given.get('which', np.full(len(given['cells']['seed']), 7))
    rows = np.zeros((len(which), repeats), np.float32)
    for i, first in enumerate(np.asarray(given['played']['first'])):
      for r in range(first, first + int(given['played']['count'][i])):
        rows[i, r] += 1000 * which[i] + 100 * given['cells']['seed'][i] + (
            given['weights']['1'][i, 0] + 4 * r
        )
    found = dict(score=rows)
    return {'1' if 'which' in given else 'local_model': found}

  monkeypatch.setattr(Programs, '_result', lambda self, name: do)
  seeds = np.arange(cells, dtype=np.int32)
  read = np.arange(cells * sets, dtype=np.float32).reshape(cells, sets)
  told = own._attacked(
      job, [dict(seed=seeds)], {'1': read}, job.setting.samples
  )
  told = {name: x['score'] for part in told for name, x in part.items()}
  for name, which in dict(model_completion=0, scratch=1, local_model=7).items():
    expected = 1000 * which + 100 * seeds + 2 + read.mean(1)
    np.testing.assert_allclose(told.pop(name), expected, err_msg=name)
  assert not told


def counted(fn, calls):
  def called(*given):
    calls.append(given)
    return fn(*given)

  return called


@of_a_cpu
@pytest.mark.slow
def test_numbers_are_those_of_one_program(tmp_path, monkeypatch):
  """Of one who hides layers, up to rounding."""
  rows = results(tmp_path / 'shared', 'none', 'vmask', **HIDING)
  monkeypatch.setattr(families, '_one_by_one', lambda job: False)
  whole = results(tmp_path / 'whole', 'none', 'vmask', **HIDING)
  assert len({r['value'] for r in rows}) > 10
  for one_, other in zip(rows, whole, strict=True):
    assert one_ | dict(value=0) == other | dict(value=0)
    assert one_['value'] == pytest.approx(other['value'], abs=0.02), one_


def test_each_device_has_its_cells_weights_and_luck():
  weights = dict(w=np.arange(CELLS * 4.0).reshape(CELLS, 1, 4))
  seeds = np.array([5, 7], np.int32)

  def cell(given, shared):
    keys = jax.random.split(jax.random.key(given['seed']), REPEATS)
    return attempts.over_repeats(one, keys, given['weights'], given['played'])

  call, = attempts.arguments(weights, CELLS, REPEATS)
  placed, shared = sweep.place(dict(seed=seeds) | call, ())
  each = jax.jit(sweep.over_cells(cell))(placed, shared)
  means = attempts.mean([each], REPEATS)
  for i, expected in enumerate(whole(weights, jnp.asarray(seeds))):
    for name, value in expected.items():
      np.testing.assert_allclose(means[name][i], value, rtol=1e-6)
