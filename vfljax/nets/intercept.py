"""Replaces the arithmetic of chosen linear layers from outside a network.

Secret-shared layers are our networks' layers, computed otherwise, so there is
no second set of networks: in an `intercepted` `Net` a function is called for
every dense and convolutional layer, and computes it or leaves it as it is. All
use of `flax.linen.intercept_methods` for this is in this file.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

from flax import linen as nn
from jax import lax

from vfljax.nets import product
from vfljax.nets.convolution import Conv, pool
from vfljax.types import Array, Net, Params

_PLAIN = 'plain'  # The name of a layer run outside its network, by `Linear`.


class Linear(NamedTuple):
  """A linear layer at the moment its network calls it.

  Attributes:
    path: The path of its weights in the network's parameters.
    params: 'kernel' and perhaps 'bias', from the network's parameters.
    window: (strides, padding) of a convolution, `None` for a dense layer.
    plain: (params, x) -> y; the layer by itself, in floating point. If it is
      `pooled`, y is what is pooled.
    linear: Whether that is x @ kernel + bias, or the convolution: not of a
      class with a `__call__` of its own, or with another `dot_general`.
  """

  path: tuple[str, ...]
  params: dict[str, Array]
  window: tuple[Any, Any] | None
  plain: Callable[[dict[str, Array], Array], Array]
  linear: bool = True

  @property
  def name(self) -> str:
    """Its path, 'fc1/Dense_0'."""
    return '/'.join(self.path)


def intercepted(
    net: Net, fn: Callable[[Linear, Array], Array | None]
) -> Net:
  """The same network, whose linear layers are computed by `fn`.

  Args:
    net: Of Linen modules (`base.linen`).
    fn: (layer, x) -> y like that of `layer.plain`, or `None` for a layer that
      stays as it is. Called in the order of the network's layers each time the
      network is traced.
  """

  def swap(following, args, kwargs, context):
    module = context.module
    ours = isinstance(module, (nn.Dense, Conv)) and module.name != _PLAIN
    if not ours or context.method_name != '__call__':
      return following(*args, **kwargs)
    y = fn(_linear(module), args[0])
    if y is None:
      return following(*args, **kwargs)
    return pool(y) if isinstance(module, Conv) and module.pooled else y

  def apply(params, x):
    with nn.intercept_methods(swap):
      return net.apply(params, x)

  def train(params, key, x):
    with nn.intercept_methods(swap):
      return net.run(params, key, x)

  return net._replace(apply=apply, train=train if net.train else None)


def _linear(module: nn.Dense | Conv) -> Linear:
  params = {
      name: module.get_variable('params', name)
      for name in ('kernel', 'bias') if module.has_variable('params', name)
  }
  window = None
  if isinstance(module, Conv):
    window = (module.strides, _frozen(module.padding))
  whole = dict(pooled=False) if isinstance(module, Conv) else {}
  alone = module.clone(parent=None, name=_PLAIN, **whole)

  def plain(params: dict[str, Array], x: Array) -> Array:
    y = alone.apply({'params': params}, x)
    assert not isinstance(y, tuple)
    return y

  return Linear(module.path, params, window, plain, _is_linear(module))


def _is_linear(module: nn.Dense | Conv) -> bool:
  if isinstance(module, Conv):
    return type(module).__call__ is Conv.__call__
  known = (None, lax.dot_general, product.dot_general)
  return (
      type(module).__call__ is nn.Dense.__call__
      and module.dot_general in known and module.dot_general_cls is None
  )


def _frozen(padding: Any) -> Any:
  if isinstance(padding, (str, int)):
    return padding
  return tuple((int(low), int(high)) for low, high in padding)


def leaves_at(params: Params, path: tuple[str, ...]) -> dict[str, Array]:
  """The weights of the layer at `path` of a Linen network's parameters."""
  for name in ('params', *path) if 'batch_stats' in params else path:
    params = params[name]
  return params


def with_leaves(
    params: Params, path: tuple[str, ...], leaves: dict[str, Array]
) -> Params:
  """`params` with the layer at `path` given other weights."""
  def put(tree, names):
    if not names:
      return dict(leaves)
    return {**tree, names[0]: put(tree[names[0]], names[1:])}

  return put(params, ('params', *path) if 'batch_stats' in params else path)
