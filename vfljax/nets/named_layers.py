"""The linear layers in a tree of weights: their names, and replacing them.

A layer is a group of arrays, anywhere in the tree, with a `kernel` of two axes
or more (dense, convolution). Its name is its path ('Dense_0/Dense_0', 'conv1');
layers are numbered in natural order of the paths. A set of layers is a vector
of booleans in that order, which may be traced. `flow` has the layers in the
order of the forward pass.
"""
from collections.abc import Callable, Sequence
import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.draws import where_asked
from vfljax.nets.dense import fan_in_uniform
from vfljax.types import Array, Key, Net, Params

Path = tuple[str, ...]


def names(params: Params) -> tuple[str, ...]:
  """The layers' names, in natural order ('Dense_2' before 'Dense_10').

  Args:
    params: Weights, or their shapes. The top-level group 'params' of networks
      with batch statistics is no part of a name.
  """
  return tuple(_readable(_layers(params)).values())


def existing(params: Params, of: str = '') -> tuple[str, ...]:
  """`names`, where there are any.

  Args:
    params: Weights, or their shapes.
    of: Prefix of the message.

  Raises:
    ValueError: if there are none; it lists the arrays that there are.
  """
  if known := names(params):
    return known
  own = ['/'.join(path) or 'one array' for path, _ in _leaves(params)]
  listed = ', '.join(own[:9] + ['...'] * (len(own) > 9))
  raise ValueError(
      f'{of}a layer is a group with an array called `kernel` of two or more '
      'axes, [..., in, out], and these weights have none; there are: '
      f'{listed or "no arrays"}.'
  )


def mask(params: Params, chosen: Sequence[str]) -> np.ndarray:
  """The set of the layers `chosen`, bool [layers].

  Raises:
    ValueError: for a name that is no layer's, without a name, or if the weights
      have no layers.
  """
  known = existing(params)
  for name in chosen:
    if name not in known:
      raise ValueError(
          f'There is no layer {name!r} to mask; choose of {", ".join(known)}.'
      )
  if not len(chosen):
    raise ValueError(f'Name a layer or more of {", ".join(known)}.')
  return np.array([name in chosen for name in known])


def select(chosen: Array | np.ndarray, ours: Params, others: Params) -> Params:
  """The weights `others` in the layers `chosen`, `ours` everywhere else.

  Args:
    chosen: bool [layers]; may be traced.
    ours, others: Weights of one structure.
  """
  index = {path: i for i, path in enumerate(_layers(ours))}

  def pick(path, a, b):
    i = index.get(_parent(path))
    return a if i is None else jnp.where(chosen[i], b, a)

  return jax.tree_util.tree_map_with_path(pick, ours, others)


def l1_norms(params: Params) -> Array:
  """The sum of the absolute values in each layer, [layers]."""
  index = {path: i for i, path in enumerate(_layers(params))}
  sums: list[Any] = [0.0] * len(index)
  for path, leaf in _leaves(params):
    if path[:-1] in index:
      sums[index[path[:-1]]] += jnp.abs(leaf).sum()
  return jnp.stack(sums)


def l1_means(params: Params) -> Array:
  """The mean of the absolute values of each layer's kernel, [layers]."""
  kernels = _layers(params).values()
  return jnp.stack([jnp.abs(kernel).mean() for kernel in kernels])


NORMS = dict(sum=l1_norms, mean=l1_means)


@where_asked
def redraw(key: Key, params: Params) -> Params:
  """New random weights, uniform in +-1/sqrt(fan_in), PyTorch's default.

  Leaves outside layers (norms, batch statistics, embeddings) stay.
  """
  layers, drawn = _layers(params), _numbered(params)

  def draw(path, leaf):
    where = _parent(path)
    if where not in layers:
      return leaf
    fan_in = math.prod(layers[where].shape[:-1])
    own = jax.random.fold_in(key, drawn[_path(path)])
    return fan_in_uniform(fan_in)(own, leaf.shape, leaf.dtype)

  return jax.tree_util.tree_map_with_path(draw, params)


@where_asked
def noise(key: Key, params: Params, deviation: Array | float) -> Params:
  """Normal noise of that deviation in all layers, zeros elsewhere."""
  layers, drawn = _layers(params), _numbered(params)

  def draw(path, leaf):
    if _parent(path) not in layers:
      return jnp.zeros_like(leaf)
    own = jax.random.fold_in(key, drawn[_path(path)])
    scale = jnp.asarray(deviation, leaf.dtype)
    return scale * jax.random.normal(own, leaf.shape, leaf.dtype)

  return jax.tree_util.tree_map_with_path(draw, params)


def arrays(params: Params) -> dict[str, dict[str, Any]]:
  """{layer: {'kernel', perhaps 'bias' and others}}, in natural order."""
  own = {path: {} for path in _layers(params)}
  for path, leaf in _leaves(params):
    if path[:-1] in own:
      own[path[:-1]][path[-1]] = leaf
  called = _readable(own)
  return {called[path]: leaves for path, leaves in own.items()}


def replace(params: Params, new: dict[str, dict[str, Any]]) -> Params:
  """`params` with other arrays in the layers that `new` names."""
  called = _readable(_layers(params))

  def pick(path, leaf):
    where = called.get(_parent(path))
    return new[where][_path(path)[-1]] if where in new else leaf

  return jax.tree_util.tree_map_with_path(pick, params)


def flow(net: Net, params: Params, x: Any) -> tuple[str, ...]:
  """The layers' names in the order of the forward pass.

  Args:
    net: The network.
    params, x: Weights and samples, or their shapes; nothing is computed.
  """
  flat, tree = jax.tree_util.tree_flatten(params)

  def run(leaves, x):
    return net.apply(jax.tree_util.tree_unflatten(tree, leaves), x)

  jaxpr = jax.make_jaxpr(run)(flat, x).jaxpr
  first: dict[Any, int] = {}
  for i, equation in enumerate(jaxpr.eqns):
    for v in equation.invars:
      first.setdefault(id(v), i)
  inputs = jaxpr.invars[: len(flat)]
  used = {
      path: first.get(id(v), len(jaxpr.eqns))
      for (path, _), v in zip(_leaves(params), inputs)
  }
  readable = _readable(_layers(params))
  order = sorted(readable, key=lambda path: used[(*path, 'kernel')])
  return tuple(readable[path] for path in order)


def _layers(params: Params) -> dict[Path, Any]:
  """Kernel by path of its layer, in natural order."""
  found = {
      path[:-1]: leaf for path, leaf in _leaves(params)
      if path[-1:] == ('kernel',) and len(leaf.shape) >= 2
  }
  natural = lambda path: [
      [(part.isdigit(), int(part) if part.isdigit() else 0, part)
       for part in re.split(r'(\d+)', name)]
      for name in path
  ]
  return {path: found[path] for path in sorted(found, key=natural)}


def _readable(layers: dict[Path, Any]) -> dict[Path, str]:
  """Paths as text, without 'params' in front, as in `nets.intercept`."""
  bare = lambda path: path[1:] if path[:1] == ('params',) else path
  return {path: '/'.join(bare(path)) or 'kernel' for path in layers}


def _leaves(params: Params) -> list[tuple[Path, Any]]:
  flat = jax.tree_util.tree_flatten_with_path(params)[0]
  return [(_path(path), leaf) for path, leaf in flat]


def _numbered(params: Params) -> dict[Path, int]:
  return {path: i for i, (path, _) in enumerate(_leaves(params))}


def _path(path: tuple) -> Path:
  part: Callable[[Any], Any] = lambda k: getattr(
      k, 'key', getattr(k, 'idx', getattr(k, 'name', k))
  )
  return tuple(str(part(k)) for k in path)


def _parent(path: tuple) -> Path:
  return _path(path)[:-1]
