"""Shadow models of model inversion: the attacker's guess of the victim's net.

Kang et al. (2022) let the active party know the structure of the others'
networks (section 4; section 8.5.3 for model inversion); PRECODE "embeds a
variational bottleneck into the original network", so the bottleneck is part of
that structure. The attacker does not know the weights: it draws and trains its
own, those of the defense's part, too. In Table 17 attackers assume a wrong
structure.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import nets
from vfljax.defense import Defense, Spec
from vfljax.nets.convolutional import convolutional
from vfljax.scene import Scene
from vfljax.types import VFL, Array, Batch, Key, Net, Params

STRUCTURES = ('same', 'conv', 'fc')
DRAWS = 8  # Of a random message; their mean is compared with the one received.


class Sender(NamedTuple):
  """A guessed passive party: from its features to its message.

  Attributes:
    init: (key, x) -> params.
    send: (params, key, x) -> (message, penalty), as in training.
    expected: (params, x) -> the message, averaged over its own noise.
  """

  init: Callable[[Key, Array], Params]
  send: Callable[[Params, Key, Array], tuple[Array, Array]]
  expected: Callable[[Params, Array], Array]


def network(structure: str, scene: Scene, same: Net) -> Net:
  """The attacker's idea of the passive party's network: Kang et al., Table 17.

  Args:
    structure: 'same'; 'conv', convolutions with 5x5 windows in place of 3x3;
      'fc', one hidden layer of 256 units. Both have the victim's embedding
      width.
    scene: The kind of federation.
    same: The victim's network.

  Raises:
    ValueError: for another structure.
  """
  if structure not in STRUCTURES:
    raise ValueError(
        'attack.model_inversion.shadow must be same, conv or fc; got '
        f'{structure!r}.'
    )
  if structure == 'same':
    return same
  if structure == 'conv':
    return convolutional(
        scene.channels, *scene.widths, kernel=5, activation=scene.activation,
        final=scene.final,
    )

  # The embedding's width is known only once there is an input.
  def dense(x) -> Net:
    key = jax.random.key(0)
    u = jax.eval_shape(lambda x: same.apply(same.init(key, x), x), x)
    return nets.mlp(256, u.size // len(u), activation=scene.activation)

  return Net(
      lambda key, x: dense(x).init(key, x),
      lambda params, x: dense(x).apply(params, x),
  )


def sender(net: Net, vfl: VFL, known: Batch, defense: Defense | None) -> Sender:
  """The shadow of a passive party with that network, and with its defense.

  Args:
    net: Its network.
    vfl: The federation.
    known: The attacker's labeled samples, with the features of all parties.
    defense: The federation's, of which only `send`, at a passive party, is
      used; `None` if the attacker knows of none.
  """
  if defense is None or defense.send is Defense().send:
    free = jnp.zeros((), jnp.float32)
    return Sender(
        net.init, lambda params, key, x: (net.apply(params, x), free), net.apply
    )

  def init(key, x) -> Any:
    k_net, k_defense = jax.random.split(key)
    params = net.init(k_net, x)
    like = lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype)
    u = jax.eval_shape(net.apply, params, x)
    classes = known.labels.shape[-1]
    spec = Spec((like(u),), classes, vfl, (params,), (like(x),), known)
    return dict(net=params, defense=defense.init(k_defense, spec).passive[0])

  def send(params: Any, key, x):
    return defense.send(params['defense'], key, net.apply(params['net'], x))

  def expected(params: Any, x):
    u = net.apply(params['net'], x)
    once = lambda key: defense.send(params['defense'], key, u)[0]
    return jax.vmap(once)(jax.random.split(jax.random.key(0), DRAWS)).mean(0)

  return Sender(init, send, expected)
