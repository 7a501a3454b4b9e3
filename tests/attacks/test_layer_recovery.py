"""What a transcript gives away of a masked layer, against closed forms."""
import functools

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.small_networks import drawn
from vfljax import mpc, nets
from vfljax.attacks import layer_recovery
from vfljax.masked import masking, training
from vfljax.masked.shares import Public
from vfljax.mpc import one_sided, prg
from vfljax.views import MaskedLayer

BATCH, INPUTS, OUTPUTS, ROUNDS, ETA = 4, 10, 5, 6, 0.3


def dense_transcript(seed=0):
  """True weights, theta_r, and a view made in NumPy: y = z (copy + theta_r)."""
  rng = np.random.default_rng(seed)
  draw = lambda *shape: rng.normal(size=shape)
  copy = {'kernel': draw(INPUTS, OUTPUTS), 'bias': draw(OUTPUTS)}
  noise = {k: 0.01 * draw(*v.shape) for k, v in copy.items()}
  copies, zs, ys = [], [], []
  for _ in range(ROUNDS):
    z, g = draw(BATCH, INPUTS), 0.1 * draw(BATCH, OUTPUTS)
    ys.append(z @ (copy['kernel'] + noise['kernel'])
              + copy['bias'] + noise['bias'])
    zs.append(z)
    copies.append(dict(copy))
    copy['kernel'] = copy['kernel'] - ETA * z.T @ g
    copy['bias'] = copy['bias'] - ETA * g.sum(0)
  single = lambda tree: jax.tree.map(lambda a: np.asarray(a, 'f'), tree)
  stacked = jax.tree.map(lambda *v: np.stack(v), *copies)
  view = MaskedLayer(
      single(copy), single(stacked), single(np.stack(zs)), single(np.stack(ys)))
  return view, {k: copy[k] + noise[k] for k in copy}, noise


def cut(view, rounds):
  return MaskedLayer(
      view.copy, *jax.tree.map(lambda a: a[:rounds], tuple(view[1:])))


def test_tracking_lacks_the_noise_alone():
  view, true, noise = dense_transcript()
  got = layer_recovery.layer_tracking().run(jax.random.key(0), view)
  for name, value in true.items():
    np.testing.assert_allclose(value - got[name], noise[name], atol=1e-6)


def test_equations_add_up_over_batches():
  """11 unknown rows, 4 equations a batch: solved by 3 batches, not by 2."""
  view, true, noise = dense_transcript()
  attack = layer_recovery.layer_solving()
  run, read = jax.jit(attack.run), jax.jit(attack.facts)
  off = {}
  for rounds in (1, 2, 3, 6):
    got = run(jax.random.key(0), cut(view, rounds))
    off[rounds] = np.abs(np.asarray(got['kernel']) - true['kernel']).max()
    facts = read(cut(view, rounds))
    assert float(facts['rank']) == min(BATCH * rounds, INPUTS + 1)
    assert float(facts['inputs']) == INPUTS + 1
  assert off[1] > 0.1 * np.abs(noise['kernel']).max()
  assert off[2] > 0.1 * np.abs(noise['kernel']).max()
  assert off[3] < 1e-4 and off[6] < 1e-5
  got = run(jax.random.key(0), view)
  np.testing.assert_allclose(got['bias'], true['bias'], atol=1e-5)


def test_unused_inputs_stay_as_they_were():
  """A direction that never occurs is not guessed, nor does it matter."""
  view, _, _ = dense_transcript()
  zs = np.asarray(view.inputs).copy()
  zs[..., 2] = 0
  shift = (np.asarray(view.inputs) - zs)[..., 2:3]
  assert isinstance(view.copies, dict)
  weights = np.asarray(view.copies['kernel'])[:, 2] + 0.01
  ys = np.asarray(view.outputs) - shift * weights[:, None]
  attack = layer_recovery.layer_solving()
  seen = view._replace(inputs=zs, outputs=ys)
  got = jax.jit(attack.run)(jax.random.key(0), seen)
  np.testing.assert_allclose(
      got['kernel'][2], view.copy['kernel'][2], atol=1e-6)
  assert float(jax.jit(attack.facts)(seen)['rank']) == INPUTS


def test_what_hardly_occurs_counts_as_none():
  """In whatever unit: inputs of sizes 1 and a thousandth of it."""
  truth = np.float32([[5.0], [7.0]])
  for unit in 1.0, 1e-6:
    z = np.float32(unit) * np.diag(np.float32([1, 1e-3]))
    for cutoff, rank in (1e-2, 1), (1e-4, 2):
      found = layer_recovery.solve_noise(z, z @ truth, cutoff)
      assert found.rank == rank
      np.testing.assert_allclose(
          found.noise, truth * (np.arange(2) < rank)[:, None], rtol=1e-4
      )


@pytest.mark.parametrize('seed', range(3))
def test_what_rounding_leaves_of_a_solution_is_solved_for_again(seed):
  """As good as solved in 64 bits; of one solution alone 1e-6 is left."""
  rng = np.random.default_rng(seed)
  z = np.linalg.qr(rng.normal(size=(60, 20)))[0].astype(np.float32)
  y = (z @ rng.normal(size=(20, 5))).astype(np.float32)
  best = np.linalg.lstsq(z.astype(float), y.astype(float), rcond=None)[0]
  found = layer_recovery.solve_noise(z, y).noise
  np.testing.assert_allclose(found, best, rtol=0, atol=5e-7)


@pytest.mark.parametrize('strides, padding', [
    ((2, 2), 'SAME'), ((1, 2), 'SAME'), ((2, 1), 'VALID'),
])
def test_convolutions_are_solved_as_products_of_patches(strides, padding):
  """Images have 24 windows or more, of 3x3 weights at two channels each."""
  rng = np.random.default_rng(0)
  draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
  copy = {'kernel': draw(3, 3, 2, 4), 'bias': draw(4)}
  noise = {k: 0.01 * draw(*v.shape) for k, v in copy.items()}
  z = draw(1, 2, 8, 7, 2)
  conv = functools.partial(
      lax.conv_general_dilated, window_strides=strides, padding=padding,
      dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
  with jax.enable_x64(True):
    kernel = copy['kernel'].astype(float) + noise['kernel']
    y = np.asarray(conv(jnp.asarray(z[0], float), jnp.asarray(kernel)))
  y = (y + copy['bias'] + noise['bias']).astype(np.float32)[None]
  copies = {k: v[None] for k, v in copy.items()}
  view = MaskedLayer(copy, copies, z, y)
  attack = layer_recovery.layer_solving(strides, padding)
  got = jax.jit(attack.run)(jax.random.key(0), view)
  for name in copy:
    np.testing.assert_allclose(
        got[name], copy[name] + noise[name], atol=1e-5)


def test_without_outputs_the_old_weights_are_all_there_is():
  view, _, _ = dense_transcript()
  hidden = MaskedLayer(view.copy, (), (), ())
  attack = layer_recovery.layer_solving()
  got = attack.run(jax.random.key(0), hidden)
  np.testing.assert_array_equal(got['kernel'], view.copy['kernel'])
  assert attack.facts(hidden) == dict(rank=0, inputs=0)


@pytest.mark.slow
@pytest.mark.parametrize('last', ['', 'Dense_1'])
def test_transcripts_of_the_real_protocol(last):
  """Exact words: T3's layers fall to their own transcript, T4's does not."""
  net, eta, batch = nets.mlp(12, 6), 0.5, 8
  x = np.random.default_rng(0).normal(size=(5, batch, 9)).astype(np.float32)
  y = np.eye(6, dtype=np.float32)[np.arange(batch) % 6]
  params = drawn(net, x[0])
  found = masking.layers(net, params, x[0])
  chosen = masking.choose(found, ('Dense_0', 'Dense_1'), last)
  keys = one_sided.seeds(prg.THREEFRY, jax.random.key(3))
  extra = masking.noise(jax.random.key(4), chosen)
  weights, _ = masking.mask(Public(), chosen, keys, params, extra, 0)

  def head(params, u, labels):
    del params
    return optax.softmax_cross_entropy(u, labels).mean()

  job = training.Setup(
      net, head, (optax.sgd(eta), optax.sgd(eta)), chosen, Public(), eta)
  state = training.start(job, weights, ())

  @mpc.entry
  @jax.jit
  def play(state, i, x):
    dealt, _ = training.deal(job, keys, state.weights, 0, i)
    return training.step(job, state, dealt, jax.random.key(0), x, y)

  copy, kept = params, []
  for i in range(5):
    state, played = play(state, i, x[i])
    kept.append((copy, played.seen))
    copy = optax.apply_updates(copy, played.moves)
  true = training.reveal(job, state.weights)
  for layer in chosen:
    at = layer.name.split('/')[0]
    own = lambda tree, at=at: tree[at]['Dense_0']
    if layer.to_active:
      view = MaskedLayer(own(copy), (), (), ())
    else:
      copies = jax.tree.map(
          lambda *v: np.stack(v), *[own(c) for c, _ in kept])
      z, out = (
          np.stack([seen[layer.name][j] for _, seen in kept]) for j in (0, 1))
      view = MaskedLayer(own(copy), copies, z, out)
    off = lambda guess, own=own: np.abs(
        np.asarray(guess['kernel']) - own(true)['kernel']).max()
    noise = np.abs(np.asarray(extra[layer.name]['kernel']))
    tracked = layer_recovery.layer_tracking().run(jax.random.key(0), view)
    solving = layer_recovery.layer_solving()
    solved = jax.jit(solving.run)(jax.random.key(0), view)
    if layer.to_active:
      assert off(tracked) == off(solved) > 1.5 * noise.max()
    else:
      assert off(tracked) == pytest.approx(noise.max(), rel=1e-2)
      assert off(solved) < 1e-2 * noise.max()
