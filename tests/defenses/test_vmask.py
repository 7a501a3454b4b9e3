"""VMask: layers of a network, Algorithms 1 and 2, and what can be read."""
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.perturbing import check_unlike
from tests.shadowed import KEY, QUICK, federation, samples, start
from vfljax import algorithms, nets, protocol, train
from vfljax.completion import Schedule
from vfljax.defense import Defense, Holdings, Spec, chain
from vfljax.defenses import label_dp, shadow, vmask
from vfljax.defenses.shadow import Attacker, Learning
from vfljax.nets import named_layers
from vfljax.types import Batch

MASKED = partial(
    vmask.vmask, attacker=QUICK, shadows=Learning(batch_size=32)
)
ALL = jnp.ones(3, bool)
NONE = jnp.zeros(3, bool)


def test_an_attackers_samples_are_drawn_once_a_selection(monkeypatch):
  """Algorithm 2 draws them before its loop; the weights within."""
  seen = []

  def best(key, schedule, net, start, samples, score, *rest):
    del key, schedule, net, rest
    jax.debug.callback(
        lambda x, w: seen.append((x.copy(), w.copy())), samples.known,
        max(jax.tree.leaves(start['second']), key=jnp.ndim),
    )
    # All right: never within the budget, so that every set is tried.
    return score(data.labels)

  monkeypatch.setattr(shadow, 'best', best)
  data = samples(60, seed=9)
  vfl, state = federation(), start(MASKED(0.3), auxiliary=data)
  defense = MASKED(0.3, attacker=QUICK._replace(draws=2))
  held = Holdings(vfl, state.parties[0].params, data)
  end = jax.jit(lambda memory, key: defense.epoch(memory, key, held))
  for key in jax.random.split(KEY):
    jax.block_until_ready(end(state.defense, key))
  jax.effects_barrier()
  assert len(seen) == 2 * 4 * 2  # Selections, sets of layers, draws.
  first, second = seen[:8], seen[8:]
  for chosen in (first, second):
    for i in (0, 1):  # Each of the draws has samples of its own,
      for known, _ in chosen[i::2]:  # the same for every set.
        np.testing.assert_array_equal(known, chosen[i][0])
    assert (chosen[0][0] != chosen[1][0]).any()
    heads = [weights for _, weights in chosen]
    assert all((a != b).any() for a, b in zip(heads, heads[1:]))
  assert (first[0][0] != second[0][0]).any()  # Another selection, others.


def test_the_leakage_told_is_the_worst_partys():
  memory = start(MASKED(0.5), 3).defense
  memory = memory._replace(leakage=(jnp.array(0.25), jnp.array(0.75)))
  assert vmask.facts(memory)['simulated_leakage'] == 0.75


def test_every_party_has_noise_of_its_own():
  state = start(MASKED(0.5, noise=0.3), 3)
  first, second = state.defense.offset
  check_unlike(first, second)
  x = samples(4, 3).features[2]
  defense, net = MASKED(0.5), federation(3).bottom(2)
  params = state.parties[2].params['bottom']
  theirs = jax.tree.map(jnp.add, params, second)
  np.testing.assert_array_equal(
      defense.bottom(state.defense, 2, net).apply(params, x),
      net.apply(theirs, x),
  )


def test_new_noise_comes_on_top_of_the_old():
  old = start(MASKED(0.5, noise=0.3)).defense.offset
  same = vmask._shifted(KEY, old, (ALL,), 0.0)
  jax.tree.map(np.testing.assert_array_equal, same, old)


# --- The defense.


def test_only_the_first_layer_is_hidden_in_the_first_epoch():
  masked = start(MASKED(0.4)).defense.masked
  assert [m.tolist() for m in masked] == [[True, False, False]]
  among = ('Dense_1/Dense_0', 'Dense_2/Dense_0')
  masked = start(MASKED(0.4, among=among), 3).defense.masked
  assert [m.tolist() for m in masked] == [[False, True, False]] * 2
  masked = start(MASKED(0.4, 'all'), auxiliary=None).defense.masked
  assert masked[0].all()


def test_where_all_layers_are_hidden_an_epoch_only_counts():
  """It needs no auxiliary samples, which nothing is asked of."""
  defense = MASKED(0.4, 'all')
  memory = start(defense, auxiliary=None).defense
  after = memory
  for key in jax.random.split(KEY):
    after = defense.epoch(after, key, None)
  assert int(after.epochs) == 2 and vmask.facts(after)['mask_ratio'] == 1
  chex.assert_trees_all_equal(after.offset, memory.offset)
  assert vmask.facts(after)['masked'] == 1
  assert not any(x.any() for x in jax.tree.leaves(after.shadows))


@pytest.mark.parametrize('each, words', [
    pytest.param(jax.vmap, vmask.SELECTIONS, marks=pytest.mark.slow),
    (lambda play: partial(jax.lax.map, play), ('accumulative', vmask.ALL)),
], ids=['side by side', 'in turn'])
def test_a_number_of_a_program_stands_for_each_selection(each, words):
  """The memories of two epochs, from its start on."""
  data = samples(48, seed=9)

  @partial(jax.jit, static_argnums=1)
  def play(number, word=None):
    selection = number if word is None else word
    defense = MASKED(0.4, selection, least=2)  # So that each is another.
    state = start(defense, auxiliary=data)
    own, *_ = (p.params for p in state.parties)
    held = Holdings(federation(), own, data)

    def epoch(memory, key):
      return defense.epoch(memory, key, held), None

    return jax.lax.scan(epoch, state.defense, jax.random.split(KEY))[0]

  together = each(lambda i: play(i))(jnp.arange(4))
  own = [
      jax.tree.map(lambda x, i=i: x[i], together) for i in range(4)
  ]
  known = *vmask.SELECTIONS, vmask.ALL
  for word in words:
    number = known.index(word)
    chex.assert_trees_all_close(own[number], play(0, word), atol=1e-6)
  assert own[3].masked[0].all() and not own[3].norms[0].any()
  assert own[0].norms[0].any()
  assert len({str(memory.masked) for memory in own[:3]}) == 3


def test_training_is_that_of_shifted_weights():
  """The passive party's weights and the offset are the network's weights."""
  vfl, data = federation(), samples()
  txs = [optax.sgd(0.1)] * 2
  defense = MASKED(0.5, noise=0.3)
  state = start(defense)
  shift = state.defense.offset[0]
  assert float(named_layers.l1_norms(shift)[0]) > 1
  assert not named_layers.l1_norms(shift)[1:].any()

  @partial(jax.jit, static_argnums=0)
  def play(masked, state):
    how = defense if masked else Defense()
    return protocol.play_round(KEY, vfl, how, txs, state, data)[0]

  add = partial(jax.tree.map, jnp.add)
  theirs = state.parties[1]
  moved = dict(theirs.params, bottom=add(theirs.params['bottom'], shift))
  plain = state._replace(
      parties=(state.parties[0], theirs._replace(params=moved)), defense=()
  )
  one, other = play(True, state), play(False, plain)
  chex.assert_trees_all_close(
      add(one.parties[1].params['bottom'], shift),
      other.parties[1].params['bottom'], atol=1e-6,
  )
  chex.assert_trees_all_close(
      one.parties[0].params, other.parties[0].params, atol=1e-6
  )


BUDGETS = (0.45, 1.0, 0.25)


def plan(budget, look=lambda key, state: ()):
  """Of four epochs."""
  return train.Plan(
      federation(), MASKED(budget), (optax.sgd(0.1),) * 2, 4, 32,
      validate=look, auxiliary=samples(48, seed=9),
  )


@pytest.fixture(scope='module')
def begun():
  """A run before its first epoch, in which no budget has a part.

  Outside of the program: its weights take long to compile there.
  """
  return train.start(KEY, plan(BUDGETS[0]), samples())


@pytest.fixture(scope='module')
def budgets(begun):
  """Trainings of four epochs: (final states, what was seen of each epoch)."""
  def look(key, state):
    m = state.defense
    return vmask.facts(m) | dict(
        hidden=jnp.stack(m.masked), norms=jnp.stack(m.norms),
        offset=jnp.stack([named_layers.l1_norms(o) for o in m.offset]),
        shadows=jnp.stack([named_layers.l1_norms(p) for p in m.shadows]),
    )

  run, history = jax.jit(jax.vmap(lambda budget: train.advance(
      plan(budget, look), begun, samples(), 0, 4
  )))(jnp.array(BUDGETS))
  return train.finish(run), history['validation']


@pytest.fixture(scope='module')
def first_budget(budgets):
  """The first of those."""
  return jax.tree.map(lambda x: x[0], budgets)


def test_the_mask_ratio_counts_the_epochs_that_were_played(first_budget):
  seen = jax.tree.map(np.asarray, first_budget[1])
  first = np.array([[[True, False, False]]])
  played = np.concatenate([first, seen['hidden'][:-1]])  # U^1 .. U^T.
  np.testing.assert_allclose(seen['mask_ratio'][-1], played.mean(), rtol=1e-6)
  np.testing.assert_allclose(
      seen['masked'], seen['hidden'].mean((1, 2)), rtol=1e-6
  )


def test_gradient_norms_add_up_over_epochs(first_budget):
  norms = first_budget[1]['norms']
  assert (np.diff(norms, axis=0) > 0).all()


def test_shadows_go_on_learning_from_epoch_to_epoch(first_budget, begun):
  first = [named_layers.l1_norms(p) for p in begun.state.defense.shadows]
  seen = np.concatenate([[np.stack(first)], first_budget[1]['shadows']])
  assert (np.diff(seen, axis=0) != 0).all()


def test_noise_comes_with_every_change_and_only_then(first_budget, begun):
  seen = first_budget[1]
  hidden = np.concatenate(
      [[[[True, False, False]]], np.asarray(seen['hidden'])]
  )
  changed = hidden[1:] != hidden[:-1]
  first = [named_layers.l1_norms(o) for o in begun.state.defense.offset]
  moved = np.diff(np.concatenate([
      [np.stack(first)], np.asarray(seen['offset'])
  ]), axis=0) != 0
  np.testing.assert_array_equal(changed, moved)
  assert changed.any() and not changed.all()


def test_what_a_passive_party_can_read(first_budget):
  state, defense = first_budget[0], MASKED(0.45)
  noise, = state.defense.offset
  memory = state.defense._replace(
      masked=(jnp.array([True, False, True]),),
      # Also where no noise has come in training: in the layer that it reads.
      offset=(jax.tree.map(lambda x: x + np.float32(0.25), noise),),
  )
  known = state.parties[1].params['bottom']
  true = jax.tree.map(jnp.add, known, memory.offset[0])
  seen = defense.expose(memory, KEY, 1, known)
  chex.assert_trees_all_equal(seen['Dense_1'], true['Dense_1'])
  for name, fan_in in (('Dense_0', 12), ('Dense_2', 8)):
    drawn, own = (t[name]['Dense_0']['kernel'] for t in (seen, true))
    assert np.abs(drawn).max() <= 1 / np.sqrt(fan_in)
    assert abs(np.corrcoef(drawn.ravel(), own.ravel())[0, 1]) < 0.5
  again = defense.expose(memory, jax.random.key(1), 1, known)
  assert not np.array_equal(
      again['Dense_0']['Dense_0']['kernel'],
      seen['Dense_0']['Dense_0']['kernel'],
  )


def test_every_party_reads_what_is_not_hidden_of_its_own():
  defense, state = MASKED(0.5), start(MASKED(0.5), 3)
  for hidden in ((NONE, ALL), (ALL, NONE)):
    memory = state.defense._replace(masked=hidden)
    for k in (1, 2):
      known = state.parties[k].params['bottom']
      true = jax.tree.map(jnp.add, known, memory.offset[k - 1])
      seen = jax.tree.leaves(defense.expose(memory, KEY, k, known))
      same = [np.array_equal(*x) for x in zip(seen, jax.tree.leaves(true))]
      assert all(same) == (hidden[k - 1] is NONE)


def test_budgets_decide_over_a_training_how_much_is_hidden(budgets):
  """A budget of 1 hides nothing after the first epoch; chance nearly all."""
  some, none, most = budgets[1]['mask_ratio'][:, -1]
  np.testing.assert_allclose(none, 1 / 12, rtol=1e-5)
  assert none <= some <= most and none < most


def test_every_passive_party_has_layers_hidden():
  """Party 3's network is not party 2's; nothing is compiled."""
  vfl = federation(3)._replace(
      bottoms=(nets.mlp(6), nets.mlp(16, 8, 6), nets.mlp(9, 6))
  )
  look = lambda key, state: dict(enumerate(state.defense.masked))
  fit = lambda: train.fit(
      KEY, vfl, MASKED(0.5), [optax.sgd(0.1)] * 3, samples(parties=3),
      epochs=2, batch_size=32, validate=look, auxiliary=samples(48, 3, seed=9),
  )
  seen = jax.eval_shape(fit)[1]['validation']
  assert {k: m.shape for k, m in seen.items()} == {0: (2, 3), 1: (2, 2)}


def test_what_it_knows_of_itself_comes_through_a_chain():
  defense = chain(label_dp.label_dp(3.0), MASKED(0.5))
  found = defense.facts(start(defense).defense)
  assert found['masked'] == pytest.approx(1 / 3)
  assert found['mask_ratio'] == found['simulated_leakage'] == 0


# --- What is refused.


@pytest.mark.parametrize('make, match', [
    (lambda: start(MASKED(0.2)), 'chance meets at 1/4.*in .0.25, 1'),
    (lambda: start(MASKED(0.5, among=('fc9',))), "no layer 'fc9'"),
    (lambda: start(MASKED(0.5), auxiliary=None), 'auxiliary.samples'),
    (lambda: MASKED(0.5, 'best'), 'selection must be one of'),
    (lambda: MASKED(1.5), 'budget must be'),
    (lambda: MASKED(0.5, noise=-1), 'noise'),
    (lambda: MASKED(0.5, least=-1), 'least'),
    (lambda: MASKED(0.5, shadows=Learning(0)), 'learning_rate'),
    (lambda: vmask.vmask(0.5, attacker=QUICK._replace(known=0)), 'known'),
    (lambda: vmask.vmask(0.5, attacker=QUICK._replace(head=8)),
     'head must be a tuple of widths'),
    (lambda: vmask.vmask(
        0.5, attacker=Attacker(Schedule(optimizer='lbfgs', stages=1))
    ), 'optimizer must be'),
    (lambda: vmask.vmask(0.5, attacker=QUICK._replace(epochs=2)),
     'a stage after each epoch; this one has 2 stages in 8'),
    (lambda: vmask.vmask(0.5, attacker=Attacker(epochs=2.5)), 'whole'),
    (lambda: MASKED(0.5).init(KEY, Spec((), 4)), 'bottom networks'),
])
def test_what_is_refused(make, match):
  with pytest.raises(ValueError, match=match):
    make()


@pytest.mark.parametrize('classes, rows, enough', [
    (2, [5, 3], True), (2, [9, 2], False), (2, [9, 0], False),
    (3, [2, 2, 2], False), (3, [2, 3, 0], True),
])
def test_auxiliary_samples_leave_the_imagined_attacker_some(
    classes, rows, enough
):
  """It knows two of each class; an AUC needs both classes, accuracy one."""
  labels = np.eye(classes, dtype=np.float32)[np.repeat(range(classes), rows)]
  labels = np.concatenate([labels, np.zeros_like(labels)])  # No samples.
  vfl = algorithms.vhnn([nets.mlp(6)] * 2, nets.mlp(classes), 'sum')

  def begin(labels):
    data = Batch((jnp.zeros((len(labels), 12)),) * 2, labels)
    return protocol.init(
        KEY, vfl, MASKED(1.0), [optax.sgd(0.1)] * 2, data, auxiliary=data
    )

  jax.eval_shape(begin, labels)  # Whose numbers nobody sees.
  try:
    jax.eval_shape(lambda: begin(labels))
    assert enough
  except ValueError as error:
    assert not enough and 'knows 2 auxiliary samples' in str(error)
    assert f'there are {", ".join(map(str, rows))} by class' in str(error)
