"""Small networks, and networks made of others: `mlp`, `then`, `binary`."""
from collections.abc import Callable, Mapping, Sequence
import math
from typing import Any

from flax import linen as nn
import jax
from jax import lax
import jax.numpy as jnp

from vfljax import check, fusing, target
from vfljax.nets.dense import Dense, Read
from vfljax.nets.modules import linen
from vfljax.types import Array, Net, Params

Activation = Callable[[Array], Array]
leaky_relu: Activation = lambda x: nn.leaky_relu(x, 0.01)
ACTIVATIONS: dict[str, Activation] = dict(
    relu=nn.relu, leaky_relu=leaky_relu, sigmoid=nn.sigmoid, tanh=jnp.tanh,
    linear=lambda x: x,
)
# As they are here: others, or others under these names, are a user's own.
OUR_ACTIVATIONS = dict(ACTIVATIONS)

NORMS = ('batch', 'group', 'none')


class _BatchNorm(Read, nn.BatchNorm):
  pass


class _GroupNorm(Read, nn.GroupNorm):
  pass


class Norm(nn.Module):
  """Normalizes a layer's output: 'batch', 'group' or 'none'.

  BatchNorm has PyTorch's defaults: in training it uses the batch's mean and
  variance, at inference running averages with momentum 0.1, which start at 0
  and 1 and are the network's 'batch_stats'. (The running variance is divided by
  n, PyTorch's by n - 1.) In a round, padding does not count: see `counting`.
  GroupNorm has groups of 16 channels (Wu and He, 2018) and no statistics.
  """

  kind: str = 'batch'
  dtype: Any = None

  @nn.compact
  def __call__(self, x, train: bool = False):
    if self.kind == 'batch':
      norm = _BatchNorm(
          not train, momentum=0.9, epsilon=1e-5, dtype=self.dtype,
          name='BatchNorm_0',
      )
      return norm(x)
    if self.kind == 'group':
      size = math.gcd(x.shape[-1], 16)
      if size == 1 and math.prod(x.shape[1:-1]) == 1:  # Minus itself, it is 0.
        raise ValueError(
            'Norm: groups of one number would all become 0: of '
            f'{x.shape[-1]} units group normalization can make no larger ones. '
            'Take a multiple of 16, or at least an even number.'
        )
      norm = _GroupNorm(
          None, size, epsilon=1e-5, dtype=self.dtype, name='GroupNorm_0'
      )
      return norm(x)
    return x


class Dropout(nn.Module):
  """Sets a share of the units to 0 in training, and scales up the others.

  As `nn.Dropout`, but with the same draws inside a 64-bit program, so that
  exact masked training drops the same units as plain training.
  """

  rate: float

  @nn.compact
  def __call__(self, x, train: bool = False):
    if not train or not self.rate:
      return x
    keep = 1 - self.rate
    kept = jax.random.bernoulli(
        self.make_rng('dropout'), jnp.float32(keep), x.shape
    )
    return jnp.where(kept, x / keep, 0)


class MLP(nn.Module):
  """Linear layers of the given widths, with an activation between them.

  A `norm` comes before every activation, also before the `final` one.
  """

  widths: Sequence[int]
  activation: Activation = nn.relu
  final: Activation | None = None
  dropout: float = 0.0
  norm: str = 'none'

  @nn.compact
  def __call__(self, x, train: bool = False):
    if isinstance(x, Mapping | list):  # A tuple is of embeddings: `federation`.
      raise ValueError(
          'mlp: the features must be one array, [batch, ...]; got '
          f'{check.kind(x)} of them. For several write a module of your own: '
          'nets.linen or nets.nnx.'
      )
    x = x.reshape(len(x), math.prod(x.shape[1:]))  # Also of no rows.
    for width in self.widths[:-1]:
      x = self.activation(self._normed(Dense(width)(x), train))
      if self.dropout:
        x = Dropout(self.dropout)(x, train)
    x = Dense(self.widths[-1])(x)
    return self.final(self._normed(x, train)) if self.final else x

  def _normed(self, x, train):
    return x if self.norm == 'none' else Norm(self.norm)(x, train)


def mlp(
    *widths: int, activation: str | Activation = 'relu',
    final: str | Activation | None = None, dropout: float = 0.0,
    norm: str = 'none',
) -> Net:
  """A multilayer perceptron on flattened inputs, [batch, ...] to [batch, w].

  Args:
    widths: Units of each layer, the output's last; one width is a linear map.
    activation: Between layers: a name in `ACTIVATIONS` or a function.
    final: After the last layer; by default, or with 'linear', there is none.
    dropout: Share of hidden units dropped in training, in [0, 1).
    norm: Before every activation, one of `NORMS`; see `Norm`.

  Raises:
    ValueError: without widths, for a width below 1, a dropout out of its range,
      or an unknown activation or norm.
  """
  if not widths:
    raise ValueError('mlp: needs one or more widths, got none.')
  check.sizes('mlp', widths=widths)
  check.one_of('mlp: norm', norm, NORMS)
  check.inside('mlp: dropout', dropout, 0, 1, open_high=True)
  last = final_activation(final)
  module = MLP(widths, activation_of(activation), last, dropout, norm)
  return linen(module, norm == 'batch' or dropout > 0)


def final_activation(which: str | Activation | None) -> Activation | None:
  """As `activation_of`, but `None` for 'linear' or `None`."""
  return None if which in (None, 'linear') else activation_of(which)


def activation_of(which: str | Activation) -> Activation:
  """The activation of that name; functions are returned as they are.

  Raises:
    ValueError: for an unknown name.
  """
  if not isinstance(which, str):
    return which
  if which not in ACTIVATIONS:
    raise ValueError(
        f'Unknown activation {which!r}; choose of {", ".join(ACTIVATIONS)}.'
    )
  return ACTIVATIONS[which]


def with_weights(net: Net, at: Callable[[Params], Params]) -> Net:
  """`net`, computing with the weights `at(params)` in place of `params`."""
  train = net.train
  return net._replace(
      apply=lambda params, x: net.apply(at(params), x),
      train=train and (lambda params, key, x: train(at(params), key, x)),
  )


def then(first: Net, second: Net) -> Net:
  """The composition `second(first(x))`; parameters are {'first', 'second'}."""

  def init(key, x):
    k_first, k_second = jax.random.split(key)
    params = first.init(k_first, x)
    u = jax.eval_shape(first.apply, params, x)
    blank = jnp.zeros(u.shape, u.dtype)
    return dict(first=params, second=second.init(k_second, blank))

  def train(params, key, x):
    k_first, k_second = jax.random.split(key)
    u, own = first.run(params['first'], k_first, x)
    y, stats = second.run(params['second'], k_second, u)
    return y, dict(first=own, second=stats)

  return Net(
      init,
      lambda p, x: second.apply(p['second'], first.apply(p['first'], x)),
      train if first.train or second.train else None,
      lambda p, stats: dict(
          first=first.absorb(p['first'], stats['first']),
          second=second.absorb(p['second'], stats['second']),
      ) if stats else p,
      first.pretrained,
  )


def pair(z: Array) -> Array:
  """The logits (0, z) [..., 2] of a sigmoid's logit z [..., 1].

  Their softmax gives class 1 the probability sigmoid(z).
  """
  if target.kind() == 'gpu':  # `concatenate` would be a kernel of its own.
    second = (jnp.arange(2) == 1).reshape(*[1] * (z.ndim - 1), 2)
    return jnp.where(second, fusing.apart_back(z), 0)
  return jnp.concatenate([jnp.zeros_like(z), z], axis=-1)


def padded_pair(z: Array) -> Array:
  """`pair`; on a GPU for a top network, whose loss is `fusing.cross_entropy`.

  That sets the gradient apart already, which is only cut out here.
  """
  if target.kind() != 'gpu' or z.shape[-1] != 1:
    return pair(z)
  before = [(0, 0, 0)] * (z.ndim - 1) + [(1, 0, 0)]
  return lax.pad(z, jnp.zeros((), z.dtype), before)


def binary(net: Net) -> Net:
  """Makes two logits of a network with one output z, see `pair`."""

  def train(params, key, x):
    z, stats = net.run(params, key, x)
    return padded_pair(z), stats

  return Net(
      net.init, lambda params, x: padded_pair(net.apply(params, x)),
      train if net.train else None, net.absorb, net.pretrained,
  )
