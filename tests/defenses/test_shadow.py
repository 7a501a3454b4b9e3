"""The attacker that VMask's active party imagines, and shadows: Algorithm 6."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.shadowed import CLASSES, KEY, QUICK, federation, samples, start
from tests.small_networks import weights
from vfljax import algorithms, completion, nets, protocol
from vfljax.completion import Schedule
from vfljax.defense import Defense, Holdings
from vfljax.defenses import shadow
from vfljax.defenses.shadow import Attacker, Learning
from vfljax.nets import named_layers

NONE = jnp.zeros(3, bool)


def test_the_imagined_attacker_is_scored_at_its_best_on_what_it_did_not_know(
    monkeypatch
):
  one_hot = np.repeat(np.eye(CLASSES, dtype=np.float32), 3, axis=0)
  labels, wrong = jnp.asarray(one_hot), jnp.asarray(np.roll(one_hot, 1, axis=1))

  def best(key, schedule, net, start, samples, score, *rest):
    """First all wrong but for what it knows, then right by lot, then wrong."""
    del schedule, net, start, rest
    known = (samples.wanted[:, None] == samples.known[None]).all(-1).any(1)
    told = jnp.where(known[:, None], labels, wrong)
    right = jax.random.bernoulli(key)
    guesses = told, jnp.where(right, labels, told), told
    return jnp.stack([score(guess) for guess in guesses]).max()

  monkeypatch.setattr(shadow, 'best', best)
  net, x = nets.mlp(3), jnp.arange(36.0).reshape(12, 3)
  params = jax.jit(net.init)(KEY, x)

  def leaked(draws, times):
    who = Attacker(known=1, draws=draws)
    hidden = jnp.zeros(1, bool)
    known = shadow.known_samples(KEY, who, labels)
    return jax.jit(jax.vmap(lambda key: shadow.leakage(
        key, who, net, params, hidden, x, labels, known
    )))(jax.random.split(KEY, times))

  # By lot; what it knew does not count.
  assert set(leaked(1, 12).tolist()) == {0, 1}
  assert 0.2 < leaked(40, 1) < 0.8  # Each draw has a lot of its own.


@pytest.mark.slow
@pytest.mark.parametrize('rate, epochs, plays', [
    ('constant', 3, 1), ('cosine', 5, 2),
])
def test_an_attacker_of_whom_a_part_is_played_is_one_of_that_size(
    rate, epochs, plays
):
  """Also where the numbers are traced, in one program for all of them."""
  net, data = nets.mlp(8, 6), samples(60)
  params = net.init(KEY, data.features[1])
  batches = 3  # Of 8 known labels each.
  how = lambda n: Schedule(n, 8 // batches, n, 0.3, 'sgd', rate=rate)

  def leaked(who):
    known = shadow.known_samples(KEY, who, data.labels)
    return shadow.leakage(
        KEY, who, net, params, jnp.array([True, False]), data.features[1],
        data.labels, known,
    )

  most = Attacker(how(6), known=2, head=(8,), draws=3)
  part = jax.jit(lambda n: leaked(most._replace(epochs=n[0], plays=n[1])))
  small, known, whole = jax.jit(lambda: [leaked(who) for who in (
      most._replace(schedule=how(epochs), draws=plays),
      most._replace(epochs=epochs, plays=plays), most,
  )])()
  played = part(jnp.array([epochs, plays], jnp.float32))
  np.testing.assert_allclose([played, known], [small] * 2, rtol=1e-6)
  assert float(part(jnp.array([6.0, 3.0]))) == pytest.approx(float(whole))
  assert part._cache_size() == 1


def test_a_sample_without_a_known_label_is_one_that_counts(monkeypatch):
  """Where a class has fewer samples than the attacker knows of each."""
  labels, rows = jnp.eye(3)[jnp.array([0, 1, 2, 0])], jnp.array([0, 1])
  found = jnp.roll(labels, 1, axis=1).at[1].set(labels[1])  # Right of 1 alone.
  monkeypatch.setattr(shadow, 'best', lambda *rest: rest[5](found))
  net, x = nets.mlp(3), jnp.ones((4, 3))
  known = rows[None], labels[rows].at[1].set(0)[None]
  got = shadow.leakage(
      KEY, Attacker(), net, net.init(KEY, x), NONE[:1], x, labels, known
  )
  np.testing.assert_allclose(got, 1 / 3, rtol=1e-6)


def test_of_the_draws_no_more_are_played_than_asked_for(monkeypatch):
  """The first of them; the number may be a program's."""
  labels = jnp.eye(3)[jnp.array([0, 1, 2, 0])]
  monkeypatch.setattr(shadow, 'best', lambda *rest: rest[4].known[0, 0])
  net, x = nets.mlp(3), jnp.ones((4, 3)) * jnp.arange(4.0)[:, None]
  known = jnp.array([[1], [2], [3]]), labels[jnp.array([[1], [2], [3]])]
  params = net.init(KEY, x)
  of = lambda plays: shadow.leakage(
      KEY, Attacker(draws=3, plays=plays), net, params, NONE[:1], x, labels,
      known,
  )
  found = jax.jit(lambda n: jnp.stack([of(n), of(2), of(None)]))(1.0)
  np.testing.assert_allclose(found, [1, 1.5, 2])


def test_a_shadow_learns_by_gradient_descent_under_a_fixed_top():
  """One step on linear networks, against the gradient worked out in NumPy."""
  vfl = algorithms.vhnn([nets.mlp(3)] * 2, nets.mlp(CLASSES), 'sum')
  data = samples(20)
  state = protocol.init(
      KEY, vfl, Defense(), [optax.sgd(0.1)] * 2, data
  )
  own, theirs = (p.params for p in state.parties)
  moved, norms = shadow.update(
      KEY, Holdings(vfl, own, data), (theirs['bottom'],),
      Learning(0.5, 100),
  )
  w, b = (np.asarray(theirs['bottom']['Dense_0']['Dense_0'][n], np.float64)
          for n in ('kernel', 'bias'))
  v, c = (np.asarray(own['top']['Dense_0']['Dense_0'][n], np.float64)
          for n in ('kernel', 'bias'))
  x, y = np.asarray(data.features[1]), np.asarray(data.labels)
  logits = (x @ w + b) @ v + c  # The active party's own embedding is left out.
  p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  d = (p - y) @ v.T / len(y)
  layer = moved[0]['Dense_0']['Dense_0']
  np.testing.assert_allclose(layer['kernel'], w - 0.5 * x.T @ d, atol=1e-5)
  np.testing.assert_allclose(layer['bias'], b - 0.5 * d.sum(0), atol=1e-5)
  expected = np.abs(x.T @ d).sum() + np.abs(d.sum(0)).sum()
  np.testing.assert_allclose(norms[0], [expected], rtol=1e-4)


def test_a_pass_over_the_auxiliary_samples_has_as_many_steps_as_batches():
  vfl, data = federation(), samples(40)
  state = start(Defense())
  own, theirs = (p.params for p in state.parties)
  held = Holdings(vfl, own, data)
  update = jax.jit(
      lambda n: shadow.update(
          KEY, held, (theirs['bottom'],), Learning(0.1, n)
      )[0],
      static_argnums=0,
  )
  far = lambda n: float(named_layers.l1_norms(jax.tree.map(
      jnp.subtract, update(n)[0], theirs['bottom']
  )).sum())
  assert far(10) > 2 * far(40) > 0


def test_hiding_layers_lowers_what_the_imagined_attacker_gets():
  """A first layer that keeps the two telling columns, or a random one."""
  net, data = nets.mlp(16, 8, 6), samples(400)
  params = weights()
  first = params['Dense_0']['Dense_0']
  telling = np.zeros((12, 16), np.float32)
  telling[0, ::2] = telling[1, 1::2] = 2
  params['Dense_0']['Dense_0'] = dict(first, kernel=telling)
  attacker = QUICK._replace(draws=8)
  k_known, key = jax.random.split(KEY)
  known = shadow.known_samples(k_known, attacker, data.labels)
  found = jax.jit(jax.vmap(lambda hidden: shadow.leakage(
      key, attacker, net, params, hidden, data.features[1], data.labels, known
  )))(jnp.array([[0, 0, 0], [1, 0, 0], [1, 1, 1]], bool))
  assert found[0] > found[1] + 0.15
  assert found[0] > found[2] + 0.15
  assert found[2] > 0.1


def test_a_label_without_a_majority_is_left_to_guess():
  labels = np.float32([[1, 0, 0], [0.4, 0.3, 0.3]])
  shadow.check_scored('attacker', Attacker(), labels)
  with pytest.raises(ValueError, match='there are 1, 0, 0 by class'):
    shadow.check_scored('attacker', Attacker(), labels[:1])


def test_plain_sgd_of_an_attacker_is_a_step_along_the_gradient():
  """Softmax regression from zeros, one step, worked out in NumPy."""
  data = samples(30)
  x, y = data.features[1], data.labels
  zeros = dict(w=jnp.zeros((12, CLASSES)))
  found = completion.complete(
      KEY, Schedule(1, 0, 1, 0.7, 'sgd'), lambda p, x: x @ p['w'], zeros,
      completion.Samples(x, y, x[:5]),
  )
  step = 0.7 * np.asarray(x).T @ (np.asarray(y) - 1 / CLASSES) / len(y)
  np.testing.assert_allclose(found[0], x[:5] @ step, atol=1e-5)
