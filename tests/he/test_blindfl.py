"""BlindFL on real ciphertexts against plain training."""
import jax
import numpy as np
import pytest

from tests.he import plain
from vfljax.he import blindfl, local, masks, party
from vfljax.he.encoding import decode

H, ROWS = 4, 4


def whole(a, b):
  """Weights of two shares."""
  return decode(a + b, blindfl.FRACTION)


@pytest.mark.parametrize('rows', [1, 3, 128])
def test_shares_have_room_for_as_many_masks_as_they_say(rows):
  mask = 1 << (blindfl.step_bits(rows) + masks.SLACK)
  most = (mask << blindfl.STEPS) + (1 << blindfl.VALUES.bits + 24)
  assert most.bit_length() <= blindfl.shares_code(rows).bits


def test_two_batches_are_plain_training(keys):
  draw = plain.weights
  with jax.enable_x64(True):
    u_p, v_p, u_a, v_a = (
        draw(i, n, H) for i, n in ((0, 6), (1, 6), (2, 5), (3, 5))
    )
    top = plain.chained(plain.TANH, plain.linear(draw(4, H, plain.CLASSES)))
    samples = [plain.data(ROWS, seed=i) for i in range(2)]
    played = plain.play(
        [plain.linear(u_a + v_a), plain.linear(u_p + v_p)], top,
        [plain.batch(*one) for one in samples],
    )
    passive = blindfl.Passive(
        blindfl.P, keys[0], keys[1].public, (u_p, v_a), ROWS
    )
    active = blindfl.Active(
        local.Top(plain.sum_loss(top), plain.start(top), plain.RATE),
        plain.RATE, keys[1], keys[0].public, (u_a, v_p), ROWS,
    )
    line = blindfl.channel(passive.public, active.public)
    blindfl.meet(passive, active)
    before = party.cost((passive, active), line).count
    assert before == (5 * H + 6 * H, 0, 0, 0)
    for (x, x0, labels), round_ in zip(samples, played.rounds, strict=True):
      loss = blindfl.step(passive, active, line, x, (x0, labels))
      plain.near(loss, round_.loss)
    ours, theirs = (p.params for p in played.states[-1].parties)
    plain.near(whole(passive._own, active._theirs), theirs['bottom']['w'])
    plain.near(whole(active._own, passive._theirs), ours['bottom']['w'])
    plain.near(active._top.params, ours['top'])
  # A share says nothing: it is far from the weights, by another mask each.
  shares = decode(passive._own, blindfl.FRACTION).ravel()
  assert abs(shares).min() > 1e6 and len(np.unique(shares)) == shares.size
  once = blindfl.cost(ROWS, 6, 5, H)
  found = party.cost((passive, active), line)
  assert found.count == before.plus(once.count).plus(once.count)
  assert found.traffic == (2 * once.traffic.bytes, 10)
