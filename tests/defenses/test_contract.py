"""One contract for every defense in the registry, and BUILD.md's example."""
import functools
import inspect

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import (
    DEFENSES, PARTIES, SAMPLES, TXS, WIDTH, batch, federation, make, method_of,
    play, start,
)
from vfljax import chaining, defenses, protocol, views
from vfljax.attacks.model_inversion import Inversion, model_inversion
from vfljax.defense import Defense, Holdings, Method, chain, slots
from vfljax.types import Batch

def strengths_of(name):
  first = method_of(name).strengths[:2]
  return jnp.asarray(first or (0, 0), jnp.float32)


def compile_round(name):
  """A round for any strength, and how often it was traced."""
  traces = []

  @jax.jit
  def step(strength, key, state, data):
    traces.append(1)
    return play(key, make(name, strength), state, data)

  return step, traces


def play_once(name, compiled, begun):
  """A defense, a state, a jitted round and its outcome."""
  step, traces = compiled
  step = functools.partial(step, strengths_of(name)[0])
  outcome = step(jax.random.key(1), begun, batch())
  return make(name), begun, step, outcome, traces


@pytest.fixture(scope='module', params=DEFENSES)
def name(request):
  """Of a defense, so that all its tests come one after the other."""
  return request.param


@pytest.fixture(scope='module')
def compiled(name):
  return compile_round(name)


@pytest.fixture(scope='module')
def begun(name):
  return start(jax.random.key(0), make(name), batch())


@pytest.fixture(scope='module')
def played(name, compiled, begun):
  return play_once(name, compiled, begun)


def test_the_state_scans(played):
  _, state, _, (after, _), _ = played
  chex.assert_trees_all_equal_shapes_and_dtypes(state, after)


def test_the_end_of_an_epoch_keeps_the_memory_scannable(played):
  defense, state, _, (after, _), _ = played
  if defense.epoch is Defense().epoch:
    return
  end = jax.jit(lambda key, state: defense.epoch(
      state.defense, key,
      Holdings(federation(), state.parties[0].params, batch()),
  ))
  memory = end(jax.random.key(5), after)
  chex.assert_trees_all_equal_shapes_and_dtypes(state.defense, memory)
  chex.assert_tree_all_finite((memory, defense.facts(memory)))
  chex.assert_trees_all_equal(end(jax.random.key(5), after), memory)


def test_everything_is_finite(played):
  chex.assert_tree_all_finite(played[3])


def test_messages_have_one_row_per_sample(played):
  messages = played[3][1].messages
  assert [u.shape for u in messages.up] == [(SAMPLES, WIDTH)] * (PARTIES - 1)
  assert [d.shape for d in messages.down] == [(SAMPLES, WIDTH)] * (PARTIES - 1)


def test_only_the_key_is_random_and_nothing_recompiles(played):
  _, state, step, outcome, traces = played
  chex.assert_trees_all_equal(step(jax.random.key(1), state, batch()), outcome)
  step(jax.random.key(2), outcome[0], batch())
  assert len(traces) == 1


def test_training_changes_every_party(played):
  _, state, _, (after, _), _ = played
  for old, new in zip(state.parties, after.parties):
    pairs = zip(jax.tree.leaves(old.params), jax.tree.leaves(new.params))
    assert not all(np.array_equal(a, b) for a, b in pairs)


def test_weights_of_a_defense_are_used(played):
  """Trained by a round, or secrets that nobody trains, as a passport's keys,
  without which a round is another one."""
  _, state, step, (after, seen), _ = played
  for k, (old, new) in enumerate(zip(state.parties, after.parties)):
    # Momentum: a small gradient is there, too, that a weight is too large for.
    slopes = jax.tree.leaves_with_path(new.opt[0].trace['defense'])
    for i, (path, slope) in enumerate(slopes):
      if np.any(slope):
        continue
      leaves, tree = jax.tree.flatten(old.params['defense'])
      leaves[i] = leaves[i] + 1
      params = old.params | dict(defense=jax.tree.unflatten(tree, leaves))
      parties = list(state.parties)
      parties[k] = old._replace(params=params)
      _, other = step(
          jax.random.key(1), state._replace(parties=tuple(parties)), batch()
      )
      pairs = zip(*map(jax.tree.leaves, (seen.messages, other.messages)))
      assert not all(np.array_equal(a, b) for a, b in pairs), (
          f"No hook uses the defense's weights {jax.tree_util.keystr(path)} at "
          f'party {k}.'
      )


def padded(filled):
  """The batch with four rows of padding at its end, and this in them."""
  data = batch()
  return Batch(
      tuple(x.at[-4:].set(filled) for x in data.features),
      data.labels.at[-4:].set(0),
  )


def test_padding_has_no_influence_on_the_passive_parties_gradient(played):
  """A row without a label sends back a gradient of zeros, and whatever is in
  it, nobody's weights or memory know; see test_padding for how many there are.
  """
  _, state, step, _, _ = played
  outcomes = [step(jax.random.key(1), state, padded(x)) for x in (0, 9)]
  for _, seen in outcomes:
    for d in seen.messages.down:
      assert not np.asarray(d[-4:]).any()
      assert np.isfinite(d).all()
  zeros, nines = (
      (after, seen.loss, [d[:-4] for d in seen.messages.down])
      for after, seen in outcomes
  )
  chex.assert_trees_all_close(zeros, nines, rtol=1e-4, atol=1e-6)


def test_a_round_without_a_label_makes_nothing_infinite(played):
  _, state, step, _, _ = played
  data = batch()
  after, seen = step(
      jax.random.key(1), state, data._replace(labels=0 * data.labels)
  )
  chex.assert_tree_all_finite((after.parties, seen.loss, seen.messages))


def test_an_active_party_inverts_with_all_that_is_its_own(name):
  """Its top is the one that it trains, which no plain one's weights fit."""
  vfl, data, defense = federation(), batch(), make(name)
  pixels = jax.tree.map(jax.nn.sigmoid, data.features)
  data = data._replace(features=pixels)
  attack = model_inversion(vfl, vfl.bottom(1), Inversion(1, steps=1), defense)

  def guessed(key):
    state = start(key, defense, data)
    sent = protocol.embed(key, vfl, defense, state, 1, data.features[1])
    return attack.run(key, views.trained_top(defense, state, sent, data))

  found = jax.eval_shape(guessed, jax.random.key(0))
  assert found.shape == data.features[1].shape


def test_facts_are_numbers_with_names(played):
  defense, _, _, (after, _), _ = played
  facts = defense.facts(after.defense)
  shapes = {name: jnp.shape(x) for name, x in facts.items()}
  assert shapes == dict.fromkeys(map(str, facts), ()), (
      'Each fact is one number, recorded beside the utility.'
  )


def test_seeds_and_strengths_vmap(name, compiled, begun):
  """One compilation over seeds and strengths equals one run for each."""
  keys = jax.random.split(jax.random.key(0), 2)
  strengths = strengths_of(name)

  def one(key, strength):
    return compiled[0](strength, key, begun, batch())[1].messages.down

  both = jax.jit(jax.vmap(jax.vmap(one, (0, None)), (None, 0)))(keys, strengths)
  for s in range(2):
    for k in range(2):
      here = jax.tree.map(lambda x, s=s, k=k: x[s, k], both)
      chex.assert_trees_all_close(
          here, one(keys[k], strengths[s]), rtol=2e-3, atol=2e-4
      )


def test_a_strength_may_be_a_number_or_traced(name):
  """What a sweep traces, all of them at once, equals what the factory does with
  the numbers themselves."""
  method = method_of(name)
  if not method.strengths:
    parameters = inspect.signature(method).parameters.values()
    assert all(p.default is not p.empty for p in parameters)
    return
  cut = (jax.random.normal(jax.random.key(5), (SAMPLES, WIDTH)),)
  labels = batch().labels
  perturb = lambda s: make(name, s).gradient(
      (), jax.random.key(6), cut, labels
  )[0]

  @jax.jit
  def run(traced):  # All in one program, which is sooner compiled than three.
    known = [perturb(float(method.strengths[i])) for i in (0, -1)]
    return jax.vmap(perturb)(traced), known

  together, known = run(jnp.asarray(method.strengths, jnp.float32))
  for i, alone in zip((0, -1), known):
    traced = jax.tree.map(lambda x, i=i: x[i], together)
    chex.assert_trees_all_close(traced, alone, rtol=1e-4, atol=1e-5)


def life(name, key, strength, data):
  """All hooks of a federation's life: (state before, after, loss, the rest)."""
  defense, vfl = make(name, strength), federation()
  if defense.prepare:
    labels = defense.prepare(key, data.features[0], data.labels)
    data = data._replace(labels=labels)
  before = start(key, defense, data)
  after, played = play(key, defense, before, data)
  top = vfl._replace(top=defense.top(vfl.top))
  holdings = Holdings(top, after.parties[0].params, data)
  memory = defense.epoch(after.defense, key, holdings)
  after = after._replace(defense=memory)
  weights = after.parties[1].params['bottom']
  return before, after, played.loss, (
      protocol.predict(key, vfl, defense, after, data.features),
      defense.expose(memory, key, 1, weights), defense.facts(memory),
  )


def test_a_users_strict_program_traces_and_scans(name):
  """By tracing alone: nothing is compiled. Types stay, so that rounds scan, and
  what is of 32 bits has a loss of as many.

  With 64 bits allowed, in which JAX's own default type differs from that of the
  samples: what casts implicitly without them does so here.
  """
  strict = jax.numpy_dtype_promotion('strict')
  with jax.enable_x64(True), strict, jax.numpy_rank_promotion('raise'):
    before, after, loss, _ = jax.eval_shape(
        functools.partial(life, name), jax.random.key(0), strengths_of(name)[0],
        batch(),
    )
  chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
  assert loss.dtype == jnp.float32


def test_samples_may_have_64_bits(name):
  """By tracing alone, as what is computed is what 32 bits are computed by."""
  with jax.enable_x64(True):
    before, after, loss, _ = jax.eval_shape(
        functools.partial(life, name), jax.random.key(0), strengths_of(name)[0],
        batch(jnp.float64),
    )
  chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
  assert loss.dtype == jnp.float64


def test_labels_may_be_of_another_type_than_features(name):
  """One-hot labels are of 64 bits by JAX's own default there."""
  with jax.enable_x64(True):
    data = batch()
    data = data._replace(labels=data.labels.astype(jnp.float64))
    before, after, _, _ = jax.eval_shape(
        functools.partial(life, name), jax.random.key(0), strengths_of(name)[0],
        data,
    )
  chex.assert_trees_all_equal_shapes_and_dtypes(before, after)


# With a loss of its own, with decompositions, and with neither.
@pytest.mark.slow
@pytest.mark.parametrize('one', ['gafm', 'marvell', 'none'])
def test_works_inside_a_64_bit_program(one):
  with jax.enable_x64(True):
    defense, data = make(one), batch(jnp.float64)

    @jax.jit
    def first_round(key):
      state = start(key, defense, data)
      return state, play(key, defense, state, data)[1].messages

    chex.assert_tree_all_finite(first_round(jax.random.key(1)))


def test_labels_do_not_reach_the_passive_side(played):
  """A passive party's message is the same whatever the labels are."""
  _, state, step, (_, seen), _ = played
  flipped = batch()._replace(labels=batch().labels[:, ::-1])
  _, other = step(jax.random.key(1), state, flipped)
  chex.assert_trees_all_equal(seen.messages.up, other.messages.up)


def test_send_gets_its_weights_a_key_and_a_message(name):
  """Three arguments, whatever they are called, and labels are not among them;
  what it closes over `tests/test_audit.py` looks at."""
  send = make(name).send
  inspect.signature(send).bind('passive', 'key', 'u')
  parameters = inspect.signature(send).parameters
  assert len(parameters) == 3, (
      f'send gets (passive, key, u) by place; {name} has {list(parameters)}.'
  )


def replay(defense, memory, party, features, down):
  """A passive party's update from what it was sent and nothing else."""
  luck = protocol.luck_of(jax.random.key(1))
  k_send = jax.random.fold_in(luck.send, 1)

  net = defense.bottom(memory, 1, federation().bottom(1))

  def embed(params):
    u = net.apply(params['bottom'], features)
    return defense.send(params['defense'], k_send, u)

  grads = jax.vjp(embed, party.params)[1]((down, jnp.ones(())))[0]
  grads = defense.share(jax.random.fold_in(luck.share, 0), grads)
  updates, _ = TXS[1].update(grads, party.opt, party.params)
  return optax.apply_updates(party.params, updates)


replay_jitted = jax.jit(replay, static_argnums=0)


def test_passive_parties_learn_labels_from_messages_alone(played):
  """The update of a passive party is a function of its features, weights and
  what it was sent: replaying the received gradient gives the same weights."""
  defense, state, _, (after, seen), _ = played
  again = replay_jitted(
      defense, state.defense, state.parties[1], seen.batch.features[1],
      seen.messages.down[0],
  )
  chex.assert_trees_all_close(again, after.parties[1].params, atol=1e-6)


@pytest.mark.slow
def test_everything_chains():
  made = [make(name) for name in DEFENSES]
  ordinary = [d for d in made if not d.objective]
  defense = chain(*ordinary, *[d for d in made if d.objective][:1])

  key = jax.random.key(1)
  state = start(key, defense, batch())
  round_ = jax.jit(lambda state: play(key, defense, state, batch()))
  after, seen = round_(state)
  chex.assert_tree_all_finite((after, seen))
  chex.assert_trees_all_equal_shapes_and_dtypes(state, after)


def test_a_chain_has_every_hook():
  assert chaining.HOOKS.keys() == set(Defense._fields)


def one_round(defense):
  """As the fixture `played` has it."""
  begun = start(jax.random.key(0), defense, batch())
  step = jax.jit(lambda key, state, data: play(key, defense, state, data))
  return defense, begun, step, step(jax.random.key(1), begun, batch()), []


BROKEN = {
    'dead weights': (
        test_weights_of_a_defense_are_used, 'No hook uses', Defense(
            init=lambda key, spec: slots(spec, passive=tuple(
                dict(gain=jnp.ones(3)) for _ in spec.embeddings
            )),
        ),
    ),
    'a penalty of padding': (
        test_padding_has_no_influence_on_the_passive_parties_gradient,
        'not approximately equal', Defense(send=lambda passive, key, u: (
            u, jnp.square(u).mean()
        )),
    ),
    'a list of facts': (
        test_facts_are_numbers_with_names, 'one number', Defense(
            facts=lambda state: dict(which=jnp.arange(3))
        ),
    ),
    'labels in a message': (
        test_labels_do_not_reach_the_passive_side, 'equal', Defense(
            batch=lambda key, b: b._replace(features=(
                b.features[0], b.features[1] + b.labels[:, :1]
            )),
        ),
    ),
}


@pytest.mark.parametrize('broken', BROKEN)
def test_what_is_broken_does_not_pass(broken):
  """The contract itself: a mistake that somebody made, and what says so."""
  check, said, defense = BROKEN[broken]
  with pytest.raises(AssertionError, match=said):
    check(one_round(defense))


@pytest.mark.parametrize('send, fits', [
    (lambda p, k, message: (message, 0.0), True),
    (lambda passive, key, u, labels: (u, 0.0), False),
    (lambda passive, key, u, *, labels=None: (u, 0.0), False),
])
def test_parameters_of_send_are_counted_and_not_read(monkeypatch, send, fits):
  own = Method(lambda: Defense(send=send))
  monkeypatch.setitem(defenses.REGISTRY, 'own', own)
  if fits:
    test_send_gets_its_weights_a_key_and_a_message('own')
  else:
    with pytest.raises((AssertionError, TypeError)):
      test_send_gets_its_weights_a_key_and_a_message('own')


def test_two_objectives_are_refused():
  greedy = Defense(objective=lambda *args: jnp.zeros(()))
  with pytest.raises(ValueError, match='objective'):
    chain(greedy, greedy)
