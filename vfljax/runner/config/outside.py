"""Methods from outside of vfljax: registered by a config file or a program.

Their author can mend errors in them, so these are told in two lines with the
method's name. Errors in vfljax's own methods keep their traceback.
"""
from collections.abc import Callable, Iterator
import contextlib
import traceback
import types
from typing import Any

import jax

from vfljax import attacks, data, defenses, importing, nets
from vfljax.attack import Recipe
from vfljax.check import Misfit
from vfljax.check import kind as kind_of
from vfljax.runner.config import Entry, blaming
from vfljax.runner.errors import UserError, brief

# Registry -> the kind of its entries, and how one is made.
_KINDS: dict[str, tuple[dict, Any, str]] = dict(
    attacks=(attacks.REGISTRY, Callable, '@recipe(...) over its factory'),
    data=(data.REGISTRY, data.Source,
          'data.Source(load, task=..., how=..., licence=...)'),
    defenses=(defenses.REGISTRY, defenses.Method, 'Method(factory, (0.1, 1))'),
    nets=(nets.REGISTRY, nets.Network, 'nets.Network(factory)'),
)


def is_ours(method: Any) -> bool:
  """Whether a registry's entry is vfljax's own, with all of its functions."""
  return all(map(is_here, functions(method)))


def is_here(function: Any) -> bool:
  """Whether a function or class is in vfljax.

  What `functools.wraps` copies does not count: a wrapper around a function of
  vfljax says that it is in the same module. Its variables are of its own.
  """
  kind = function if isinstance(function, type) else type(function)
  module = kind.__module__
  if isinstance(function, types.FunctionType):
    module = function.__globals__.get('__name__', '')
  return str(module).startswith('vfljax.')


def functions(method: Any) -> list[Any]:
  """All functions and classes of a registry's entry, its factory first.

  A recipe over an attack of vfljax may have a measure of its own.
  """
  parts = vars(method).values() if isinstance(method, Recipe) else ()
  listed = (each if isinstance(each, tuple) else (each,) for each in parts)
  found = [factory(method), *(x for some in listed for x in some)]
  return [*{id(each): each for each in found if callable(each)}.values()]


def factory(method: Any) -> Callable[..., Any]:
  """The function behind a registry's entry."""
  return getattr(method, 'load', None) or getattr(method, 'factory', method)


def has(entry: Entry) -> bool:
  """Whether a row's defense, or one chained to it, is from outside."""
  return not is_ours(defenses.REGISTRY[entry.defense]) or any(
      map(has, entry.after)
  )


def check() -> None:
  """Refuses a registry's entries of another kind, and a `none` that defends.

  Raises:
    UserError: for the first such entry.
  """
  for family, (registry, kind, how) in _KINDS.items():
    for name, entry in registry.items():
      if isinstance(entry, kind) and not isinstance(entry, type):
        continue
      raise UserError(
          f'{family}.REGISTRY[{name!r}] is {_kind(entry)}, which cannot run: '
          f'make it\n{family}.REGISTRY[{name!r}] = {how}.'
      )
  if not is_ours(defenses.REGISTRY.get('none')):
    raise UserError(
        "defenses.REGISTRY['none'] is the undefended federation, with which "
        'all others are compared: give yours another name.'
    )


@contextlib.contextmanager
def explained(name: str, mine: bool) -> Iterator[None]:
  """A context where errors of a method from outside are told with its name.

  Args:
    name: The method's name.
    mine: Whether it is from outside; else nothing is changed.

  Raises:
    UserError: in place of other errors.
  """
  try:
    yield
  except UserError:
    raise
  except Exception as error:
    if not mine:
      raise
    raise UserError(said(name, error)) from None


@contextlib.contextmanager
def loading(name: str) -> Iterator[None]:
  """A context where errors of a loader from outside are told with its place.

  Args:
    name: The data set's name. Errors of vfljax's own are left as they are, and
      so is what vfljax says of a table that was loaded.

  Raises:
    UserError: in place of other errors of the loader, SystemExit, too.
  """
  try:
    yield
  except (Exception, SystemExit) as error:
    source = data.REGISTRY.get(name)
    if source is None or is_ours(source):
      raise
    if isinstance(error, ValueError) and not _place(error):
      raise
    raise UserError(f'{said(name, error)}\n{_expected(source)}') from None


@contextlib.contextmanager
def misfits() -> Iterator[None]:
  """A context where a `Misfit` that no rehearsal found is told in two lines.

  Raises:
    UserError: in place of a `Misfit`.
  """
  try:
    yield
  except Misfit as error:
    raise UserError(brief(str(error))) from None


def said(name: str, error: BaseException) -> str:
  """An error of a method from outside, in two lines at most."""
  if isinstance(error, jax.errors.ConcretizationTypeError):
    return (
        f'{name}: {_place(error)}Python looks at a number that is traced, as a '
        'strength is: it has no value yet.\nUse jnp.where(s > 0, ...) in place '
        'of `if s > 0:`, and check ranges with vfljax.check.'
    )
  text = brief(str(error))
  if isinstance(error, ValueError):
    text = text.removeprefix(f'{name}: ')  # As `data.load` writes it, too.
    return text if text.startswith(name) else f'{name}: {_place(error)}{text}'
  own = _frames(error)
  # An assertion without words is told by its line.
  first = text.partition('\n')[0] or (own[-1].line if own else '')
  kind = type(error).__name__
  return f'{name}: {_place(error)}{kind}: {first}'.removesuffix(': ')


def _place(error: BaseException) -> str:
  """'/a/my.py, line 12: ', the last line of a file that is not vfljax's."""
  own = _frames(error)
  return blaming.place(own[-1].filename, own[-1].lineno) if own else ''


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
  """Frames in files that are not vfljax's, of the error or of its cause."""
  frames = traceback.extract_tb(error.__traceback__)
  own = [f for f in frames if importing.is_own(f.filename)]
  return own or (_frames(error.__cause__) if error.__cause__ else [])


def _expected(source: data.Source) -> str:
  """What a loader has to be, and where this one is."""
  code = getattr(source.load, '__code__', None)
  where = f' in {code.co_filename}, line {code.co_firstlineno}' if code else ''
  return (
      f'Its loader{where} is called with the path and its options, and must '
      'return a vfljax.data.Table.'
  )


def _kind(entry: Any) -> str:
  if callable(entry) and not isinstance(entry, (type, Recipe)):
    return 'a plain function'
  return kind_of(entry)
