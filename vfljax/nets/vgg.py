"""VGG13 (Simonyan and Zisserman, 2015, configuration B), here for small images.

Ten convolutions of 3x3 in five pairs, each pair pooled 2x2, then three linear
layers. Half of a CIFAR image, 32 x 16, has no row of pixels left after four
poolings on its shorter side, which is pooled no further then. Linear layers are
512 wide where ImageNet's are 4096; `hidden` changes that.
"""
from typing import Any

from flax import linen as nn

from vfljax import check
from vfljax.nets import base, convolution, images
from vfljax.types import Net

CHANNELS = (64, 128, 256, 512, 512)


class VGG(nn.Module):
  """See `vgg13`."""

  width: int
  channels: tuple[int, ...] = CHANNELS
  hidden: tuple[int, ...] = (512, 512)
  norm: str = 'batch'
  dropout: float = 0.0
  dtype: Any = None
  how: str = ''

  @nn.compact
  def __call__(self, x, train: bool = False):
    images.check_images('vgg13', x)
    for i, channels in enumerate(self.channels, start=1):
      for j in (1, 2):
        x = convolution.Conv(
            channels, dtype=self.dtype, how=self.how, name=f'conv{i}_{j}'
        )(x)
        x = base.Norm(self.norm, self.dtype, name=f'norm{i}_{j}')(x, train)
        x = nn.relu(x)
      x = convolution.pool(x)
    x = images.flatten(x)
    for i, width in enumerate(self.hidden, start=1):
      x = nn.relu(base.Dense(width, self.dtype, name=f'fc{i}')(x))
      if self.dropout:
        x = base.Dropout(self.dropout)(x, train)
    last = base.Dense(self.width, self.dtype, name=f'fc{len(self.hidden) + 1}')
    return images.finish(last(x))


def vgg13(
    width: int = 64, channels: tuple[int, ...] = CHANNELS,
    hidden: tuple[int, ...] = (512, 512), norm: str = 'batch',
    dropout: float = 0.0, dtype: str = '', how: str = '',
) -> Net:
  """VGG13: images [batch, height, width, c] to [batch, width].

  Args:
    width: Of the embedding, the last linear layer.
    channels: Of both convolutions of each pair.
    hidden: Widths of the linear layers before the last.
    norm: After convolutions: 'batch', 'group' or 'none', see `base.Norm`.
    dropout: Share of the hidden linear units dropped in training, in [0, 1).
    dtype: 'bfloat16' computes in it; '' in the weights' float32.
    how: How convolutions are computed, see `convolution.convolve`.

  Raises:
    ValueError: for an unknown norm, dtype or how, a size that is none, or a
      dropout out of its range.
  """
  images.check_options(norm, how)
  check.sizes('vgg13', width=width, channels=channels, hidden=hidden)
  check.inside('vgg13: dropout', dropout, 0, 1, open_high=True)
  module = VGG(
      width, channels, hidden, norm, dropout, images.dtype_of(dtype), how
  )
  return images.blockwise(base.linen(module, norm == 'batch' or dropout > 0))
