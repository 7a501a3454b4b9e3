"""Random flips and shifts of images, inside a party's training pass.

Each party changes its own part of each image, with its own key, in every round;
nothing is changed at inference. What shifts leave uncovered is black. Draws
are of 32 bits in a 64-bit program too, as exact masked training is one.
"""
import jax
from jax import lax
import jax.numpy as jnp

from vfljax.types import Array, Key, Net


def flip(key: Key, x: Array) -> Array:
  """Mirrors left and right of every other image, by lot.

  Args:
    x: [batch, height, width, channels].
  """
  turned = jax.random.bernoulli(key, jnp.float32(0.5), (len(x), 1, 1, 1))
  return jnp.where(turned, x[:, :, ::-1], x)


def shift(key: Key, x: Array, pixels: int, fill: Array | float = 0.0
) -> Array:
  """Random crops of images with `pixels` around them: shifts by up to as many.

  Args:
    x: [batch, height, width, channels].
    pixels: Largest shift up, down, left and right, 0 or more; each equally
      likely, in both directions apart.
    fill: Value of what comes in from outside.
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
    net: Of images [batch, height, width, channels].
    flips: Whether to mirror half of the images.
    pixels: Of `shift`; 0 shifts nothing.

  Raises:
    ValueError: for a negative number of pixels.
  """
  if pixels < 0:
    raise ValueError(f'augmented: pixels must be 0 or more; got {pixels}.')

  def train(params, key, x):
    k_net, k_flip, k_shift = jax.random.split(key, 3)
    x = flip(k_flip, x) if flips else x
    # Black is the darkest that there is, however the images were scaled.
    x = shift(k_shift, x, pixels, x.min()) if pixels else x
    return net.run(params, k_net, x)

  return net._replace(train=train) if flips or pixels else net
