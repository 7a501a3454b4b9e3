"""Hooks that return the wrong thing are told so, by name, where it happens."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, contracts, protocol, switching, train
from vfljax.adversary import Adversary
from vfljax.check import Misfit
from vfljax.contracts import of_defenses
from vfljax.defense import Defense, chain, checked, each, none, slots
from vfljax.hooks import Slots
from vfljax.returned import check_slots
from vfljax.runner.checking import rehearsal
from vfljax.types import Batch, State
from vfljax.views import own_weights

X = jnp.ones((6, 4))
BATCH = Batch((X[:, :1], X[:, 1:2], X[:, 2:]), jnp.eye(2)[jnp.arange(6) % 2])
VFL, TXS = algorithms.vlr(3, 2), (optax.sgd(0.1),) * 3


def played(defense):
  state = protocol.init(jax.random.key(0), VFL, defense, TXS, BATCH)
  return protocol.play_round(jax.random.key(1), VFL, defense, TXS, state, BATCH)


WRONG = [
    (lambda state, key, cut, labels: cut, 'gradient must return a tuple of'),
    (lambda state, key, cut, labels: (cut[:1], state), 'one a passive party'),
    (lambda state, key, cut, labels: (tuple(d[:2] for d in cut), state),
     r'a tuple of \(6, 1\) float32, \(6, 1\) float32, .* it returned '
     r'\(\(2, 1\) float32, \(2, 1\) float32\), \(\)'),
    (lambda state, key, cut, labels: (cut, None), 'the state as init made it'),
    (lambda state, key, cut, labels: None, 'it returned NoneType'),
]


@pytest.mark.parametrize('hook, message', WRONG)
def test_a_wrong_gradient_is_told(hook, message):
  wrong = Defense(gradient=hook)
  with pytest.raises(ValueError, match=message):
    played(wrong)
  with pytest.raises(ValueError, match=f'^mine: .*{message}'):
    played(switching.one_of(1, [none(), wrong], ['none', 'mine']))
  with pytest.raises(ValueError, match=message):
    played(switching.one_of(1, [none(), wrong]))


def test_one_partys_gradient_is_in_a_tuple_too():
  """By itself its first row would be taken for the first party's."""
  data = Batch((X[:, :2], X[:, 2:]), BATCH.labels)
  vfl, txs = algorithms.vlr(2, 2), TXS[:2]

  def play(defense):
    state = protocol.init(jax.random.key(0), vfl, defense, txs, data)
    jax.eval_shape(lambda: protocol.play_round(
        jax.random.key(1), vfl, defense, txs, state, data
    ))

  play(Defense(gradient=lambda state, key, cut, labels: ([cut[0]], state)))
  with pytest.raises(ValueError, match=(
      r'a tuple of \(\(6, 1\) float32,\), one a passive party, and the state; '
      r'it returned \(6, 1\) float32, \(\)'
  )):
    play(Defense(gradient=lambda state, key, cut, labels: (cut[0], state)))


@pytest.mark.parametrize('send, message', [
    (lambda passive, key, u: (u, u.sum(-1)), r'one number, .* shape \(6,\)'),
    (lambda passive, key, u: u, r'\(message, penalty\), a pair; it returned'),
    (lambda passive, key, u: (u,), r'a pair; .* \(\(6, 1\) float32,\)\.'),
])
def test_a_wrong_message_is_told(send, message):
  with pytest.raises(ValueError, match=message):
    played(Defense(send=send))


def test_a_list_and_a_plain_number_are_right():
  right = Defense(
      send=lambda passive, key, u: (u, 0.0),
      gradient=lambda state, key, cut, labels: ([*cut], state),
  )
  for defense in (right, chain(right, right)):
    _, found = played(defense)
    assert found.messages.up[0].shape == (6, 1)


def test_who_has_no_such_hook_is_as_before():
  assert checked(none()) == none()


@pytest.mark.parametrize('init, message', [
    (lambda key, spec: slots(spec, passive=((),)), 'for 1 passive parties; th'),
    (lambda key, spec: None, 'init must return defense.slots'),
])
def test_weights_for_other_parties_are_refused(init, message):
  with pytest.raises(ValueError, match=message):
    protocol.init(
        jax.random.key(0), VFL, Defense(init=init), TXS, BATCH
    )


@pytest.mark.parametrize('state, message', [
    ('text', 'put a str into the memory, at state: it is of numbers'),
    (dict(a=[1, print]), r"into the memory, at state\['a'\]\[1\]: it is of"),
    ({'a': np.array(['x'])}, r"into the memory, at state\['a'\]: it is of"),
    (2**40, 'put an int into the memory'),  # JAX has 32 bits here.
])
def test_a_memory_that_jax_cannot_carry_is_refused(state, message):
  with pytest.raises(Misfit, match=message):
    check_slots(Slots((), (), state), 0)


def test_a_memory_of_numbers_and_arrays_is_kept():
  found = dict(a=1, b=2.0, c=None, d=np.ones(2, bool), e=jax.random.key(0))
  assert check_slots(Slots((), (), found), 0) is None
  jax.eval_shape(lambda x: check_slots(Slots((), (), x), 0), jnp.ones(3))


@pytest.mark.parametrize('seen', [
    lambda weights: 'x', lambda weights: {},
    lambda weights: jax.tree.map(lambda x: x[None], weights),
], ids=['text', 'nothing', 'an axis'])
def test_weights_that_a_party_reads_are_in_the_networks_shapes(seen):
  defense = Defense(expose=lambda state, key, k, weights: seen(weights))
  with pytest.raises(Misfit, match=r'expose must return weights as it gets '):
    played(defense)
  state = protocol.init(jax.random.key(0), VFL, none(), TXS, BATCH)
  with pytest.raises(Misfit, match=r'\(1, 1\) float32; it returned [^.]'):
    own_weights(jax.random.key(0), 1, defense, state)


def traced(defense=none(), **options):
  """An epoch of two rounds, of which only the shapes are computed."""
  plan = train.Plan(VFL, defense, TXS, 1, 3, **options)

  def run(key):
    return train.advance(plan, train.start(key, plan, BATCH), BATCH, 0, 1)

  return jax.eval_shape(run, jax.random.key(0))


def three(key, spec):
  """A memory of three numbers."""
  del key
  return slots(spec, state=jnp.zeros(3))


HOOKS = dict(
    a_column_of_labels=(
        dict(label=lambda state, key, labels: labels[:, 1:]),
        r'logits \(3, 2\) with labels \(3, 1\): label and prepare',
    ),
    numbers_of_classes=(
        dict(label=lambda state, key, labels: labels.argmax(-1)),
        r'label must return labels .* \(3, 2\); it returned \(3,\) int32',
    ),
    labels_of_three_axes=(
        dict(label=lambda state, key, labels: labels[..., None]),
        r'label must return labels .* \(3, 2\); it returned \(3, 2, 1\) flo',
    ),
    half_the_labels=(
        dict(prepare=lambda key, features, labels: labels[:4]),
        r'prepare must return labels .* \(6, 2\); it returned \(4, 2\) float32',
    ),
    no_memory=(
        dict(init=three, adapt=lambda state, *given: None),
        'adapt must return the state as init made it',
    ),
    more_memory=(
        dict(init=three, adapt=lambda state, *given: jnp.zeros(4)),
        r'adapt must .* in the shapes .* \(3,\) float32; it returned \(4,\) fl',
    ),
    other_memory=(
        dict(init=three, gradient=lambda state, key, cut, labels: (
            cut, jnp.zeros(2)
        )), 'gradient must return the state in the shapes',
    ),
    forgotten=(
        dict(init=three, epoch=lambda state, key, holdings: None),
        'epoch must return the state as init made it',
    ),
    one_embedding=(
        dict(receive=lambda active, state, key, up, labels: (up[0], 0.0)),
        'receive must return .* with a tuple of 2, one a passive party',
    ),
    one_embedding_of_two=(
        dict(receive=lambda active, state, key, up, labels: (up[:1], 0.0)),
        r'a tuple of 2, one a passive party; it returned \(\(3, 1\) float32,\)',
    ),
    no_penalty=(
        dict(receive=lambda active, state, key, up, labels: up[:1]),
        'receive must return .embeddings, penalty.',
    ),
    a_penalty_a_sample=(
        dict(receive=lambda active, state, key, up, labels: (
            up, up[0].mean(-1)
        )), r'penalty of receive must be one number, .* shape \(3,\)',
    ),
    a_loss_a_sample=(
        dict(objective=lambda state, key, predict, up, labels: (
            optax.softmax_cross_entropy(predict(up), labels)
        )), r'objective must return one number, .* shape \(3,\)',
    ),
    shared_in_part=(
        dict(share=lambda key, gradients: dict(bottom=gradients['bottom'])),
        'share must return gradients as it gets them',
    ),
    half_a_batch=(
        dict(batch=lambda key, batch: jax.tree.map(lambda x: x[:2], batch)),
        'batch must return a Batch.* of the shapes',
    ),
    no_batch=(
        dict(batch=lambda key, batch: batch.features), 'batch must return a B',
    ),
    no_net=(
        dict(bottom=lambda state, k, net: None),
        'bottom must return a Net; it returned NoneType',
    ),
    no_top=(
        dict(top=lambda net: net.apply),
        'top must return a Net; it returned function',
    ),
    complex_shares=(
        dict(share=lambda key, gradients: jax.tree.map(
            lambda x: x + 1j, gradients
        )), 'share must return gradients as it gets them, .* each real',
    ),
    whole_labels=(
        dict(prepare=lambda key, features, labels: labels.astype(jnp.int32)),
        r'prepare must return labels of floats .*; it returned \(6, 2\) int32',
    ),
    labels_in_lists=(
        dict(label=lambda state, key, labels: [[0.5, 0.5]] * 99),
        r'label must return labels .* \(3, 2\); it returned list\.',
    ),
    no_logits=(
        dict(decode=lambda state, logits: None), 'decode must return logits',
    ),
)


@pytest.mark.parametrize('hook', HOOKS)
def test_a_wrong_result_is_told_by_the_hooks_name(hook):
  wrong, message = HOOKS[hook]
  with pytest.raises(ValueError, match=message):
    traced(Defense(**wrong))


def test_in_a_chain_too():
  wrong, message = HOOKS['a_column_of_labels']
  with pytest.raises(ValueError, match=message):
    traced(chain(none(), Defense(**wrong)))


def test_labels_may_have_a_column_more_if_the_top_has():
  """And whoever decodes takes it away."""
  three_classes = algorithms.vlr(3, 3)
  wide = Defense(
      top=lambda net: three_classes.top, label=lambda state, key, labels: (
          jnp.pad(labels, ((0, 0), (0, 1)))
      ), decode=lambda state, logits: logits[:, :2],
  )
  plan = train.Plan(three_classes, wide, TXS, 1, 3)
  jax.eval_shape(
      lambda key: train.start(key, plan, BATCH), jax.random.key(0)
  )


def test_a_memory_may_be_a_plain_number():
  before, after = State((), 0), State((), jnp.asarray(1))
  of_defenses._check_round('mine', before, after, None)
  with pytest.raises(ValueError, match='shapes or types of what is carried'):
    of_defenses._check_round('mine', before, State((), jnp.ones(1)), None)


def at_inference(turn):
  """A defense whose `receive` returns turn(up) where there are no labels."""
  return Defense(receive=lambda active, state, key, up, labels: (
      turn(up) if labels is None else (up, 0.0)
  ))


@pytest.mark.parametrize('turn, message', [
    (lambda up: up, r'it returned \(6, 1\) float32, \(6, 1\) float32\.'),
    (lambda up: (up[:1], 0.0), 'with a tuple of 2, one a passive party'),
    (lambda up: (tuple(u.mean(0, keepdims=True) for u in up), 0.0),
     r'a row for each sample of \(6, 1\) float32; it returned \(1, 1\) float'),
])
def test_a_wrong_result_at_inference_is_told(turn, message):
  """Logits were made of what was there, or of a row for all samples."""
  wrong = at_inference(turn)
  state, _ = played(wrong)
  with pytest.raises(ValueError, match=f'receive must return .*{message}'):
    protocol.predict(jax.random.key(2), VFL, wrong, state, BATCH.features)


def test_a_wrong_message_at_inference_is_told():
  state, _ = played(none())
  wrong = Defense(send=lambda passive, key, u: (u[:1], 0.0))
  with pytest.raises(ValueError, match='send must return floats in the shape'):
    protocol.embed(jax.random.key(2), VFL, wrong, state, 1, X[:, 1:2])


@pytest.mark.parametrize('wrong, message', [
    (at_inference(lambda up: up)._asdict(), 'mine: receive must return'),
    (dict(init=three, epoch=lambda state, key, has: None), 'mine: epoch must'),
    (dict(prepare=lambda key, x, labels: labels[1:]), 'mine: prepare must'),
    (dict(gradient=lambda state, key, cut, labels: (cut[0], state)),
     'mine: gradient must return'),
])
def test_contracts_ask_for_the_same(wrong, message):
  def mine():
    return Defense(**wrong)

  with pytest.raises(ValueError, match=message):
    contracts.check_defense(mine)


def test_more_parties_than_a_message_lists():
  """Their gradients are compared nevertheless."""
  cut = (X,) * 40
  own = lambda cut: checked(Defense(gradient=lambda *given: (cut, ()))).gradient
  own([*cut])((), None, cut, None)
  for wrong in (cut[1:], (X[1:], *cut[1:])):
    with pytest.raises(ValueError, match='gradient must return a tuple of '):
      own(wrong)((), None, cut, None)


def test_facts_have_names():
  unnamed = Defense(facts=lambda state: jnp.zeros(()))
  with pytest.raises(ValueError, match='mine: facts must return a dict'):
    of_defenses._check_facts('mine', unnamed, State((), ()))


@pytest.mark.parametrize('fact', ['loss', 'accuracy', 'auc', 'alone_auc'])
def test_a_fact_does_not_take_the_place_of_utility(fact):
  mine = Defense(facts=lambda state: {fact: jnp.zeros(())})
  for ask in (
      lambda: of_defenses._check_facts('mine', mine, State((), ())),
      lambda: rehearsal.check_facts('mine', mine, ()),
  ):
    with pytest.raises(ValueError, match=f'Call it otherwise: own_{fact}'):
      ask()


def test_two_of_a_chain_do_not_have_one_fact():
  kept = Defense(facts=lambda state: dict(kept=jnp.zeros(())))
  with pytest.raises(ValueError, match="two defenses have a fact 'kept'"):
    chain(kept, kept).facts(((), ()))


LIES = dict(
    no_messages=(
        dict(send=lambda state, key, own: ()),
        "adversary's send must return a tuple of arrays in the shapes",
    ),
    an_array=(
        dict(send=lambda state, key, own: own[0]), r'single party: \(array,\)'
    ),
    a_row=(
        dict(receive=lambda state, key, own: (own[0][0],)),
        r"adversary's receive must .* \(\(3, 1\),\); it returned \(\(1,\),\)",
    ),
    two=(
        dict(receive=lambda state, key, own: own * 2), "adversary's receive"
    ),
    half=(
        dict(features=lambda state, key, own: (own[0][:1],)),
        "adversary's features",
    ),
    fewer_samples=(
        dict(rows=lambda key, numbers: numbers[:2]), r'of shape \(3,\); it ret'
    ),
    halves_of_samples=(
        dict(rows=lambda key, numbers: numbers / 2), 'whole ones'
    ),
)


@pytest.mark.parametrize('lie', LIES)
def test_a_lie_of_another_shape_is_told(lie):
  hooks, message = LIES[lie]
  with pytest.raises(ValueError, match=message):
    traced(adversary=Adversary((1,), **hooks))


@pytest.mark.parametrize('parties', [(0,), (3,), 1, (True,)])
def test_only_passive_parties_deviate(parties):
  with pytest.raises(ValueError, match='passive parties, 1 to the last'):
    traced(adversary=Adversary(parties, send=lambda state, key, own: own))


@pytest.mark.parametrize('fn', [
    lambda d: None, lambda d: 0.5, lambda d: [[0.5]] * 6, lambda d: d[:2],
    lambda d: d.sum(), lambda d: jnp.hstack([d, d]), lambda d: d + 1j,
    lambda d: d.T,  # Its rows would be other samples'.
])
def test_a_wrong_gradient_of_each_is_told(fn):
  with pytest.raises(ValueError, match=r'each: .* \(6, 1\); it returned'):
    played(Defense(gradient=each(lambda key, d, labels: fn(d))))


def test_whole_numbers_of_each_are_gradients():
  sign = lambda to: Defense(
      gradient=each(lambda key, d, labels: jnp.sign(d).astype(to))
  )
  down = [
      played(sign(to))[1].messages.down[0]
      for to in (jnp.float32, jnp.int8, jnp.bfloat16)
  ]
  assert (jnp.abs(down[0]) == 1).all()
  for d in down[1:]:
    assert d.dtype == jnp.float32 and (d == down[0]).all()


@pytest.mark.parametrize('wrong', [
    lambda u: None, lambda u: 0.5, lambda u: [[0.5]] * 6, lambda u: u[:2],
    lambda u: u.astype(jnp.int32), lambda u: u + 1j,
])
def test_messages_are_floats_of_these_rows(wrong):
  send = lambda passive, key, u: (wrong(u), 0.0)
  receive = lambda active, state, key, up, labels: (
      tuple(map(wrong, up)), 0.0
  )
  for hook, of in (
      (dict(send=send), 'in the shape of'),
      (dict(receive=receive), 'a row for each sample of'),
  ):
    name, = hook
    with pytest.raises(ValueError, match=(
        rf'{name} must return floats,? {of} \(6, 1\) float32; it returned'
    )):
      played(Defense(**hook))


def test_a_message_keeps_its_width():
  """The top's weights are made for what bottoms return."""
  wider = lambda passive, key, u: (jnp.tile(u, 2), 0.0)
  with pytest.raises(ValueError, match=r'\(6, 2\) float32. Another width is'):
    played(Defense(send=wider))


@pytest.mark.parametrize('number', [None, 'one', 1j, jnp.ones(2)])
def test_a_penalty_and_a_loss_are_numbers(number):
  for hook, message in (
      (dict(send=lambda passive, key, u: (u, number)), 'penalty of send must'),
      (dict(objective=lambda *arguments: number), 'objective must return one'),
  ):
    with pytest.raises(ValueError, match=message):
      played(Defense(**hook))


@pytest.mark.parametrize('hook', ['label', 'prepare'])
def test_labels_are_real(hook):
  wrong = Defense(**{hook: lambda *arguments: arguments[-1] + 1j})
  with pytest.raises(ValueError, match=f'{hook} must return labels .*complex'):
    traced(wrong)


@pytest.mark.parametrize('to', [jnp.int32, jnp.bfloat16])
@pytest.mark.parametrize('hook', ['adapt', 'gradient', 'epoch'])
def test_a_memory_keeps_its_type(hook, to):
  """JAX told it in a page about loops that nobody had written."""
  call = dict(
      adapt=lambda state, *rest: state.astype(to),
      gradient=lambda state, key, cut, labels: (cut, state.astype(to)),
      epoch=lambda state, key, holdings: state.astype(to),
  )[hook]
  wrong = Defense(
      init=lambda key, spec: slots(spec, state=jnp.ones(2)), **{hook: call}
  )
  with pytest.raises(ValueError, match=f'{hook} must .* types that init gave'):
    traced(wrong)


def test_weights_are_floats():
  made = lambda weight: Defense(
      init=lambda key, spec: slots(spec, active=dict(w=weight))
  )
  for right in (0.5, jnp.ones(2, jnp.bfloat16)):
    traced(made(right))
  with pytest.raises(ValueError, match=r'a weight of \(2,\) int32, which can'):
    traced(made(jnp.ones(2, jnp.int32)))


def test_a_plain_memory_is_widened():
  """As JAX does it itself: 0 in `init`, halves later."""
  run, _ = traced(Defense(
      init=lambda key, spec: slots(spec, state=0),
      adapt=lambda state, *rest: state + jnp.float32(0.5),
  ))
  assert run.state.defense.dtype == jnp.float32
