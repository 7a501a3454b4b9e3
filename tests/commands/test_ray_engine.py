"""Ray's engine, on a stand-in: what it asks Ray for and makes of its answers.

tests/commands/test_grid.py runs a grid on Ray, where it is installed.
"""
import json
import os
import sys
import types
import warnings

import pytest

from vfljax.commands import axes, point, ray_engine
from vfljax.commands.tasks import Resources
from vfljax.runner.errors import UserError
from vfljax.runner.machine import stopping


class Lost(Exception):
  """What a Ray that stands in for the real one raises of a task."""

  cause = None


class Crashed(Lost):
  """Of one whose process died too often."""


class Raised(Exception):
  """Of one that raised."""

  cause = stopping.Interrupted()


@pytest.fixture
def played(tmp_path):
  """Lets a stand-in for Ray end a task so: (why it failed, by name)."""
  def get(end):
    if isinstance(end, Exception):
      raise end
    return end

  ray = types.SimpleNamespace(
      wait=lambda refs, **_: (refs[:1], refs[1:]), get=get,
      exceptions=types.SimpleNamespace(
          RayTaskError=Raised, RayError=Lost, WorkerCrashedError=Crashed,
      ),
  )
  one = axes.Point('one', (), str(tmp_path / 'one'), '')
  return lambda end: ray_engine._awaited(ray, {end: one}, stopping.Stop())


def test_a_task_whose_results_are_elsewhere_is_not_done(
    played, tmp_path, capsys, monkeypatch
):
  """As those in a folder that the machine of the task has for itself."""
  monkeypatch.setattr(ray_engine, '_LOOKS', 1)
  monkeypatch.setattr(ray_engine.time, 'sleep', lambda seconds: None)
  assert 'a file system that all machines share' in played('')['one']
  assert '1 of 1: not finished' in capsys.readouterr().out
  (tmp_path / 'one').mkdir()
  (tmp_path / 'one/report.html').touch()
  assert played('') == {}


@pytest.mark.parametrize('end, said', [
    (Crashed('The worker died.'), 'its process died 4 times: The worker died.'),
    (Lost('The raylet died.\nMore.'), 'The raylet died.'),
    (Raised(), 'its process was told to stop 4 times'),
])
def test_why_a_task_is_lost(played, end, said):
  assert played(end) == {'one': said}


def test_tasks_have_the_settings_of_the_one_who_asks(monkeypatch):
  """As JAX_ENABLE_X64, which changes results; but devices are a machine's."""
  monkeypatch.setenv('JAX_ENABLE_X64', '1')
  monkeypatch.setenv('XLA_FLAGS', '--xla_some')
  for name in ('JAX_PLATFORMS', 'JAX_NUM_CPU_DEVICES', 'JAX_PROCESS_ID'):
    monkeypatch.setenv(name, '1')
  # Of `ray job submit`, which Ray refuses to be told again.
  monkeypatch.setenv('JAX_LOG_COMPILES', '1')
  monkeypatch.setenv('RAY_JOB_CONFIG_JSON_ENV_VAR', json.dumps(
      dict(runtime_env=dict(env_vars=dict(JAX_LOG_COMPILES='1')))
  ))
  asked = {}
  ray = types.SimpleNamespace(init=lambda **how: asked.update(how))
  ray_engine._connect(ray)
  carried = asked['runtime_env']['env_vars']
  assert carried['JAX_ENABLE_X64'] == '1'
  assert carried['XLA_FLAGS'] == '--xla_some'
  assert not {
      'JAX_PLATFORMS', 'JAX_NUM_CPU_DEVICES', 'JAX_PROCESS_ID', 'PATH',
      'JAX_LOG_COMPILES',
  } & {*carried}


def test_a_ray_that_cannot_be_reached_is_told(monkeypatch):
  def init(**_):
    warnings.warn('os.fork() was called.', RuntimeWarning, stacklevel=1)
    raise ConnectionError('Nobody\n  answers.')

  monkeypatch.setenv('RAY_ADDRESS', 'there:1')
  with pytest.raises(UserError) as told:
    ray_engine._connect(types.SimpleNamespace(init=init))
  assert str(told.value).startswith(
      'Ray cannot reach there:1 (RAY_ADDRESS): Nobody answers.\n--engine=local'
  )
  monkeypatch.delenv('RAY_ADDRESS')
  with pytest.raises(UserError, match=r'Ray cannot start: Nobody answers\.'):
    ray_engine._connect(types.SimpleNamespace(init=init))


@pytest.mark.parametrize('tty, address, crashed, said', [
    (False, '', False, ['0', '0', None]), (True, '', True, ['0', None, '2']),
    (True, 'there:1', False, ['0', None, '2']),
])
def test_what_ray_is_told_before_it_starts(
    monkeypatch, tmp_path, tty, address, crashed, said
):
  """Lines in order, plain ones in a file; no long wait for a lost cluster."""
  names = (
      'RAY_DEDUP_LOGS', 'RAY_COLOR_PREFIX', 'RAY_gcs_server_port_wait_time_s'
  )
  for name in names:
    monkeypatch.setenv(name, '')  # So that it is put back.
    monkeypatch.delenv(name)
  monkeypatch.setenv('RAY_ADDRESS', address)
  monkeypatch.setenv('RAY_TMPDIR', str(tmp_path))
  if crashed:
    (tmp_path / 'ray').mkdir()
    (tmp_path / 'ray/ray_current_cluster').write_text('here:1')
  monkeypatch.setitem(sys.modules, 'ray', types.ModuleType('ray'))
  monkeypatch.setattr(sys.stdout, 'isatty', lambda: tty, raising=False)
  ray_engine._ray()
  assert [os.environ.get(name) for name in names] == said


def test_a_task_that_is_told_to_stop_is_started_again(tmp_path, monkeypatch):
  """Others' errors are reasons: Ray cannot bring every type to the driver."""
  asked, sent = {}, []

  class Task:

    def options(self, name):
      sent.append(name)
      return self

    def remote(self, folder, argv):
      return ray_engine._task(folder, argv)

  def play(argv, stop=None):
    if 'stop' in argv:
      raise stopping.Interrupted
    raise type('Odd', (Exception,), {})('boom\nsecond')

  monkeypatch.setattr(point, 'play', play)
  monkeypatch.setattr(ray_engine, '_ray', lambda: types.SimpleNamespace(
      init=lambda **_: None, shutdown=lambda: None,
      nodes=lambda: [{'Alive': True, 'Resources': {'CPU': 2}}],
      remote=lambda **given: asked.update(given) or (lambda fn: Task()),
      wait=lambda refs, **_: (refs, []), get=lambda ref: ref,
  ))
  run = lambda word: ray_engine.run(
      [axes.Point('a', (word,), str(tmp_path), '')], Resources()
  )
  monkeypatch.setattr(sys, 'path', [*sys.path])
  (why,) = run('fail').values()
  assert 'Odd: boom second' in why and __file__ in why
  assert sent == ['a']  # Ray's lines begin with it.
  with pytest.raises(stopping.Interrupted):
    run('stop')
  assert asked['retry_exceptions'] == [stopping.Interrupted]
