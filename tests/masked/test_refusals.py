"""What masked layers refuse, and that the advice they give holds."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.masked_federation import (
    BATCH, SEEDS, compiled, federation, found_in, network,
)
from vfljax import nets
from vfljax.masked import masking, ranges, training
from vfljax.masked.shares import Public
from vfljax.mpc import fixed_point, one_sided, prg, to_active


def found_in_mlp(batch=8):
  net, shape = network('dense')
  return found_in(net, batch, *shape)


def test_layers_that_do_not_exist():
  found = found_in_mlp()
  with pytest.raises(ValueError, match="'fc9' does not exist; the network has"):
    masking.choose(found, ('fc9',))
  with pytest.raises(ValueError, match='is not among those to mask'):
    masking.choose(found, ('Dense_0',), 'Dense_2')
  with pytest.raises(ValueError, match='is not the last operation'):
    masking.choose(found, ('Dense_0',), 'Dense_0')
  deep = tuple(
      layer._replace(name=f'deep/{name}')
      for layer, name in zip(found, 'ab', strict=False)
  )
  assert masking.choose(deep, ('deep/a',))[0].name == 'deep/a'
  with pytest.raises(ValueError, match="'deep' fits 2 layers; the network has"):
    masking.choose(deep, ('deep',))
  twice = nets.then(nets.mlp(4), nets.mlp(3))
  x = jnp.zeros((2, 5), jnp.float32)
  params = twice.init(jax.random.key(0), x)
  with pytest.raises(ValueError, match='two layers have its name'):
    masking.layers(twice, params, x)


def test_t4_needs_the_learning_rate():
  job, state, *_ = federation('dense', ('Dense_2',), 'Dense_2')
  with pytest.raises(ValueError, match='T4. needs eta'):
    training.start(job._replace(eta=0.0), state.weights, state.active)
  for tx, said in (
      (optax.adamw(0.5), 'uses its weights'), (optax.sgd(0.4), 'must be optax'),
  ):
    other = job._replace(txs=(tx, job.txs[1]))
    with pytest.raises(ValueError, match=said):
      training.start(other, state.weights, state.active)


@pytest.mark.parametrize('period', [-1, 2**32, 0.5])
def test_a_masking_has_a_number_of_its_own(period):
  """2^32 would be 0 again, and so the masks."""
  chosen = found_in_mlp()[:1]
  blank = {chosen[0].name: None}
  with pytest.raises(ValueError, match='period must be a whole number'):
    masking.mask(Public(), chosen, SEEDS, {}, blank, period)


def test_noise_that_is_not_there():
  chosen = found_in_mlp()[:1]
  with pytest.raises(ValueError, match='No noise for layer Dense_0/Dense_0'):
    masking.mask(Public(), chosen, SEEDS, {}, {}, 0)
  with pytest.raises(ValueError, match='No noise for layer Dense_0/Dense_0'):
    masking.unmask(Public(), chosen, masking.Weights({}, {}), {})
  with pytest.raises(ValueError, match='No noise for layer Dense_0/Dense_0'):
    masking.noisy({}, chosen, {})
  with pytest.raises(ValueError, match='std must be a number of at least 0'):
    masking.noise(jax.random.key(0), chosen, -1.0)


def test_a_layer_that_is_chosen_twice():
  """Its zeros were masked in the place of its weights; its noise was double."""
  chosen = found_in_mlp()[:1] * 2
  blank, none = {chosen[0].name: {}}, masking.Weights({}, {})
  for call in (
      lambda: masking.mask(Public(), chosen, SEEDS, {}, blank, 0),
      lambda: masking.unmask(Public(), chosen, none, blank),
      lambda: masking.noisy({}, chosen, blank),
  ):
    with pytest.raises(ValueError, match='Dense_0/Dense_0 is chosen twice'):
      call()


def test_a_layer_that_is_not_in_shares():
  chosen = found_in_mlp()[:1]
  blank = {chosen[0].name: None}
  with pytest.raises(ValueError, match='Dense_0/Dense_0 is not in shares'):
    masking.unmask(Public(), chosen, masking.Weights({}, {}), blank)


def test_who_is_wrong_about_what_is_in_shares():
  """Zeros stand for these weights: they would be trained, or masked."""
  job, state, *_ = federation('dense', ('Dense_0', 'Dense_2'))
  weights, found = state.weights, found_in_mlp(BATCH)
  for chosen in (), job.chosen[:1], found:
    with pytest.raises(ValueError, match='Layers in shares: Dense_0.*the same'):
      training.start(job._replace(chosen=chosen), weights, state.active)
    with pytest.raises(ValueError, match='Layers in shares: Dense_0.*the same'):
      masking.change(job.public, (chosen, found), SEEDS, weights, {}, 1)
  last = masking.choose(found, ('Dense_0', 'Dense_2'), 'Dense_2')
  with pytest.raises(ValueError, match='Dense_2.* cannot go from T3 to T4'):
    masking.change(job.public, (job.chosen, last), SEEDS, weights, {}, 1)


def test_weights_outside_the_range_name_their_layer():
  net, shape = network('dense')
  params = jax.jit(net.init)(
      jax.random.key(1), jnp.zeros((2, *shape), jnp.float32))
  big = np.zeros((24, 16), np.float32)
  big[3, 4] = 1e12
  params['Dense_1']['Dense_0']['kernel'] = big
  chosen = masking.choose(found_in_mlp(), ('Dense_1',))
  keys = one_sided.seeds(prg.THREEFRY, jax.random.key(3))
  extra = masking.noise(jax.random.key(4), chosen)
  match = r'Layer Dense_1/Dense_0, kernel: .*x\[3, 4\] = 1e\+12 .*bits <= 23'
  with pytest.raises(ValueError, match=match):
    masking.mask(Public(), chosen, keys, params, extra, 0)


@pytest.mark.parametrize('last', ['', 'Dense_2'])
def test_a_step_that_is_too_far_is_not_cut_off_in_silence(last):
  """A bias has 48 fraction bits (T4: 36 + 24): it moves by less than 32768."""
  job, state, _, _, keys, x, y = federation('dense', ('Dense_2',), last)
  rate = 1e9
  job = job._replace(txs=(optax.sgd(rate), job.txs[1]), eta=rate)
  step, deal = compiled(job)
  dealt, _ = deal(keys, state.weights, 0, 0)
  _, played = step(state, dealt, jax.random.key(0), x[:BATCH], y[:BATCH])
  with pytest.raises(ValueError, match='Dense_2/Dense_0: a step moved its'):
    blank = {k: np.zeros(4) for k in played.ranges}
    training.check(job, played._replace(ranges=blank))


def test_one_step_of_many_that_was_cut_off_is_told():
  layer = found_in_mlp()[1]
  ranges.check_update(Public(), layer, np.zeros(3, bool))
  with pytest.raises(ValueError, match='a step moved its weights'):
    ranges.check_update(Public(), layer, np.arange(3) == 1)


@pytest.mark.parametrize('where, value, match', [
    (0, 1e12, r'input reaches 1e\+12, outside .* 5\.4\d+e\+11 .*inputs=23'),
    (1, 3e4, r'output reaches 30000, .* 16384 \(48 .*inputs=23, weights=24'),
    (2, 1e10, r'output gradient reaches 1e\+10.*gradients=29'),
    (3, 700.0, r'input gradient reaches 700, .* 256 .*gradients=28'),
    (1, np.nan, 'output reaches nan.*diverged'),
])
def test_values_outside_the_range_say_what_holds_them(where, value, match):
  layer = found_in_mlp()[1]
  seen = np.ones((3, 4))
  seen[1, where] = value
  with pytest.raises(ValueError, match=match) as error:
    ranges.check(Public(), layer, seen)
  assert str(error.value).startswith('Layer Dense_1/Dense_0: its ')
  # What the protocol computes may have been larger still before it wrapped.
  wraps = where in (1, 3) and np.isfinite(value)
  assert ('or more, since' in str(error.value)) == wraps
  ranges.check(Public(), layer, np.ones((3, 4)))
  if where == 1 and value == 3e4:  # The advice holds.
    bits = fixed_point.Precision(inputs=23, weights=24)
    ranges.check(Public(bits), layer, seen)


def test_advice_goes_down_to_no_fraction_bits():
  """Which hold what is below 2^63."""
  layer = found_in_mlp()[1]
  seen = np.array([0.75 * 2.0**63, 0, 0, 0])
  with pytest.raises(ValueError, match=r'Precision\(inputs=0, .* would hold'):
    ranges.check(Public(), layer, seen)
  ranges.check(Public(fixed_point.Precision(inputs=0)), layer, seen)
  seen[0] = 2.0**63
  with pytest.raises(ValueError, match='No number of fraction bits holds it'):
    ranges.check(Public(), layer, seen)


@pytest.mark.parametrize('where', range(4))
def test_a_value_right_at_its_limit_is_refused(where):
  layer = found_in_mlp()[1]
  top = ranges.limits(Public(), layer)[where]
  seen = np.zeros(4)
  seen[where] = top
  with pytest.raises(ValueError, match=ranges.WHAT[where]):
    ranges.check(Public(), layer, seen)
  seen[where] = np.nextafter(top, 0)
  ranges.check(Public(), layer, seen)


@pytest.mark.parametrize('where, value', [(0, 1e14), (1, 900.0), (2, 1e13),
                                          (3, 5.0)])
def test_advice_for_t4_holds(where, value):
  layer = found_in_mlp()[2]._replace(to_active=True)
  seen = np.full(4, 1e-3)
  seen[where] = value
  with pytest.raises(ValueError, match='to_active.Precision') as error:
    ranges.check(Public(), layer, seen)
  fields = str(error.value).split('to_active.Precision(')[1].split(')')[0]
  bits = dict(field.split('=') for field in fields.split(', '))
  bits = to_active.Precision(**{k: int(v) for k, v in bits.items()})
  ranges.check(Public(last=bits), layer, seen)
  # It gives up no bit too many.
  name = 'inputs' if where < 2 else 'gradients'
  more = bits._replace(**{name: getattr(bits, name) + 1})
  with pytest.raises(ValueError):
    ranges.check(Public(last=more), layer, seen)


def test_overflow_in_training_is_reported():
  job, state, _, _, keys, x, y = federation('dense', ('Dense_1',))
  step, deal = compiled(job)
  dealt, _ = deal(keys, state.weights, 0, 0)
  _, played = step(state, dealt, jax.random.key(0), 3e5 * x[:BATCH], y[:BATCH])
  with pytest.raises(ValueError, match='Dense_1/Dense_0: its output reaches'):
    training.check(job, played)


def test_the_papers_condition_is_cited():
  small, large = found_in_mlp(8), found_in_mlp(24)
  assert ranges.condition(small[1]) is None
  message = ranges.condition(large[1])
  assert message and 'B < n1 (section IV-D) fails' in message
  assert 'batch of 24 rows is not smaller than its 24 inputs' in message
  net, shape = network('conv')
  # Eight rows and four columns of a 5x5 window: 32 equations, 25 unknowns.
  assert ranges.condition(found_in(net, 4, *shape)[0])
  message = ranges.condition(found_in(net, 4, 8, 8, 1)[0])
  assert message and 'n > (h+2p+s)/(s+1)' in message


def test_the_papers_condition_needs_more_positions_than_the_window_has():
  """n > (h + 2p + s) / (s + 1): not 5 > (5 + 4 + 1) / 2."""
  net, _ = network('conv')
  assert ranges.condition(found_in(net, 4, 5, 5, 1)[0])
  assert ranges.condition(found_in(net, 4, 5, 4, 1)[0]) is None


def test_noise_has_the_deviation_asked_for():
  """And is added to the weights that the fast mode trains with."""
  net, shape = network('dense')
  params = jax.jit(net.init)(jax.random.key(1), jnp.zeros((2, *shape)))
  chosen = masking.choose(found_in_mlp(), ('Dense_1',))
  extra = jax.jit(lambda: masking.noise(jax.random.key(4), chosen, 0.3))()
  drawn = extra['Dense_1/Dense_0']
  drawn = jax.tree.map(np.asarray, drawn)
  np.testing.assert_allclose(drawn['kernel'].std(), 0.3, rtol=0.15)
  noisy = masking.noisy(params, chosen, extra)
  jax.tree.map(
      lambda a, b, c: np.testing.assert_allclose(a, b + c, rtol=1e-6),
      noisy['Dense_1']['Dense_0'], params['Dense_1']['Dense_0'], drawn,
  )
  jax.tree.map(
      np.testing.assert_array_equal, noisy['Dense_0'], params['Dense_0']
  )


def masked_by(public):
  chosen = masking.choose(found_in_mlp(), ('Dense_1',))
  theta = {'Dense_1': {'Dense_0': {
      'kernel': jnp.zeros(chosen[0].bilinear.w_shape), 'bias': jnp.zeros(16),
  }}}
  noise = masking.noise(jax.random.key(0), chosen)
  return masking.mask(public, chosen, SEEDS, theta, noise, 0)


@pytest.mark.parametrize('value', [-1, 1.5, True, np.nan, 63])
@pytest.mark.parametrize('part', ['inputs', 'weights', 'gradients'])
def test_fraction_bits_that_are_none(part, value):
  bits = fixed_point.Precision(**{part: value})
  with pytest.raises(ValueError, match=f'precision.{part} must be an integer'):
    masked_by(Public(precision=bits))
  if part != 'weights':
    last = to_active.Precision(**{part: value})
    with pytest.raises(ValueError, match=r'last\.\w+ must be an integer'):
      masked_by(Public(last=last))


def test_public_numbers_that_are_none():
  for drop in (-1, 8, 1.5, True, np.nan):
    with pytest.raises(ValueError, match='drop_bytes must be an integer'):
      masked_by(Public(drop_bytes=drop))
  with pytest.raises(ValueError, match="prg must be a generator.*'chacha20'"):
    masked_by(Public(prg='chacha20'))


@pytest.mark.parametrize('eta', [-0.1, np.nan, np.inf, True])
def test_a_rate_of_training_is_one_in_any_case(eta):
  job, state, *_ = federation('dense', ('Dense_2',))
  with pytest.raises(ValueError, match='eta must be a number of at least 0'):
    training.start(job._replace(eta=eta), state.weights, state.active)


def test_noise_takes_a_key():
  for key in (5, None, jax.random.split(jax.random.key(0))):
    with pytest.raises(ValueError, match='key must be'):
      masking.noise(key, ())


def test_ranges_are_four_of_each_step():
  layer = found_in_mlp()[1]
  for seen in (np.zeros(8), np.zeros(3), np.zeros((0, 4)), 0.0):
    with pytest.raises(ValueError, match=r'seen must be \[..., 4\]'):
      ranges.check(Public(), layer, seen)


def test_largest_values_are_not_negative():
  layer = found_in_mlp()[1]
  with pytest.raises(ValueError, match='absolute values; got -2'):
    ranges.check(Public(), layer, np.array([1.0, 1, -2, 1]))
