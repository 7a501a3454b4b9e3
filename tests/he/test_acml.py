"""ACML on real ciphertexts against the library's plain training."""
import jax
import numpy as np
import pytest

from tests.he import plain
from vfljax.he import acml, local, masks, party
from vfljax.he.encoding import FACTORS, SLOPES, decode, encode

D, H = 4, 3
BOTTOM = plain.chained(plain.linear(plain.weights(0, 6, D)), plain.TANH)
OWN = plain.linear(plain.weights(2, 5, H))
TOP = plain.chained(
    plain.TANH, plain.linear(plain.weights(3, H, plain.CLASSES))
)


def passive_party(keys, shape=(D, H), bottom=BOTTOM, noise=None):
  return acml.Passive(
      local.Bottom(bottom, plain.start(bottom), plain.RATE), shape, keys[0],
      noise=noise,
  )


class Seen(local.Top):
  """Keeps what the active party sees: z and its own slopes."""

  def learn(self, z, own):
    loss, dz = super().learn(z, own)
    self.seen = getattr(self, 'seen', []) + [(np.asarray(z), dz)]
    return loss, dz


def active_party(passive, v, own=OWN, top=TOP):
  seen = Seen(
      plain.head(own, top), dict(bottom=plain.start(own), top=plain.start(top)),
      plain.RATE,
  )
  return acml.Active(seen, v, plain.RATE, passive.public), seen


def layer(passive, active):
  return decode(passive._noise + active._weights, acml.FRACTION)


def test_two_parties_draw_two_noises(keys):
  """A seed, even a default one, would tell the active party what W is."""
  made = [passive_party(keys) for _ in range(2)]
  assert (made[0]._noise != made[1]._noise).all()
  one, other = (party._drawn() for party in made)
  assert (one != other).all()


def test_noises_have_the_deviations_that_are_said(keys):
  """Of 20000: n of 1, and N of 1 / sqrt(d) at first, or 0."""
  deviation = lambda n: np.std(decode(n, acml.FRACTION))
  big = passive_party(keys, (100, 200))
  assert deviation(big._drawn()) == pytest.approx(1, abs=0.03)
  assert deviation(big._noise) == pytest.approx(0.1, abs=0.003)
  published = passive_party(keys, (100, 200), noise=np.zeros((100, 200)))
  assert abs(decode(published._noise, acml.FRACTION)).max() <= 2 ** -25


def test_a_dealt_layer_is_the_sum_of_pieces_that_do_not_tell_it():
  layer = plain.weights(0, 100, 200)
  v, noise = acml.dealt(layer)
  np.testing.assert_allclose(v + noise, layer, rtol=0, atol=1e-10)
  assert np.std(noise) == pytest.approx(256, rel=0.03)
  assert abs(np.corrcoef(v.ravel(), layer.ravel())[0, 1]) < 0.05


def test_two_batches_are_plain_training(keys):
  with jax.enable_x64(True):
    passive = passive_party(keys)
    active, _ = active_party(passive, plain.weights(1, D, H))
    samples = [plain.data(seed=i) for i in range(2)]
    played = plain.play(
        [OWN, plain.chained(BOTTOM, plain.linear(layer(passive, active)))],
        TOP, [plain.batch(*one) for one in samples],
    )
    line = acml.channel(passive.public)
    for (x, x0, labels), round_ in zip(samples, played.rounds, strict=True):
      loss = acml.step(passive, active, line, x, (x0, labels))
      plain.near(loss, round_.loss)
    ours, theirs = (p.params for p in played.states[-1].parties)
    plain.near(passive._bottom.params, theirs['bottom'][0])
    plain.near(layer(passive, active), theirs['bottom'][1]['w'])
    plain.near(active._top.params, dict(bottom=ours['bottom'], top=ours['top']))
  found, once = party.cost((passive, active), line), acml.cost(4, D, H)
  assert found.count == once.count.plus(once.count)
  assert found.traffic == (2 * once.traffic.bytes, 12)


def uniform(draws, bits):
  """Whether each of the last bits is 1 in half of all integers."""
  flat = [int(v) for draw in draws for v in draw.flat]
  ones = np.array([[v >> i & 1 for i in range(bits)] for v in flat])
  off = abs(ones.mean(0) - 0.5).max()
  return off < 6 * 0.5 / np.sqrt(len(flat))


def test_no_bit_of_a_step_lies_bare_when_the_active_mask_is_off(keys):
  """Without n there, h equations modulo 2^48 in a batch's rows have a."""
  with jax.enable_x64(True):
    passive = passive_party(keys)
    active, _ = active_party(passive, plain.weights(1, D, H))
    x, x0, labels = plain.data()
    hidden = active.hidden(passive.embed(x))
    hiddens = [passive.open_hidden(hidden) for _ in range(30)]
    active.learn(hiddens[0], (x0, labels))
    slope = active.slope()
    slopes = [passive.open_slope(slope) for _ in range(30)]
  bare = [one.values - active._masks['opened slope'] for one in slopes]
  assert slope.fraction == acml.FRACTION == 72
  assert uniform(bare, acml.FRACTION - FACTORS.fraction)
  z = [one.values - active._masks['opened hidden'] for one in hiddens]
  assert uniform(z, hidden.fraction - masks.GRAIN)


def test_what_both_draw_is_uniform_in_its_last_bits(keys):
  """The layer, too: of zeros behind V's 24 bits dz would come out, at P."""
  passive = passive_party(keys, (20, 30), noise=np.zeros((20, 30)))
  active, _ = active_party(passive, np.ones((20, 30), np.float32))
  low = acml.FRACTION - masks.GRAIN
  assert uniform([passive._noise], low) and uniform([active._weights], low)
  assert uniform([passive._drawn()], low)
  a = acml.Passive(local.Bottom(
      plain.TANH, (), plain.RATE
  ), (20, 2), keys[0])
  a.embed(np.full((10, 20), 0.5, np.float32))
  assert uniform([a._a], acml.VALUES.fraction - masks.GRAIN)


def test_products_are_blurred_and_by_no_more_than_is_said(keys):
  """Exact ones span the lattice that the embedding's columns span."""
  with jax.enable_x64(True):
    passive = passive_party(keys)
    active, seen = active_party(passive, plain.weights(1, D, H))
    x, x0, labels = plain.data()
    hidden = active.hidden(passive.embed(x))
    opened = passive.open_hidden(hidden)
    z = opened.values - active._masks['opened hidden']
    w = acml._factors(active._weights) + acml._factors(passive._noise)
    active.learn(opened, (x0, labels))
    grown = passive.open_slope(active.slope())
    told = active.gradient(grown, passive.tell_noise())
  read = passive._math.decrypt_integers(keys[0], told)
  slopes = encode(seen.seen[0][1], SLOPES)
  for off, fraction in ((z - passive._a @ w, opened.fraction),
                        (read.values - slopes @ w.T, read.fraction)):
    assert (off != 0).all()
    assert abs(off).max() <= 1 << (fraction - masks.GRAIN - 1)


@pytest.mark.parametrize('published', [True, False])
def test_a_layer_that_one_party_knew_at_first_it_knows_for_good(
    keys, published
):
  """z = a W is solved for a, whose step makes the next W: all embeddings."""
  d, h = 3, 5
  with jax.enable_x64(True):
    bottom = plain.chained(plain.linear(plain.weights(0, 6, d)), plain.TANH)
    own = plain.linear(plain.weights(2, 5, h))
    top = plain.chained(
        plain.TANH, plain.linear(plain.weights(3, h, plain.CLASSES))
    )
    passive = passive_party(
        keys, (d, h), bottom, np.zeros((d, h)) if published else None
    )
    active, seen = active_party(passive, plain.weights(1, d, h), own, top)
    line, w = acml.channel(passive.public), decode(
        active._weights, acml.FRACTION
    )
    for seed in range(3):
      x, x0, labels = plain.data(seed=seed)
      acml.step(passive, active, line, x, (x0, labels))
      z, dz = seen.seen[-1]
      found = np.linalg.lstsq(w.T, z.T, rcond=None)[0].T
      w = w - found.T @ (plain.RATE * dz)
      error = abs(found - decode(passive._a, acml.VALUES.fraction))
      assert (error.max() < 1e-4) if published else (error.max() > 0.1)


def test_two_batches_through_a_wide_layer_tell_products_of_embeddings(keys):
  """W = G R, R of z's rows; W' = G (R - S c^T rate dz) is linear in S.

  c is a G. S, 1 / G^T G, is symmetric: a a^T is c S c^T, a rotation is left.
  """
  d, h = 2, 6
  with jax.enable_x64(True):
    bottom = plain.chained(plain.linear(plain.weights(0, 6, d)), plain.TANH)
    top = plain.chained(
        plain.TANH, plain.linear(plain.weights(3, h, plain.CLASSES))
    )
    passive = passive_party(keys, (d, h), bottom)
    active, seen = active_party(
        passive, plain.weights(1, d, h), plain.linear(plain.weights(2, 5, h)),
        top,
    )
    line, embeddings = acml.channel(passive.public), []
    for seed in range(2):
      x, x0, labels = plain.data(seed=seed)
      acml.step(passive, active, line, x, (x0, labels))
      embeddings.append(decode(passive._a, acml.VALUES.fraction))
  (z, dz), (z_next, _) = seen.seen
  rows, after = (np.linalg.svd(one)[2][:d] for one in (z, z_next))
  outside = np.eye(h) - after.T @ after
  c = z @ rows.T
  step = c.T @ (plain.RATE * dz) @ outside
  basis = np.array([[[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]])
  columns = (basis @ step).reshape(3, -1).T
  found = np.linalg.lstsq(columns, (rows @ outside).ravel(), rcond=None)[0]
  s = np.tensordot(found, basis, 1)
  a = embeddings[0]
  np.testing.assert_allclose(c @ s @ c.T, a @ a.T, rtol=0, atol=0.01)
