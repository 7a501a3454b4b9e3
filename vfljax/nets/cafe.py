"""CAFE's network (Jin et al., 2021): two pooled convolutions, three linear.

The paper has no sizes; its authors' code (github.com/DeRafael/CAFE, model.py)
has 64 and 128 channels of 5x5, pooled 2x2 with a last odd row and column kept,
and linear layers of 256, 64 and 10, each with a ReLU, the last one too. MID
uses it with one linear layer on top. CAFE reads the input of the first linear
layer off its gradients, so `middle` gives that input and the layer's output.
"""
from collections.abc import Callable
from typing import Any

from flax import linen as nn

from vfljax import check
from vfljax.nets import base, convolution, images
from vfljax.types import Array, Net, Params


class Cafe(nn.Module):
  """See `cafe`."""

  width: int
  channels: tuple[int, ...] = (64, 128)
  hidden: tuple[int, ...] = (256, 64)
  dtype: Any = None
  how: str = ''

  def setup(self):
    self.convolutions = [
        convolution.Conv(
            c, (5, 5), dtype=self.dtype, how=self.how, name=f'conv{i}'
        )
        for i, c in enumerate(self.channels, start=1)
    ]
    self.linear = [
        base.Dense(width, self.dtype, name=f'fc{i}')
        for i, width in enumerate((*self.hidden, self.width), start=1)
    ]

  def middle(self, x) -> tuple[Array, Array]:
    images.check_images('cafe', x)
    for conv in self.convolutions:
      x = convolution.pool(nn.relu(conv(x)), whole=False)
    x = images.flatten(x)
    return x, self.linear[0](x)

  def __call__(self, x):
    _, x = self.middle(x)
    for layer in self.linear[1:]:
      x = layer(nn.relu(x))
    return images.finish(nn.relu(x))


def cafe(
    width: int = 10, channels: tuple[int, ...] = (64, 128),
    hidden: tuple[int, ...] = (256, 64), dtype: str = '', how: str = '',
) -> Net:
  """CAFE's network: images [batch, height, width, c] to [batch, width].

  Args:
    width: Of the embedding, the last linear layer.
    channels: Of the convolutions.
    hidden: Widths of the linear layers before the last.
    dtype: 'bfloat16' computes in it; '' in the weights' float32.
    how: How convolutions are computed, see `convolution.convolve`.

  Returns:
    Its parameters are {'conv1', 'conv2', 'fc1', 'fc2', 'fc3'}; a linear layer's
    are `params['fc1']['Dense_0']` with 'kernel' [in, out] and 'bias'.

  Raises:
    ValueError: for an unknown dtype or how, or a size below 1.
  """
  module = _module(width, channels, hidden, dtype, how)
  return images.blockwise(base.linen(module))


def middle(
    width: int = 10, channels: tuple[int, ...] = (64, 128),
    hidden: tuple[int, ...] = (256, 64), dtype: str = '', how: str = '',
) -> Callable[[Params, Array], tuple[Array, Array]]:
  """The first linear layer's input and output, of `cafe` with these arguments.

  Returns:
    A function (params, x) -> (the layer's input [batch, features], its output
    before the activation [batch, hidden[0]]).
  """
  module = _module(width, channels, hidden, dtype, how)

  def around(params: Params, x: Array) -> tuple[Array, Array]:
    found: Any = module.apply({'params': params}, x, method='middle')
    return found

  return around


def _module(width, channels, hidden, dtype, how) -> Cafe:
  images.check_options('none', how)
  check.sizes('cafe', width=width, channels=channels, hidden=hidden)
  return Cafe(width, channels, hidden, images.dtype_of(dtype), how)
