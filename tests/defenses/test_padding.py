"""Rows of padding are nothing to what parties add up over a round."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import DEFENSES
from tests.hooks_alone import HOOKS, data, given, has
from vfljax import algorithms, crossing, defenses, metrics, nets, protocol
from vfljax.defense import Defense, each
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


def played(defense, *paddings, rounds=2):
  """(state, round) after so many, for each of these in the rows of padding."""
  begun = protocol.init(jax.random.key(1), vfl(), defense, TXS, batch(0))
  play = jax.jit(lambda key, state, data: protocol.play_round(
      key, vfl(), defense, TXS, state, data
  ))
  for filled in paddings:
    state = begun
    for i in range(rounds):
      state, done = play(jax.random.key(i), state, batch(filled))
    yield state, done


@pytest.mark.parametrize('name, arguments', [
    ('dcor', (0.5, 'passive')), ('mid', (0.1, 'passive')), ('precode', (0.1,)),
    ('rvfr', ()),
])
def test_padding_is_nothing_to_a_passive_party(name, arguments):
  defense = defenses.REGISTRY[name](*arguments)
  with_zeros, with_nines = (
      jax.tree.leaves(state) for state, _ in played(defense, 0, 9)
  )
  for x, y in zip(with_zeros, with_nines, strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


# The same for whatever is registered, hook by hook, with rows of padding and
# without: tests/defenses/test_contract.py has one number of rows, whose program
# is compiled once, and looks at what is in them.
PADDING, WAYS = 36, 300  # Thrice the samples, for a spread that counts them.


def with_padding(count, filled):
  """Rows of samples, and `count` rows of padding after them."""
  x, labels = data().features[1], data().labels
  more = lambda x, value: jnp.concatenate(
      [x, jnp.full((count, x.shape[1]), value, x.dtype)]
  )
  return more(x, filled), more(labels, 0)


def sent(own, key, x, y, active, passive, memory):
  penalty = lambda x: own.send(passive, key, x)[::-1]
  (value, message), slope = jax.value_and_grad(penalty, has_aux=True)(x)
  return message, value, slope


def received(own, key, x, y, active, passive, memory):
  penalty = lambda x: own.receive(active, memory, key, (x,), y)[::-1]
  (value, (message,)), slope = jax.value_and_grad(penalty, has_aux=True)(x)
  return message, value, slope


# As in `HOOKS`, and what is added up over rows; of the passive party's hooks
# and the active one's. Gradients of padding are zeros where they are shared.
COUNTING = HOOKS | dict(send=sent, receive=received)
del COUNTING['batch'], COUNTING['prepare']  # Before there is any padding.


def real_rows(hook, own, state, padding):
  """key -> all numbers that a hook makes of the samples."""
  x, y = with_padding(padding, 0 if hook == 'gradient' else 9)

  def run(key):
    with crossing.in_round(crossing.rows(y)):
      found = jax.tree.leaves(COUNTING[hook](own, key, x, y, *state))
    return jnp.concatenate([
        a[: len(x) - padding].ravel() if a.shape[:1] == x.shape[:1]
        else a.ravel() for a in found
    ])

  return run


def check_padding(hook, own, state):
  """That rows of padding change nothing: not a number, or where what is drawn
  is another draw then, not how numbers are spread."""
  keys = jax.random.split(jax.random.key(0), WAYS)
  both = jax.jit(lambda keys: [
      jax.vmap(real_rows(hook, own, state, n))(keys) for n in (0, PADDING)
  ])
  without, beside = map(np.asarray, both(keys))
  assert np.isfinite(without).all(), hook
  if np.allclose(without, beside, rtol=1e-4, atol=1e-6):
    return
  far = [apart(a, b) for a, b in zip(without.T, beside.T)]
  # Kolmogorov and Smirnov's statistic: one test in 10**8 is above that.
  assert max(far) < 3.1 * (2 / WAYS) ** 0.5, (
      f'{hook}: samples fare otherwise where there is padding, too; '
      'crossing.rows(labels) and crossing.counted(u) tell what is.'
  )


def apart(a, b):
  """How far two samples' distributions are apart, rounding left out."""
  a, b, wide = np.sort(a), np.sort(b), 1e-4 * np.abs([a, b]).max()
  share = lambda of, at: np.searchsorted(of, at, 'right') / len(of)
  return max(
      (share(one, one) - share(other, one + wide)).max()
      for one, other in ((a, b), (b, a))
  )


@pytest.mark.parametrize('name', DEFENSES)
def test_how_many_rows_are_padding_is_nothing_to_a_sample(name):
  own, state = given(name)
  for hook in COUNTING:
    if has(own, hook):
      check_padding(hook, own, state)


def clips_to_the_mean(key, d, labels):
  size = jnp.linalg.norm(d, axis=1, keepdims=True)
  return d * jnp.minimum(1, size.mean() / jnp.maximum(size, 1e-12))


def adds_the_mean(key, d, labels):
  """With luck, whose spread alone says that padding counts."""
  size = jnp.linalg.norm(d, axis=1).mean()
  return d + size * jax.random.normal(jax.random.fold_in(key, len(d)), d.shape)


@pytest.mark.parametrize('hook, broken', [
    ('gradient', Defense(gradient=each(clips_to_the_mean))),
    ('gradient', Defense(gradient=each(adds_the_mean))),
    ('send', Defense(send=lambda passive, key, u: (u, jnp.square(u).mean()))),
    ('receive', Defense(receive=lambda active, memory, key, up, labels: (
        up, jnp.square(up[0]).mean()
    ))),
    ('objective', Defense(
        objective=lambda memory, key, predict, up, labels: (
            optax.softmax_cross_entropy(predict(up), labels).mean()
        ),
    )),
])
def test_a_hook_that_counts_padding_is_found(hook, broken):
  with pytest.raises(AssertionError, match=f'{hook}: samples fare otherwise'):
    check_padding(hook, broken, ((), (), ()))


def test_another_draw_is_not_taken_for_padding_that_counts():
  noise = lambda key, d, labels: d + jax.random.normal(
      jax.random.fold_in(key, len(d)), d.shape
  )
  check_padding('gradient', Defense(gradient=each(noise)), ((), (), ()))


def test_a_round_of_padding_alone_changes_nothing():
  blank = batch(0)._replace(labels=np.zeros((ROWS, 2), np.float32))
  none = defenses.none()

  @jax.jit
  def both():
    state = protocol.init(jax.random.key(1), vfl(), none, TXS, blank)
    after, done = protocol.play_round(
        jax.random.key(2), vfl(), none, TXS, state, blank
    )
    return done.loss, state.parties, after.parties

  loss, before, after = both()
  assert loss == 0
  for x, y in zip(*map(jax.tree.leaves, (before, after))):
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
  d = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[np.arange(16) % 2]
  d[-1] = labels[-1] = 0
  defense = defenses.REGISTRY[name](*strength)

  def squares(d):
    (sent,), _ = defense.gradient((), jax.random.key(1), (d,), labels)
    return (sent ** 2).sum()

  assert np.isfinite(jax.jit(jax.grad(squares))(d)).all()


@pytest.mark.parametrize('party', [0, -1, 2])
def test_the_active_party_has_no_view_of_a_passive_one(party):
  from vfljax import views
  (_, done), = played(defenses.none(), 0, rounds=1)
  with pytest.raises(ValueError, match='Passive parties are 1 to 1'):
    views.cut_gradients(party, done)


def test_labels_of_whole_numbers_are_protected_too():
  labels = np.eye(2, dtype=int)[np.arange(200) % 2]
  drawn = defenses.label_dp.flip(jax.random.key(0), labels, 1.0)
  same = float((drawn * labels).sum(-1).mean())
  assert drawn.dtype == jnp.float32 and 0.6 < same < 0.85  # 0.73.
  soft = defenses.kdk.soften(jnp.ones((200, 2)), labels, 2, 0.45)
  np.testing.assert_allclose((soft * labels).sum(-1), 0.55, rtol=1e-6)
