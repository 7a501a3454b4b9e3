"""Networks that are traced once, and when they have to be traced again."""
import re

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import crossing, nets, target
from vfljax.nets import base, modules

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


class Normed(nn.Module):
  """A norm behind a layer that tells when it is traced."""

  width: int

  @nn.compact
  def __call__(self, x, train: bool = False):
    return nn.BatchNorm(not train, momentum=0.5)(Noting(self.width)(x))


def training(net, real, x=X):
  """A round's derivative with respect to the weights; nothing else is new."""
  def total(params, x, real):
    y, stats = nets.counting_rows(net, real).run(params, KEY, x)
    return (y ** 3).sum(), stats

  params = net.init(KEY, x)
  SEEN.clear()
  return jax.jit(jax.grad(total, has_aux=True))(params, x, real)


def test_a_training_network_is_traced_once_whatever_rows_count():
  x = jnp.arange(12.0).reshape(4, 3) ** 2
  rows = [jnp.arange(4) < 2, jnp.arange(4) < 3]
  found = [training(base.linen(Normed(9)), real, x)[1] for real in rows]
  assert not SEEN  # The second training; the first one traced it.
  layer = base.linen(Noting(9))
  weights = base.linen(Normed(9)).init(KEY, x)['params']['Noting_0']
  y = layer.apply(weights, x)
  for stats, real in zip(found, rows):
    own = stats['BatchNorm_0']['mean']
    np.testing.assert_allclose(own, y[real].mean(0) / 2, rtol=1e-5)
  training(base.linen(Normed(9)), rows[0], x)
  assert not SEEN
  training(base.linen(Normed(9)), rows[0][:3], x[:3])
  assert SEEN == [(target.kind(), (3, 3))]


def test_rows_that_two_leave_out_do_not_count():
  x = jnp.arange(12.0).reshape(4, 3) ** 2
  net = base.linen(Normed(10))
  outer, inner = jnp.arange(4) < 3, jnp.arange(4) > 0
  _, stats = training(nets.counting_rows(net, inner), outer, x)
  _, both = training(net, outer & inner, x)
  jax.tree.map(np.testing.assert_array_equal, stats, both)
  assert np.abs(both['BatchNorm_0']['mean']).max() > 0


def test_a_training_networks_programs_are_those_without_it(monkeypatch):
  net = base.linen(Normed(11))

  def program():
    def total(params, x, real):
      counted = nets.counting_rows(net, real)
      return (counted.run(params, KEY, x)[0] ** 3).sum()

    shapes = jax.eval_shape(net.init, KEY, X)
    made = jax.jit(jax.grad(total)).lower(shapes, X, jnp.ones(2) > 0)
    return re.findall(r'= (\S+ [\w-]+)\(', made.compile().as_text())

  found = program()
  monkeypatch.setattr(modules, '_train', modules._train.__wrapped__)
  assert found == program() and len(found) > 20


def test_who_intercepts_a_training_network_is_heard_each_time():
  net, met = base.linen(Normed(12)), []

  def noted(run, args, kwargs, context):
    met.append(context.module.name)
    return run(*args, **kwargs)

  training(net, jnp.ones(2) > 0)
  for _ in range(2):
    met.clear()
    with nn.intercept_methods(noted):
      training(net, jnp.ones(2) > 0)
    assert SEEN and 'BatchNorm_0' in met


class Centered(nn.Module):
  """Subtracts the mean over the rows that count in a round."""

  width: int

  @nn.compact
  def __call__(self, x):
    y = nn.Dense(self.width)(x)
    rows = crossing.counted(y)[:, None]
    return y - (y * rows).sum(0) / rows.sum()


class CenteredInTraining(Centered):
  """The same, told that it trains."""

  @nn.compact
  def __call__(self, x, train: bool = False):
    return Centered(self.width)(x)


@pytest.mark.parametrize('module', [Centered(13), CenteredInTraining(13)])
def test_a_module_that_asks_which_rows_count_hears_of_each_round(module):
  net, x = base.linen(module), jnp.arange(12.0).reshape(4, 3) ** 2
  params = net.init(KEY, x)

  def means(real):
    """Over these rows, of what was centered in a round with them."""
    def play(params, x, real):
      with crossing.in_round(real):
        return net.run(params, KEY, x)[0]

    y = jax.jit(play)(params, x, real)
    return y[:3].mean(0), y.mean(0)

  outside = jax.jit(lambda params: net.run(params, KEY, x)[0])(params)
  np.testing.assert_allclose(outside.mean(0), 0, atol=1e-4)
  three, four = jnp.array([1.0, 1, 1, 0]), jnp.ones(4)
  for _ in range(2):
    np.testing.assert_allclose(means(three)[0], 0, atol=1e-4)
    np.testing.assert_allclose(means(four)[1], 0, atol=1e-4)
  assert np.abs(means(three)[1]).max() > 1
