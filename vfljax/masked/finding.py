"""Which layers of a network can be masked, found by tracing it.

A layer is masked by computing it otherwise, so it has to be x @ kernel + bias
or a convolution, called once, and nothing else may need its weights.
"""
from collections.abc import Callable
from typing import Any
import warnings

import jax
from jax.extend import core
import jax.numpy as jnp

from vfljax.masked import reach
from vfljax.masked.shares import Layer
from vfljax.mpc import bilinear
from vfljax.nets import intercept
from vfljax.nets.intercept import Linear
from vfljax.types import Array, Net, Params

_NAMELESS = "its weights have another name among the network's"


def layers(net: Net, params: Params, x: Any) -> tuple[Layer, ...]:
  """A network's linear layers in the order of their calls, by tracing alone.

  Args:
    net: Of Linen modules.
    params: Its parameters, or their shapes.
    x: A batch of features, or its shape: masked layers are for one batch size.

  Raises:
    ValueError: if two layers have one name or one is called twice.

  Warns:
    UserWarning: of a layer that is left out: it is not linear (a subclass), or
      its weights are computed from others, or used elsewhere, too, or it is
      called inside another transformation: `nn.vmap`, a loop, a condition; or
      it has a kernel, but is of another class, such as `nn.Conv`.
  """
  found: dict[str, Layer] = {}
  unfit: dict[str, str] = {}

  def look(
      layer: Linear, x: Array, params: Params, outside: Any
  ) -> Array | None:
    if layer.name in found or unfit.get(layer.name) == _NAMELESS:
      raise ValueError(
          f'Layer {layer.name} is called twice, or two layers have its name: '
          'it cannot be masked.'
      )
    why = unfit.get(layer.name) or _left_out(layer, params, outside)
    if why:
      unfit[layer.name] = why
      return None
    y = layer.plain(layer.params, x)
    f = _bilinear(layer, x.shape)
    found[layer.name] = Layer(layer.name, f, 'bias' in layer.params, True)

    def note(perturbed: bool):
      found[layer.name] = found[layer.name]._replace(first=not perturbed)

    return _noting(note, x, y)

  def total(params, x):
    here = _traced_by()
    watched = intercept.intercepted(
        net, lambda own, z: look(own, z, params, here)
    )
    return watched.apply(params, x).astype(jnp.float32).sum()

  jax.eval_shape(jax.grad(total), params, x)
  for name in _elsewhere(net, params, x, found):
    unfit[name] = 'the network uses its weights elsewhere, too'
    del found[name]
  for name, why in (_others(params, found, unfit) | unfit).items():
    warnings.warn(
        f'Layer {name} cannot be masked and is left out: {why}.', stacklevel=2
    )
  closing = _closing(net, params, x, found)
  return tuple(f._replace(final=f.name in closing) for f in found.values())


def _others(
    params: Params, found: dict[str, Layer], unfit: dict[str, str]
) -> dict[str, str]:
  """Layers with a kernel that were not met, and why, by the kernel's path.

  None if a layer was met whose weights have another path, as lifted ones.
  """
  if _NAMELESS in unfit.values():
    return {}
  others = {}
  for at, _ in jax.tree_util.tree_leaves_with_path(params):
    *names, last = (str(getattr(key, 'key', '')) for key in at)
    path = '/'.join(names[1:] if 'batch_stats' in params else names)
    if last == 'kernel' and path not in found:
      others[path or 'without a name'] = (
          'it is of no class that is masked: nn.Dense, nets.convolution.Conv'
      )
  return others


def _traced_by() -> Any:
  """Which of JAX's transformations is running: what is equal is the same."""
  return core.get_opaque_trace_state()


def _left_out(layer: Linear, params: Params, outside: Any) -> str:
  """Why a layer's own arithmetic is not enough; '': it is.

  Inside of another transformation than `outside`, shares would be of a part of
  the batch, or leak out of a loop.
  """
  if not layer.linear:
    return 'it computes something else than x @ kernel + bias'
  try:
    theirs = intercept.leaves_at(params, layer.path)
  except KeyError:
    return _NAMELESS
  if not layer.params.keys() <= theirs.keys():
    return _NAMELESS
  if not all(theirs.get(k) is v for k, v in layer.params.items()):
    return "its weights are computed from the network's, or it is lifted"
  if _traced_by() != outside:
    return 'it is called inside nn.vmap, a loop, a condition, jit or the like'
  return ''


def _elsewhere(
    net: Net, params: Params, x: Any, found: dict[str, Layer]
) -> set[str]:
  """The layers whose weights the output needs for more than their outputs."""
  own = {
      name: intercept.leaves_at(params, f.path) for name, f in found.items()
  }

  def look(layer: Linear, x: Array) -> Array | None:
    if layer.name not in found:
      return None
    blank = jax.tree.map(
        lambda w: jnp.zeros(w.shape, w.dtype), own[layer.name]
    )
    return layer.plain(blank, x)  # It still depends on x.

  apart = intercept.intercepted(net, look)

  def rest(own, params, x):
    for name, f in found.items():
      params = intercept.with_leaves(params, f.path, own[name])
    return apart.apply(params, x)

  return reach.used(rest, own, params, x)


def _closing(
    net: Net, params: Params, x: Any, found: dict[str, Layer]
) -> set[str]:
  """The names of layers whose output is the network's, with nothing after."""

  def outputs(params, x):
    ys = {}

    def look(layer: Linear, x: Array) -> Array | None:
      if layer.name not in found:
        return None
      ys[layer.name] = layer.plain(layer.params, x)
      return ys[layer.name]

    return intercept.intercepted(net, look).apply(params, x), ys

  traced, shapes = jax.make_jaxpr(outputs, return_shape=True)(params, x)
  out, *ys = traced.jaxpr.outvars
  names = sorted(shapes[1])  # The order in which a dict is flattened.
  return {name for name, y in zip(names, ys) if y is out}


def _noting(note: Callable[[bool], None], x: Array, y: Array) -> Array:
  """Returns y; calls `note(whether x depends on what is differentiated)`."""

  @jax.custom_vjp
  def look(x, y):
    return y

  def forward(x, y):
    note(x.perturbed)
    return y.value, ()

  def backward(kept, g):  # Only traced: these numbers are not used.
    del kept
    return jnp.zeros(x.shape, x.dtype), jnp.zeros(g.shape, g.dtype)

  look.defvjp(forward, backward, symbolic_zeros=True)
  return look(x, y)


def _bilinear(layer: Linear, x_shape: tuple[int, ...]) -> bilinear.Bilinear:
  w_shape = layer.params['kernel'].shape
  if layer.window is None:
    return bilinear.dense(x_shape, w_shape)
  return bilinear.convolution(x_shape, w_shape, *layer.window)
