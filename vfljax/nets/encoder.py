"""BERT and DistilBERT (Devlin et al., 2019; Sanh et al., 2019) as bottoms.

VMask fine-tunes DistilBERT on halves of texts. A network has the structure that
a Hugging Face folder's config.json states, and starts from its
model.safetensors; `files` reads both. Token numbers come in, [batch, length],
the padding token marking what is not there.
"""
from collections.abc import Callable
from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp

from vfljax.nets import base, images
from vfljax.nets.encoder_files import Structure, read_structure, read_weights
from vfljax.nets.pretrained import Pretrained
from vfljax.types import Array, Net

POOLINGS = ('first', 'mean')
ACTIVATIONS: dict[str, Callable[[Array], Array]] = dict(
    gelu=lambda x: nn.gelu(x, approximate=False), relu=nn.relu,
    gelu_new=lambda x: nn.gelu(x, approximate=True),
)


class Attention(nn.Module):
  """Multi-head self-attention and its output layer."""

  like: Structure
  dtype: Any

  @nn.compact
  def __call__(self, x, seen, train: bool):
    like = self.like
    dense = lambda name: nn.Dense(like.width, dtype=self.dtype, name=name)
    heads = lambda x: x.reshape(*x.shape[:2], like.heads, -1)
    query = heads(dense('attend1_query')(x))
    key = heads(dense('attend2_key')(x))
    value = heads(dense('attend3_value')(x))
    scores = jnp.einsum('bqhd,bkhd->bhqk', query, key)
    scores = scores.astype(jnp.float32) / (like.width // like.heads) ** 0.5
    scores = jnp.where(seen[:, None, None], scores, jnp.finfo(jnp.float32).min)
    share = jax.nn.softmax(scores).astype(value.dtype)
    share = base.Dropout(like.attention_dropout)(share, train)
    mixed = jnp.einsum('bhqk,bkhd->bqhd', share, value)
    return dense('attend4_out')(mixed.reshape(x.shape))


class Block(nn.Module):
  """Attention, then two linear layers, each added and normalised."""

  like: Structure
  dtype: Any

  @nn.compact
  def __call__(self, x, seen, train: bool):
    like = self.like
    drop = lambda x: base.Dropout(like.dropout)(x, train)
    norm = lambda name: nn.LayerNorm(like.epsilon, self.dtype, name=name)
    mixed = Attention(like, self.dtype, name='attention')(x, seen, train)
    x = norm('attention_norm')(x + drop(mixed))
    y = nn.Dense(like.hidden, dtype=self.dtype, name='feed1')(x)
    y = ACTIVATIONS[like.activation](y)
    y = nn.Dense(like.width, dtype=self.dtype, name='feed2')(y)
    return norm('feed_norm')(x + drop(y))


class Encoder(nn.Module):
  """Token numbers [batch, length] to hidden states [batch, length, width]."""

  like: Structure
  dtype: Any = None

  @nn.compact
  def __call__(self, tokens, train: bool = False):
    like = self.like
    if tokens.ndim != 2 or tokens.shape[1] > like.positions:
      raise ValueError(
          f'The encoder takes token numbers, [batch, up to {like.positions}]; '
          f'got features of shape {tokens.shape}.'
      )
    tokens = _numbers(tokens, like)
    table = lambda name, rows: nn.Embed(
        rows, like.width, dtype=self.dtype, name=name,
        embedding_init=nn.initializers.normal(0.02),
    )
    x = table('embed1_word', like.words)(tokens)
    x += table('embed2_position', like.positions)(jnp.arange(tokens.shape[1]))
    if like.types:
      x += table('embed3_type', like.types)(jnp.zeros_like(tokens))
    x = nn.LayerNorm(like.epsilon, self.dtype, name='embed_norm')(x)
    x = base.Dropout(like.dropout)(x, train)
    for i in range(like.blocks):
      x = Block(like, self.dtype, name=f'block{i:02}')(
          x, tokens != like.padding, train
      )
    return x


def _numbers(tokens: Array, like: Structure) -> Array:
  """Features as numbers of words; fractions and what is out of range, too."""
  return jnp.clip(jnp.floor(tokens).astype(jnp.int32), 0, like.words - 1)


class TextEncoder(nn.Module):
  """`Encoder`, one vector a text, and a linear layer where there is `width`."""

  like: Structure
  width: int
  pooling: str
  dtype: Any

  @nn.compact
  def __call__(self, tokens, train: bool = False):
    x = Encoder(self.like, self.dtype, name='encoder')(tokens, train)
    if self.pooling == 'first':
      x = x[:, 0]
    else:
      seen = (_numbers(tokens, self.like) != self.like.padding)[..., None]
      x = (x * seen).sum(1) / jnp.maximum(seen.sum(1), 1)
    if self.width:
      x = base.Dense(self.width, self.dtype, name='top')(x)
    return images.finish(x)


def encoder(
    width: int = 0, path: str = '', pooling: str = 'first',
    dropout: float | None = None, blocks: int = 0, random: bool = False,
    dtype: str = '',
) -> Net:
  """A pretrained encoder: tokens [batch, length] to [batch, width].

  Args:
    width: Of a linear layer on top; 0: none, the encoder's own width.
    path: A folder with config.json and model.safetensors of a BertModel or a
      DistilBertModel.
    pooling: 'first': the first token's hidden state, as classifiers use it;
      'mean': the mean over a text's tokens.
    dropout: Of hidden states and attention in training, [0, 1); by default as
      the folder says.
    blocks: Only the first so many; 0: all.
    random: Start from random weights instead of the pretrained ones.
    dtype: 'bfloat16' computes in it; '' in the weights' float32.

  Raises:
    FileNotFoundError: if there is no such folder or a file is missing in it.
    ValueError: for another architecture, a file that does not fit it, or an
      option out of its range.
  """
  _check(width, path, pooling, dropout, blocks, random)
  like = read_structure(path)
  if like.activation not in ACTIVATIONS:
    raise ValueError(
        f'{path}: activation {like.activation!r} is none of '
        f'{", ".join(ACTIVATIONS)}.'
    )
  like = like._replace(blocks=min(blocks or like.blocks, like.blocks))
  if dropout is not None:
    like = like._replace(dropout=dropout, attention_dropout=dropout)
  net = images.blockwise(base.linen(
      TextEncoder(like, width, pooling, images.dtype_of(dtype))
  ))
  if random:
    return net
  pretrained = Pretrained(
      f'{path}, {like.blocks} blocks', read_weights(path, like)
  )
  init = lambda key, x: dict(net.init(key, x), encoder=pretrained.start())
  return net._replace(init=init, pretrained=pretrained)


def _check(width, path, pooling, dropout, blocks, random) -> None:
  """Passes for options of their types and in their ranges.

  Raises:
    ValueError: (one line) for others; a command line gives whatever is typed.
  """
  share = 0 if dropout is None else dropout
  count = lambda value: (
      isinstance(value, int) and not isinstance(value, bool) and value >= 0
  )
  if not isinstance(path, str) or not isinstance(random, bool):
    raise ValueError(
        'encoder: path must be a folder and random True or False; got'
        f' {path!r} and {random!r}.'
    )
  number = isinstance(share, (int, float)) and not isinstance(share, bool)
  if not (
      pooling in POOLINGS and number and 0 <= share < 1 and count(blocks)
      and count(width)
  ):
    raise ValueError(
        f'encoder: pooling must be one of {POOLINGS}, dropout in [0, 1), blocks'
        f' and width whole numbers of 0 or more; got {pooling!r}, {dropout!r},'
        f' {blocks!r} and {width!r}.'
    )
