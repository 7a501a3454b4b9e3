"""A defender's samples made of others: VMask's auxiliary data (section V-A).

There they are images flipped and cropped at random, or texts of which words are
left out or into which words are put. How far and how often the paper does not
say: crops here are shifts by up to four pixels, as is usual, and a tenth of a
text's words is left out, and as many are put in. Each party's part is changed
by itself: half of a mirrored image would be another party's.
"""
import jax
import jax.numpy as jnp

from vfljax.nets import augment
from vfljax.types import Array, Batch, Key

READS_TEXTS = 'encoder'  # The network whose samples are texts.
PIXELS = 4
RATE = 0.1


def augmented(key: Key, samples: Batch, texts: bool = False) -> Batch:
  """Every party's part of the samples, flipped and cropped, or reworded.

  Args:
    samples: Images [n, height, width, channels], or texts' token numbers
      [n, tokens].
    texts: Whether they are texts.

  Raises:
    ValueError: if they are neither.
  """
  change = words if texts else image
  parts = [
      x if x is None else change(jax.random.fold_in(key, k), x)
      for k, x in enumerate(samples.features)
  ]
  return samples._replace(features=tuple(parts))


def image(key: Key, x: Array) -> Array:
  """Half of the images [n, height, width, channels] mirrored, all shifted.

  Raises:
    ValueError: if these are no images.
  """
  if x.ndim != 4:
    raise ValueError(
        'auxiliary.augment flips and crops images and rewords texts; a party '
        f'has features of shape {x.shape[1:]}.'
    )
  k_flip, k_shift = jax.random.split(key)
  pixels = min(PIXELS, min(x.shape[1:3]) // 2)
  # Black is the darkest that there is, however the images were scaled.
  return augment.shift(k_shift, augment.flip(k_flip, x), pixels, x.min())


def words(key: Key, x: Array, rate: float = RATE, padding: int = 0) -> Array:
  """Texts with words left out and words of other texts put in.

  Args:
    x: [n, tokens] token numbers: a first and a last special token, and padding
      after the latter.
    rate: Probability with which a word is left out, and with which another,
      drawn from all of `x`, is put before it.
    padding: The number of what is not there.

  Returns:
    [n, tokens]; of what is too long the last words are left out.
  """
  n, length = x.shape
  k_out, k_in, k_word = jax.random.split(key, 3)
  odds = jnp.float32(rate)
  there = x != padding
  count = there.sum(-1, keepdims=True)
  place = jnp.arange(length)[None]
  inside = (place > 0) & (place < count - 1)  # Not a special token.
  left_out = inside & jax.random.bernoulli(k_out, odds, x.shape)
  put_in = inside & jax.random.bernoulli(k_in, odds, x.shape)
  so_far = jnp.cumsum(inside.ravel(), dtype=jnp.int32)
  lot = jax.random.randint(
      k_word, (n * length,), 1, jnp.maximum(so_far[-1], 1) + 1, jnp.int32
  )
  new = x.ravel()[jnp.searchsorted(so_far, lot)].reshape(x.shape)
  both = jnp.stack([new, x], -1).reshape(n, -1)
  kept = jnp.stack([put_in, there & ~left_out], -1).reshape(n, -1)
  order = jnp.argsort(~kept, axis=-1, stable=True)[:, :length]
  found = jnp.take_along_axis(both, order, -1)
  amount = jnp.minimum(kept.sum(-1, keepdims=True), length)
  found = jnp.where(place < amount, found, padding)
  last = jnp.take_along_axis(x, jnp.maximum(count - 1, 0), -1)
  ends = (place == amount - 1) & (count > 1)  # The last token is there, too.
  return jnp.where(ends, last, found).astype(x.dtype)
