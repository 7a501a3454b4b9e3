"""The malicious optimizer against its authors' numbers, and the attack."""
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import attacks, nets
from vfljax.attacks.active_completion import (
    active_completion, malicious_sgd, optimizer,
)
from vfljax.attacks.model_completion import (
    Schedule, model_completion, standardized,
)
from vfljax.scene import Pace
from vfljax.views import TrainedBottom

GOLDEN = np.load(
    Path(__file__).parents[1] / 'golden' / 'malicious_sgd_fuchong.npz'
)


def path(tx):
  """The weights after each of the golden gradients, [6, 3, 4]."""
  start = dict(w=jnp.asarray(GOLDEN['param0']))

  @jax.jit
  def run(grads):
    def step(carry, g):
      params, state = carry
      updates, state = tx.update(dict(w=g), state, params)
      params = optax.apply_updates(params, updates)
      return (params, state), params['w']

    return jax.lax.scan(step, (start, tx.init(start)), grads)[1]

  return np.asarray(run(jnp.asarray(GOLDEN['grads'])))


@pytest.mark.parametrize('momentum', [0.0, 0.5, 0.9])
@pytest.mark.parametrize('decay', [0.0, 0.0005])
def test_the_authors_code(momentum, decay):
  """Where gradients are dropped between steps the buffer is what was scaled."""
  tx = malicious_sgd(0.1, momentum, decay, momentum_fault='scaled')
  np.testing.assert_allclose(
      path(tx), GOLDEN[f'params_mom{momentum}_wd{decay}'], rtol=1e-4, atol=1e-4
  )


def written_out(momentum, fault):
  """The rule in NumPy, element by element, gradient by gradient."""
  w, buffer, last, out = GOLDEN['param0'].astype(float), 0.0, None, []
  for g in GOLDEN['grads'].astype(float):
    if fault == 'cleared' and last is not None:
      update = 2 * momentum * g
    else:
      update = buffer = momentum * buffer + g
    if last is not None:
      update = update * np.clip(1 + update / (last + 1e-7), 1, 5)
    w, last = w - 0.1 * update, update
    out.append(w)
  return np.stack(out)


@pytest.mark.parametrize('fault', ['none', 'cleared'])
def test_the_rule_written_out(fault):
  found = path(malicious_sgd(0.1, 0.9, momentum_fault=fault))
  np.testing.assert_allclose(
      found, written_out(0.9, fault), rtol=1e-4, atol=1e-4
  )


def test_without_malice_it_is_sgd():
  found = path(malicious_sgd(0.1, 0.9, 0.0005, gamma=0.0))
  expected = GOLDEN['torch_sgd_mom0.9_wd0.0005']
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_faults_do_not_matter_without_momentum():
  for fault in ('none', 'cleared'):
    np.testing.assert_allclose(
        path(malicious_sgd(0.1, momentum_fault=fault)),
        GOLDEN['params_mom0.0_wd0.0'], rtol=1e-4, atol=1e-5,
    )


def test_decay_needs_the_weights_and_nothing_else_does():
  g = dict(w=np.ones(2, np.float32))
  tx = malicious_sgd(0.1)
  state = tx.init(g)
  for steps in (1, 2):
    _, state = tx.update(g, state)
    assert state.count == steps
  with pytest.raises(ValueError, match='needs the weights'):
    malicious_sgd(0.1, weight_decay=0.1).update(g, state)


@pytest.mark.parametrize('arguments, word', [
    (dict(learning_rate=0.0), 'learning_rate'),
    (dict(learning_rate=0.1, momentum=1.0), 'momentum'),
    (dict(learning_rate=0.1, weight_decay=-1.0), 'weight_decay'),
    (dict(learning_rate=0.1, gamma=-1.0), 'gamma'),
    (dict(learning_rate=0.1, low=6.0), 'high'),
    (dict(learning_rate=0.1, momentum_fault='both'), 'momentum_fault'),
])
def test_arguments_out_of_range(arguments, word):
  with pytest.raises(ValueError, match=word):
    malicious_sgd(**arguments)


@pytest.mark.parametrize('pace', [
    Pace('adam', 0.1, True), Pace('sgd', 0.1, False),
    Pace('momentum', 0.1, False),
])
def test_it_takes_over_sgd_at_a_constant_rate_alone(pace):
  with pytest.raises(ValueError, match='SGD at a constant rate'):
    optimizer(pace)


def test_plain_sgd_stands_still_without_a_gradient():
  tx = optimizer(Pace('sgd', 0.1, True))
  _, state = tx.update(np.ones(1), tx.init(np.ones(1)))
  step, _ = tx.update(np.zeros(1), state)
  assert step[0] == 0


def view(scale):
  """A trained bottom whose embeddings are tiny and far from zero.

  The labels are the sign of the first feature, which the bottom keeps.
  """
  keys = jax.random.split(jax.random.key(0), 2)
  x = jax.random.normal(keys[0], (200, 4), jnp.float32)
  labels = jax.nn.one_hot((x[:, 0] > 0).astype(int), 2)
  weights = dict(Dense_0=dict(Dense_0=dict(
      kernel=scale * jnp.eye(4), bias=jnp.full(4, 3.0)
  )))
  return TrainedBottom(weights, x[:100], labels[:100], x[100:]), labels[100:]


def accuracy(attack, scale):
  seen, truth = view(scale)
  guess = jax.jit(attack.run)(jax.random.key(1), seen)
  return float((guess[-1].argmax(-1) == truth.argmax(-1)).mean())


@pytest.mark.slow
def test_a_standardised_head_reads_what_a_shrunken_embedding_hides():
  """A defense that only shrinks embeddings does not stop an attacker who
  scales them back with the samples it knows."""
  schedule = Schedule(epochs=100, stages=1, learning_rate=0.05)
  bottom, head = nets.mlp(4), nets.mlp(2)
  plain = model_completion(bottom, head, schedule, tune=False)
  strong = model_completion(
      bottom, head, schedule, tune=False, standardize=True
  )
  assert accuracy(plain, 1e-4) < 0.65
  assert accuracy(strong, 1e-4) > 0.9


def test_standardised_by_known_samples():
  known = np.random.default_rng(0).normal(5, 3, (50, 4)).astype(np.float32)
  known[:, 2] = 7.0  # A dead unit stays finite.
  net = standardized(nets.mlp(3), jnp.asarray(known))
  params = net.init(jax.random.key(0), jnp.asarray(known))
  plain = nets.mlp(3)
  expected = plain.apply(
      params, jnp.asarray((known - known.mean(0)) / (known.std(0) + 1e-6))
  )
  np.testing.assert_allclose(
      net.apply(params, known), expected, rtol=1e-3, atol=1e-3
  )
  trained, _ = net.run(params, jax.random.key(1), known)
  np.testing.assert_allclose(trained, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_active_completion_completes_like_the_passive_attack():
  schedule = Schedule(epochs=20, stages=2, learning_rate=0.05)
  bottom, head = nets.mlp(4), nets.mlp(2)
  seen, _ = view(1.0)
  guesses = [
      jax.jit(make(bottom, head, schedule).run)(jax.random.key(1), seen)
      for make in (active_completion, model_completion)
  ]
  np.testing.assert_array_equal(*guesses)
  assert attacks.REGISTRY['active_completion'] is active_completion
