"""LeNet-5 (LeCun et al., 1998), VMask's network for small images.

Two convolutions of 5x5, each pooled 2x2, then three linear layers. VMask does
not say how it fits half an image: here convolutions keep the image's size, and
ReLU and the largest of four pixels stand for the original's sigmoid and mean.
"""
from typing import Any

from flax import linen as nn

from vfljax import nets
from vfljax.models import layers
from vfljax.types import Net


class LeNet5(nn.Module):
  """See `lenet5`."""

  width: int
  channels: tuple[int, int] = (6, 16)
  hidden: tuple[int, int] = (120, 84)
  activation: nets.Activation = nn.relu
  pool: str = 'max'
  dtype: Any = None
  how: str = ''

  @nn.compact
  def __call__(self, x):
    layers.check_images('lenet5', x)
    for i, channels in enumerate(self.channels, start=1):
      conv = layers.Conv(
          channels, (5, 5), dtype=self.dtype, how=self.how, name=f'conv{i}'
      )
      x = layers.pool(self.activation(conv(x)), self.pool)
    x = layers.flatten(x)
    for i, width in enumerate(self.hidden, start=1):
      x = self.activation(nets.Dense(width, self.dtype, name=f'fc{i}')(x))
    x = nets.Dense(self.width, self.dtype, name='fc3')(x)
    return layers.finish(x)


def lenet5(
    width: int = 84, channels: tuple[int, int] = (6, 16),
    hidden: tuple[int, int] = (120, 84), activation: str = 'relu',
    pool: str = 'max', dtype: str = '', how: str = '',
) -> Net:
  """LeNet-5: images [batch, height, width, c] to [batch, width].

  Args:
    width: Of the embedding, the third linear layer.
    channels: Of the two convolutions.
    hidden: Widths of the first two linear layers.
    activation: A name of `nets.ACTIVATIONS`.
    pool: 'max' or 'mean'.
    dtype: 'bfloat16' computes in it; '' in the weights' float32.
    how: How convolutions are computed, see `layers.convolve`.
  """
  return nets.linen(LeNet5(
      width, channels, hidden, nets.activation_of(activation), pool,
      layers.dtype_of(dtype), how,
  ))
