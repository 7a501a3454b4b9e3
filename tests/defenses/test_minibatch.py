"""Descent over shuffled mini-batches, as a teacher's or an autoencoder's."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax.defenses import minibatch

ROWS, SIZE = 11, 4


def seen(key, epochs):
  """How often each row was in a batch, and the number of steps.

  The rows are one-hot, and each step adds those of its batch to the weights.
  """
  loss = lambda w, rows: -(w['rows'] * rows.sum(0)).sum() - w['steps']
  start = dict(rows=jnp.zeros(ROWS), steps=jnp.zeros(()))
  found = minibatch.fit(
      key, loss, start, np.eye(ROWS), optax.sgd(1.0), epochs=epochs,
      batch_size=SIZE,
  )
  return np.asarray(found['rows']), int(found['steps'])


def test_an_epoch_has_each_row_at_most_once_and_no_part_of_a_batch():
  rows, steps = seen(jax.random.key(0), 1)
  assert steps == ROWS // SIZE
  assert sorted(rows) == [0] * (ROWS % SIZE) + [1] * (steps * SIZE)


def test_every_epoch_has_an_order_of_its_own():
  """Else the same rows would be left over in all of them."""
  rows, steps = seen(jax.random.key(0), 40)
  assert steps == 40 * (ROWS // SIZE) and rows.sum() == steps * SIZE
  assert (0 < rows).all() and (rows < 40).all()
  other, _ = seen(jax.random.key(1), 40)
  assert (rows != other).any()


def test_all_rows_are_a_batch_if_they_are_fewer():
  loss = lambda w, rows: -w * rows.sum()
  found = minibatch.fit(
      jax.random.key(0), loss, jnp.zeros(()), np.ones(3), optax.sgd(1.0),
      epochs=2, batch_size=8,
  )
  assert found == 6
