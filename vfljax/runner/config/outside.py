"""Methods from outside of vfljax: registered by a config file or a program.

Their author can mend errors in them, so these are told in two lines with the
method's name. Errors in vfljax's own methods keep their traceback.
"""
from collections.abc import Callable, Iterator
import contextlib
import traceback
from typing import Any

import jax

from vfljax import attacks, data, defenses, nets
from vfljax.attack import Recipe
from vfljax.check import Misfit
from vfljax.runner.config import Entry, blaming
from vfljax.runner.errors import UserError, brief

# Registry -> the kind of its entries, and how one is made.
_KINDS: dict[str, tuple[dict, Any, str]] = dict(
    attacks=(attacks.REGISTRY, Callable, '@recipe(...) over its factory'),
    data=(data.REGISTRY, data.Source, 'data.Source(load, task=..., how=...)'),
    defenses=(defenses.REGISTRY, defenses.Method, 'Method(factory, (0.1, 1))'),
    nets=(nets.REGISTRY, nets.Network, 'nets.Network(factory)'),
)


def is_ours(method: Any) -> bool:
  """Whether a registry's entry is vfljax's own."""
  module = getattr(factory(method), '__module__', '')
  return str(module).startswith('vfljax.')


def factory(method: Any) -> Callable[..., Any]:
  """The function behind a registry's entry."""
  return getattr(method, 'load', None) or getattr(method, 'factory', method)


def has(entry: Entry) -> bool:
  """Whether a row's defense, or one chained to it, is from outside."""
  return not is_ours(defenses.REGISTRY[entry.defense]) or any(
      map(has, entry.after)
  )


def check() -> None:
  """Refuses a registry's entries that are of another kind.

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
def misfits() -> Iterator[None]:
  """A context where a `Misfit` that no rehearsal found is told in two lines.

  Raises:
    UserError: in place of a `Misfit`.
  """
  try:
    yield
  except Misfit as error:
    raise UserError(brief(str(error))) from None


def said(name: str, error: Exception) -> str:
  """An error of a method from outside, in two lines at most."""
  if isinstance(error, jax.errors.ConcretizationTypeError):
    return (
        f'{name}: {_place(error)}Python looks at a number that is traced, as a '
        'strength is: it has no value yet.\nUse jnp.where(s > 0, ...) in place '
        'of `if s > 0:`, and check ranges with vfljax.check.'
    )
  text = brief(str(error))
  if isinstance(error, ValueError):
    return text if text.startswith(name) else f'{name}: {_place(error)}{text}'
  first = text.partition('\n')[0]
  return f'{name}: {_place(error)}{type(error).__name__}: {first}'


def _place(error: Exception) -> str:
  """'/a/my.py, line 12: ', the last line of a file that is not vfljax's."""
  frames = traceback.extract_tb(error.__traceback__)
  own = [f for f in frames if blaming.is_own(f.filename)]
  return f'{own[-1].filename}, line {own[-1].lineno}: ' if own else ''


def _kind(entry: Any) -> str:
  if callable(entry) and not isinstance(entry, (type, Recipe)):
    return 'a plain function'
  return f'a {type(entry).__name__}'
