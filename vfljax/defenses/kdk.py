"""KDk: soft labels that hide a class among k (Arazzi et al. 2024; VMask, V-A).

Before training, the active party fits a teacher to its own features and labels.
The federation then trains on soft labels: 1 - smoothing on the true class, and
the rest spread evenly over the k - 1 other classes that the teacher finds
likeliest. The larger the smoothing, the more alike the k are in the gradients.

The public code spreads the rest over the teacher's top k whether or not the
true class is among them, which makes rows that sum to more than 1; here it
always counts as one of the k. The teacher there is a ResNet trained 20 epochs
by Adam at 1e-4; ours is an MLP, for any features, at 1e-3, because 20 epochs on
a small table are few steps.
"""
import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import check, nets
from vfljax.defense import Defense
from vfljax.defenses import minibatch
from vfljax.numerics import common_type, side_by_side
from vfljax.samples import reals
from vfljax.types import Array, Key


def kdk(
    smoothing, k: int = 3, *, hidden: tuple[int, ...] = (64,),
    epochs: int = 20, batch_size: int = 64, learning_rate=1e-3,
) -> Defense:
  """Trains on soft labels from a teacher on the active party's features.

  Args:
    smoothing: Share of the label that goes to other classes, in [0, 1]; may be
      traced. VMask uses 0.45 and the public code 0.65; above 1 - 1/k, a half
      for two classes, the others are likelier than the true class.
    k: Number of classes among which the true one hides, 2 or more; all, if
      there are fewer. With two classes the teacher has no influence.
    hidden: The teacher's hidden widths.
    epochs, batch_size: The teacher's, 1 or more.
    learning_rate: Of its Adam, above 0; may be traced.

  Raises:
    ValueError: if an argument is out of its range; when training starts, if the
      active party has no features.
  """
  check.inside('kdk: smoothing', smoothing, 0, 1)
  check.count('kdk: k', k, 2)
  check.widths('kdk: hidden', hidden)
  check.count('kdk: epochs', epochs)
  check.count('kdk: batch_size', batch_size)
  check.above('kdk: learning_rate', learning_rate, 0)

  def prepare(key, features, labels):
    if features is None:
      raise ValueError(
          'kdk: the teacher learns from features of the active party, which '
          'has labels only: use an algorithm where it has features, as vhnn.'
      )
    scores = teach(
        key, features, labels, hidden, optax.adam(learning_rate),
        epochs=epochs, batch_size=batch_size,
    )
    return soften(scores, labels, k, smoothing)

  return Defense(prepare=prepare)


def teach(
    key: Key, features: Array, labels: Array, hidden: tuple[int, ...],
    tx: optax.GradientTransformation, *, epochs: int, batch_size: int,
) -> Array:
  """Log class probabilities [n, classes] of an MLP trained on these samples.

  Logarithms, since a sure teacher's probabilities are 0 but for one, and its
  favourites among the others would be the classes with the smallest numbers.

  Args:
    features: [n, ...], or several such arrays; flattened.
    labels: [n, classes]; a row of zeros has no loss and is in no mean.
    hidden, tx, epochs, batch_size: The MLP's and its training's.
  """
  net = nets.mlp(*hidden, labels.shape[-1])
  k_init, k_fit = jax.random.split(key)
  features = side_by_side(features)
  x = features.astype(common_type(features.dtype, jnp.float32))

  def loss(params, rows):
    x, y = rows
    each = optax.softmax_cross_entropy(net.apply(params, x), y)
    count = (y.sum(-1) > 0).sum(dtype=each.dtype)
    return each.sum() / jnp.maximum(count, 1)

  params = minibatch.fit(
      k_fit, loss, net.init(k_init, x[:1]), (x, labels), tx, epochs=epochs,
      batch_size=batch_size,
  )
  return jax.nn.log_softmax(net.apply(params, x))


def soften(teacher_probs: Array, labels: Array, k: int, smoothing) -> Array:
  """1 - smoothing on the true class, the rest on the teacher's favourites.

  Args:
    teacher_probs: [n, classes], or any scores of that order.
    labels: [n, classes] distributions, the likeliest class of which counts as
      the true one; a row of zeros (padding) stays.
    k: 2 or more; static. At most all classes count.
    smoothing: In [0, 1]; may be traced.

  Returns:
    [n, classes] of the labels' dtype, float32 of whole numbers;
    smoothing / (k - 1) on each of the teacher's k - 1 likeliest classes but the
    true one. Rows sum to 1.
  """
  labels, classes = reals(labels), labels.shape[-1]
  others = min(k, classes) - 1
  true = labels >= labels.max(-1, keepdims=True)
  rivals = jnp.where(true, -jnp.inf, teacher_probs)
  chosen = lax.top_k(rivals, others)[1]  # [n, others]
  spread = jax.nn.one_hot(chosen, classes, dtype=labels.dtype).sum(-2) / others
  real = labels.sum(-1, keepdims=True)
  share = jnp.asarray(smoothing, labels.dtype)
  return (1 - share) * labels + share * real * spread
