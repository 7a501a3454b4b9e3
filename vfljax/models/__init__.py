"""Networks by name: `make('lenet5', 84)` is a bottom network, a `Net`.

Every factory takes the embedding's width first. Layers are `nn.Dense` or
`layers.Conv`, called in the alphabetical order of their names.
"""
from collections.abc import Callable
import inspect
from typing import Any

from vfljax.models import lenet, mlp
from vfljax.types import Net

REGISTRY: dict[str, Callable[..., Net]] = dict(
    mlp3=mlp.mlp3,
    lenet5=lenet.lenet5,
)
IMAGES = frozenset({'lenet5'})  # Those that need images.


def make(name: str, width: int = 0, **options: Any) -> Net:
  """The network called `name`, with embeddings of `width`; 0 is its own.

  Raises:
    ValueError: (one line) for an unknown name or option, or a wrong value.
  """
  if name not in REGISTRY:
    raise ValueError(
        f'There is no network {name!r}; there are {", ".join(REGISTRY)}.'
    )
  known = options_of(name)
  for option in options:
    if option not in known:
      raise ValueError(
          f'Network {name} has no option {option!r}; it has '
          f'{", ".join(known)}.'
      )
  if width < 0:
    raise ValueError(f'width must be 1 or more, or 0; got {width}.')
  return REGISTRY[name](*([width] if width else []), **options)


def options_of(name: str) -> dict[str, Any]:
  """The options of a registered network and their defaults, but for width."""
  parameters = inspect.signature(REGISTRY[name]).parameters
  return {k: p.default for k, p in parameters.items() if k != 'width'}
