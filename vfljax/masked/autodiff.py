"""A masked layer's arithmetic, in place of a network's `x @ kernel + bias`.

`masked_layer` is differentiable. Its forward pass and its input gradient run
the protocol on ring elements, the weight gradient is the passive party's own
arithmetic (it knows the layer's input and output gradient), and the optimizer's
step goes on its share alone:

  T3 (`one_sided`)   y, g and the weight gradient are at P; any optimizer
  T4 (`to_active`)   for the last layer: y and g stay with A, both shares move

Nothing can be raised under a trace: the largest absolute values go out beside
the results, those of the backward pass as the cotangent of a `gauge`, for
`ranges.check`.
"""
from collections.abc import Callable
import dataclasses
import functools
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from vfljax.masked.shares import Layer, Leaves, Secret, Public, weight_bits
from vfljax.mpc import one_sided, to_active
from vfljax.mpc.fixed_point import decode_raw, encode_raw
from vfljax.mpc.one_sided import Masked
from vfljax.mpc.wire import Transcript
from vfljax.numerics import along_last

Array = jax.Array
Record = dict[tuple[str, str], Transcript]  # By layer and pass.


class Rule(NamedTuple):
  """How `masked_layer` computes one layer.

  Attributes:
    layer: The layer.
    public: The public configuration.
    plain: ({'kernel', 'bias'}, x) -> y; the layer in floating point, from which
      the weight gradient is computed.
    eta: T4: the learning rate, since shares are updated by eta times the
      gradient.
    record: Receives the messages' shapes, by layer and pass.
  """

  layer: Layer
  public: Public
  plain: Callable[[Leaves, Array], Array]
  eta: float
  record: Record


def shapes(layer: str, said: Transcript) -> Transcript:
  """The same messages without their words, named after a layer."""
  return tuple(
      dataclasses.replace(
          m, payload=jax.ShapeDtypeStruct(m.payload.shape, m.payload.dtype),
          name=f'{layer}: {m.name}' if layer else m.name,
      ) for m in said
  )


def _note(rule: Rule, step: str, said: Transcript) -> None:
  """Records messages, once even if JAX repeats a trace."""
  name = rule.layer.name
  rule.record[name, step] = shapes(name, said)


def _largest(*values: Array) -> Array:
  return jnp.stack([jnp.abs(v).max().astype(jnp.float32) for v in values])


def _once(x: Array) -> Array:
  """x, materialized: otherwise each use would recompute it from the shares."""
  return lax.optimization_barrier(x)


def _with_bias(secret: Secret, correlation: Any) -> Any:
  """Each party adds its share of the bias to its part of the output."""
  if 'bias' not in secret:
    return correlation
  b = secret['bias']
  return correlation._replace(
      passive=correlation.passive + along_last(b.passive, correlation.passive),
      active=correlation.active + along_last(b.active, correlation.active),
  )


def _forward(
    rule: Rule, x: Array, params: Leaves, secret: Secret, dealt: Any
):
  """(y, largest |x| and |y|, what A keeps: `_Kept.opened`)."""
  f = rule.layer.bilinear
  if rule.layer.to_active:
    bits = rule.public.last
    z, _ = encode_raw(x, bits.inputs)
    shares = to_active.Shares(*secret['kernel'])
    y, opened, said = to_active.forward(
        f, z, shares, _with_bias(secret, dealt)
    )
  else:
    bits = rule.public.precision
    z, _ = encode_raw(x, bits.inputs)
    y, said = one_sided.product(
        f.forward, z, secret['kernel'], _with_bias(secret, dealt.forward),
        rule.public.drop_bytes,
    )
    opened = ()
  _note(rule, 'forward', said)
  # The plain layer's dtype; that of x would cut fractions off if x is integer.
  dtype = jax.eval_shape(rule.plain, params, x).dtype
  out = _once(decode_raw(y, bits.inputs + bits.weights, dtype))
  return out, _largest(x, out), opened


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def masked_layer(
    rule: Rule, x: Array, params: Leaves, tap: Array, gauge: Array,
    secret: Secret, dealt: Any,
) -> tuple[Array, Array, Any]:
  """A layer's output by the protocol; differentiable in x, params, tap, gauge.

  Args:
    rule: What is static.
    x: The layer's input, an array of real numbers.
    params: Shaped as the weights; the values are not used, their cotangent is
      the weight gradient (T4: zero, as no party has it).
    tap: Shaped as the output, not used; its cotangent is the output gradient.
    gauge: [2], not used; its cotangent is the largest absolute value of the
      output gradient and of the input gradient (T4: of eta times them).
    secret: The weights.
    dealt: From `deal`; for this call only.

  Returns:
    (output, [2] the largest absolute input and output, what `update` needs).
  """
  del tap, gauge
  return _forward(rule, x, params, secret, dealt)


class _Kept(NamedTuple):
  """What the backward pass gets from the forward pass.

  `opened` is E, P's input without its mask, which A keeps under T4; () else.
  """

  x: Array
  params: Leaves
  secret: Secret
  dealt: Any
  opened: Any


def _fwd(rule, x, params, tap, gauge, secret, dealt):
  del tap, gauge
  out, largest, opened = _forward(rule, x, params, secret, dealt)
  kept = _Kept(x, params, secret, dealt, opened)
  return (out, largest, opened), kept


def _bwd(rule: Rule, kept: _Kept, cotangents):
  """The cotangents of x, params, tap, gauge, secret and dealt.

  `tap` and `gauge` are not used forwards: by them g and the largest values get
  out of the backward pass.
  """
  g = cotangents[0]
  back = _back_to_active if rule.layer.to_active else _back_one_sided
  gx, weights, largest = back(rule, kept, g)
  return gx, weights, g, largest, None, None


def _back_one_sided(
    rule: Rule, kept: _Kept, g: Array
) -> tuple[Array, Leaves, Array]:
  """T3: gradients of the input and of the weights, and the gauge's value."""
  layer, public, x = rule.layer, rule.public, kept.x
  # The layer is linear in its weights: any have the same gradient.
  zero = jax.tree.map(jnp.zeros_like, kept.params)
  weights = jax.vjp(lambda p: rule.plain(p, x), zero)[1](g)[0]
  if layer.first:  # Nobody needs its input gradient.
    none = jnp.zeros_like(x)
    return none, weights, _largest(g, none)
  bits = public.precision
  codes, _ = encode_raw(g, bits.gradients)
  back, said = one_sided.product(
      layer.bilinear.input_gradient, codes, kept.secret['kernel'],
      kept.dealt.backward, public.drop_bytes,
  )
  _note(rule, 'input gradient', said)
  gx = _once(decode_raw(back, bits.gradients + bits.weights, x.dtype))
  return gx, weights, _largest(g, gx)


def _back_to_active(
    rule: Rule, kept: _Kept, g: Array
) -> tuple[Array, Leaves, Array]:
  """T4: as `_back_one_sided`; the weights' gradient is in shares, here zeros.

  The protocol also gives the new shares, which are no cotangent. So `update`
  computes the same again; XLA merges both.
  """
  zero = jax.tree.map(jnp.zeros_like, kept.params)
  bits = rule.public.last
  codes, _ = encode_raw(rule.eta * g, bits.gradients)
  shares = to_active.Shares(*kept.secret['kernel'])
  _, back, _ = to_active.backward(
      rule.layer.bilinear, codes, kept.opened, shares, kept.dealt
  )
  assert back is not None
  scaled = _once(decode_raw(back, bits.gradients + bits.weights, kept.x.dtype))
  largest = _largest(rule.eta * g, scaled)
  return scaled / rule.eta, zero, largest


masked_layer.defvjp(_fwd, _bwd)


def update(
    rule: Rule, secret: Secret, delta: Leaves, tap: Array, opened: Any,
    dealt: Any,
) -> tuple[Secret, Array]:
  """The weights after an optimizer's step, and whether it was clipped.

  T3: P subtracts codes of -delta from its share, without a message. T4: both
  shares change by eta times the weight gradient; the bias changes at A.

  Args:
    rule: What is static.
    secret: The weights before.
    delta: T3: what the optimizer adds to the weights, at P.
    tap: T4: the output gradient, at A.
    opened: T4: the third output of `masked_layer`.
    dealt: T4: the step's correlation.

  Returns:
    The weights, and a bool scalar: whether an update left the fixed-point range
    and was clipped to it.
  """
  if rule.layer.to_active:
    return _update_both(rule, secret, tap, opened, dealt)
  return _update_passive(rule, secret, delta)


def _update_passive(
    rule: Rule, secret: Secret, delta: Leaves
) -> tuple[Secret, Array]:
  """`update` under T3."""
  bits = weight_bits(rule.public, rule.layer)
  codes = {n: encode_raw(delta[n], bits[n]) for n in rule.layer.leaves}
  moved = {
      name: one_sided.update(secret[name], -code)
      for name, (code, _) in codes.items()
  }
  return moved, jnp.stack([bad for _, bad in codes.values()]).any()


def _update_both(
    rule: Rule, secret: Secret, tap: Array, opened: Any, dealt: Any
) -> tuple[Secret, Array]:
  """`update` under T4."""
  layer = rule.layer
  codes, clipped = encode_raw(rule.eta * tap, rule.public.last.gradients)
  shares = to_active.Shares(*secret['kernel'])
  moved, _, said = to_active.backward(
      layer.bilinear, codes, opened, shares, dealt, not layer.first
  )
  _note(rule, 'backward', said)
  new = {'kernel': Masked(*moved)}
  if layer.bias:
    bits, old = weight_bits(rule.public, layer), secret['bias']
    move = (rule.eta * tap).reshape(-1, tap.shape[-1]).sum(0)
    code, bad = encode_raw(move, bits['bias'])
    new['bias'] = Masked(old.passive, old.active - code)
    clipped = clipped | bad
  return new, clipped
