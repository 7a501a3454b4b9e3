"""ResNet18 and ResNet20 (He et al., 2016) for small images.

ResNet20 is the paper's network for CIFAR-10: three stages of three blocks,
shortcuts without weights. ResNet18 is its network for ImageNet, which on
CIFAR's images starts, as is usual, with a convolution of 3x3 and no pooling.
Both end in the mean over all pixels and one linear layer.
"""
from typing import Any

from flax import linen as nn
import jax.numpy as jnp

from vfljax import check
from vfljax.nets import base, convolution, images
from vfljax.types import Net

STEMS = ('small', 'large')
SHORTCUTS = ('project', 'pad')


class Block(nn.Module):
  """Two convolutions of 3x3 and what they are added to."""

  channels: int
  stride: int
  norm: str
  shortcut: str
  dtype: Any
  how: str

  @nn.compact
  def __call__(self, x, train: bool = False):
    steps = (self.stride, self.stride)
    y = nn.relu(self.normed('conv1', x, train, 3, steps))
    y = self.normed('conv2', y, train, 3, (1, 1))
    if x.shape == y.shape:
      return nn.relu(x + y)
    if self.shortcut == 'project':
      return nn.relu(self.normed('shortcut', x, train, 1, steps) + y)
    x = x[:, :: self.stride, :: self.stride]
    new = y.shape[-1] - x.shape[-1]
    return nn.relu(jnp.pad(x, ((0, 0),) * 3 + ((0, new),)) + y)

  def normed(self, name: str, x, train: bool, side: int, strides):
    conv = convolution.Conv(
        self.channels, (side, side), strides, side // 2,
        self.norm == 'none', self.dtype, self.how, name=name,
    )
    return base.Norm(self.norm, self.dtype, name=f'{name}_norm')(
        conv(x), train
    )


class ResNet(nn.Module):
  """See `resnet18` and `resnet20`."""

  width: int
  channels: tuple[int, ...]
  blocks: tuple[int, ...]
  stem: str
  shortcut: str
  norm: str
  dtype: Any
  how: str

  @nn.compact
  def __call__(self, x, train: bool = False):
    images.check_images('resnet', x)
    large = self.stem == 'large'
    x = convolution.Conv(
        self.channels[0], (7, 7) if large else (3, 3),
        (2, 2) if large else (1, 1),
        3 if large else 1, self.norm == 'none', self.dtype, self.how,
        name='conv0',
    )(x)
    x = nn.relu(base.Norm(self.norm, self.dtype, name='conv0_norm')(x, train))
    if large:
      # Zeros around it change nothing: there is nothing below after a ReLU.
      x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
      x = nn.max_pool(x, (3, 3), (2, 2), 'VALID')
    for i, (channels, count) in enumerate(zip(self.channels, self.blocks)):
      for j in range(count):
        x = Block(
            channels, 2 if i and not j else 1, self.norm, self.shortcut,
            self.dtype, self.how, name=f'stage{i + 1}_{j + 1}',
        )(x, train)
    x = images.finish(x).mean((1, 2))
    return images.finish(base.Dense(self.width, self.dtype, name='top')(x))


def resnet18(
    width: int = 64, channels: tuple[int, ...] = (64, 128, 256, 512),
    stem: str = 'small', norm: str = 'batch', dtype: str = '',
    how: str = '',
) -> Net:
  """ResNet18: images [batch, height, width, c] to [batch, width].

  Args:
    width: Of the embedding, the linear layer.
    channels: Of the four stages of two blocks.
    stem: 'small' starts with 3x3; 'large', for images of 100 pixels and more,
      with 7x7 at every other pixel and a pooling.
    norm: After convolutions: 'batch', 'group' or 'none', see `base.Norm`.
    dtype: 'bfloat16' computes in it; '' in the weights' float32.
    how: How convolutions are computed, see `convolution.convolve`.

  Raises:
    ValueError: for an unknown stem, norm, dtype or how, or no sizes.
  """
  return _resnet(width, channels, 2, stem, 'project', norm, dtype, how)


def resnet20(
    width: int = 64, channels: tuple[int, ...] = (16, 32, 64),
    shortcut: str = 'pad', norm: str = 'batch', dtype: str = '',
    how: str = '',
) -> Net:
  """ResNet20: images [batch, height, width, c] to [batch, width].

  Args:
    width: Of the embedding, the linear layer.
    channels: Of the three stages of three blocks.
    shortcut: 'pad': every other pixel, new channels zero (the paper's option
      A); 'project': a convolution of 1x1 (option B).
    norm: As in `resnet18`.
    dtype: As in `resnet18`.
    how: As in `resnet18`.

  Raises:
    ValueError: for an unknown shortcut, norm, dtype or how, or no sizes.
  """
  return _resnet(width, channels, 3, 'small', shortcut, norm, dtype, how)


def _resnet(
    width, channels, count, stem, shortcut, norm, dtype, how
) -> Net:
  images.check_options(norm, how)
  check.sizes('A ResNet', width=width, channels=channels)
  if stem not in STEMS or shortcut not in SHORTCUTS:
    raise ValueError(
        f'A ResNet has a stem of {STEMS} and a shortcut of {SHORTCUTS}; got '
        f'{stem!r} and {shortcut!r}.'
    )
  module = ResNet(
      width, channels, (count,) * len(channels), stem, shortcut, norm,
      images.dtype_of(dtype), how,
  )
  return images.blockwise(base.linen(module, norm == 'batch'))
