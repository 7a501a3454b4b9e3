"""GAFM's formulas against written-out NumPy, and its arguments."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from sklearn import metrics as sk

from tests.perturbing import check_unlike
from vfljax import (
    algorithms, attacks, data, defenses, nets, protocol, train, tuning,
)
from vfljax.defense import Defense, Spec, chain, each
from vfljax.defenses import gafm as g
from vfljax.defenses.gan import wasserstein
from vfljax.types import Batch
from vfljax.views import CutGradients

N, SEED = 40, jax.random.key(7)
gafm = defenses.REGISTRY['gafm']


def samples(parties=1):
  rng = np.random.default_rng(0)
  y = (np.arange(N) % 5 < 2).astype(int)
  x = rng.normal(size=(parties, N, 3)) + 1.5 * y[:, None]
  own = tuple(jnp.asarray(part, jnp.float32) for part in x)
  return Batch((None, *own), jnp.asarray(np.eye(2, dtype=np.float32)[y]))


def federation(parties=1, width=1):
  bottom = nets.mlp(width, final='sigmoid')
  return algorithms.vsnn([bottom] * parties, nets.binary(nets.mlp(16, 1)))


def embeddings(width=1):
  f = np.random.default_rng(1).uniform(0.2, 0.8, (N, width))
  return jnp.asarray(f, jnp.float32)


def memory(defense, width=1):
  shape = jax.ShapeDtypeStruct((N, width), jnp.float32)
  state = defense.init(jax.random.key(3), Spec((shape,), 2)).state
  # Larger weights than at the start, so that gradients are well above rounding.
  thrice = lambda x: jnp.asarray(3 * np.asarray(x))
  grow = lambda tree: jax.tree.map(thrice, tree)
  return state._replace(
      generator=grow(state.generator), critic=grow(state.critic)
  )


def layers(params):
  """A network's (kernel, bias) pairs in float64."""
  return [
      [np.asarray(leaf, np.float64)
       for leaf in (p['Dense_0']['kernel'], p['Dense_0']['bias'])]
      for _, p in sorted(params.items())
  ]


def leaky(x):
  return np.where(x > 0, x, 0.01 * x)


def score(critic, x):
  """D: LeakyReLU after every layer, the output's too. [n, 1] to [n]."""
  for w, b in critic:
    x = leaky(x @ w + b)
  return x[:, 0]


def guess(generator, f):
  """G: LeakyReLU between, a sigmoid at the end. [n, d] to [n, 1]."""
  *hidden, (w, b) = generator
  for kernel, bias in hidden:
    f = leaky(f @ kernel + bias)
  return 1 / (1 + np.exp(-(f @ w + b)))


def slopes(fn, x, step=1e-6):
  """Derivatives of a scalar function in every entry of x: differences."""
  found = np.zeros_like(x)
  for i in np.ndindex(x.shape):
    moved = [x.copy(), x.copy()]
    moved[0][i] += step
    moved[1][i] -= step
    found[i] = (fn(moved[0]) - fn(moved[1])) / (2 * step)
  return found


def test_randomized_response_is_equation_4():
  y, u = jnp.array([1.0, 0.0, 1.0]), jnp.array([0.04, 0.03, 0.0])
  np.testing.assert_allclose(g.randomized_response(y, u), [0.54, 0.47, 0.5])


@pytest.mark.parametrize('link', g.LINKS)
def test_cross_entropy_is_equation_5(link):
  f, target = embeddings(2), jnp.linspace(0.4, 0.6, N)
  x, t = np.asarray(f, np.float64), np.asarray(target, np.float64)
  sigma = lambda x: 1 / (1 + np.exp(-x))
  p, q = dict(
      identity=(x.mean(1), 1 - x.mean(1)),
      sigmoid=(sigma(x).mean(1), 1 - sigma(x).mean(1)),
      printed=(sigma(x).mean(1), sigma(1 - x).mean(1)),
  )[link]
  want = -(t * np.log(p) + (1 - t) * np.log(q))
  np.testing.assert_allclose(g.cross_entropy(f, target, link), want, rtol=1e-5)


def test_critic_climbs_and_is_clipped():
  defense, gan, tx = gafm(), g.networks(), optax.adam(1e-2)
  state = memory(defense)
  state = state._replace(critic_opt=tx.init(state.critic))
  f, labels = embeddings(), samples().labels
  y, sigma, clip = labels[:, 1], 0.3, 0.4
  after = jax.jit(
      lambda: g.critic_step(
          SEED, gan, tx, state, g.Seen(f, y, jnp.ones(N)), sigma, clip
      )
  )()
  noise = np.asarray(jax.random.normal(SEED, (N,), jnp.float32), np.float64)
  real = (np.asarray(y, np.float64) + sigma * noise)[:, None]
  fake = guess(layers(state.generator), np.asarray(f, np.float64))
  critic = layers(state.critic)
  bound = 0
  for i, pair in enumerate(layers(after.critic)):
    for j, moved in enumerate(pair):

      def distance(w, i=i, j=j):
        changed = [list(pair) for pair in critic]
        changed[i][j] = w
        return score(changed, real).mean() - score(changed, fake).mean()

      grad = slopes(distance, critic[i][j])
      # Adam's first step: the gradient over its own size.
      want = critic[i][j] + 1e-2 * grad / (np.abs(grad) + 1e-8)
      want = np.clip(want, -clip, clip)
      bound += (np.abs(want) == clip).sum()
      sure = (np.abs(grad) > 1e-5) | (grad == 0)
      np.testing.assert_allclose(moved[sure], want[sure], atol=2e-4)
  assert bound > 3  # Clipping was at work.


def test_the_distance_is_of_labels_with_noise_of_that_deviation():
  """Adam's first step, above, does not tell how large a gradient is."""
  gan, state, sigma = g.networks(), memory(gafm()), 0.3
  y, f = samples().labels[:, 1], embeddings()
  real = np.arange(N) < N - 7
  found = g.mean(wasserstein(
      SEED, gan, state.generator, state.critic,
      g.Seen(f, y, np.float32(real)), sigma,
  ), np.float32(real))
  noise = np.asarray(jax.random.normal(SEED, (N,), jnp.float32), np.float64)
  truth = (np.asarray(y, np.float64) + sigma * noise)[:, None]
  fake = guess(layers(state.generator), np.asarray(f, np.float64))
  critic = layers(state.critic)
  want = score(critic, truth)[real].mean() - score(critic, fake)[real].mean()
  np.testing.assert_allclose(found, want, rtol=1e-4)


def adapted(labels, f, part='both', **rates):
  """The memory before and after steps 1 and 2, without noise on labels."""
  defense = gafm(
      0.2, sigma=0.0, clip=9.0, part=part, networks=g.GAN(**rates)
  )
  before = memory(defense)
  after = jax.jit(lambda: defense.adapt(
      before, SEED, lambda up: up[0], (f,), labels
  ))()
  return before, after


def test_a_round_moves_both_networks_at_their_own_rates():
  """The critic first, then the generator, down the critic's new distance."""
  f, labels = embeddings(), samples().labels
  rates = dict(generator_rate=2e-3, critic_rate=5e-3)
  before, after = adapted(labels, f, **rates)
  move = lambda a, b: max(
      float(np.abs(x - y).max())
      for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b))
  )
  # Adam's first step is its rate, wherever there is a gradient.
  np.testing.assert_allclose(
      move(before.generator, after.generator), 2e-3, rtol=1e-2
  )
  np.testing.assert_allclose(move(before.critic, after.critic), 5e-3, rtol=1e-2)
  for opt in after.generator_opt, after.critic_opt:  # Which remembers it.
    assert opt[0].count == 1
  critic, x = layers(after.critic), np.asarray(f, np.float64)
  fake = [
      score(critic, guess(layers(state.generator), x)).mean()
      for state in (before, after)
  ]
  assert fake[1] > fake[0]  # What Eq. 3 subtracts.


@pytest.mark.parametrize('part', g.PARTS)
def test_without_the_gan_alone_its_networks_stay_as_they_are(part):
  before, after = adapted(samples().labels, embeddings(), part)
  for old, new in zip(before[:2], after[:2]):
    leaves = zip(jax.tree.leaves(old), jax.tree.leaves(new))
    same = all(np.array_equal(*pair) for pair in leaves)
    assert same == (part == 'ce')


def test_a_round_adapts_to_real_rows_alone():
  f, labels = embeddings(), samples().labels
  _, few = adapted(labels[:-8], f[:-8])
  _, padded = adapted(labels.at[-8:].set(0), f.at[-8:].set(5.0))
  for one, other in ((few.critic, padded.critic),
                     (few.generator, padded.generator)):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), one, other
    )


def test_every_step_of_the_critic_has_its_own_noise():
  defense = gafm(0.2, sigma=0.5, clip=9.0, networks=g.GAN(critic_steps=2))
  before, f, labels = memory(defense), embeddings(), samples().labels
  seen = g.Seen(f, labels[:, 1], jnp.ones(N))

  @jax.jit
  def both():
    after = defense.adapt(before, SEED, lambda up: up[0], (f,), labels)
    state = before
    for key in jax.random.split(SEED, 2):
      state = g.critic_step(
          key, g.networks(), optax.adam(1e-4), state, seen, 0.5, 9.0
      )
    return after.critic, state.critic

  jax.tree.map(np.testing.assert_array_equal, *both())


def test_what_is_drawn_is_drawn_for_each():
  defense = gafm(reading=g.Reading(redraw=False))
  share = g.reveal(defense.prepare(SEED, None, samples().labels))[1]
  assert len(np.unique(np.round(share, 4))) > N - 3
  own = memory(gafm(networks=g.GAN((8,), (8,))))
  check_unlike(own.generator['Dense_0'], own.critic['Dense_0'])


def test_the_losses_value_has_its_weight():
  defense = gafm(0.2, 2.5, 0.0, part='gan')
  state, f, labels = memory(defense), embeddings(), samples().labels
  found = jax.jit(lambda: defense.objective(
      state, SEED, lambda up: up[0], (f,), labels
  ))()
  critic, y = layers(state.critic), np.asarray(labels[:, 1:], np.float64)
  fake = guess(layers(state.generator), np.asarray(f, np.float64))
  distance = score(critic, y).mean() - score(critic, fake).mean()
  np.testing.assert_allclose(found, 2.5 * distance, rtol=1e-4)


def gradient(defense, state, f, labels):
  """Of the objective, with respect to f."""
  objective = defense.objective
  assert objective is not None

  def value(f):
    return objective(state, SEED, lambda up: up[0], (f,), labels)

  return jax.jit(jax.grad(value))(f)


@pytest.mark.parametrize('norm', g.NORMS)
@pytest.mark.parametrize('width', [1, 3])
def test_what_is_sent_is_both_normalised_gradients(norm, width):
  delta, weight, sigma = 0.2, 2.5, 0.1
  defense = gafm(delta, weight, sigma, reading=g.Reading(norm))
  state, f, labels = memory(defense, width), embeddings(width), samples().labels
  sent = gradient(defense, state, f, labels)
  x, y = np.asarray(f, np.float64), np.asarray(labels[:, 1], np.float64)
  share = jax.random.uniform(jax.random.split(SEED)[1], (N,), jnp.float32)
  target = 0.5 + (2 * y - 1) * delta * np.asarray(share, np.float64)
  generator, critic = layers(state.generator), layers(state.critic)
  by_gan = slopes(lambda f: -score(critic, guess(generator, f)).mean(), x)
  p = x.mean(1, keepdims=True)
  by_ce = (p - target[:, None]) / (p * (1 - p)) / N / width
  by_ce = np.broadcast_to(by_ce, x.shape)

  def unit(d):
    if norm == 'none':
      return d
    axis = None if norm == 'batch' else 1
    return d / np.sqrt((d**2).sum(axis, keepdims=True))

  want = weight * unit(by_gan) + unit(by_ce)
  np.testing.assert_allclose(sent, want, rtol=2e-3, atol=2e-4 * abs(want).max())


def test_terms_alone():
  labels, f = samples().labels, embeddings()
  sent = {}
  for part in g.PARTS:
    defense = gafm(0.2, 2.0, part=part)
    sent[part] = gradient(defense, memory(defense), f, labels)
  np.testing.assert_allclose(
      sent['both'], sent['gan'] + sent['ce'], atol=1e-6
  )
  np.testing.assert_allclose(np.linalg.norm(sent['gan']), 2, rtol=1e-5)
  np.testing.assert_allclose(np.linalg.norm(sent['ce']), 1, rtol=1e-5)


def test_embeddings_outside_0_and_1_are_pulled_back():
  f = jnp.array([[-3.0], [4.0]])
  slope = jax.grad(lambda f: g.cross_entropy(f, jnp.full(2, 0.5)).sum())(f)
  assert slope[0, 0] < 0 < slope[1, 0]


def test_a_fixed_u_travels_with_the_labels():
  labels = samples().labels.at[-3:].set(0)
  share = jax.random.uniform(SEED, (N,))
  hidden = g.hide(labels, share)
  np.testing.assert_array_equal(hidden[:-3].argmax(1), labels[:-3].argmax(1))
  np.testing.assert_allclose(hidden.sum(1), labels.sum(1), rtol=1e-6)
  y, again = g.reveal(hidden)
  np.testing.assert_array_equal(y, labels[:, 1])
  np.testing.assert_allclose(again[:-3], share[:-3], atol=1e-6)
  fixed, redrawn = gafm(reading=g.Reading(redraw=False)), gafm()
  assert fixed.prepare is not None and redrawn.prepare is None


def start(defense, parties):
  txs = (optax.sgd(1e-2),) * (parties + 1)
  return protocol.init(
      SEED, federation(parties), defense, txs, samples(parties)
  )


@functools.partial(jax.jit, static_argnums=(0, 1))
def play(defense, parties, state):
  txs = (optax.sgd(1e-2),) * (parties + 1)
  return protocol.play_round(
      SEED, federation(parties), defense, txs, state, samples(parties)
  )


def test_three_parties_share_the_gradient_of_their_mean():
  """Eq. 17: what reaches each is a third of the gradient at f."""
  defense = gafm(part='ce')
  state, seen = play(defense, 3, start(defense, 3))
  one, two, three = seen.messages.down
  np.testing.assert_array_equal(one, two)
  np.testing.assert_array_equal(one, three)
  np.testing.assert_allclose(np.linalg.norm(one), 1 / 3, rtol=1e-5)
  assert not state.parties[0].params['top']


def test_marvell_adds_its_noise_to_gafms_gradient():

  def both(power):
    return chain(gafm(), defenses.REGISTRY['marvell'](power))

  state = start(both(1.0), 1)

  @jax.jit
  def down(power):
    return play(both(power), 1, state)[1].messages.down[0]

  d, noisy = np.asarray(down(0.0)), np.asarray(down(1.0))
  positive = np.asarray(samples().labels[:, 1] > 0)
  gap = d[positive].mean() - d[~positive].mean()
  power = np.mean((noisy - d) ** 2) / gap**2
  assert 0.3 < power < 2.5  # 40 draws of a mean square that is 1 or less.


@pytest.mark.parametrize('predict', ['f', 'generator'])
def test_predicts_by_f_or_by_the_generator(predict):
  defense = gafm(predict=predict)
  state, f = memory(defense), embeddings()
  p = jax.nn.softmax(defense.decode(state, f))[:, 1]
  want = np.asarray(f, np.float64)
  if predict == 'generator':
    want = guess(layers(state.generator), want)
  np.testing.assert_allclose(p, want[:, 0], rtol=1e-5)


@pytest.mark.slow
def test_learns_without_a_loss_on_labels():
  table = data.load('breast_cancer')
  x = jnp.asarray((table.features - table.features.mean(0))
                  / table.features.std(0))
  batch = Batch((None, x), jax.nn.one_hot(table.labels, 2))
  vfl, defense = federation(), gafm()
  txs = (optax.adam(1e-2),) * 2

  @jax.jit
  def run(key):
    state, _ = train.fit(
        key, vfl, defense, txs, batch, epochs=30, batch_size=128
    )
    return protocol.predict(key, vfl, defense, state, batch.features)

  logits = run(SEED)
  assert sk.roc_auc_score(table.labels, logits[:, 1] - logits[:, 0]) > 0.95


def test_residuals_show_what_embeddings_do_not_explain():
  rng = np.random.default_rng(2)
  y = rng.integers(0, 2, 200)
  f = rng.uniform(0.1, 0.9, 200)
  received = 0.1 * np.sin(3 * f) - 0.001 * y
  view = CutGradients(
      jnp.zeros((200, 2)), jnp.asarray(f[:, None]),
      jnp.asarray(received[:, None]), jnp.ones(200),
  )
  scores = jax.jit(attacks.residual_scoring().run)(SEED, view)
  assert sk.roc_auc_score(y, scores) > 0.99
  assert sk.roc_auc_score(y, -received) < 0.6
  fit = np.polynomial.Polynomial.fit(f, received, 5)(f)
  want = (fit - received) / abs(received).max()
  np.testing.assert_allclose(scores, want, atol=1e-5)
  value = attacks.value_scoring().run(SEED, view)
  np.testing.assert_allclose(value, -received, rtol=1e-6)


@pytest.mark.parametrize('bad', [
    dict(delta=-0.01), dict(delta=0.51), dict(weight=0.0), dict(weight=-1.0),
    dict(sigma=-1.0), dict(clip=0.0), dict(part='both '), dict(predict='h'),
    dict(delta=float('nan')),
])
def test_refuses(bad):
  with pytest.raises(ValueError, match=next(iter(bad))):
    gafm(**bad)


@pytest.mark.parametrize('bad', [
    dict(norm='rows'), dict(link='logit'), dict(critic_rate=0.0),
    dict(generator_rate=-1.0), dict(critic_steps=0),
])
def test_refuses_what_is_grouped(bad):
  name, = bad
  grouped = (
      dict(reading=g.Reading(**bad)) if name in g.Reading._fields
      else dict(networks=g.GAN(**bad))
  )
  with pytest.raises(ValueError, match=name):
    gafm(**grouped)


def test_refuses_more_than_two_classes_and_unlike_embeddings():
  shape = jax.ShapeDtypeStruct((N, 1), jnp.float32)
  with pytest.raises(ValueError, match='2 classes'):
    gafm().init(SEED, Spec((shape,), 3))
  top = gafm().top(nets.mlp(1))
  with pytest.raises(ValueError, match='one shape'):
    top.apply((), (None, jnp.zeros((4, 1)), jnp.zeros((4, 2))))


def test_the_ratio_rule_takes_the_strength_of_the_lowest_ratio():
  """A part of a half, two repeats; a defense that hides nothing or all."""
  batch, vfl = samples(), federation()

  def make(share):
    return Defense(gradient=each(lambda key, d, labels: d * share))

  found = tuning.least_ratio(
      SEED, make, (1.0, 0.0), vfl, (optax.adam(1e-2),) * 2, batch,
      dict(norm=attacks.norm_scoring(), value=attacks.value_scoring()),
      tuning.Trial(0.5, repeats=2, epochs=5),
  )
  assert found.leak.shape == (2, 2, 2) and found.auc.shape == (2, 2)
  np.testing.assert_allclose(found.leak[1], 0.5)  # Zeros tell nothing.
  want = (found.leak / found.auc[..., None]).mean((1, 2))
  np.testing.assert_allclose(found.ratios, want, rtol=1e-6)
  assert found.strength == (1.0, 0.0)[int(want.argmin())]
  for share in (0.0, 1 / len(batch.labels)):  # A sample alone is no part.
    with pytest.raises(ValueError, match='share'):
      tuning.least_ratio(
          SEED, make, (1.0,), vfl, (), batch,
          dict(norm=attacks.norm_scoring()), tuning.Trial(share=share),
      )


@jax.jit
def terms(labels, f, state):
  """The two terms of a round, with all that is drawn."""
  own = g.Settings(0.3, 1.0, 0.01, 0.1, 'both', 'f', g.Reading(), g.GAN())
  return g.losses(SEED, own, state, f, labels)


def test_what_is_drawn_for_half_labels_is_of_32_bits():
  """The next number to 1 is 0.992 in bfloat16: noise of 0.01 was lost."""
  f, labels, state = embeddings(), samples().labels, memory(gafm())
  halved = terms(labels.astype(jnp.bfloat16), f, state)
  np.testing.assert_array_equal(halved, terms(labels, f, state))


@pytest.mark.parametrize('kind', [jnp.int32, jnp.bfloat16])
def test_fixed_responses_are_those_of_labels_of_any_type(kind):
  fixed = gafm(reading=g.Reading(redraw=False)).prepare
  labels = samples().labels
  np.testing.assert_array_equal(
      fixed(SEED, None, labels.astype(kind)), fixed(SEED, None, labels)
  )
