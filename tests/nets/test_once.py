"""Networks that are traced once, and when they have to be traced again."""
import re

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import nets, target
from vfljax.nets import base

KEY = jax.random.key(0)
X = jnp.ones((2, 3))
SEEN = []


class Noting(nn.Module):
  """A layer that tells when it is traced, and for which kind of device."""

  width: int
  more: object = None

  @nn.compact
  def __call__(self, x):
    SEEN.append((target.kind(), x.shape))
    return nn.Dense(self.width)(jnp.sin(x))


def program(net, x=X):
  """A new program that uses the network twice and differentiates it.

  What was traced for it is in `SEEN`.
  """
  def total(params, x):
    return net.apply(params, jnp.cos(x)).sum() * net.apply(params, x).sum()

  shapes = jax.eval_shape(net.init, KEY, x)
  SEEN.clear()
  return jax.jit(jax.grad(total)).trace(shapes, x)


def traced(net, x=X):
  return str(program(net, x).jaxpr)


def compiled(net):
  """What XLA makes of it, without names and what they come from.

  Since 0.12 JAX leaves to XLA what it has differentiated.
  """
  text = program(net).lower().compile().as_text()
  return re.findall(r'= (\S+ [\w-]+)\(', text)


def test_a_network_is_traced_once_a_shape_and_a_kind_of_device():
  first = traced(base.linen(Noting(4)))
  assert SEEN == [(target.kind(), (2, 3))]
  assert traced(base.linen(Noting(4))) == first and not SEEN
  traced(base.linen(Noting(4)), X[:1])
  assert SEEN == [(target.kind(), (1, 3))]
  with target.tracing_for('tpu'):
    traced(base.linen(Noting(4)))
  assert SEEN == [('tpu', (2, 3))]
  traced(base.linen(Noting(5)))
  assert SEEN == [(target.kind(), (2, 3))]


def test_programs_are_those_without_it():
  module = Noting(6)
  plain = base.linen(module)._replace(
      apply=lambda params, x: module.apply({'params': params}, x)
  )
  found = compiled(base.linen(module))
  assert found == compiled(plain) and len(found) > 5
  assert len(SEEN) == 2


def test_a_module_that_is_not_known_by_its_fields_is_traced_anew():
  net = base.linen(Noting(7, np.ones(3)))
  assert traced(net) == traced(net)
  assert len(SEEN) == 2


def test_who_intercepts_a_network_is_heard_each_time():
  net = base.linen(Noting(8))
  plain, met = traced(net), []

  def twice(run, args, kwargs, context):
    met.append(context.module.name)
    return 2 * run(*args, **kwargs)

  for _ in range(2):
    with nn.intercept_methods(twice):
      assert traced(net) != plain
  assert met.count('Dense_0') == 2 * 2
  assert traced(net) == plain


@pytest.mark.parametrize('name, options, differs', [
    ('mlp3', {}, False), ('mlp3', dict(norm='group'), False),
    ('mlp3', dict(norm='batch'), True), ('mlp3', dict(dropout=0.1), True),
    ('lenet5', {}, True),  # It infers in blocks.
])
def test_what_trains_as_it_infers_says_so(name, options, differs):
  assert (nets.make(name, 4, **options).train is not None) == differs
