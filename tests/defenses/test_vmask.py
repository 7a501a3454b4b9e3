"""VMask: layers of a network, Algorithms 1, 2 and 6, and what can be read."""
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.perturbing import check_unlike
from tests.small_networks import weights
from vfljax import algorithms, completion, nets, protocol, train
from vfljax.completion import Schedule
from vfljax.defense import Defense, Holdings, Spec, chain
from vfljax.defenses import label_dp, shadow, vmask
from vfljax.defenses.shadow import Attacker, Learning
from vfljax.nets import named_layers
from vfljax.types import Batch

KEY = jax.random.key(0)
CLASSES = 4
QUICK = Attacker(Schedule(8, 0, 2, 0.3, 'sgd'), known=2, head=(8,))
MASKED = partial(
    vmask.vmask, attacker=QUICK, shadows=Learning(batch_size=32)
)


def samples(count: int = 64, parties: int = 2, seed: int = 0) -> Batch:
  """Samples whose class is in two of twelve columns at every party."""
  rng = np.random.default_rng(seed)
  labels = rng.integers(CLASSES, size=count)
  features = rng.normal(size=(parties, count, 12)).astype(np.float32)
  angle = labels * np.pi / 2
  features[..., :2] += 2.5 * np.stack([np.cos(angle), np.sin(angle)], -1)
  one_hot = np.eye(CLASSES, dtype=np.float32)[labels]
  return Batch(tuple(map(jnp.asarray, features)), jnp.asarray(one_hot))


def federation(parties: int = 2):
  return algorithms.vhnn(
      [nets.mlp(16, 8, 6)] * parties, nets.mlp(8, CLASSES), 'sum'
  )


def start(defense: Defense, parties: int = 2, **options):
  data = samples(parties=parties)
  return protocol.init(
      KEY, federation(parties), defense, [optax.sgd(0.1)] * parties, data,
      **(dict(auxiliary=samples(48, parties, seed=9)) | options),
  )


# --- The imagined attacker and the noise.

ALL = jnp.ones(3, bool)
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


# --- The shadow.


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


def test_a_number_of_a_program_stands_for_each_selection():
  """The memories of two epochs, from its start on."""
  data, words = samples(48, seed=9), (*vmask.SELECTIONS, vmask.ALL)

  @partial(jax.jit, static_argnums=1)
  def play(number, word=None):
    defense = MASKED(0.4, number if word is None else word)
    state = start(defense, auxiliary=data)
    own, *_ = (p.params for p in state.parties)
    held, memory = Holdings(federation(), own, data), state.defense
    for key in jax.random.split(KEY):
      memory = defense.epoch(memory, key, held)
    return memory

  for number, word in enumerate(words):
    chex.assert_trees_all_close(play(number), play(0, word), atol=1e-6)
  assert play(3).masked[0].all() and not play(3).norms[0].any()
  assert play(0).norms[0].any()
  together = jax.vmap(lambda i: play(i))(jnp.arange(4))
  chex.assert_trees_all_close(
      jax.tree.map(lambda x: x[3], together), play(3), atol=1e-6
  )


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
