"""LeNet-5 (LeCun et al., 1998), VMask's network for small images.

Two convolutions of 5x5, each pooled 2x2, then three linear layers. VMask does
not say how the network is adapted to half an image: by default convolutions
keep the image's size, and ReLU and max pooling replace the original's sigmoid
and mean pooling.
"""
from typing import Any

from flax import linen as nn
import jax.numpy as jnp

from vfljax import check, target
from vfljax.nets import base, convolution, images
from vfljax.types import Net


class LeNet5(nn.Module):
  """See `lenet5`."""

  width: int
  channels: tuple[int, int] = (6, 16)
  hidden: tuple[int, int] = (120, 84)
  activation: base.Activation = nn.relu
  pool: str = 'max'
  dtype: Any = None
  how: str = ''
  padding: str = 'SAME'
  border: tuple[int, int] = (0, 0)
  norm: str = 'none'
  final: base.Activation | None = None

  @nn.compact
  def __call__(self, x, train: bool = False):
    images.check_images('lenet5', x)
    rows, columns = self.border
    x = jnp.pad(x, ((0, 0), (rows, rows), (columns, columns), (0, 0)))
    if self.padding == 'VALID' and min(x.shape[1:3]) < 16:
      raise ValueError(
          'lenet5: with padding=VALID images and their border must be 16 '
          f'pixels wide and high or more; got {x.shape[1]} x {x.shape[2]}.'
      )
    # An activation that never falls leaves the largest pixel the largest. Where
    # XLA adds the bias within its convolution, nothing would be gained.
    rises = self.activation in base.ACTIVATIONS.values()
    early = self.pool == 'max' and rises and target.kind() == 'cpu'
    for i, channels in enumerate(self.channels, start=1):
      conv = convolution.Conv(
          channels, (5, 5), padding=self.padding, dtype=self.dtype,
          how=self.how, pooled=early, name=f'conv{i}',
      )
      x = self.activation(conv(x))
      x = x if early else convolution.pool(x, self.pool)
    x = images.flatten(x)
    for i, width in enumerate(self.hidden, start=1):
      x = self.activation(base.Dense(width, self.dtype, name=f'fc{i}')(x))
    x = base.Dense(self.width, self.dtype, name='fc3')(x)
    if self.norm != 'none':
      x = base.Norm(self.norm, self.dtype, name='fc3_norm')(x, train)
    return images.finish(self.final(x) if self.final else x)


def lenet5(
    width: int = 84, channels: tuple[int, int] = (6, 16),
    hidden: tuple[int, int] = (120, 84), activation: str = 'relu',
    pool: str = 'max', dtype: str = '', how: str = '', padding: str = 'SAME',
    border: tuple[int, int] = (0, 0), norm: str = 'none',
    final: str = 'linear',
) -> Net:
  """LeNet-5: images [batch, height, width, c] to [batch, width].

  Args:
    width: Of the embedding, the third linear layer.
    channels: Of the two convolutions.
    hidden: Widths of the first two linear layers.
    activation: A name of `base.ACTIVATIONS`.
    pool: 'max' or 'mean'.
    dtype: 'bfloat16' computes in it; '' in the weights' float32.
    how: How convolutions are computed, see `convolution.convolve`.
    padding: 'SAME', or 'VALID' as the original has it: 4 rows and columns are
      lost with each convolution, so that images must be 16 or more wide.
    border: Rows and columns of zeros around the image: with (2, 1) half a
      digit, 28 x 14, becomes half of the original's input, 32 x 16.
    norm: Of the embedding: 'batch', 'group' or 'none'.
    final: Activation of the embedding, after its norm.

  Raises:
    ValueError: for an unknown option, or a size below 1.
  """
  images.check_options(norm, how)
  check.sizes('lenet5', width=width, channels=channels, hidden=hidden)
  check.one_of('lenet5: padding', padding, ('SAME', 'VALID'))
  if not isinstance(border, tuple) or len(border) != 2 or min(border) < 0:
    raise ValueError(
        'lenet5: border is (rows, columns) of zeros, each 0 or more; got '
        f'{border}.'
    )
  module = LeNet5(
      width, channels, hidden, base.activation_of(activation), pool,
      images.dtype_of(dtype), how, padding, border, norm,
      base.final_activation(final),
  )
  return images.blockwise(base.linen(module, norm == 'batch'))
