"""Checks of masked layers: values in range, and VMask's condition on sizes.

Values too large for the fixed point wrap around in silence, so the largest
values of each pass are checked after it. And VMask's argument for the security
of masked layers (Tan et al., NDSS 2025, section IV-D) has a condition on their
sizes. It is checked, too, though it is not sufficient (see
`attacks.layer_recovery`).
"""
import math
from typing import Any

import jax
from jax.core import Tracer
import numpy as np

from vfljax.masked.shares import Layer, Public, weight_bits
from vfljax.mpc import fixed_point
from vfljax.mpc.bilinear import Bilinear

WHAT = ('input', 'output', 'output gradient', 'input gradient')


def fraction_bits(public: Public, layer: Layer) -> tuple[int, int, int, int]:
  """Those of a layer's input, output, output gradient and input gradient."""
  bits = public.last if layer.to_active else public.precision
  return (
      bits.inputs, bits.inputs + bits.weights, bits.gradients,
      bits.gradients + bits.weights,
  )


def limits(public: Public, layer: Layer) -> tuple[float, ...]:
  """The ranges of the same four; |value| must stay below.

  For results of the protocol it is half the ring's range: a result beyond that
  may have wrapped.
  """
  made = (False, True, False, True)
  return tuple(
      fixed_point.limit(bits) / (2 if half else 1)
      for bits, half in zip(fraction_bits(public, layer), made)
  )


def check(public: Public, layer: Layer, seen) -> None:
  """Raises ValueError if a value of a masked layer left its range.

  An output or input gradient that wrapped may have come to lie inside, which
  nobody can tell: one less than 3 times too large never does, one far beyond
  does half of the time. All of many seldom do.

  Args:
    public: Public numbers.
    layer: Which.
    seen: [..., 4] largest absolute input, output, output gradient and input
      gradient of one or more steps (T4: of eta times the gradients).

  Raises:
    ValueError: it names the layer, the value, how far out it is and fraction
      bits that would hold it.
  """
  worst = np.asarray(seen, np.float64)
  if worst.shape[-1:] != (4,) or not worst.size:
    raise ValueError(
        f'Layer {layer.name}: seen must be [..., 4], the largest values of one '
        f'or more steps; its shape is {worst.shape}.'
    )
  worst = worst.reshape(-1, 4)
  if (worst < 0).any():
    raise ValueError(f'Layer {layer.name}: seen must be absolute values; got '
                     f'{worst.min():g}.')
  worst = np.where(np.isnan(worst).any(0), np.nan, worst.max(0))
  for i, (value, top) in enumerate(zip(worst, limits(public, layer))):
    if not value < top:
      raise ValueError(_report(public, layer, i, float(value), top))


def check_update(public: Public, layer: Layer, clipped) -> None:
  """Raises ValueError if an update of a masked layer was clipped.

  Args:
    public: Public numbers.
    layer: Which.
    clipped: bool [...], of one or more steps.

  Raises:
    ValueError: it names the layer and what its weights can move by in a step.
  """
  if not np.asarray(clipped).any():
    return
  bits = weight_bits(public, layer)
  tops = ', '.join(
      f'{name} {fixed_point.limit(bits[name]):g}' for name in layer.leaves
  )
  raise ValueError(
      f'Layer {layer.name}: a step moved its weights by more than fixed point '
      f'holds ({tops}) and was cut off there. Lower the learning rate, or look '
      'for a diverged model.'
  )


def _report(
    public: Public, layer: Layer, i: int, value: float, top: float
) -> str:
  bits = fraction_bits(public, layer)[i]
  where = f'Layer {layer.name}: its {WHAT[i]} reaches {value:g}'
  text = f'{where}, outside the fixed-point range of {top:g} ({bits} fraction '
  if not math.isfinite(value):
    return f'{text}bits). No setting holds it: look for a diverged model.'
  over = max(1, math.floor(math.log2(value / top)) + 1)
  text += f'bits); that is {value / top:.3g} times too large'
  if i in (1, 3):
    text += ', or more, since what is too large wraps around'
  name = 'to_active.Precision' if layer.to_active else 'fixed_point.Precision'
  old = public.last if layer.to_active else public.precision
  new = _lowered(old, i, over, layer.to_active)
  if min(new) < 0:
    return f'{text}. No number of fraction bits holds it: rescale the data.'
  fields = ', '.join(f'{k}={v}' for k, v in new._asdict().items())
  return (
      f'{text}. {name}({fields}) would hold it, in a run with new seeds: the '
      'old ones would repeat its masks.'
  )


def _lowered(old, i: int, over: int, to_active: bool):
  """The precision with `over` fewer fraction bits for value i of `WHAT`."""
  if to_active:  # y has 2 f_x + f_g bits, the input gradient f_x + 2 f_g.
    if i in (1, 3):
      over = -(-over // 2)
    name = 'inputs' if i < 2 else 'gradients'
    return old._replace(**{name: getattr(old, name) - over})
  if i == 1:  # y: both factors give up the same.
    half = -(-over // 2)
    return old._replace(inputs=old.inputs - half,
                        weights=old.weights - (over - half))
  name = 'inputs' if i == 0 else 'gradients'
  return old._replace(**{name: getattr(old, name) - over})


def blank(layer: Layer, theta: Any) -> str:
  """What is wrong with weights that are all zero, or ''.

  Where a layer is masked, `Weights.plain` has zeros: masked again, from there,
  these would take the place of its weights. Traced weights are not looked at.
  """
  leaves = jax.tree.leaves(theta)
  traced = any(isinstance(leaf, Tracer) for leaf in leaves)
  if traced or any(np.any(np.asarray(leaf)) for leaf in leaves):
    return ''
  return (
      f'Layer {layer.name} is masked with weights that are all zero. If it was '
      'masked before, its weights are in its shares and not in `plain`: '
      '`unmask` it, or use `change`.'
  )


def condition(layer: Layer) -> str | None:
  """A message if VMask's condition on a layer's size fails, else `None`.

  Section IV-D: one batch cannot be solved for a dense layer's weights if it has
  fewer rows than the layer has inputs, B < n1; for a convolution of an image of
  h pixels with a window of n, padding p and stride s, if n > (h+2p+s)/(s+1),
  that is if an image has fewer positions on an axis than the window is wide.
  For images and windows that are not square, which the paper leaves out, the
  number of all positions is compared with that of the window's pixels: each
  position is an equation. Equations of several batches can be combined, so
  meeting the condition does not make a layer safe.
  """
  f = layer.bilinear
  if len(f.w_shape) == 2:
    rows, inputs = math.prod(f.x_shape[:-1]), f.w_shape[0]
    if rows < inputs:
      return None
    return (
        f'Layer {layer.name}: a batch of {rows} rows is not smaller than its '
        f'{inputs} inputs, so VMask\'s condition B < n1 (section IV-D) fails: '
        'one batch of inputs and outputs determines the masked weights.'
    )
  if math.prod(_positions(f)) < math.prod(f.w_shape[:-2]):
    return None
  return (
      f'Layer {layer.name}: a window of {f.w_shape[:-2]} finds {_positions(f)} '
      'positions in an image, so VMask\'s condition n > (h+2p+s)/(s+1) (section'
      ' IV-D) fails: one image of inputs and outputs determines the masked '
      'weights, for a single channel.'
  )


def _positions(f: Bilinear) -> tuple[int, ...]:
  return f.y_shape[1:-1]
