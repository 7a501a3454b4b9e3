"""Protocols: exact products, plain training, messages, masks used once."""
import functools
import hashlib

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from vfljax.mpc import (
    beaver, bilinear, fixed_point, one_sided, prg, to_active, wire,
)

LAYERS = {
    'dense': bilinear.dense((12, 40), (40, 24)),
    'conv': bilinear.convolution((3, 6, 7, 4), (3, 3, 2, 6), 2, 'SAME', 1, 2),
}
@pytest.fixture(autouse=True)
def in_64_bits():
  with jax.enable_x64(True):
    yield


def reference(layer):
  """The layer in float64, by JAX's own operations."""
  if len(layer.x_shape) == 2:
    return jnp.matmul
  return functools.partial(
      lax.conv_general_dilated, window_strides=(2, 2), padding='SAME',
      dimension_numbers=('NHWC', 'HWIO', 'NHWC'), feature_group_count=2,
  )


def sample(layer, seed=0):
  rng = np.random.default_rng(seed)
  x, w, g = (
      rng.normal(size=s).astype(np.float32) * scale for s, scale in
      ((layer.x_shape, 1), (layer.w_shape, 0.1), (layer.y_shape, 1e-2))
  )
  return x, w, g


def wide(x):
  return jnp.asarray(x, jnp.float64)


def error(got, want):
  return float(jnp.abs(got - want).max() / jnp.abs(want).max())


@pytest.mark.parametrize('name', list(LAYERS))
def test_one_sided_training_is_plain_training(name):
  layer, f = LAYERS[name], reference(LAYERS[name])
  p, key = prg.THREEFRY, jax.random.key(3)
  keys = one_sided.seeds(p, key)
  bits = fixed_point.Precision()
  rng = np.random.default_rng(1)
  _, theta, _ = sample(layer)
  noise = rng.normal(size=theta.shape) * 0.01
  codes = fixed_point.encode(theta, bits.weights)
  noise_codes = fixed_point.encode(noise, bits.weights)
  total = codes + noise_codes
  plain = wide(theta) + noise
  masked, _ = one_sided.mask(p, keys, (0, 0), codes, noise_codes)
  eta = 0.1

  @jax.jit
  def step(masked, plain, t, x, g):
    place = (0, 0, t)
    v = masked.active
    c, _ = one_sided.deal(
        p, keys, (*place, 0), layer.forward, layer.x_shape, v)
    x_codes = fixed_point.encode(x, bits.inputs)
    y, _ = one_sided.product(layer.forward, x_codes, masked, c)
    c, _ = one_sided.deal(
        p, keys, (*place, 1), layer.input_gradient, layer.y_shape, v)
    g_codes = fixed_point.encode(g, bits.gradients)
    gx, _ = one_sided.product(layer.input_gradient, g_codes, masked, c)
    want, pull = jax.vjp(f, wide(x), plain)
    want_x, want_w = pull(wide(g))
    delta = fixed_point.encode(eta * want_w, bits.weights)
    exact = layer.forward(x_codes, masked.passive + masked.active)
    y_bits = bits.inputs + bits.weights
    errors = (
        jnp.abs(fixed_point.decode(y, y_bits) - want).max()
        / jnp.abs(want).max(),
        jnp.abs(fixed_point.decode(gx, bits.gradients + bits.weights)
                - want_x).max() / jnp.abs(want_x).max(),
    )
    new = one_sided.update(masked, delta)
    return new, plain - eta * want_w, delta, errors, (y == exact).all()

  for t in range(4):
    x, _, g = sample(layer, t)
    masked, plain, delta, errors, same = step(masked, plain, t, x, g)
    total = total - delta
    assert bool(same)
    assert max(map(float, errors)) < 2e-6
    np.testing.assert_array_equal(masked.passive + masked.active, total)

  again = fixed_point.encode(-noise, bits.weights)
  opened, _ = one_sided.unmask(masked, again)
  want = plain - noise
  np.testing.assert_allclose(
      fixed_point.decode(opened, bits.weights), want, atol=1e-6
  )


@pytest.mark.parametrize('drop', [1, 3, 6])
def test_a_shortened_answer_errs_as_stated(drop):
  layer = LAYERS['dense']
  p, key = prg.THREEFRY, jax.random.key(3)
  keys = one_sided.seeds(p, key)
  x, w, _ = sample(layer)
  x, w = fixed_point.encode(x), fixed_point.encode(w)
  masked, _ = one_sided.mask(p, keys, (0,), w, w * 0)
  c, _ = one_sided.deal(
      p, keys, (0, 1), layer.forward, layer.x_shape, masked.active)
  y, said = one_sided.product(layer.forward, x, masked, c, drop)
  off = np.asarray(y - layer.forward(x, w))
  assert 0 < np.abs(off).max() <= 2 ** (8 * drop - 1)
  assert said[1].size == 12 * 24 * (8 - drop)
  with pytest.raises(ValueError, match='0..7'):
    one_sided.product(layer.forward, x, masked, c, 8)


@pytest.mark.parametrize('name', list(LAYERS))
@pytest.mark.parametrize('parties', [2, 3])
def test_beaver_products_are_exact(name, parties):
  layer = LAYERS[name]
  p, key = prg.THREEFRY, jax.random.key(3)
  rng = np.random.default_rng(2)
  x, w = (
      rng.integers(-(2**63), 2**63 - 1, s, np.int64, endpoint=True)
      for s in (layer.x_shape, layer.w_shape)
  )
  share = lambda i, v: beaver.share_input(
      p, jax.random.fold_in(key, i), jnp.asarray(v), parties)
  (xs, said_x), (ws, _) = share(0, x), share(1, w)
  dealt = beaver.triple(
      p, jax.random.fold_in(key, 2), layer.forward, x.shape, w.shape, parties)
  ys, said = beaver.product(layer.forward, xs, ws, dealt)
  y, said_y = beaver.reveal(ys)
  np.testing.assert_array_equal(y, layer.forward(x, w))
  if parties == 2:
    x_, y_, w_ = bilinear.sizes(layer)
    count = wire.count(wire.then(said_x, said, said_y))
    assert count.words == x_ + 2 * x_ + 2 * w_ + y_
    assert count.flights == 3 and count.bytes == 8 * count.words


@pytest.mark.parametrize('name', list(LAYERS))
def test_to_active_training_is_plain_training(name):
  layer, f = LAYERS[name], reference(LAYERS[name])
  p, key = prg.THREEFRY, jax.random.key(3)
  keys = one_sided.seeds(p, key)
  bits = to_active.Precision()
  _, theta, _ = sample(layer)
  codes = fixed_point.encode(theta, bits.weights)
  masked, _ = one_sided.mask(p, keys, (0, 0), codes, codes * 0)
  shares = to_active.Shares(*masked)
  plain = current = wide(theta)

  @jax.jit
  def step(shares, t, x, g):
    c, _ = to_active.deal(p, keys, (0, 0, t), layer)
    z = fixed_point.encode(x, bits.inputs)
    y, e, _ = to_active.forward(layer, z, shares, c)
    g_codes = fixed_point.encode(g, bits.gradients)
    new, gx, _ = to_active.backward(layer, g_codes, e, shares, c)
    th = shares.passive + shares.active
    exact = (
        (y == layer.forward(z, th)).all(),
        (gx == layer.input_gradient(g_codes, th)).all(),
        (new.passive + new.active
         == th - layer.weight_gradient(z, g_codes)).all(),
    )
    return new, y, gx, exact

  for t in range(3):
    x, _, g = sample(layer, t)
    shares, y, gx, exact = step(shares, t, x, g)
    assert all(map(bool, exact))
    want, pull = jax.vjp(f, wide(x), current)
    want_x, want_w = pull(wide(g))
    plain, current = plain - want_w, fixed_point.decode(
        shares.passive + shares.active, bits.weights)
    y = fixed_point.decode(y, bits.inputs + bits.weights)
    gx = fixed_point.decode(gx, bits.gradients + bits.weights)
    assert error(y, want) < 4e-6  # 18 fraction bits of z.
    assert error(gx, want_x) < 2e-4  # 20 of a gradient of size 1e-2.
    assert float(jnp.abs(current - plain).max()) < 3e-5


def _basis(rows):
  """Of the lattice that integer rows span, by Euclid's algorithm."""
  rows, out = [list(map(int, row)) for row in rows], []
  for column in range(len(rows[0])):
    while len(several := [row for row in rows if row[column]]) > 1:
      least = min(several, key=lambda row: abs(row[column]))
      for row in several:
        if row is not least:
          times = row[column] // least[column]
          row[:] = [a - times * b for a, b in zip(row, least)]
    out += several
    rows = [row for row in rows if not row[column]]
    if not rows:
      break
  return [np.array(row, object) for row in out]


def _shortest(a, b):
  """Lagrange's reduction of a lattice of two vectors."""
  while True:
    a, b = sorted((a, b), key=lambda v: v @ v)
    times = (2 * (a @ b) + a @ a) // (2 * (a @ a))  # The nearest integer.
    if not times:
      return a, b
    b = b - times * a


def test_input_gradients_under_t4_tell_the_weights():
  """What the docstring says: exact ones span the lattice of th's columns."""
  f, p = bilinear.dense((8, 24), (24, 2)), prg.THREEFRY
  keys, bits = one_sided.seeds(p, jax.random.key(3)), to_active.Precision()

  @jax.jit
  def sent(x, theta, g):
    codes = fixed_point.encode(theta, bits.weights)
    masked, _ = one_sided.mask(p, keys, (0, 0), codes, codes * 0)
    shares = to_active.Shares(*masked)
    c, _ = to_active.deal(p, keys, (0, 0, 0), f)
    z, slopes = (fixed_point.encode(*of) for of in (
        (x, bits.inputs), (g, bits.gradients)))
    _, e, _ = to_active.forward(f, z, shares, c)
    return codes, to_active.backward(f, slopes, e, shares, c)[1]

  codes, gx = sent(*sample(f))
  # From here on the passive party's own arithmetic on what it was sent.
  found = _shortest(*_basis(np.asarray(gx)))
  either = lambda v: {tuple(v), tuple(-v)}
  columns = np.asarray(codes).T.tolist()
  known = [either(np.array(column, object)) for column in columns]
  assert sorted(map(sorted, map(either, found))) == sorted(map(sorted, known))


def _shapes(layer):
  ints = lambda s: jax.ShapeDtypeStruct(s, jnp.int64)
  return ints(layer.x_shape), ints(layer.y_shape), ints(layer.w_shape)


@pytest.mark.parametrize('name', list(LAYERS))
def test_messages_are_the_formulas(name):
  """Counted without computing: on shapes alone."""
  layer = LAYERS[name]
  p, key = prg.THREEFRY, jax.random.key(3)
  keys = one_sided.seeds(p, key)
  x, y, w = _shapes(layer)
  x_, y_, w_ = bilinear.sizes(layer)

  def masking(w):
    return one_sided.mask(p, keys, (0,), w, w)

  def one(f, x, w):
    masked = one_sided.Masked(w, w)
    c, dealt = one_sided.deal(p, keys, (0,), f, x.shape, w)
    out, said = one_sided.product(f, x, masked, c)
    return out, (*dealt, *said)

  def last(z, g, w):
    shares = to_active.Shares(w, w)
    c, dealt = to_active.deal(p, keys, (0,), layer)
    _, e, up = to_active.forward(layer, z, shares, c)
    _, _, down = to_active.backward(layer, g, e, shares, c)
    _, _, short = to_active.backward(layer, g, e, shares, c, False)
    return dealt, up, down, short

  said = jax.eval_shape(masking, w)[1]
  assert wire.count(said) == wire.Count(8 * w_, w_, 1, 0)
  said = jax.eval_shape(functools.partial(one, layer.forward), x, w)[1]
  assert wire.count(said) == wire.Count(8 * (x_ + y_), x_ + y_, 2, 8 * y_)
  said = jax.eval_shape(functools.partial(one, layer.input_gradient), y, w)[1]
  assert wire.count(said) == wire.Count(8 * (x_ + y_), x_ + y_, 2, 8 * x_)
  said = jax.eval_shape(
      lambda w: one_sided.unmask(one_sided.Masked(w, w), w), w)[1]
  assert wire.count(said).words == w_ and wire.count(said).flights == 1
  dealt, up, down, short = jax.eval_shape(last, x, y, w)
  assert wire.count(dealt).offline_bytes == 8 * (x_ + y_ + w_)
  assert wire.count(up).words == x_ + y_ + w_ and wire.count(up).flights == 2
  assert wire.count(down).words == y_ + w_ + x_
  assert wire.count(short) == wire.Count(8 * y_, y_, 1, 0)
  assert wire.count(wire.then(up, down)).flights == 4


def test_modelled_network_time():
  words = jax.ShapeDtypeStruct((1000,), jnp.int64)
  said = (
      wire.Message(words, 'a', 'passive', 'active', 1),
      wire.Message(words, 'b', 'active', 'passive', 1, 5),
      wire.Message(words, 'c', 'active', 'passive', 2),
      wire.Message(words, 'd', 'dealer', 'active', 0),
  )
  got = wire.seconds(said, wire.Network(bandwidth=1e6, latency=0.5))
  assert got == pytest.approx(2 * (0.5 + 0.064))
  paper = wire.Network()
  assert paper.bandwidth == 836e6


def _octets(words):
  return np.ascontiguousarray(words).view(np.uint8).reshape(-1)


def test_messages_are_uniform_whatever_is_sent():
  layer = bilinear.dense((8, 64), (64, 64))
  p, key = prg.CHACHA20, prg.chacha20_key(bytes(32))
  keys = one_sided.seeds(p, key)
  x = jnp.zeros(layer.x_shape, jnp.int64) + 5
  w = jnp.zeros(layer.w_shape, jnp.int64) + 9
  g = jnp.zeros(layer.y_shape, jnp.int64) + 7
  masked, masking = one_sided.mask(p, keys, (0,), w, w)
  c, dealt = one_sided.deal(
      p, keys, (1,), layer.forward, layer.x_shape, masked.active)
  _, said = one_sided.product(layer.forward, x, masked, c)
  shares = to_active.Shares(*masked)
  c4, dealt4 = to_active.deal(p, keys, (2,), layer)
  _, e, up = to_active.forward(layer, x, shares, c4)
  _, _, down = to_active.backward(layer, g, e, shares, c4)
  messages = [*masking, *dealt, *said, *dealt4, *up, *down]
  seen = {m.name: np.asarray(m.payload) for m in messages}
  seen |= {'M': masked.passive, 'V': masked.active}
  assert {'F', 'E', 's', 'W_A', 'c', 'F2', 'E3'} <= set(seen)
  for name, words in seen.items():
    counts = np.bincount(_octets(words), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4, name


class Recorder:
  """A generator whose keys are the streams' names, each drawn at most once."""

  def __init__(self):
    self.drawn = []

  def words(self, key, shape):
    self.drawn.append(key)
    seed = hashlib.sha256(repr(key).encode()).digest()
    rng = np.random.default_rng(np.frombuffer(seed, np.uint32))
    low, high = -(2**63), 2**63 - 1
    return jnp.asarray(rng.integers(low, high, shape, np.int64))


def test_no_stream_is_drawn_twice():
  layer = bilinear.dense((4, 6), (6, 5))
  record = Recorder()
  p = prg.Prg('recorder', lambda key, n: (*key, int(n)), record.words)
  keys = one_sided.seeds(p, ())
  codes = jnp.ones(layer.w_shape, jnp.int64)
  z = jnp.ones(layer.x_shape, jnp.int64)
  g = jnp.ones(layer.y_shape, jnp.int64)
  for period in range(2):
    for number in range(3):
      masked, _ = one_sided.mask(p, keys, (period, number), codes, codes)
      for step in range(3):
        place = (period, number, step)
        one_sided.deal(
            p, keys, (*place, 0), layer.forward, z.shape, masked.active)
        one_sided.deal(
            p, keys, (*place, 1), layer.input_gradient, g.shape, masked.active)
        to_active.deal(p, keys, place, layer)
  beaver.triple(p, (9,), layer.forward, z.shape, codes.shape, 3)
  assert len(record.drawn) == 2 * 3 * (2 + 3 * (2 + 2 + 7)) + 3 + 3 + 2
  assert len(set(record.drawn)) == len(record.drawn)
  # Nor is a key that was drawn from ever folded further.
  drawn = set(record.drawn)
  for key in drawn:
    assert not any(key[:i] in drawn for i in range(len(key)))


def test_every_word_is_of_the_seed_of_who_may_know_it():
  """Which words change with which of the three seeds: U and W_P are the passive
  party's and the dealer's, V the active party's and the dealer's, r of both
  parties; a party computes its own words from its own seeds."""
  layer, p = bilinear.dense((2, 3), (3, 2)), prg.THREEFRY
  keys = one_sided.seeds(p, jax.random.key(0))
  assert len({tuple(jax.random.key_data(k).tolist()) for k in keys}) == 3
  w = jnp.ones((3, 2), jnp.int64)

  def masking(keys):
    masked, said = one_sided.mask(p, keys, (0,), w, w)
    return masked._asdict() | {'F': said[0].payload}

  def once(keys):
    return one_sided.deal(
        p, keys, (0,), layer.forward, layer.x_shape, w)[0]._asdict()

  def moving(keys):
    return to_active.deal(p, keys, (0,), layer)[0]._asdict()

  def changed(words, seed):
    other = keys._replace(**{seed: p.fold(getattr(keys, seed), 7)})
    before, after = words(keys), words(other)
    return {k for k in before if not np.array_equal(before[k], after[k])}

  own = {'u', 'passive', 'passive2', 'u3', 'passive3'}
  rest = {'active', 'active2', 'active3'}  # What the dealer tells.
  for words, seed, want in (
      (masking, 'dealer_passive', set()),
      (masking, 'dealer_active', {'passive', 'active', 'F'}),
      (masking, 'passive_active', {'F'}),
      (once, 'dealer_passive', {'u', 'passive', 'active'}),
      (once, 'dealer_active', set()), (once, 'passive_active', set()),
      (moving, 'dealer_passive', own | rest),
      (moving, 'dealer_active', {'v', 'v2'} | rest),
      (moving, 'passive_active', set()),
  ):
    assert changed(words, seed) == want, (words.__name__, seed)


@pytest.mark.parametrize('layer', [
    bilinear.dense((2, 3, 4), (4, 5)),
    bilinear.convolution((2, 7, 4), (3, 2, 6), 2, groups=2),
    bilinear.convolution((2, 5, 4, 4), (3, 2, 2, 6), 1, 'VALID', groups=2),
    bilinear.convolution((2, 3, 4, 3, 2), (2, 2, 2, 2, 3)),
], ids=lambda layer: str(layer.w_shape))
def test_every_map_has_the_shape_it_says(layer):
  """For any number of axes; on shapes alone."""
  x, y, w = _shapes(layer)
  of = lambda f, *args: jax.eval_shape(f, *args).shape
  assert of(layer.forward, x, w) == layer.y_shape
  assert of(layer.input_gradient, y, w) == layer.x_shape
  assert of(layer.weight_gradient, x, y) == layer.w_shape


def test_bad_layers():
  with pytest.raises(ValueError, match='dense needs'):
    bilinear.dense((3, 4), (5, 4))
  with pytest.raises(ValueError, match='groups'):
    bilinear.convolution((1, 5, 5, 4), (3, 3, 4, 2), groups=2)


def operands():
  """By name: a function of codes, the codes, whether their shape is given."""
  p, f = prg.THREEFRY, bilinear.dense((4, 3), (3, 2))
  keys = one_sided.seeds(p, jax.random.key(0))
  x, w, g = (np.zeros(s, np.int64) for s in (f.x_shape, f.w_shape, f.y_shape))
  m, both = one_sided.Masked(w, w), to_active.Shares(w, w)
  c = one_sided.Correlation(x, g, g)
  t4 = to_active.Correlation(x, w, g, g, g, w, w, w, x, x)
  dealt = beaver.Triple(*(np.stack([part, part]) for part in (x, w, g)))
  return {
      'share_input': (lambda v: beaver.share_input(p, keys[0], v), x, False),
      'beaver x': (
          lambda v: beaver.product(f.forward, v, dealt.b, dealt), dealt.a, True
      ),
      'beaver w': (
          lambda v: beaver.product(f.forward, dealt.a, v, dealt), dealt.b, True
      ),
      'theta': (lambda v: one_sided.mask(p, keys, (0, 2), v, w), w, True),
      'noise': (lambda v: one_sided.mask(p, keys, (0, 2), w, v), w, True),
      'product': (lambda v: one_sided.product(f.forward, v, m, c), x, True),
      'update': (lambda v: one_sided.update(m, v), w, True),
      'unmask': (lambda v: one_sided.unmask(m, v), w, True),
      'z': (lambda v: to_active.forward(f, v, both, t4), x, True),
      'g': (lambda v: to_active.backward(f, v, x, both, t4), g, True),
  }


def test_only_codes_of_the_right_shape_are_hidden():
  """A row would be broadcast: counted twice, or under several masks."""
  for name, (call, right, shaped) in operands().items():
    said = lambda x, call=call: call(x)[0]
    jax.eval_shape(said, right)
    with pytest.raises(TypeError, match='must be an int64 array'):
      pytest.fail(f'{name}: {jax.eval_shape(said, right.astype(float))}')
    for row in (right[:1], right[:, :1]) if shaped else ():
      with pytest.raises(ValueError, match='must be of shape'):
        pytest.fail(f'{name}: {jax.eval_shape(said, row)}')


def test_randomness_of_another_batch_is_refused():
  """A row of it was broadcast: y was right, and all rows had one mask."""
  p, w = prg.THREEFRY, np.zeros((5, 2), np.int64)
  keys = one_sided.seeds(p, jax.random.key(0))
  f, row = (bilinear.dense((n, 5), (5, 2)) for n in (4, 1))
  x, g = (np.zeros(shape, np.int64) for shape in (f.x_shape, f.y_shape))
  both = to_active.Shares(w, w)
  dealt = [
      jax.eval_shape(lambda f=f: to_active.deal(p, keys, (0,), f)[0])
      for f in (f, row)
  ]
  zeros = lambda tree: jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), tree)
  right, wrong = map(zeros, dealt)

  def t4(c, shares):
    y, e, _ = to_active.forward(f, x, shares, c)
    return y, to_active.backward(f, g, e, shares, c)[:2]

  jax.eval_shape(t4, right, both)
  for name in right._fields:
    part = getattr(right, name)[:1]
    with pytest.raises(ValueError, match=rf'c\.{name} must be of shape'):
      jax.eval_shape(t4, right._replace(**{name: part}), both)
  for name in both._fields:
    with pytest.raises(ValueError, match=rf'shares\.{name} must be of shape'):
      jax.eval_shape(t4, right, both._replace(**{name: w[:1]}))
  with pytest.raises(ValueError, match='must be of shape'):
    jax.eval_shape(lambda: to_active.backward(f, g, x, both, wrong)[0])


def test_masks_of_another_product_are_refused():
  """T3's and T1's last term, a row for all rows."""
  f = bilinear.dense((4, 3), (3, 2))
  x, w, y = (
      np.zeros(s, np.int64) for s in (f.x_shape, f.w_shape, f.y_shape)
  )
  answer = lambda part: one_sided.answer(f.forward, x, w, part)
  opened = lambda part: one_sided.open_product(f.forward, x, w, part, y)
  dealt = lambda part: beaver.product(
      f.forward, np.stack([x, x]), np.stack([w, w]),
      beaver.Triple(*(jnp.stack([one, one]) for one in (x, w, part)))
  )[0]
  for call, name in ((answer, 'W_A'), (opened, 'W_P'), (dealt, 'c')):
    jax.eval_shape(call, y)
    with pytest.raises(ValueError, match=f'{name} must be of shape'):
      jax.eval_shape(call, y[:1])
