"""HardyLR on real ciphertexts against plain training of the same polynomial."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.he import plain
from vfljax import nets
from vfljax.he import hardy, party
from vfljax.types import Net

ROWS = 4
LOGITS = Net(lambda key, u: (), lambda params, u: nets.pair(u))


def taylor(logits, labels):
  """Of the pair of logits (0, u) that VLR's one logit makes."""
  u, t = logits[..., 1] - logits[..., 0], labels[..., 1] - labels[..., 0]
  return jnp.log(2.0) - t * u / 2 + u ** 2 / 8


@pytest.mark.parametrize('masked', [False, True])
def test_two_batches_are_plain_training(keys, masked):
  with jax.enable_x64(True):
    w_a, w_p = plain.weights(0, 5, 1), plain.weights(1, 6, 1)
    samples = [plain.data(ROWS, seed=i, classes=2) for i in range(2)]
    played = plain.play(
        [plain.linear(w_a), plain.linear(w_p)], LOGITS,
        [plain.batch(*one) for one in samples], loss=taylor,
    )
    coordinator = hardy.Coordinator(keys[0])
    more = plain.RATE, coordinator.public, masked
    passive = hardy.Passive(hardy.P, w_p[:, 0], *more)
    active = hardy.Active(hardy.A, w_a[:, 0], *more)
    line = hardy.channel(coordinator.public)
    for x, x0, labels in samples:
      hardy.step(passive, active, coordinator, line, x, (x0, labels[:, 1]))
    ours, theirs = (p.params for p in played.states[-1].parties)
    plain.near(passive._weights, theirs['bottom']['w'][:, 0])
    plain.near(active._weights, ours['bottom']['w'][:, 0])
  once = hardy.cost(ROWS, 6, 5, masked=masked)
  found = party.cost((passive, active, coordinator), line)
  assert found.count == once.count.plus(once.count)
  assert found.traffic == (2 * once.traffic.bytes, 8)


def test_a_mask_and_a_sign_are_among_the_bytes(keys):
  """Of 32 rows they take a byte more than a mask without one bit."""
  coordinator = hardy.Coordinator(keys[0])
  more = plain.RATE, coordinator.public, True
  passive = hardy.Passive(hardy.P, np.ones(1), *more)
  active = hardy.Active(hardy.A, np.ones(1), *more)
  line, x = hardy.channel(coordinator.public), np.ones((32, 1))
  hardy.step(passive, active, coordinator, line, x, (x, np.ones(32)))
  assert line.traffic == hardy.cost(32, 1, 1, masked=True).traffic


@pytest.mark.parametrize('labels', [
    [-1, 1, 1, -1], [0, 1, 2, 0], [0, 1, 1], [[0, 1]] * 4, [0, 1, 0, np.nan],
])
def test_labels_that_are_not_0_or_1_are_refused(keys, labels):
  """+-1, which the formulas know as t, would train on -3 and 1."""
  key = keys[0].public
  active = hardy.Active(hardy.A, np.ones(2), 0.1, key)
  part = hardy.Passive(hardy.P, np.ones(2), 0.1, key).part(np.ones((4, 2)))
  with pytest.raises(ValueError, match='Labels are 0 or 1, one a row, 4'):
    active.residues(part, np.ones((4, 2)), labels)
