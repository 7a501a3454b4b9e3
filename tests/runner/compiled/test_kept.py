"""Programs that a later start takes without tracing them."""
import dataclasses
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import jax
from jax.experimental.compilation_cache import compilation_cache
import jax.numpy as jnp
import numpy as np
import pytest

from tests.runner.compiled.test_families import config
from vfljax import algorithms, defenses, nets, sweep
from vfljax.defense import Method
from vfljax.runner import run
from vfljax.runner.checking import rehearsal
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import cell, kept, origins, strides
from vfljax.runner.experiment import auditing

pytestmark = pytest.mark.usefixtures('uncached')

ABOUT = dict(train=dict(epochs=2), data=dict(path=''), experiment='e')


def given(unused):
  """On all devices, as the runner has it."""
  return sweep.place(dict(x=np.ones((2, 3, 3), np.float32)), unused)


def lowered(shift=1.0, unused='a'):
  """A program with a kernel of its own, which a bad copy would lack."""
  def one(cell, shared):
    return jnp.sin(cell['x']) @ cell['x'] + shift * jnp.arange(3)

  spread, _ = sweep.shardings()
  program = jax.jit(sweep.over_cells(one), out_shardings=spread)
  return program.lower(*given({unused: np.ones(2)}))


def use(program):
  return np.asarray(program(*given(dict(a=np.ones(2)))))


def test_a_program_is_found_again(place):
  compiled, name = kept.of(ABOUT).compile(lowered())
  assert name
  found = kept.of(ABOUT).load(name)
  np.testing.assert_array_equal(use(found), use(compiled))
  # And by whoever compiles the same, but nothing else.
  same, again = kept.of(dict(ABOUT, other=1)).compile(lowered())
  assert again == name
  np.testing.assert_array_equal(use(same), use(compiled))
  assert kept.of(ABOUT).compile(lowered(2.0))[1] not in ('', name)


def test_arguments_that_are_not_used_are_told_apart(place):
  """They are not in the program, but whoever calls it has to give them."""
  one, two = lowered(unused='a'), lowered(unused='b')
  assert one.as_text() == two.as_text()
  store = kept.of(ABOUT)
  assert store.compile(one)[1] != store.compile(two)[1]


def test_what_jax_found_in_its_cache_is_not_kept(place, tmp_path):
  """XLA does not write it whole: it would end with 'function not found'."""
  mine = dict(
      jax_compilation_cache_dir=str(tmp_path / 'jax'),
      jax_enable_compilation_cache=True,
      # A run in this process may have left another: such a small one is quick.
      jax_persistent_cache_min_compile_time_secs=0,
  )
  before = {name: getattr(jax.config, name) for name in mine}
  for name, value in mine.items():
    jax.config.update(name, value)
  compilation_cache.reset_cache()
  try:
    store = kept.of(ABOUT)
    _, name = store.compile(lowered(3.0))
    for file in place.iterdir():
      file.unlink()
    again, none = store.compile(lowered(3.0))
  finally:
    for flag, value in before.items():
      jax.config.update(flag, value)
  assert name and not none and not list(place.iterdir())
  use(again)


def test_a_program_that_calls_python_is_not_kept(place):
  """The function that it calls is in this process alone."""
  def one(cell, shared):
    twice = lambda x: 2 * np.asarray(x)
    return jax.pure_callback(
        twice, cell['x'], cell['x'], vmap_method='expand_dims'
    )

  program = jax.jit(sweep.over_cells(one)).lower(*given(dict(a=np.ones(2))))
  compiled, name = kept.of(ABOUT).compile(program)
  assert name == '' and not list(place.glob('*'))
  np.testing.assert_array_equal(use(compiled), 2)


def test_a_program_that_calls_what_nobody_knows_is_not_kept(
    place, monkeypatch
):
  """A later process may lack it, and would end with a segmentation fault."""
  monkeypatch.setattr(kept.serialize_executable, 'serialize', lambda _: 'it')
  class Foreign:  # In place of a program with another library's function.
    args_info, out_tree = (), ()
    as_text = lambda self: 'x = stablehlo.custom_call @some_library(y)'
    compile = lambda self, *options: 'compiled'

  assert kept.of(ABOUT).compile(Foreign()) == ('compiled', '')
  assert not list(place.glob('*'))


def test_nvidias_solvers_are_there_at_every_start(place, monkeypatch):
  monkeypatch.setattr(kept.serialize_executable, 'serialize', lambda _: 'it')
  class Solving:
    args_info, out_tree = (), ()
    as_text = lambda self: 'x = stablehlo.custom_call @cusolver_gesvd_ffi(y)'
    compile = lambda self, *options: 'compiled'

  compiled, name = kept.of(ABOUT).compile(Solving())
  assert compiled == 'compiled' and name and len(list(place.iterdir())) == 1


class Device:
  """One of another machine."""

  def __init__(self, platform='gpu', kind='NVIDIA H100', runtime='cuda 13000'):
    self.platform, self.device_kind = platform, kind
    self.client = SimpleNamespace(platform_version=runtime)

  def __str__(self):
    return 'cuda:0'


@pytest.mark.parametrize('kind, are_kept', [
    ('NVIDIA H100 80GB HBM3', True), ('AMD Instinct MI300X', False),
    ('TPU v5 lite', False),
])
def test_programs_are_kept_for_devices_that_were_tried(
    place, monkeypatch, kind, are_kept
):
  monkeypatch.setattr(jax, 'local_devices', lambda: [Device(kind=kind)])
  assert (kept.of(ABOUT) is not None) == are_kept


def test_another_device_or_driver_is_another_machine(place, monkeypatch):
  def machine(**about):
    monkeypatch.setattr(jax, 'local_devices', lambda: [Device(**about)])
    return kept.of(ABOUT).machine

  seen = [machine(), machine(kind='NVIDIA H200'), machine(runtime='cuda 12080')]
  monkeypatch.setattr(origins, '_PLUGINS', 'jax')  # Of which one is here.
  assert len({*seen, machine()}) == 4


LINEAR = """
import sys
import jax.numpy as jnp
from vfljax.runner.compiled import kept

with kept.within(sys.argv[1]):
  store = kept.of(dict(experiment='e'))
print(store.load(sys.argv[2])(jnp.array([[3.0, 0], [0, 2], [0, 0]])))
"""


@pytest.mark.slow
def test_a_kept_program_finds_lapack_in_a_process_that_lowers_nothing(tmp_path):
  """JAX looks its functions up when it lowers; the address is 0 before."""
  values = lambda x: jnp.linalg.svd(x, compute_uv=False)
  with kept.within(str(tmp_path)):
    store = kept.of(dict(experiment='e'))
  x = jax.ShapeDtypeStruct((3, 2), jnp.float32)
  _, name = store.compile(jax.jit(values).lower(x))
  assert name
  done = subprocess.run(
      [sys.executable, '-c', LINEAR, str(tmp_path), name],
      capture_output=True, text=True,
      env=dict(os.environ, JAX_ENABLE_COMPILATION_CACHE='false'),
  )
  assert done.returncode == 0, (done.returncode, done.stderr)
  assert done.stdout.strip() == '[3. 2.]'


def test_a_program_that_xla_cannot_write_is_not_kept(place, monkeypatch):
  def refuse(_):
    raise ValueError('Compilation does not support serialization')

  monkeypatch.setattr(kept.serialize_executable, 'serialize', refuse)
  compiled, name = kept.of(ABOUT).compile(lowered())
  assert name == '' and not list(place.glob('*'))
  use(compiled)


@pytest.mark.parametrize('damage', ['cut', 'bit', 'empty', 'else', 'gone'])
def test_what_is_damaged_is_made_again(place, damage):
  store = kept.of(ABOUT)
  compiled, name = store.compile(lowered())
  file, = place.iterdir()
  content = file.read_bytes()
  bit = bytearray(content)
  bit[len(bit) // 2] ^= 1
  if damage == 'gone':
    file.unlink()
  else:
    file.write_bytes(dict(
        cut=content[:-9], bit=bytes(bit), empty=b'', **{
            'else': content[:32] + pickle.dumps('something')
        },
    )[damage])
  with pytest.raises(KeyError):
    store.load(name)
  again, same = store.compile(lowered())
  assert same == name and file.read_bytes() != b''
  np.testing.assert_array_equal(use(again), use(compiled))
  use(store.load(name))


def test_all_that_tracing_reads_makes_another_experiment(
    place, tmp_path, monkeypatch
):
  def digest(**changed):
    return kept.of(ABOUT | changed).experiment

  seen = [digest(), digest(train=dict(epochs=3))]
  weights = tmp_path / 'weights'
  weights.mkdir()
  (weights / 'a.npz').write_bytes(b'1')
  options = dict(model=[dict(options=dict(folder=str(weights)))])
  seen.append(digest(**options))
  os.utime(weights / 'a.npz', (1, 1))
  seen.append(digest(**options))
  written = dict(model=dict(options=f'random=True;path={weights}'))
  seen.append(digest(**written))
  os.utime(weights / 'a.npz', (2, 2))
  seen.append(digest(**written))
  with jax.enable_x64(True):
    seen.append(digest())
  monkeypatch.setenv('XLA_FLAGS', '--xla_cpu_enable_fast_math=true')
  seen.append(digest())
  monkeypatch.setattr(origins, '_code', lambda: 'other')
  seen.append(digest())
  assert len(set(seen)) == len(seen)
  machine = kept.of(ABOUT).machine
  monkeypatch.setattr(origins, '_machine', lambda: ['another'])
  assert kept.of(ABOUT).machine != machine


def test_what_else_lies_in_the_current_folder_is_no_part(
    place, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  before = kept.of(ABOUT).experiment
  (tmp_path / 'run.log').write_text('of this run')
  assert kept.of(ABOUT).experiment == before


@pytest.mark.parametrize('registry, own', [
    (defenses.REGISTRY, Method(lambda: defenses.none())),
    (algorithms.AGGREGATIONS, lambda us: us[0] * us[1]),
    (nets.ACTIVATIONS, lambda x: x**2),
])
def test_nothing_is_kept_of_what_is_registered_from_outside(
    place, monkeypatch, registry, own
):
  """Its code is not part of what programs are found by."""
  assert kept.of(ABOUT)
  monkeypatch.setitem(registry, 'own', own)
  assert kept.of(ABOUT) is None


def test_nothing_is_kept_by_who_runs_other_code_than_is_on_the_disk(
    place, monkeypatch
):
  monkeypatch.setattr(origins, '_IMPORTED', 0.0)  # So all has changed since.
  origins._code.cache_clear()
  try:
    assert kept.of(ABOUT) is None
  finally:
    origins._code.cache_clear()


def test_nothing_is_kept_without_a_folder():
  assert kept.of(ABOUT) is None
  with kept.within(''):
    assert kept.of(ABOUT) is None


def test_a_disk_that_takes_nothing_is_no_end(tmp_path):
  (tmp_path / 'cache').write_text('a file')
  with kept.within(str(tmp_path / 'cache')):
    program, name = kept.of(ABOUT).compile(lowered())
  assert name == ''
  use(program)


def test_what_was_not_used_for_longest_goes_first(place, monkeypatch):
  store = kept.of(ABOUT)
  names = [store.compile(lowered(float(shift)))[1] for shift in range(3)]
  sizes = [file.stat().st_size for file in place.iterdir()]
  for age, name in enumerate(names):
    os.utime(store._file(name), (100 - age, 100 - age))
  store.load(names[2])
  monkeypatch.setattr(kept, 'MOST', 2 * max(sizes) + 100)
  store.write('small', 1)
  assert store.read('small') == 1
  assert [store._file(name).exists() for name in names] == [True, False, True]


@pytest.mark.slow
def test_a_second_start_traces_nothing_and_finds_the_same(
    place, monkeypatch, tmp_path
):
  given = dataclasses.replace(
      config('none', listed_attacks=('norm_scoring',)), seeds=1, alone=False
  )
  given.train.epochs = 4  # Two calls.
  table = arguments.load_data(given.data)

  def results(name):
    work = run.run(given, table, str(tmp_path / name))
    return (work.path / 'results.jsonl').read_bytes()

  first, traced = results('first'), []

  def counted(module, name):
    plain = getattr(module, name)
    monkeypatch.setattr(
        module, name, lambda *given: traced.append(name) or plain(*given)
    )

  for name in ('start', 'advance', 'finish'):
    counted(cell, name)
  counted(auditing, 'of_job')
  # They are called as they were made, whatever would be made now.
  monkeypatch.setattr(strides, 'SHORT', 0)
  assert results('second') == first and not traced
  memory = rehearsal.memory()
  monkeypatch.setattr(rehearsal, 'memory', lambda: memory - 1)
  assert results('smaller') == first and traced == ['start']  # It is tried.
  for file in place.iterdir():  # As after another version of Python.
    if file.stat().st_size > 100_000:
      file.write_bytes(b'damaged')
  assert results('third') == first
  assert {'advance', 'finish'} <= set(traced)
