"""SPNN and SFA, plain, packed and in CKKS, against plain training."""
import jax
import numpy as np
import pytest

from tests.he import plain
from vfljax import he
from vfljax.he import ckks, encoding, local, party, sfa, spnn
from vfljax.he.packing import Sums

H, LAST = 5, 4


@pytest.mark.parametrize('how', ['single', 'packed', 'ckks'])
def test_spnn_is_plain_training(keys, how):
  private = ckks.PrivateContext() if how == 'ckks' else keys[0]
  scheme = private.public if how == 'ckks' else Sums(
      keys[0].public, 2, how == 'packed'
  )
  with jax.enable_x64(True):
    first = [plain.linear(plain.weights(i, n, H)) for i, n in ((0, 5), (1, 6))]
    middle = plain.chained(
        plain.TANH, plain.linear(plain.weights(2, H, LAST)), plain.TANH
    )
    top = plain.linear(plain.weights(3, LAST, plain.CLASSES))
    samples = [plain.data(seed=i) for i in range(2)]
    played = plain.play(
        first, plain.chained(middle, top), [plain.batch(*x) for x in samples]
    )
    bottom = lambda net: local.Bottom(net, plain.start(net), plain.RATE)
    passive = spnn.Passive(bottom(first[1]), scheme)
    active = spnn.Active(bottom(first[0]), local.Top(
        plain.sum_loss(top), plain.start(top), plain.RATE
    ), scheme)
    server = spnn.Server(
        local.Middle(middle, plain.start(middle), plain.RATE), private, scheme
    )
    line = spnn.channel(private.public)
    for (x, x0, labels), round_ in zip(samples, played.rounds, strict=True):
      loss = spnn.step(
          passive, active, server, line, x, (x0, labels), H
      )
      plain.near(loss, round_.loss)
    ours, theirs = (p.params for p in played.states[-1].parties)
    plain.near(passive._bottom.params, theirs['bottom'])
    plain.near(active._bottom.params, ours['bottom'])
    plain.near((server._middle.params, active._top.params), ours['top'])
  found = party.cost((passive, active, server), line)
  once = spnn.cost(scheme, 4, H, LAST)
  assert found.count == once.count.plus(once.count)
  if how != 'ckks':
    assert found.traffic == (2 * once.traffic.bytes, 10)
  sent = {one.declared.name: one.payload for one in line.said}
  plain.near(sent['gradient'], played.rounds[-1].messages.down[0])


@pytest.mark.parametrize('passives, packed', [(1, False), (2, True)])
def test_sfa_is_plain_training(keys, passives, packed):
  sums = Sums(keys[0].public, passives + 1, packed, masked=True)
  with jax.enable_x64(True):
    nets = [plain.chained(
        plain.linear(plain.weights(k, n, H)), plain.TANH
    ) for k, n in enumerate((5, 6, 6)[:passives + 1])]
    top = plain.linear(plain.weights(7, H, plain.CLASSES))
    samples = []
    for seed in range(2):
      x, x0, labels = plain.data(seed=seed)
      more = [plain.data(seed=seed + 9)[0]] * (passives - 1)
      samples.append(([x, *more], x0, labels))
    played = plain.play(nets, top, [
        plain.Batch(tuple(map(jax.numpy.asarray, (x0, *xs))), labels)
        for xs, x0, labels in samples
    ])
    bottom = lambda net: local.Bottom(net, plain.start(net), plain.RATE)
    ours = [
        sfa.Passive(k, bottom(net), sums, keys[0] if k == 1 else None)
        for k, net in enumerate(nets[1:], 1)
    ]
    active = sfa.Active(bottom(nets[0]), local.Top(
        plain.sum_loss(top), plain.start(top), plain.RATE
    ), sums)
    line = sfa.channel(sums)
    for (xs, x0, labels), round_ in zip(samples, played.rounds, strict=True):
      loss = sfa.step(ours, active, line, xs, (x0, labels))
      plain.near(loss, round_.loss)
    last = [p.params for p in played.states[-1].parties]
    for one, wanted in zip((active, *ours), last, strict=True):
      plain.near(one._bottom.params, wanted['bottom'])
    plain.near(active._top.params, last[0]['top'])
  found = party.cost((active, *ours), line)
  once = sfa.cost(sums, 4, H)
  assert found.count == once.count.plus(once.count)
  assert found.traffic == (2 * once.traffic.bytes, 8)


def test_slots_hold_sums_of_either_sign(keys):
  sums = Sums(keys[0].public, 3, packed=True)
  assert sums.slots == 17  # 1022 bits by 56 + 2 + 1.
  most = 2 ** 56 - 1
  values = np.array([[most, -most, 0], [-1, 1, -most]], object)
  total = sums.unpack(3 * sums.pack(values), values.shape)
  assert (total == 3 * values).all()


@pytest.mark.parametrize('packed', [False, True])
def test_one_term_more_than_there_is_room_for_is_refused(keys, packed):
  """Three of two, and 65000 was -67000 and lent its sign to the next slot."""
  maker, x = he.Arithmetic(), np.full(3, 65000.0)
  two = Sums(keys[0].public, 2, packed)
  one = two.seal(maker, x)
  both = two.add(maker, one, two.seal(maker, x))
  np.testing.assert_array_equal(two.opened(maker, keys[0], both, (3,)), 2 * x)
  with pytest.raises(ValueError, match='room for a sum of 2 terms; .* of 3'):
    two.add(maker, both, one)
  other = Sums(keys[0].public, 5, packed)
  for wrong in (other.seal(maker, x), maker.add(one, one)):
    with pytest.raises(ValueError, match='have other slots'):
      two.add(maker, one, wrong)
    with pytest.raises(ValueError, match='have other slots'):
      two.opened(maker, keys[0], wrong, (3,))
  with pytest.raises(ValueError, match='do not hold an array of shape'):
    two.opened(maker, keys[0], one, (40,))
  with pytest.raises(ValueError, match='no room for a mask'):
    two.seal_masked(maker, x)
  with pytest.raises(ValueError, match='terms must be an integer'):
    two._replace(terms=0).seal(maker, x)


def test_ckks_sums_that_would_wrap_around_are_refused():
  """Three times 262143 was -262144."""
  private, maker = ckks.PrivateContext(), he.Arithmetic()
  public, x = private.public, np.full(2, 2.0 ** 18 - 1)
  one = public.seal(maker, x)
  both = public.add(maker, one, one)
  np.testing.assert_allclose(private.opened(maker, both, (2,)), 2 * x)
  with pytest.raises(ValueError, match='would wrap around'):
    public.add(maker, both, one)
  with pytest.raises(ValueError, match='numbers below 174763 are expected'):
    public.seal(maker, x, terms=3)
  alone = private.opened(maker, public.seal(maker, x, terms=1), (2,))
  np.testing.assert_allclose(alone, x)
  with pytest.raises(ValueError, match='numbers below 262144 are expected'):
    public.seal(maker, 1.9 * x, terms=1)  # More than TenSEAL encodes.
  third = public.seal(maker, x / 2, terms=3)
  three = public.add(maker, public.add(maker, third, third), third)
  np.testing.assert_allclose(private.opened(maker, three, (2,)), 1.5 * x)
  with pytest.raises(ValueError, match='another key'):
    public.add(maker, one, ckks.PublicContext(public._made.serialize()).seal(
        maker, x))
  with pytest.raises(ValueError, match='1 and 2 vectors'):
    public.add(maker, one, public.seal(maker, np.ones(ckks.SLOTS + 1)))
  with pytest.raises(ValueError, match='Complex'):
    public.seal(maker, 1j * x)


def test_packing_saves_what_it_says(keys):
  one, many = (Sums(keys[0].public, 2, p) for p in (False, True))
  numbers = 4 * 32
  assert one.ciphers(numbers) == numbers and many.slots == 17
  assert many.ciphers(numbers) == 8
  assert ckks.count(2, 4096) == (4, 2, 0, 2)


def test_numbers_of_another_code_are_not_opened(keys):
  """As wide, but with the point elsewhere: 3.5 was opened as 3584."""
  maker, key = he.Arithmetic(), keys[0].public
  one = Sums(key, code=encoding.Code(40, 56))
  total = one.add(maker, one.seal(maker, [1.5]), one.seal(maker, [2.0]))
  assert one.opened(maker, keys[0], total, (1,)) == 3.5
  with pytest.raises(ValueError, match='40 bits of fraction are not opened'):
    Sums(key, code=encoding.Code(30, 56)).opened(
        maker, keys[0], total, (1,)
    )


def test_a_key_without_room_for_one_number_is_refused(keys):
  code = encoding.VALUES._replace(bits=keys[0].public.room)
  with pytest.raises(ValueError, match='longer key or a shorter code'):
    Sums(keys[0].public, 2, True, code=code).ciphers(3)


def test_a_mask_that_is_still_on_is_told():
  large = encoding.integers([1, 1 << 2000], (2,))
  with pytest.raises(ValueError, match='2001 bits .* is a mask still on it'):
    encoding.decode(large, 24)


@pytest.mark.parametrize('packed', [False, True])
def test_arrays_of_two_shapes_are_not_added(keys, packed):
  """[2, 3] and [2, 2] were: their third numbers were of two rows."""
  maker, ours = he.Arithmetic(), Sums(keys[0].public, 2, packed)
  seal = lambda *shape: ours.seal(maker, np.ones(shape))
  for other in ((2, 2), (3, 2), (6,)):
    with pytest.raises(ValueError, match=r'shapes \(2, 3\) and .* be added'):
      ours.add(maker, seal(2, 3), seal(*other))
  both = ours.add(maker, seal(2, 3), seal(2, 3))
  for shape in ((2, 2), (2, 4)):
    with pytest.raises(ValueError, match='do not hold an array of shape'):
      ours.opened(maker, keys[0], both, shape)
  found = ours.opened(maker, keys[0], both, (6,))
  np.testing.assert_array_equal(found, np.full(6, 2.0))


def test_ckks_arrays_of_two_shapes_are_not_added():
  private, maker = ckks.PrivateContext(), he.Arithmetic()
  seal = lambda *shape: private.public.seal(maker, np.ones(shape))
  for other in ((3, 2), (6,), (1, 1)):
    with pytest.raises(ValueError, match=r'shapes \(2, 3\) and .* be added'):
      private.public.add(maker, seal(2, 3), seal(*other))
  both = private.public.add(maker, seal(2, 3), seal(2, 3))
  assert both.shape == (2, 3)


def test_slots_have_room_for_one_mask(keys):
  """A sum of three masks is too long for a slot one time in six."""
  maker, x = he.Arithmetic(), np.ones(2)
  sums = Sums(keys[0].public, 3, packed=True, masked=True)
  (one, mask), (two, _) = (sums.seal_masked(maker, x) for _ in range(2))
  with pytest.raises(ValueError, match='slots have room for one'):
    sums.add(maker, one, two)
  both = sums.add(maker, sums.seal(maker, x), one)
  with pytest.raises(ValueError, match='slots have room for one'):
    sums.add(maker, both, two)
  total = sums.add(maker, both, sums.seal(maker, x))
  found = sums.open(maker, keys[0], total, x.shape)
  opened = encoding.decode(found.values - mask, found.fraction)
  np.testing.assert_array_equal(opened, 3 * x)
