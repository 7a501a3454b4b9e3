"""What compilers are told by variables of the environment."""
import os
import subprocess
import sys
import threading

import jax
import pytest

from vfljax.runner.errors import UserError
from vfljax.runner.machine import device, libtpu, tuning

# A module, its variable, its flag and the value.
TOLD = {
    'a TPU': (
        libtpu, 'LIBTPU_INIT_ARGS', '--fibers_default_thread_stack_size',
        '1048576',
    ),
    'a CPU': (
        tuning, 'XLA_FLAGS', '--xla_backend_extra_options',
        'xla_cpu_disable_loop_unrolling',
    ),
}


@pytest.fixture(params=TOLD)
def told(request):
  """(what a variable says after one who sets up, its flag, the whole)."""
  module, variable, flag, value = TOLD[request.param]

  def said(before):
    environment = {} if before is None else {variable: before}
    module.set_up(environment)
    return environment[variable]

  return said, flag, f'{flag}={value}'


def test_it_is_told_beside_what_somebody_asks_for(told):
  said, _, whole = told
  assert said(None) == said(' ') == whole
  assert said('--xla_a=1 ') == f'--xla_a=1 {whole}'


def test_who_has_said_it_gets_that(told):
  said, flag, _ = told
  assert said(f'--xla_a=1 {flag}=7') == f'--xla_a=1 {flag}=7'


def test_a_file_of_flags_stays_alone(told):
  """XLA takes what no dash begins for a file's name."""
  said, _, _ = told
  assert said('/home/me/flags.txt') == '/home/me/flags.txt'


@pytest.mark.parametrize('given, devices, has', [
    (None, 0, '1'), (None, 4, '1'), (None, 2, None), ('4', 0, '4'),
])
def test_decompositions_have_one_thread_where_each_core_has_a_device(
    given, devices, has, monkeypatch
):
  monkeypatch.setenv('OPENBLAS_NUM_THREADS', given or '')
  if given is None:
    monkeypatch.delenv('OPENBLAS_NUM_THREADS')
  monkeypatch.setattr(device, 'cores', lambda: 4)
  monkeypatch.setattr(device.threefry, 'in_one_kernel', lambda: None)
  monkeypatch.setattr(device.jax.config, 'update', lambda *_: None)
  for module in (device.libtpu, device.tuning):
    monkeypatch.setattr(module, 'set_up', lambda _: None)
  device.set_up(devices, '')
  assert os.environ.get('OPENBLAS_NUM_THREADS') == has


@pytest.mark.parametrize('said, want', [
    ('200000 100000', 2), ('250000 100000', 3), ('50000 100000', 1),
    ('9900000 100000', 8), ('max 100000', 8), ('', 8), ('1 0', 8), (None, 8),
])
def test_cores_are_a_containers_share(said, want, tmp_path, monkeypatch):
  place = tmp_path / 'cpu.max'
  if said is not None:
    place.write_text(said + '\n')
  monkeypatch.setattr(device, '_QUOTA', place)
  monkeypatch.setattr(
      device.os, 'sched_getaffinity', lambda _: set(range(8)), raising=False
  )
  assert device.cores() == want


@pytest.mark.slow
@pytest.mark.parametrize('command', [
    ['--config=experiments/quickstart.py', '--config.data.name=csv',
     '--config.data.label=y', '--config.data.path=no.csv'],
    ['recommend', 'no.csv'],
])
def test_every_command_that_trains_loads_lapack_after_that(command):
  """SciPy's library counts its threads when it is loaded."""
  code = (
      'import os, sys\n'
      'from vfljax.runner import main\n'
      'os.environ.pop("OPENBLAS_NUM_THREADS", None)\n'
      'from vfljax.runner.machine import device\n'
      'set_up = device.set_up\n'
      'def seen(devices, cache):\n'
      '  assert "scipy.linalg" not in sys.modules\n'
      '  set_up(0, cache)\n'
      '  print("threads:", os.environ["OPENBLAS_NUM_THREADS"])\n'
      'device.set_up = seen\n'
      f'main.main(["v", *{command!r}, "--cache=", "--workdir=no/such"])\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False
  )
  assert 'threads: 1' in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize('platform', ['cuda', 'abacus'])
def test_a_platform_that_is_not_here_is_refused(platform, tmp_path):
  code = (
      'import sys\n'
      'from jax._src import xla_bridge\n'
      # As on a machine where no CUDA plugin is installed.
      'xla_bridge.discover_pjrt_plugins = lambda: None\n'
      'from vfljax.runner import main\n'
      'sys.exit(main.main(["v", "--config=experiments/quickstart.py",'
      f' "--cache=", "--workdir={tmp_path}/out"]))\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False,
      env=os.environ | dict(JAX_PLATFORMS=platform),
  )
  lines = [x for x in done.stderr.splitlines() if x.startswith('error: ')]
  assert done.returncode == 2, done.stderr
  assert lines and f'JAX_PLATFORMS={platform}: ' in lines[0]
  assert 'Traceback' not in done.stderr and not (tmp_path / 'out').exists()


def test_the_command_line_tells_both(monkeypatch):
  for _, variable, _, _ in TOLD.values():
    monkeypatch.setenv(variable, '')
  monkeypatch.setattr(device.threefry, 'in_one_kernel', lambda: None)
  monkeypatch.setattr(device.jax.config, 'update', lambda *_: None)
  device.set_up(1, '')
  for _, variable, flag, value in TOLD.values():
    assert os.environ[variable] == f'{flag}={value}'


def test_a_run_needs_compiled_programs():
  with jax.disable_jit(), pytest.raises(UserError, match='JAX_DISABLE_JIT'):
    device.set_up(0, '')


def test_a_fork_of_a_process_with_jax_is_refused(monkeypatch):
  """XLA's threads are not in it: a run would wait for them for ever."""
  monkeypatch.setattr(device, '_begun', set())
  monkeypatch.setattr(device, '_make', lambda *_, **__: False)
  monkeypatch.setenv('OPENBLAS_NUM_THREADS', '1')
  monkeypatch.setattr(device.threefry, 'in_one_kernel', lambda: None)
  monkeypatch.setattr(device.jax.config, 'update', lambda *_: None)
  for _ in range(2):  # A process may run many times,
    device.set_up(0, '')
  parent = os.getpid()  # and so may a worker whose parent had none.
  monkeypatch.setattr(device.os, 'getpid', lambda: parent + 1)
  with pytest.raises(UserError, match=r"fork(.|\n)*get_context\('spawn'\)"):
    device.set_up(0, '')


def test_a_programs_settings_are_its_own_after_a_run(monkeypatch, tmp_path):
  """Also after several side by side, whichever ends first."""
  for variable in 'XLA_FLAGS', 'LIBTPU_INIT_ARGS':
    monkeypatch.setenv(variable, '')
  for given in None, '3':
    monkeypatch.setenv('OPENBLAS_NUM_THREADS', given or '')
    if given is None:
      monkeypatch.delenv('OPENBLAS_NUM_THREADS')
    before = settings()
    begun, ended = threading.Event(), threading.Event()
    other = threading.Thread(  # If this test fails, it does not go on.
        target=beside, args=(tmp_path, begun, ended), daemon=True
    )
    with device.restored():
      device.set_up(0, str(tmp_path))
      assert settings() != before
      other.start()
      begun.wait()
      within = settings()
    assert settings() == within != before  # The other one goes on.
    ended.set()
    other.join()
    assert settings() == before


def beside(folder, begun, ended):
  with device.restored():
    device.set_up(0, str(folder / 'more'))
    begun.set()
    ended.wait()


def test_what_helps_to_write_code_is_not_for_runs(monkeypatch):
  for variable in 'XLA_FLAGS', 'LIBTPU_INIT_ARGS', 'OPENBLAS_NUM_THREADS':
    monkeypatch.setenv(variable, '')
  names = 'jax_numpy_rank_promotion', 'jax_debug_key_reuse'
  read = lambda: [getattr(jax.config, name) for name in names]
  before = read()
  try:
    for name, value in zip(names, ('raise', True)):
      jax.config.update(name, value)
    with device.restored():
      device.set_up(0, '')
      assert read() == ['allow', False]
      beside = []  # Threads that compile have no contexts of this one's.
      thread = threading.Thread(target=lambda: beside.append(read()))
      thread.start()
      thread.join()
      assert beside == [['allow', False]]
    assert read() == ['raise', True]
    jax.config.update(names[0], before[0])
    with jax.numpy_rank_promotion('raise'):  # Of this thread alone.
      with device.restored():
        assert read()[0] == 'allow'
    assert read()[0] == before[0]
  finally:
    for name, value in zip(names, before):
      jax.config.update(name, value)


def test_a_guard_of_transfers_does_not_stop_a_run(monkeypatch):
  """JAX_TRANSFER_GUARD=disallow ended it with JAX's traceback."""
  for variable in 'XLA_FLAGS', 'LIBTPU_INIT_ARGS', 'OPENBLAS_NUM_THREADS':
    monkeypatch.setenv(variable, '')
  names = device._GUARDS
  read = lambda: [getattr(jax.config, name) for name in names]
  before = read()
  move = lambda: jax.numpy.asarray(2.5) + 1  # The 1 is moved, unasked.
  jax.config.update('jax_transfer_guard', 'disallow')  # It sets all three.
  try:
    with pytest.raises(jax.errors.JaxRuntimeError, match='Disallowed'):
      move()
    with device.restored():
      device.set_up(0, '')
      move()
    assert read() == ['disallow'] * 3
    device.set_up(0, '')
    move()  # As on the command line.
    with jax.transfer_guard('disallow'), device.restored():  # This thread's.
      move()
  finally:
    jax.config.update('jax_transfer_guard', None)
    for name, value in zip(names, before):
      jax.config.update(name, value)


def test_programs_are_not_kept_in_a_runs_folder_afterwards(
    monkeypatch, tmp_path
):
  """JAX goes on with a folder that it has opened, whatever the setting."""
  for variable in 'XLA_FLAGS', 'LIBTPU_INIT_ARGS', 'OPENBLAS_NUM_THREADS':
    monkeypatch.setenv(variable, '')
  left = []
  monkeypatch.setattr(
      device.compilation_cache, 'reset_cache', lambda: left.append(1)
  )
  with device.restored():
    device.set_up(0, str(tmp_path))
    left.clear()
  assert left
  left.clear()
  longest = 'jax_persistent_cache_min_compile_time_secs'
  with device.restored():
    jax.config.update(longest, getattr(jax.config, longest) + 1)
  assert not left
  with device.restored():
    jax.config.update('jax_compilation_cache_dir', str(tmp_path))
  assert left


def settings():
  read = lambda name: getattr(jax.config, f'jax_{name}')
  return (
      read('traceback_in_locations_limit'), read('compilation_cache_dir'),
      read('persistent_cache_min_compile_time_secs'),
      os.environ.get('OPENBLAS_NUM_THREADS'),
  )
