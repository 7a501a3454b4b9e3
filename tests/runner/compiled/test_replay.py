"""Attacks on rounds that are played again: what they see and what counts."""
import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import attacks, measure, views
from vfljax.adversary import HONEST, Adversary
from vfljax.attack import Attack, Wants, recipe_of
from vfljax.defense import Defense
from vfljax.runner.compiled import replay
from vfljax.runner.config import AttackConfig
from vfljax.runner.errors import UserError
from vfljax.runner.experiment.attackers import Attacker
from vfljax.types import Batch, Messages, PartyState, Round, State

KEY = jax.random.key(0)
SAMPLES, SIZE, ROUNDS = 24, 6, 3
MEASURED = replay._measured
# What a party reads of its weights, 1: never the weights themselves, 0.
ONES = Defense(expose=lambda state, key, k, weights: jax.tree.map(
    jnp.ones_like, weights
))


@pytest.fixture
def attacked(monkeypatch):
  """(attack) -> what it guesses in rounds made by hand, and how that counts.

  Of every sample another gradient is received, its number.
  """
  labels = np.eye(2, dtype=np.float32)[np.arange(SAMPLES) % 2]
  number = jnp.asarray(np.arange(SAMPLES, dtype=np.float32)[:, None])
  data = Batch((number, number), jnp.asarray(labels))
  party = PartyState(dict(bottom=jnp.zeros(2), defense=()), ())
  state = State((party, party), ())

  def play(plan, data, labels, state, i, key):
    batch = jax.tree.map(lambda x: x[i], data)
    said = (batch.features[1],)
    return Round(
        state, batch, Messages(said, said), jnp.zeros(()), (jnp.zeros(2),),
        ((),),
    )

  monkeypatch.setattr(replay, '_play', play)
  monkeypatch.setattr(replay, '_measured', lambda guessed: guessed)
  # The guess itself, which is no measure.
  monkeypatch.setattr(replay, 'scored', lambda own, usual, guess, truth: guess)
  about: Any = SimpleNamespace(measure=None)

  def run(
      view, attack, wants=Wants(), asked=ROUNDS, against=None, pool='epoch',
      adversary=HONEST,
  ):
    plan = SimpleNamespace(
        batch_size=SIZE, defense=ONES, adversary=adversary
    )
    who = AttackConfig(known=2, replay_rounds=asked, pool=pool)
    monkeypatch.setattr(
        replay, 'attacker', lambda config, name: Attacker(who, None, about)
    )
    setting = SimpleNamespace(
        replayed=dict(own=Attack(view, attack, wants=wants, against=against)),
        config=None,
    )
    return replay._attack(setting, plan, data, (), state, 'own', 1, KEY)

  return run


@pytest.mark.parametrize('samples, batch, count, rank', [
    (20, 5, 30, 20), (20, 15, 30, 20), (20, 20, 4, 1),
    # Of one at a time, one in 55 is not drawn in four times as many rounds.
    (20, 1, 80, 19), (21, 20, 84, 20),
])
def test_rounds_determine_what_each_sample_of_a_pool_contributes(
    samples, batch, count, rank
):
  """Each gives one sum: as many must be independent as there are samples."""
  wants = Wants(samples, batch)
  attack = Attack(views.WhiteBox, lambda key, view: None, wants=wants)
  found = replay.rounds(0, attack, 500, 8)
  assert found == count and replay.rounds(7, attack, 500, 8) == 7
  rows = replay._rounds(KEY, found, wants)
  sums = np.zeros((found, samples))
  np.put_along_axis(sums, np.asarray(rows), 1, axis=1)
  assert (sums.sum(1) == batch).all()
  assert np.linalg.matrix_rank(sums) >= rank


@pytest.mark.parametrize('view', [views.KnownPositive, views.ClassCenters])
def test_what_is_known_of_a_round_is_not_scored(view, attacked):
  guessed = jax.jit(
      lambda: attacked(view, lambda key, view: view.known)
  )()
  assert guessed.scores.shape == (ROUNDS * SIZE,) and guessed.scores.any()
  np.testing.assert_array_equal(guessed.weights, 1 - guessed.scores)


def test_scores_are_pooled_over_rounds_or_averaged(attacked, monkeypatch):
  """A round's are in order, but its lowest may be above another's highest."""
  monkeypatch.setattr(replay, '_measured', MEASURED)

  def order(key, view):
    number = view.received[:, 0]
    return number % 2 / 2 + number.sum()

  areas = {
      pool: attacked(views.CutGradients, order, pool=pool)['leak_auc']
      for pool in ('epoch', 'round')
  }
  assert areas['round'] == 1 and 0.5 <= areas['epoch'] < 1
  classes = lambda key, view: jax.nn.one_hot(
      1 - view.received[:, 0].astype(int) % 2, 2
  )
  found = attacked(views.CutGradients, classes, pool='round')
  assert (found['accuracy'], found['matched']) == (0, 1)


@pytest.mark.parametrize('view', [views.CutGradients, views.RecordedGradients])
def test_attackers_choose_samples_of_a_round_as_in_training(view, attacked):
  """A backdoor's rows of the target class are there again."""
  mine = Adversary((1,), rows=lambda key, i: i.at[-2:].set(23))
  guessed = attacked(
      view, lambda key, v: v.received[:, 0], adversary=mine
  )
  rounds = guessed.scores.reshape(ROUNDS, SIZE)
  np.testing.assert_array_equal(rounds[:, -2:], 23)
  assert len(np.unique(rounds[:, :-2])) == ROUNDS * (SIZE - 2)


def test_what_is_known_of_recorded_gradients_is_not_scored(attacked):
  guessed = jax.jit(lambda: attacked(
      views.RecordedGradients, lambda key, view: (
          view.received == view.known_received[:, 0]
      ).any(1).astype(jnp.float32)
  ))()
  assert guessed.scores.sum() == 4  # Two of each class.
  np.testing.assert_array_equal(guessed.weights, 1 - guessed.scores)


@pytest.mark.parametrize('view', [views.CutGradients, views.RecordedGradients])
def test_a_guess_at_something_else_is_refused(view, attacked):
  with pytest.raises(ValueError, match='own must return scores of shape'):
    jax.eval_shape(lambda: attacked(view, lambda key, v: v.received[:-1]))


def test_weights_are_read_as_the_defense_lets_them(attacked):
  guessed = attacked(
      views.ModelGradients, lambda key, view: view.weights[:1] + 0 * view.valid
  )
  assert (guessed.scores == 1).all()
  seen = attacked(
      views.WhiteBox, lambda key, view: view.weights['bottom'],
      Wants(samples=12, batch=4),
  )
  assert (seen == 1).all()


@pytest.mark.parametrize('taken, view, wants, count', [
    ('in_training', views.KnownPositive, Wants(), 3 * ROUNDS),
    ('recorded_gradients', views.RecordedGradients, Wants(), ROUNDS + 2),
    ('white_box', views.WhiteBox, Wants(samples=12, batch=4), ROUNDS + 3),
])
def test_rounds_and_who_attacks_them_have_keys_of_their_own(
    taken, view, wants, count, attacked, monkeypatch
):
  """Nor is one a part of another, or of a part: a key folded with a number is
  the same as that part of it, and a round takes ten."""
  told = []

  def noted(fn, at):
    def call(*arguments):
      told.append(arguments[at])
      return fn(*arguments)
    return call

  at = 1 if taken == 'in_training' else 0
  monkeypatch.setattr(views, taken, noted(getattr(views, taken), at))
  monkeypatch.setattr(replay, '_play', noted(replay._play, -1))
  monkeypatch.setattr(replay, '_rounds', noted(replay._rounds, 0))
  attack = noted(lambda key, view: jnp.zeros(
      len(view.received) if hasattr(view, 'received') else 1
  ), 0)

  def looped(fn, xs):  # `lax.map` in Python, so that keys are numbers.
    found = [
        fn(jax.tree.map(lambda x, i=i: x[i], xs)) for i in range(ROUNDS)
    ]
    return jax.tree.map(lambda *x: jnp.stack(x), *found)

  monkeypatch.setattr(replay, 'lax', SimpleNamespace(map=looped))
  attacked(view, attack, wants)
  split = jax.vmap(lambda key: jax.random.split(key, 10))

  @jax.jit
  def with_parts(keys):
    parts = split(keys).ravel()
    every = jnp.concatenate([keys, parts, split(parts).ravel()])
    return jax.random.key_data(every)

  assert len(told) == count
  every = with_parts(jnp.stack(told))
  assert len(np.unique(every, axis=0)) == 111 * count


ROUNDS_REFUSED = r'replay_rounds must be between 1 and 4, .* got [-0-9]+\.'


@pytest.mark.parametrize('view, wants, rounds, known, message', [
    (views.CutGradients, Wants(), 1, 99, ''),
    (views.CutGradients, Wants(), 4, 99, ''),
    (views.CutGradients, Wants(), -1, 1, ROUNDS_REFUSED),
    (views.CutGradients, Wants(), 0, 99, ''),  # As many as it needs.
    (views.CutGradients, Wants(), 5, 1, ROUNDS_REFUSED),
    # Half of a round of 6, or of four rounds, in two classes.
    (views.RecordedGradients, Wants(), 1, 1, ''),
    (views.RecordedGradients, Wants(), 4, 6, ''),
    (views.RecordedGradients, Wants(), 1, 0, 'known must .* 1 and 1 .* got 0'),
    (views.RecordedGradients, Wants(), 1, 2, 'known must .* 1 and 1 .* got 2'),
    (views.RecordedGradients, Wants(), 4, 7, 'known must .* 1 and 6 .* got 7'),
    (views.RecordedGradients, Wants(), 0, 6, ''),  # All four.
    (views.RecordedGradients, Wants(), 0, 7, r'known .* 1 and 6 .* got 7\.$'),
    (views.RecordedGradients, Wants(), 3, 5, r'got 5\. To allow more, raise'),
    # It has rounds of its own.
    (views.WhiteBox, Wants(samples=12, batch=4), 99, 0, ''),
])
def test_rounds_and_labels_are_those_that_there_are(
    view, wants, rounds, known, message, monkeypatch
):
  """25 samples are four rounds of 6, and one left over."""
  who = AttackConfig(known=known, replay_rounds=rounds)
  monkeypatch.setattr(
      replay, 'attacker', lambda config, name: Attacker(who, None, None)
  )
  setting: Any = SimpleNamespace(
      config=SimpleNamespace(
          train=SimpleNamespace(batch_size=SIZE), variants=(),
      ),
      replayed=dict(own=Attack(view, None, wants=wants)), classes=2,
  )
  most = replay.most_known(setting, 25)
  recorded = view is views.RecordedGradients
  assert most == (6 * (rounds or 4) // 4 if recorded else sys.maxsize)
  if not message:
    replay.check(setting, 25)
    assert known <= most
    monkeypatch.setattr(replay, 'differs', lambda config, name, of: (
        of == 'known'
    ))  # A variant that says itself how many it knows.
    assert replay.most_known(setting, 25) == sys.maxsize
    return
  with pytest.raises(UserError, match=message):
    replay.check(setting, 25)
  setting.classes = 4  # Two samples of each are more than a round has.
  if view is views.RecordedGradients and rounds == 1:
    with pytest.raises(UserError, match='gradients of 6 samples, .* of 4 cla'):
      replay.check(setting, 25)


@pytest.mark.parametrize('at', ['both', 'start', 'end'])
def test_each_stage_has_its_own_state(at, monkeypatch):
  """Before the first update and after the last, or which is asked for."""
  who = Attacker(AttackConfig(replay_at=at), None, recipe_of(attacks.cafe))
  monkeypatch.setattr(replay, 'attacker', lambda config, name: who)
  twice = lambda *a: dict(auc=a[4]['weight'] * 2)
  monkeypatch.setattr(replay, '_attack', twice)
  setting: Any = SimpleNamespace(
      replayed=dict(cafe=None), attackers=(1,), config=None
  )
  states: Any = dict(
      start=dict(weight=jnp.float32(1)), end=dict(weight=jnp.float32(5))
  )
  found = jax.jit(lambda states: replay.measured(
      setting, setting, None, None, states, KEY
  ))(states)
  want = dict(auc_start=2.0, auc_end=10.0)
  kept = {k: v for k, v in want.items() if at in ('both', k[4:])}
  assert found == dict(cafe=kept)


@pytest.mark.parametrize('view, wants', [
    (views.CutGradients, Wants()), (views.RecordedGradients, Wants()),
    (views.WhiteBox, Wants(samples=12, batch=4)),
])
def test_an_attacker_who_asks_is_told_the_defense(view, wants, attacked):
  told = []

  def against(defense):
    told.append(defense)
    return Attack(view, guess(1.0), wants=wants)

  def guess(value):
    return lambda key, seen: jnp.full(
        len(getattr(seen, 'received', (0,))), value
    )

  found = attacked(view, guess(0.0), wants, against=against)
  assert (getattr(found, 'scores', found) == 1).all()
  assert told and all(defense is ONES for defense in told)


@pytest.mark.parametrize('one_luck', [False, True])
def test_variants_of_one_luck_attack_the_same_rounds(one_luck, monkeypatch):
  """Those of the attack itself, whose records came before its variants."""
  about: Any = SimpleNamespace(one_luck=one_luck)
  who = Attacker(AttackConfig(replay_at='end'), None, about)
  monkeypatch.setattr(replay, 'attacker', lambda config, name: who)
  monkeypatch.setattr(
      replay, '_attack', lambda *a: dict(key=jax.random.key_data(a[-1]))
  )
  setting: Any = SimpleNamespace(
      replayed={'own': None, 'own:other': None}, attackers=(1,), config=None
  )
  states: Any = dict(end=jnp.zeros(()))
  found = replay.measured(setting, setting, None, None, states, KEY)
  first, second = (np.asarray(x['key_end']) for x in found.values())
  assert (first == second).all() == one_luck
  own = jax.random.fold_in(measure.own_key(KEY, 'own'), 1)
  np.testing.assert_array_equal(first, jax.random.key_data(own))


@pytest.mark.parametrize('asked, view, wants, samples, count', [
    (7, views.RecordedGradients, Wants(), 9000, 7),
    (7, views.WhiteBox, Wants(200, 40), 9000, 7),
    (0, views.CutGradients, Wants(), 9000, 1),
    (0, views.RecordedGradients, Wants(), 330, 10),  # Whole rounds of 32.
    (0, views.RecordedGradients, Wants(), 9000, 128),
    (0, views.WhiteBox, Wants(200, 40), 9000, 300),
    (0, views.WhiteBox, Wants(40, 40), 9000, 4),
])
def test_so_many_rounds_are_played_again(asked, view, wants, samples, count):
  attack = Attack(view, lambda key, view: 0, wants=wants)
  assert replay.rounds(asked, attack, samples, 32) == count


@pytest.mark.parametrize('view', [views.RecordedGradients, views.CutGradients])
def test_an_attack_that_learns_from_rounds_has_an_epochs(view, attacked):
  guessed = jax.jit(lambda: attacked(
      view, lambda key, seen: seen.received[:, 0], asked=0
  ))()
  together = view is views.RecordedGradients
  assert len(guessed.scores) == (SAMPLES // SIZE * SIZE if together else SIZE)
