"""Methods from outside of vfljax: registered by a config file or a program."""
from collections.abc import Callable
from typing import Any


def is_ours(method: Any) -> bool:
  """Whether a registry's entry is vfljax's own."""
  return str(
      getattr(factory(method), '__module__', '')
  ).startswith('vfljax.')


def factory(method: Any) -> Callable[..., Any]:
  """The function behind a registry's entry."""
  return getattr(method, 'load', None) or getattr(method, 'factory', method)
