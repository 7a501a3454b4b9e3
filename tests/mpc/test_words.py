"""Words of the generators bit by bit, and how messages of steps add up."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.perturbing import check_apart
from vfljax.mpc import beaver, bilinear, one_sided, prg, to_active, wire


@pytest.mark.parametrize('name', list(prg.REGISTRY))
def test_no_two_bits_of_neighbouring_words_go_together(name):
  key = jax.random.key(5) if name == 'threefry' else prg.chacha20_key(b'5' * 32)
  with jax.enable_x64(True):
    words = np.asarray(prg.get(name).words(key, (8000,)))
  bits = np.unpackbits(words.view(np.uint8)).reshape(4000, 128)
  check_apart(bits)
  np.testing.assert_allclose(bits.mean(0), 0.5, atol=0.05)


def test_what_is_said_offline_stays_offline_in_a_later_step():
  say = lambda flight: (
      wire.Message(jnp.zeros((2, 3)), 'm', 'passive', 'active', flight),
  )
  whole = wire.then(say(1) + say(2), say(0) + say(1), say(0), say(1))
  assert [m.flight for m in whole] == [1, 2, 0, 3, 0, 4]
  assert wire.count(whole) == wire.Count(4 * 48, 4 * 6, 4, 2 * 48)


def test_messages_of_one_link_wait_for_each_other():
  """Those of another, and the other way, do not."""
  words = jax.ShapeDtypeStruct((1000,), np.int64)
  said = tuple(
      wire.Message(words, name, sender, receiver, 1) for name, sender, receiver
      in (('E', 'passive', 'active'), ('c', 'passive', 'active'),
          ('F', 'active', 'passive'))
  )
  found = wire.seconds(said, wire.Network(bandwidth=1e6, latency=0.5))
  assert found == pytest.approx(0.5 + 2 * 0.064)


def test_every_message_by_itself_is_uniform():
  """Of each protocol, also where messages of two have one name."""
  layer = bilinear.dense((8, 64), (64, 64))
  p, key = prg.CHACHA20, prg.chacha20_key(bytes(32))
  with jax.enable_x64(True):
    keys = one_sided.seeds(p, key)
    x, w, g = (
        jnp.full(shape, code, jnp.int64) for shape, code in
        ((layer.x_shape, 5), (layer.w_shape, 9), (layer.y_shape, 7))
    )
    masked, said = one_sided.mask(p, keys, (0,), w, w)
    c, dealt = one_sided.deal(
        p, keys, (1,), layer.forward, layer.x_shape, masked.active)
    said += dealt + one_sided.product(layer.forward, x, masked, c)[1]
    shares = to_active.Shares(*masked)
    c, dealt = to_active.deal(p, keys, (2,), layer)
    _, e, up = to_active.forward(layer, x, shares, c)
    said += dealt + up + to_active.backward(layer, g, e, shares, c)[2]
    xs, sent = beaver.share_input(p, p.fold(key, 7), x)
    ws, _ = beaver.share_input(p, p.fold(key, 8), w)
    triple = beaver.triple(
        p, p.fold(key, 9), layer.forward, layer.x_shape, layer.w_shape)
    said += sent + beaver.product(layer.forward, xs, ws, triple)[1]
  assert len(said) == 4 + 3 + 3 + 3 + 1 + 4
  for m in said:
    octets = np.ascontiguousarray(m.payload).view(np.uint8).ravel()
    counts = np.bincount(octets, minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4, (m.name, m.sender)


def heard(said):
  """'E1 passive>active' for what is said in the first flight."""
  return [f'{m.name}{m.flight} {m.sender}>{m.receiver}' for m in said]


def test_who_says_what_in_which_flight():
  """By the protocols, on shapes alone."""
  layer, p = bilinear.dense((2, 3), (3, 4)), prg.THREEFRY
  ints = lambda shape: jax.ShapeDtypeStruct(shape, np.int64)

  def both(x, w, g):
    keys = one_sided.seeds(p, jax.random.key(0))
    masked, said = one_sided.mask(p, keys, (0,), w, w)
    c, dealt = one_sided.deal(p, keys, (1,), layer.forward, x.shape, w)
    said += dealt + one_sided.product(layer.forward, x, masked, c)[1]
    said += one_sided.unmask(masked, w)[1]
    shares = to_active.Shares(w, w)
    c, dealt = to_active.deal(p, keys, (2,), layer)
    _, e, up = to_active.forward(layer, x, shares, c)
    down = to_active.backward(layer, g, e, shares, c)[2]
    return said, dealt, up, down

  with jax.enable_x64(True):
    said, dealt, up, down = jax.eval_shape(
        both, ints(layer.x_shape), ints(layer.w_shape), ints(layer.y_shape)
    )
  assert heard(said) == [
      'F1 active>passive', 'W_A0 dealer>active', 'E1 passive>active',
      's2 active>passive', 'V1 active>passive',
  ]
  assert heard(dealt) == [
      'W_A0 dealer>active', 'W2_A0 dealer>active', 'W3_A0 dealer>active',
  ]
  assert heard(up) == [
      'F1 active>passive', 'E2 passive>active', 'c2 passive>active',
  ]
  assert heard(down) == [
      'F21 active>passive', 'E31 passive>active', 's2 active>passive',
  ]


def test_three_parties_say_their_words_at_once():
  """T1: each opens its shares to both others, then tells one of them."""
  layer, p = bilinear.dense((2, 3), (3, 4)), prg.THREEFRY
  ints = lambda *shape: jax.ShapeDtypeStruct(shape, np.int64)

  def whole(x, xs, ws):
    key = jax.random.key(0)
    dealt = beaver.triple(p, key, layer.forward, x.shape, layer.w_shape, 3)
    ys, opened = beaver.product(layer.forward, xs, ws, dealt)
    return beaver.share_input(p, key, x, 3)[1], opened, beaver.reveal(ys, 1)[1]

  with jax.enable_x64(True):
    shared, opened, revealed = jax.eval_shape(
        whole, ints(2, 3), ints(3, 2, 3), ints(3, 3, 4)
    )
  assert heard(shared) == ['x1 passive>active', 'x1 passive>party 2']
  assert heard(opened) == [
      f'{name}1 {one}>{other}' for name in 'EF'
      for one in ('passive', 'active', 'party 2')
      for other in ('passive', 'active', 'party 2') if one != other
  ]
  assert heard(revealed) == ['y1 passive>active', 'y1 party 2>active']


def test_results_are_made_of_what_was_said():
  """T3: what crosses the line is what the other party goes on with."""
  f, p = bilinear.dense((2, 3), (3, 2)).forward, prg.THREEFRY
  with jax.enable_x64(True):
    keys = one_sided.seeds(p, jax.random.key(0))
    x, w = jnp.arange(6).reshape(2, 3), jnp.arange(6).reshape(3, 2)
    masked, _ = one_sided.mask(p, keys, (0,), w, w)
    c, _ = one_sided.deal(p, keys, (1,), f, x.shape, masked.active)
    y, (asked, answered) = one_sided.product(f, x, masked, c)
    s = one_sided.answer(f, asked.payload, masked.active, c.active)
    np.testing.assert_array_equal(answered.payload, s)
    found = one_sided.open_product(
        f, x, masked.passive, c.passive, answered.payload
    )
    np.testing.assert_array_equal(found, y)
    np.testing.assert_array_equal(y, 2 * (x @ w))
