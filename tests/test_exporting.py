"""Whatever is registered can be compiled for accelerators, as far as JAX goes.

A program is lowered for platforms of which there is no device here: whatever
JAX itself has no rule for fails. What XLA makes of it, `make accel`
sees.
"""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.attacks.test_contract import (
    EVERY_ATTACK, EVERY_BACKDOOR, make_attack, make_backdoor, view_of,
)
from tests.contracts import (
    DEFENSES, SAMPLES, TXS, batch, federation, make, play,
)
from vfljax import nets, protocol, target
from vfljax.mpc import kernels, schemes

PLATFORMS = ('cuda', 'tpu', 'rocm')
# What each network reads: images, numbers of categories or anything.
READ = dict(
    images=jax.ShapeDtypeStruct((2, 28, 14, 1), jnp.float32),
    numbers=jax.ShapeDtypeStruct((2, 7), jnp.int32),
    anything=jax.ShapeDtypeStruct((2, 20), jnp.float32),
)
# Three unpadded convolutions would leave nothing of half an image.
WHOLE = dict(conv3=jax.ShapeDtypeStruct((2, 28, 28, 1), jnp.float32))
# What the encoder cannot do without; of the deep ones two stages, as further
# ones differ in numbers alone and are half of the time of all networks.
OPTIONS = dict(
    encoder=dict(path='tests/golden/tiny_bert', random=True),
    vgg13=dict(channels=(64, 128)), resnet18=dict(channels=(64, 128)),
    resnet20=dict(channels=(16, 32)),
)
KEYS = jax.eval_shape(lambda: jax.random.split(jax.random.key(0)))


def lower(fn, *arguments):
  """For all three at once, which refuses calls of the host; traced as for an
  accelerator. As `jax.export` does, without the bytes that it makes of it."""
  with target.tracing_for('tpu'):
    jax.jit(fn).trace(*arguments).lower(lowering_platforms=PLATFORMS)


@pytest.mark.parametrize('name', DEFENSES)
def test_defenses(name):
  """A round of two seeds; the end of an epoch is in `make accel`."""
  defense = make(name)
  state = jax.eval_shape(
      lambda key: protocol.init(
          key, federation(), defense, TXS, batch(), auxiliary=batch()
      ), jax.eval_shape(lambda: jax.random.key(0))
  )

  def rounds(keys, state):
    one = lambda key: play(key, defense, state, batch())
    return jax.vmap(one)(keys)

  lower(rounds, KEYS, state)


@pytest.mark.parametrize('name', EVERY_ATTACK)
def test_attacks(name):
  attack = make_attack(name)
  view = jax.eval_shape(lambda: view_of(attack.view))
  run = jax.vmap(attack.run, (0, None))
  lower(run, KEYS, view)


@pytest.mark.parametrize('name', EVERY_BACKDOOR)
def test_backdoors(name):
  backdoor, data, defense = make_backdoor(name), batch(), make('none')
  evil = backdoor.training
  begin = lambda key: protocol.init(
      key, federation(), defense, TXS, data, evil
  )

  def step(key, state):
    # Networks draw their weights in the tests above and below.
    start = evil.init(key, tuple(data.features[k] for k in evil.parties))
    i = backdoor.training.rows(key, jnp.arange(SAMPLES))
    here = jax.tree.map(lambda x: x[i], data)
    return start, protocol.play_round(
        key, federation(), defense, TXS, state, here, evil
    )[0]

  state = jax.eval_shape(begin, jax.eval_shape(lambda: jax.random.key(0)))
  lower(jax.vmap(step, (0, None)), KEYS, state)


@pytest.mark.parametrize('name', nets.REGISTRY)
def test_networks(name):
  """Start and training pass; the way back is in `make accel`."""
  net = nets.make(name, **OPTIONS.get(name, {}))
  x = WHOLE.get(name, READ[nets.REGISTRY[name].reads])

  def embed(keys, x):
    one = lambda key: net.run(net.init(key, x), key, x)
    return jax.vmap(one)(keys)

  lower(embed, KEYS, x)


def test_a_callback_is_noticed():
  def asks(x):
    return jax.pure_callback(lambda x: x, x, x)

  with pytest.raises(NotImplementedError, match='callback'):
    lower(asks, READ['anything'])


@pytest.mark.parametrize('name', schemes.SCHEMES)
def test_ring_products(name):
  whole = lambda *shape: jax.ShapeDtypeStruct(shape, np.int64)

  def both(a, b, x, w):
    return kernels.matmul(a, b, name), kernels.conv(x, w, scheme=name)

  with jax.enable_x64(True):
    lower(
        both, whole(4, 20), whole(20, 3), whole(2, 5, 5, 2), whole(3, 3, 2, 3)
    )
