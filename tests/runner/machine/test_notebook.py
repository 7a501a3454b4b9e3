"""What is different in a notebook, and what only looks like one."""
import signal
import sys
import types

from vfljax.runner import main
from vfljax.runner.machine import notebook, stopping


def ipython(monkeypatch, **shell):
  """IPython with a shell that has these attributes."""
  module = types.ModuleType('IPython')
  module.get_ipython = lambda: types.SimpleNamespace(**shell)
  monkeypatch.setitem(sys.modules, 'IPython', module)


def outside(monkeypatch):
  monkeypatch.delitem(sys.modules, 'IPython', raising=False)
  for name in (*notebook._STARTED, 'MPLBACKEND'):
    monkeypatch.delenv(name, raising=False)


def asked():
  return (
      notebook.is_shell(), notebook.is_kernel(), notebook.is_shown_in_a_cell()
  )


def test_a_kernel_a_shell_and_what_they_start(monkeypatch):
  outside(monkeypatch)
  assert asked() == (False, False, False)
  monkeypatch.setenv('JPY_PARENT_PID', '12')  # As !vfljax has it.
  assert asked() == (False, False, True)
  ipython(monkeypatch, kernel=None)
  assert asked() == (True, True, True)
  monkeypatch.delenv('JPY_PARENT_PID')
  ipython(monkeypatch)  # In a terminal.
  assert asked() == (True, False, False)
  monkeypatch.setenv('MPLBACKEND', 'agg')
  assert asked() == (True, False, False)
  monkeypatch.setenv('MPLBACKEND', 'module://matplotlib_inline.backend_inline')
  assert asked() == (True, False, True)


def test_ipython_that_is_imported_without_a_session(monkeypatch):
  outside(monkeypatch)
  ipython(monkeypatch)
  sys.modules['IPython'].get_ipython = lambda: None
  assert asked() == (False, False, False)
  monkeypatch.setitem(sys.modules, 'IPython', None)
  assert asked() == (False, False, False)


def test_a_command_in_a_session_does_not_end_it(monkeypatch, capsys):
  """As of `%run -m vfljax`, where a typing error ended the kernel."""
  def never(*_):
    raise AssertionError('the session would be gone')

  monkeypatch.setattr(stopping, 'end', never)
  monkeypatch.setattr(stopping, 'leave', never)
  monkeypatch.setattr(sys, 'argv', ['vfljax', '--confg=my.py'])
  ipython(monkeypatch)
  before = signal.getsignal(signal.SIGINT)
  assert main.main() == 2
  assert 'confg' in capsys.readouterr().err
  assert signal.getsignal(signal.SIGINT) == before


def test_a_request_to_stop_is_told_in_the_cell(monkeypatch, capsys):
  """Its file would be the terminal that Jupyter was started from."""
  ipython(monkeypatch, kernel=None)
  with stopping.listening() as stop:
    signal.raise_signal(signal.SIGINT)
    assert stop
  assert 'after saving' in capsys.readouterr().err


def test_the_programs_name_may_be_left_out(capsys):
  assert main.main(['--confg=my.py']) == 2
  assert 'confg' in capsys.readouterr().err
