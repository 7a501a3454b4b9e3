"""Networks by name: `make('lenet5', 84)` is a bottom network, a `Net`.

Every factory takes the embedding's width first. Layers are `nn.Dense` or
`layers.Conv`, called in the alphabetical order of their names.
"""
from collections.abc import Callable
import inspect
from typing import Any

from vfljax import networks
from vfljax.models import cafe, embedding, encoder, lenet, mlp, resnet, vgg
from vfljax.types import Net
from vfljax.wide_deep import wide_and_deep


def conv2(
    width: int = 128, channels: tuple[int, ...] = (8, 16), pools: int = 1,
    activation: str = 'relu',
) -> Net:
  """Two convolutions of 3x3 and a linear layer (Kang et al., Table 9)."""
  return networks.convolutional(
      channels, width, pools=pools, activation=activation
  )


def conv3(
    width: int = 40, channels: tuple[int, ...] = (6, 16, 32),
    hidden: tuple[int, ...] = (120, 84), activation: str = 'relu',
) -> Net:
  """Three pooled convolutions and three linear layers (GAFM, for ISIC)."""
  return networks.convolutional(
      channels, *hidden, width, pools=len(channels), activation=activation,
      same=False,
  )


def wide_deep(
    width: int = 1, buckets: int = 1000, size: int = 16,
    hidden: tuple[int, ...] = (16, 16), activation: str = 'relu',
) -> Net:
  """Wide & Deep on columns of category numbers (GAFM, for Criteo)."""
  return wide_and_deep(
      buckets, *hidden, width, embedding=size, activation=activation
  )


REGISTRY: dict[str, Callable[..., Net]] = dict(
    mlp3=mlp.mlp3,
    lenet5=lenet.lenet5,
    conv2=conv2,
    conv3=conv3,
    cafe=cafe.cafe,
    vgg13=vgg.vgg13,
    resnet18=resnet.resnet18,
    resnet20=resnet.resnet20,
    embedding=embedding.embedding,
    wide_deep=wide_deep,
    encoder=encoder.encoder,
)
# Those that need images, and those that need category or token numbers.
IMAGES = frozenset({
    'lenet5', 'conv2', 'conv3', 'cafe', 'vgg13', 'resnet18', 'resnet20',
})
NUMBERS = frozenset({'embedding', 'wide_deep', 'encoder'})


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
