"""CoAE: labels encoded by a confusional autoencoder (Zou et al. 2022; CAE).

An encoder turns a label into a distribution in which other classes are as
likely as the true one. The federation trains on these encoded labels, so that
an attacker who reads gradients learns the encoding, not the label. The active
party keeps the decoder, which turns predictions back into classes.

The autoencoder is trained on random label vectors before the federation, with
10 CE(decoded, y) - confusion entropy(encoded) - CE(encoded, y): decoded labels
must be y, encoded ones must not look like y. Layers, sizes and loss are
those of the public code (SecretFlow and VFLAIR, which ships trained files and
no training), its oddities included: the entropy is a mean over classes too, and
the cross entropies take probabilities for logits. Both encoders and decoders
have one hidden layer of (2 + 6 C)^2 units for C classes. Beyond 20 classes the
public code cuts labels into blocks of 20; here `hidden` must then be given.

The public training takes 30000 vectors, 20 epochs and a learning rate of 5e-4.
For two classes and confusion 2 that ended at a loss of 1.920, and half of ours
(12 times fewer steps) at 1.932, both decoding without error (seed 1, November
2026). Every run of a federation trains its own, so steps count.
"""
import jax
import jax.numpy as jnp
import optax

from vfljax import check
from vfljax.defense import Defense, Spec, slots
from vfljax.defenses import minibatch
from vfljax.numerics import sharpen
from vfljax.types import Array, Key, Params

LARGEST = 20  # Classes for which the default hidden layer is affordable.
TEMPERATURE = 0.025  # Of the random labels: most of them are nearly one-hot.


def coae(
    confusion=2.0, *, hidden: int | None = None, samples: int = 10000,
    epochs: int = 10, batch_size: int = 128, learning_rate=2e-3,
) -> Defense:
  """Trains on encoded labels and decodes the predictions.

  Args:
    confusion: Lambda_2, the weight of the encoding's entropy, 0 or more; may be
      traced. The public default is 2, the papers try 0 to 2. Its `jax.grad` is
      NaN: Adam's square root has no derivative at 0, the second moment of a
      hidden unit that never had a gradient.
    hidden: Hidden units of encoder and decoder, 1 or more; (2 + 6 C)^2 unless
      given.
    samples: Random label vectors to learn from, 1 or more.
    epochs, batch_size: Of the autoencoder's training, 1 or more.
    learning_rate: Of its Adam, above 0; may be traced.

  Raises:
    ValueError: if an argument is out of its range; on `init`, with more than 20
      classes and no `hidden`.
  """
  check.at_least('coae: confusion', confusion, 0)
  sizes = dict(samples=samples, epochs=epochs, batch_size=batch_size)
  if hidden is not None:
    sizes['hidden'] = hidden
  for name, value in sizes.items():
    check.count(f'coae: {name}', value)
  check.above('coae: learning_rate', learning_rate, 0)

  def init(key, spec: Spec):
    if hidden is None and spec.classes > LARGEST:
      raise ValueError(
          f'coae: {spec.classes} classes need `hidden` to be given; the usual '
          f'(2 + 6 classes)^2 is for {LARGEST} at most.'
      )
    width = (2 + 6 * spec.classes) ** 2 if hidden is None else hidden
    k_params, k_labels, k_fit = jax.random.split(key, 3)
    params = minibatch.fit(
        k_fit, lambda params, y: loss(params, y, confusion),
        draw(k_params, spec.classes, width),
        random_labels(k_labels, samples, spec.classes),
        optax.adam(learning_rate), epochs=epochs, batch_size=batch_size,
    )
    return slots(spec, state=params)

  def label(state, key, labels):
    del key
    real = labels.sum(-1, keepdims=True)
    return (real * encode(state, labels)).astype(labels.dtype)

  return Defense(init=init, label=label, decode=decode)


def encode(params: Params, labels: Array) -> Array:
  """Encoded labels: distributions [n, classes] from those of `labels`."""
  return jax.nn.softmax(_mlp(params['encoder'], labels))


def decode(params: Params, logits: Array) -> Array:
  """Logits of the true classes from logits of the encoded, [n, classes] each.

  Raises:
    ValueError: if another defense of a chain has replaced the top network by
      one with another number of outputs.
  """
  classes = len(params['decoder'][0]['kernel'])
  if logits.shape[-1] != classes:
    raise ValueError(
        f'coae: decodes {classes} logits, but the top network of a defense '
        f'before it returns {logits.shape[-1]} numbers. Chain coae first.'
    )
  return _mlp(params['decoder'], jax.nn.softmax(logits))


def loss(params: Params, labels: Array, confusion) -> Array:
  """10 CE(decoded, y) - confusion entropy(encoded) - CE(encoded, y); scalar.

  Args:
    params: {'encoder', 'decoder'}, of two layers {'kernel', 'bias'} each.
    labels: [n, classes] distributions y.
    confusion: 0 or more.
  """
  encoded = encode(params, labels)
  decoded = jax.nn.softmax(_mlp(params['decoder'], encoded))
  # Probabilities in the place of logits: the public code's double softmax.
  cross = lambda p: optax.softmax_cross_entropy(p, labels).mean()
  return 10 * cross(decoded) - confusion * entropy(encoded) - cross(encoded)


def entropy(p: Array) -> Array:
  """Mean over batch AND classes of -p log(p + 1e-6), nats; a scalar."""
  return -(p * jnp.log(p + 1e-6)).mean()


def random_labels(key: Key, samples: int, classes: int) -> Array:
  """[samples, classes] sharpened softmax of uniform numbers: mostly one-hot."""
  drawn = jax.random.uniform(key, (samples, classes), jnp.float32)
  return sharpen(jax.nn.softmax(drawn), TEMPERATURE)


def draw(key: Key, classes: int, hidden: int) -> Params:
  """Weights from N(0, 0.01^2), biases 0."""
  sizes = ((classes, hidden), (hidden, classes)) * 2
  layers = [
      dict(
          kernel=0.01 * jax.random.normal(k, size, jnp.float32),
          bias=jnp.zeros(size[1], jnp.float32),
      )
      for k, size in zip(jax.random.split(key, 4), sizes)
  ]
  return dict(encoder=layers[:2], decoder=layers[2:])


def _mlp(layers: Params, x: Array) -> Array:
  first, second = layers
  h = jax.nn.relu(x @ first['kernel'] + first['bias'][None])
  return h @ second['kernel'] + second['bias'][None]
