"""What `vfljax.run` and `vfljax.recommend` have in common.

Their arguments are checked and named as in Python, an interrupt is told in one
line, and a notebook shows a page.
"""
from collections.abc import Iterator, Mapping
import contextlib
import html
import numbers
import os
from typing import Any, NamedTuple


class Stopped(KeyboardInterrupt):
  """The run was interrupted and has saved what it has."""

  def _render_traceback_(self) -> list[str]:
    return [str(self)]  # What IPython shows, in place of all frames.


class Page(NamedTuple):
  """A page of HTML that a notebook shows in a frame of its own."""

  content: str
  height: int

  def __repr__(self) -> str:
    return f'A page of {len(self.content)} characters, for a notebook.'

  def _repr_html_(self) -> str:
    # Without a base of its own, the page's links would lead to the notebook.
    own = self.content.replace('<head>', '<head><base href="about:srcdoc">', 1)
    return (
        f'<iframe srcdoc="{html.escape(own)}" width="100%" '
        f'height="{self.height}" style="border: 0"></iframe>'
    )


def check_kinds(places: Mapping[str, Any], figures: Mapping[str, Any]) -> None:
  """Refuses arguments of a wrong kind.

  Args:
    places: Folders, and a file `record`, by their arguments' names.
    figures: Numbers by theirs, `devices` among them.

  Raises:
    UserError: for the first such argument.
  """
  from vfljax.runner.errors import UserError
  for name, place in places.items():
    if not isinstance(place, (str, os.PathLike)):
      kind = 'file' if name == 'record' else 'folder'
      raise UserError(
          f'{name} must be a {kind}, as text or a Path; got {place!r}. Leave '
          f'it out for {"none" if name == "record" else "the default"}.'
      )
  for name, number in figures.items():
    if number is not None and not isinstance(number, numbers.Real):
      raise UserError(f'{name} must be a number; got {number!r}.')
  if not isinstance(figures['devices'], numbers.Integral):
    raise UserError(f'devices must be an integer; got {figures["devices"]}.')


def tell_of_cores(devices: int, called: str = 'vfljax.run') -> None:
  """Says so if JAX has started before, and so uses fewer cores."""
  import jax

  from vfljax.runner.machine import device
  has, cores = jax.local_device_count(), device.cores()
  if not devices and jax.default_backend() == 'cpu' and has < cores:
    print(
        f'JAX had started with {has} of {cores} cores. To train on all, '
        f'restart, and call {called} before JAX makes an array.', flush=True
    )


@contextlib.contextmanager
def own_words(keys: bool = False) -> Iterator[None]:
  """A context where messages name arguments and fields, not flags.

  Args:
    keys: Whether fields are keys of a dictionary, as for `wording.in_python`.

  Raises:
    Refused: in place of any other UserError, and of a PermissionError.
  """
  from vfljax.runner.cli import wording
  from vfljax.runner.errors import Refused, UserError, denied
  try:
    yield
  except UserError as error:
    raise Refused(wording.in_python(str(error), keys)) from None
  except PermissionError as error:
    if not error.filename:  # Of something else than a file.
      raise
    raise Refused(str(denied(error))) from error


@contextlib.contextmanager
def stoppable(place: str) -> Iterator[None]:
  """A context where an interrupted run says that `place` can be continued.

  Raises:
    Stopped: in place of KeyboardInterrupt.
  """
  try:
    yield
  except KeyboardInterrupt:
    from vfljax.runner.machine import stopping
    raise Stopped(
        stopping.last_words(place).replace(' command ', ' call ')
    ) from None
