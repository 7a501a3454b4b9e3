"""Networks by name, and functions that build networks.

`make('lenet5', 84)` is a bottom network, a `Net`; `mlp`, `linen`, `nnx`, `then`
and `binary` build others. The first argument of every named factory is the
embedding's width. Linear layers are `Dense`, convolutions `convolution.Conv`,
called in the alphabetical order of their names, so that VMask can compute them
on secret shares.
"""
from collections.abc import Callable
import dataclasses
import inspect
from typing import Any

from vfljax.nets import (
    augment, cafe, convolution, convolutional, embedding, encoder, images,
    intercept, lenet, mlp3, named_layers, resnet, vgg, wide_deep,
)
from vfljax.nets.base import (
    ACTIVATIONS, NORMS, Activation, Dropout, MLP, Norm, activation_of, binary,
    final_activation, leaky_relu, mlp, padded_pair, pair, then, with_weights,
)
from vfljax.nets.dense import Dense, fan_in_uniform
from vfljax.nets.modules import counting, counting_rows, linen
from vfljax.nets.nnx_modules import nnx
from vfljax.types import Net

READS = ('anything', 'images', 'numbers')


@dataclasses.dataclass(frozen=True)
class Network:
  """A registered network; calling it calls its factory.

  Attributes:
    factory: (width, **options) -> Net.
    reads: Its input: 'anything', 'images', or 'numbers' of categories or words.
  """

  factory: Callable[..., Net]
  reads: str = 'anything'

  def __post_init__(self):
    if self.reads not in READS:
      raise ValueError(f'reads must be one of {READS}; got {self.reads!r}.')
    if not callable(self.factory):
      raise ValueError(
          'Network(factory) must have a function (width, **options) -> Net; '
          f'got {self.factory!r}.'
      )
    for name, p in inspect.signature(self.factory).parameters.items():
      named = p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
      if named and p.default is p.empty and name != 'width':
        raise ValueError(
            f'Network: the argument {name} of '
            f'{getattr(self.factory, "__name__", "the factory")} needs a '
            f'default value, as in {name}=8.'
        )

  def __call__(self, *args: Any, **options: Any) -> Net:
    return self.factory(*args, **options)

  @property
  def needs_width(self) -> bool:
    """Whether its factory has no default width."""
    width = inspect.signature(self.factory).parameters.get('width')
    return width is not None and width.default is width.empty

  @property
  def options(self) -> dict[str, Any]:
    """Its options and their defaults, but for width."""
    parameters = inspect.signature(self.factory).parameters
    return {k: p.default for k, p in parameters.items() if k != 'width'}


# A new network is one file and one line here.
REGISTRY: dict[str, Network] = dict(
    mlp3=Network(mlp3.mlp3),
    lenet5=Network(lenet.lenet5, 'images'),
    conv2=Network(convolutional.conv2, 'images'),
    conv3=Network(convolutional.conv3, 'images'),
    cafe=Network(cafe.cafe, 'images'),
    vgg13=Network(vgg.vgg13, 'images'),
    resnet18=Network(resnet.resnet18, 'images'),
    resnet20=Network(resnet.resnet20, 'images'),
    embedding=Network(embedding.embedding, 'numbers'),
    wide_deep=Network(wide_deep.wide_deep, 'numbers'),
    encoder=Network(encoder.encoder, 'numbers'),
)


def make(name: str, width: int = 0, **options: Any) -> Net:
  """A named bottom network.

  Args:
    name: A key of `REGISTRY`.
    width: Width of its embedding, 1 or more; 0 is the network's default.
    **options: The factory's other arguments.

  Raises:
    ValueError: (one line) for an unknown name or option, or a wrong value.
  """
  if name not in REGISTRY:
    raise ValueError(
        f'There is no network {name!r}; choose of {", ".join(REGISTRY)}.'
    )
  known = REGISTRY[name].options
  for option in options:
    if option not in known:
      raise ValueError(
          f'Network {name} has no option {option!r}; it has '
          f'{", ".join(known)}.'
      )
  if width < 0:
    raise ValueError(f'width must be 1 or more, or 0; got {width}.')
  if not width and REGISTRY[name].needs_width:
    raise ValueError(
        f'Network {name} has no default width: give one, as with '
        '--config.model.width=8.'
    )
  return REGISTRY[name](*([width] if width else []), **options)


__all__ = [
    'ACTIVATIONS', 'Activation', 'Dense', 'Dropout', 'MLP', 'NORMS', 'Network',
    'Norm', 'READS', 'REGISTRY', 'activation_of', 'augment', 'binary', 'cafe',
    'convolution', 'convolutional', 'counting', 'counting_rows', 'embedding',
    'encoder', 'fan_in_uniform', 'final_activation', 'images', 'intercept',
    'leaky_relu', 'lenet', 'linen', 'make', 'mlp', 'mlp3', 'named_layers',
    'nnx', 'padded_pair', 'pair', 'resnet', 'then', 'vgg', 'wide_deep',
    'with_weights',
]
