"""A defender's samples made by augmentation: VMask's auxiliary data (V-A).

In the paper, images are flipped and cropped at random, and words are removed
from texts or inserted. The paper does not say how far and how often. Here, as
is usual, crops are shifts by up to four pixels; a tenth of a text's words is
removed and as many are inserted. Each party's part is changed by itself:
mirroring a whole image would move one half to the other party.
"""
import jax
import jax.numpy as jnp

from vfljax.nets import augment
from vfljax.types import Array, Batch, Key

READS_TEXTS = 'encoder'  # The network whose samples are texts.
PIXELS = 4
RATE = 0.1


def augmented(key: Key, samples: Batch, texts: bool = False) -> Batch:
  """Augments every party's part of the samples; labels stay as they are.

  Args:
    key: Seeds all draws.
    samples: Each party has images [n, height, width, channels], or token
      numbers of texts [n, tokens].
    texts: Whether they are texts.

  Raises:
    ValueError: if features are not images and `texts` is False.
  """
  change = words if texts else image
  parts = [
      x if x is None else change(jax.random.fold_in(key, k), x)
      for k, x in enumerate(samples.features)
  ]
  return samples._replace(features=tuple(parts))


def image(key: Key, x: Array) -> Array:
  """Mirrors each image at random and shifts each by a few pixels.

  Args:
    key: Seeds all draws.
    x: Images [n, height, width, channels].

  Raises:
    ValueError: if `x` has another number of dimensions.
  """
  if x.ndim != 4:
    raise ValueError(
        'auxiliary.augment flips and crops images or rewords texts, but a '
        f'party has features of shape {x.shape[1:]}. Leave it at none.'
    )
  k_flip, k_shift = jax.random.split(key)
  pixels = min(PIXELS, min(x.shape[1:3]) // 2)
  # The minimum is black, however the images were scaled.
  return augment.shift(k_shift, augment.flip(k_flip, x), pixels, x.min())


def words(key: Key, x: Array, rate: float = RATE, padding: int = 0) -> Array:
  """Removes words from texts at random, and inserts words of other texts.

  Args:
    key: Seeds all draws.
    x: Token numbers [n, tokens]: each text starts and ends with a special
      token, with padding after it.
    rate: Probability that a word is removed, and that a word drawn from all of
      `x` is inserted before it.
    padding: The token number of padding.

  Returns:
    [n, tokens]; texts that became too long lose their last words.
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
  ends = (place == amount - 1) & (count > 1)  # Keeps the last special token.
  return jnp.where(ends, last, found).astype(x.dtype)
