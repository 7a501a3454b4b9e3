"""Rows of padding are nothing to what parties add up over a round."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, defenses, metrics, nets, protocol
from vfljax.types import Batch

ROWS, REAL = 8, 5
TXS = (optax.sgd(0.1),) * 2


def vfl():
  return algorithms.vhnn([nets.mlp(8, 4)] * 2, top=nets.mlp(6, 2))


def batch(filled):
  """Five samples, and three rows of padding with these features."""
  draw = np.random.default_rng(0)
  x = draw.normal(size=(ROWS, 6)).astype(np.float32)
  x[REAL:] = filled
  labels = np.eye(2, dtype=np.float32)[draw.integers(0, 2, ROWS)]
  labels[REAL:] = 0
  return Batch((x[:, :3], x[:, 3:]), labels)


def played(defense, rounds=2, **given):
  state = protocol.init(jax.random.key(1), vfl(), defense, TXS, batch(0))
  for i in range(rounds):
    state, done = jax.jit(lambda key, state: protocol.play_round(
        key, vfl(), defense, TXS, state, batch(**given)
    ))(jax.random.key(i), state)
  return state, done


@pytest.mark.parametrize('name, arguments', [
    ('dcor', (0.5, 'passive')), ('mid', (0.1, 'passive')), ('precode', (0.1,)),
    ('rvfr', ()),
])
def test_padding_is_nothing_to_a_passive_party(name, arguments):
  defense = defenses.REGISTRY[name](*arguments)
  with_zeros, with_nines = (
      jax.tree.leaves(played(defense, filled=x)[0]) for x in (0, 9)
  )
  for x, y in zip(with_zeros, with_nines, strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def test_a_round_of_padding_alone_changes_nothing():
  blank = batch(0)._replace(labels=np.zeros((ROWS, 2), np.float32))
  none = defenses.none()
  state = protocol.init(jax.random.key(1), vfl(), none, TXS, blank)
  after, done = protocol.play_round(
      jax.random.key(2), vfl(), none, TXS, state, blank
  )
  assert done.loss == 0
  for x, y in zip(*map(jax.tree.leaves, (state.parties, after.parties))):
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_no_correlation_is_known_of_what_is_no_number(bad):
  x = jnp.array([1.0, bad, 2.0, 0.5])
  assert jnp.isnan(metrics.distance_correlation(x, jnp.arange(4.0)))
  real = jnp.array([1.0, 0.0, 1.0, 1.0])
  found = metrics.distance_correlation(x, jnp.arange(4.0), real)
  want = metrics.distance_correlation(
      x.at[1].set(7.0), jnp.arange(4.0), real
  )
  assert found == want and jnp.isfinite(want)


@pytest.mark.parametrize('name, strength', [
    ('marvell', (2.0,)), ('max_norm', ()), ('iso', (1.0,)),
])
def test_a_gradient_through_a_defense_is_a_number(name, strength):
  """Also where a row is zeros, as that of padding is."""
  d = jax.random.normal(jax.random.key(0), (16, 4)).at[-1].set(0)
  labels = jax.nn.one_hot(jnp.arange(16) % 2, 2).at[-1].set(0)
  defense = defenses.REGISTRY[name](*strength)

  def squares(d):
    (sent,), _ = defense.gradient((), jax.random.key(1), (d,), labels)
    return (sent ** 2).sum()

  assert jnp.isfinite(jax.grad(squares)(d)).all()


@pytest.mark.parametrize('party', [0, -1, 2])
def test_the_active_party_has_no_view_of_a_passive_one(party):
  from vfljax import views
  _, done = played(defenses.none(), rounds=1, filled=0)
  with pytest.raises(ValueError, match='Passive parties are 1 to 1'):
    views.cut_gradients(party, done)


def test_labels_of_whole_numbers_are_protected_too():
  labels = np.eye(2, dtype=int)[np.arange(200) % 2]
  drawn = defenses.label_dp.flip(jax.random.key(0), labels, 1.0)
  same = float((drawn * labels).sum(-1).mean())
  assert drawn.dtype == jnp.float32 and 0.6 < same < 0.85  # 0.73.
  soft = defenses.kdk.soften(jnp.ones((200, 2)), labels, 2, 0.45)
  np.testing.assert_allclose((soft * labels).sum(-1), 0.55, rtol=1e-6)
