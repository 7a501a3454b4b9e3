"""Random flips and shifts of images, inside a party's training pass.

Each party changes its own part of each image, with its own key, in every round;
nothing is changed at inference. Pixels that a shift uncovers are black. Draws
have 32 bits even in a 64-bit program, so that exact masked training, which is
one, draws the same.
"""
import jax
from jax import lax
import jax.numpy as jnp

from vfljax.types import Array, Key, Net


def flip(key: Key, x: Array) -> Array:
  """Mirrors each image left to right with probability 1/2.

  Args:
    key: Draws which images.
    x: [batch, height, width, channels].
  """
  turned = jax.random.bernoulli(key, jnp.float32(0.5), (len(x), 1, 1, 1))
  return jnp.where(turned, x[:, :, ::-1], x)


def shift(key: Key, x: Array, pixels: int, fill: Array | float = 0.0
) -> Array:
  """Shifts each image at random, by up to `pixels` on each axis.

  Args:
    key: Draws the shifts.
    x: [batch, height, width, channels].
    pixels: Largest shift up, down, left and right, 0 or more; all shifts are
      equally likely, and independent on the two axes.
    fill: Value of the uncovered pixels.
  """
  pads = ((0, 0), (pixels, pixels), (pixels, pixels), (0, 0))
  padded = jnp.pad(x, pads, constant_values=fill)
  corners = jax.random.randint(
      key, (len(x), 2), 0, 2 * pixels + 1, jnp.int32
  )

  def crop(image, corner):
    start = (corner[0], corner[1], jnp.zeros_like(corner[0]))
    return lax.dynamic_slice(image, start, x.shape[1:])

  return jax.vmap(crop)(padded, corners)


def augmented(net: Net, flips: bool = False, pixels: int = 0) -> Net:
  """`net`, trained on flipped and shifted images.

  Args:
    net: A network on images [batch, height, width, channels].
    flips: Whether to mirror half of the images, at random.
    pixels: Largest shift; 0 shifts nothing.

  Raises:
    ValueError: for a negative number of pixels.
  """
  if pixels < 0:
    raise ValueError(f'augmented: pixels must be 0 or more; got {pixels}.')

  def train(params, key, x):
    k_net, k_flip, k_shift = jax.random.split(key, 3)
    x = flip(k_flip, x) if flips else x
    # Black is the smallest value in the batch, whatever the images' scale.
    x = shift(k_shift, x, pixels, x.min()) if pixels else x
    return net.run(params, k_net, x)

  return net._replace(train=train) if flips or pixels else net
