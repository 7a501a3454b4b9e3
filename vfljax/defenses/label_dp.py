"""LabelDP: randomized response on the labels (Ghazi et al. 2021; VMask, V-A).

Before training, the active party keeps each label with probability
e^eps / (e^eps + K - 1) and otherwise replaces it by one of the other K - 1
classes, all equally likely. A model trained on these labels, and all messages
of its training, are eps-differentially private in each label.

The labels are flipped once. SecretFlow's version flips them anew whenever a
batch is loaded, so that over the epochs the noise averages out and the loss of
privacy adds up. Ghazi et al. restrict the response to the likeliest classes
where a prior is known; with a uniform one that is this response on all K.
"""
import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense
from vfljax.numerics import floating
from vfljax.samples import reals
from vfljax.types import Array, Key


def label_dp(epsilon) -> Defense:
  """Trains on labels that went through randomized response once.

  Args:
    epsilon: The privacy budget, 0 (no information) or more; may be traced.
      VMask compares with 3.

  Raises:
    ValueError: if `epsilon` is negative or no finite number.
  """
  check.at_least('label_dp: epsilon', epsilon, 0)
  return Defense(prepare=lambda key, x, labels: flip(key, labels, epsilon))


def transition_matrix(epsilon, classes: int) -> Array:
  """Probabilities [classes, classes]: row = true class, column = response.

  Args:
    epsilon: 0 or more; may be traced.
    classes: K, 1 or more.
  """
  odds = jnp.exp(-jnp.asarray(epsilon, jnp.result_type(float)))
  keep = 1 / (1 + (classes - 1) * odds)  # No overflow, however large epsilon.
  same = jnp.eye(classes, dtype=bool)
  return jnp.where(same, keep, keep * odds)


def flip(key: Key, labels: Array, epsilon) -> Array:
  """One randomized response per row, one-hot.

  Args:
    labels: [n, classes] distributions, from which a class is drawn first where
      they are not one-hot; a row of zeros (padding) stays.
    epsilon: As in `label_dp`.

  Returns:
    [n, classes], of the labels' dtype; of whole numbers float32.
  """
  labels, classes = reals(labels), labels.shape[-1]
  # Half precision has too few numbers for chances: epsilon would be another.
  full = floating(labels)
  chances = full @ transition_matrix(epsilon, classes).astype(full.dtype)
  drawn = jax.random.categorical(key, jnp.log(chances))
  real = labels.sum(-1, keepdims=True)
  return real * jax.nn.one_hot(drawn, classes, dtype=labels.dtype)
