"""dCor: embeddings that correlate little with the labels (Sun et al. 2022).

The active party adds weight * log(distance correlation(embeddings, labels)), a
term for each passive party, to the round's loss. A passive party receives the
term's gradient with the task's, and its bottom network learns embeddings from
which labels are harder to guess. VMask compares with a weight of 0.15. Its
authors' code (github.com/tanjuntao/Backdoor, 7c723c2) weighs the correlation
itself, of squared distances, and of the active party's own embeddings: another
penalty.

At the 'passive' side each passive party adds the same term between its
embeddings and its own features (Vepakomma et al. 2020, NoPeek), so that the
features are harder to reconstruct; no other party takes part in that. NoPeek's
code weighs the correlation itself (`log=False`), whose slope is that of the
logarithm times the correlation: it ends where little correlation is left.

The public code (VFLAIR) is infinite or NaN for constant embeddings and batches
of one, and the logarithm drives correlations towards that. Here correlations
under 1e-4, which no batch of independent numbers reaches, have no gradient.
"""
import jax
import jax.numpy as jnp

from vfljax import check, crossing, metrics
from vfljax.defense import Defense
from vfljax.numerics import side_by_side
from vfljax.types import Array, Net

FLOOR = 1e-4
SIDES = ('active', 'passive')


def dcor(weight, side: str = 'active', *, log: bool = True) -> Defense:
  """A penalty on the distance correlation of embeddings.

  Args:
    weight: 0 or more; may be traced. VMask: 0.15.
    side: 'active' (with labels) or 'passive' (with the party's features).
    log: Whether the penalty is the logarithm (Sun et al.) or the correlation
      itself (NoPeek).

  Raises:
    ValueError: if an argument is out of its range.
  """
  check.at_least('dcor: weight', weight, 0)
  check.one_of('dcor: side', side, SIDES)
  term = log_correlation if log else metrics.distance_correlation

  def receive(active, state, key, up, labels):
    del active, state, key
    if labels is None:
      return up, jnp.zeros((), jnp.float32)
    real = labels.sum(-1)
    terms = [term(u, labels, real) for u in up]
    return up, weight * sum(terms)

  def bottom(state, k, net: Net) -> Net:
    del state, k

    def train(params, key, x):
      u, stats = net.run(params, key, x)
      x = side_by_side(x)
      return attach(u, weight * term(u, x, crossing.counted(u))), stats

    return net._replace(train=train)

  if side == 'active':
    return Defense(receive=receive)
  return Defense(bottom=bottom)


def log_correlation(x: Array, y: Array, real: Array | None = None) -> Array:
  """log(max(distance correlation of x and y, 1e-4)), a scalar.

  Args:
    x, y: [n, ...].
    real: [n] 1, or 0 for a row that does not count.
  """
  return jnp.log(jnp.maximum(metrics.distance_correlation(x, y, real), FLOOR))


@jax.custom_vjp
def attach(u: Array, penalty: Array) -> Array:
  """Returns `u`; its gradient descends `penalty`, too.

  A bottom network has no loss of its own that a penalty could be added to: the
  party receives the gradient of its output.
  """
  del penalty
  return u


def _attach_forward(u, penalty):
  return u, jnp.ones_like(penalty)


def _attach_backward(one, cotangent):
  return cotangent, one


attach.defvjp(_attach_forward, _attach_backward)
