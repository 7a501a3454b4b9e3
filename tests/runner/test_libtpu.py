"""What the compiler for TPUs is told."""
import os

from vfljax.runner import device, libtpu

ROOM = '--fibers_default_thread_stack_size=1048576'


def said(before):
  environment = dict(before)
  libtpu.set_up(environment)
  return environment['LIBTPU_INIT_ARGS']


def test_threads_get_room_beside_what_somebody_asks_for():
  assert said({}) == ROOM
  assert said(dict(LIBTPU_INIT_ARGS='--xla_a=1')) == f'--xla_a=1 {ROOM}'


def test_who_says_how_much_gets_that():
  own = '--fibers_default_thread_stack_size=131072'
  assert said(dict(LIBTPU_INIT_ARGS=own)) == own


def test_the_command_line_tells_it(monkeypatch):
  monkeypatch.setenv('LIBTPU_INIT_ARGS', '')
  monkeypatch.setattr(device.threefry, 'in_one_kernel', lambda: None)
  monkeypatch.setattr(device.jax.config, 'update', lambda *_: None)
  device.set_up(1, '')
  assert os.environ['LIBTPU_INIT_ARGS'] == ROOM
