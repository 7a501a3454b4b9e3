"""BlindFL on real ciphertexts against plain training."""
import jax
import numpy as np
import pytest

from tests.he import plain
from vfljax.he import blindfl, local, masks, party
from vfljax.he.encoding import FACTORS, decode, encode

H, ROWS = 4, 4
TOP = plain.chained(
    plain.TANH, plain.linear(plain.weights(4, H, plain.CLASSES))
)


def whole(a, b):
  """Weights of two shares."""
  return decode(a + b, blindfl.FRACTION)


@pytest.mark.parametrize('rows', [1, 3, 128])
def test_shares_have_room_for_as_many_masks_as_they_say(rows):
  mask = 1 << (blindfl.step_bits(rows) + masks.SLACK)
  most = (mask << blindfl.STEPS) + (1 << blindfl.VALUES.bits + 24)
  assert most.bit_length() <= blindfl.shares_code(rows).bits


def both(keys):
  """Parties of fixed pieces, and of these the sums (active, passive)."""
  u_p, v_p, u_a, v_a = (
      plain.weights(i, n, H) for i, n in ((0, 6), (1, 6), (2, 5), (3, 5))
  )
  passive = blindfl.Passive(
      blindfl.P, keys[0], keys[1].public, (u_p, v_a), ROWS
  )
  active = blindfl.Active(
      local.Top(plain.sum_loss(TOP), plain.start(TOP), plain.RATE), plain.RATE,
      keys[1], keys[0].public, (u_a, v_p), ROWS,
  )
  return passive, active, (u_a + v_a, u_p + v_p)


def test_pieces_are_drawn_to_their_last_bit():
  """Of zeros there, z's last bits after a step tell rows' products."""
  given = np.full((20, 50), 0.25, np.float32)
  low = 1 << (blindfl.FRACTION - masks.GRAIN)
  draws = np.array([float(v % low) for v in blindfl.weights(given).flat]) / low
  assert abs(draws.mean() - 0.5) < 0.06
  assert draws.std() == pytest.approx(12 ** -0.5, rel=0.1)
  ends = [int(v) & 255 for v in blindfl.weights(given).flat]
  assert len(set(ends)) > 200


def test_what_is_opened_is_no_product_of_integers(keys):
  """z, exact, spans the lattice that the features' columns span."""
  with jax.enable_x64(True):
    passive, active, _ = both(keys)
    x, x0, _ = plain.data(ROWS)
    passive.keep(active.tell_weights())
    active.keep(passive.tell_weights())
    theirs, ours = passive.product(x), active.product(x0)
    share = passive.share(ours)
    own = active._share(theirs)
  exact = sum(
      encode(features, FACTORS) @ (one._own + other._theirs)
      for features, one, other in ((x, passive, active), (x0, active, passive))
  )
  off = own.values + share.values - exact
  assert (off != 0).all()
  assert abs(off).max() <= 1 << (share.fraction - masks.GRAIN - 1)


def test_two_batches_are_plain_training(keys):
  with jax.enable_x64(True):
    passive, active, sums = both(keys)
    samples = [plain.data(ROWS, seed=i) for i in range(2)]
    played = plain.play(
        [plain.linear(one) for one in sums], TOP,
        [plain.batch(*one) for one in samples],
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
