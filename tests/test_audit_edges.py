"""What the audit follows beside a round, and what it used to take amiss."""
import functools

import jax
from jax import lax
from jax.experimental import buffer_callback
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import make
from vfljax import (
    algorithms, audit, contracts, crossing, flow, ledger, nets, protocol,
    samples, train, views,
)
from vfljax.contracts import luck, of_defenses, several
from vfljax.defense import Defense, chain, none, slots
from vfljax.types import Batch, Messages, Round

ROWS = 6
VFL = algorithms.vhnn([nets.mlp(2)] * 3, nets.mlp(2))
TXS = (optax.sgd(0.1),) * 3
SHAPES = Batch(
    tuple(jax.ShapeDtypeStruct((ROWS, 4), jnp.float32) for _ in range(3)),
    jax.ShapeDtypeStruct((ROWS, 2), jnp.float32),  # pyright: ignore
)
ZERO = jnp.zeros(())


def report(defense, batch=SHAPES):
  return audit.report(defense, VFL, TXS, batch, auxiliary=batch)


def ends(found):
  return {(leak.source, leak.sink) for leak in found.leaks}


def labels_kept(**hooks):
  """The active party's memory holds the share of a class."""
  return Defense(
      init=lambda key, spec: slots(spec, state=ZERO),
      adapt=lambda state, key, predict, up, labels: labels[:, 0].mean(),
      **hooks,
  )


def told_at_inference(state, k, net):
  """A network that adds the memory where it is not trained."""
  return net._replace(
      train=net.run, apply=lambda p, x: net.apply(p, x) + state
  )


def test_a_message_at_inference_is_followed():
  found = report(labels_kept(bottom=told_at_inference))
  assert ends(found) == {
      (ledger.MEMORY, f'message up, party {k}, at inference') for k in (1, 2)
  }
  assert 'told_at_inference' in found.leaks[0].path[0]


def test_a_prediction_is_made_of_messages():
  """And not of what another hook has seen of a party's weights."""
  seen = []

  def send(own, key, u):
    seen.append(own)
    return u + own, ZERO

  def decode(state, logits):
    return logits + (seen[-1] if seen else 0)

  found = report(Defense(
      init=lambda key, spec: slots(spec, passive=(ZERO, ZERO)),
      send=send, decode=decode,
  ))
  assert ends(found) == {('weights of party 2', 'a prediction')}


def test_a_prediction_without_marks_is_not_passed(monkeypatch):
  monkeypatch.setattr(protocol, 'predict', lambda *_: jnp.zeros((ROWS, 2)))
  with pytest.raises(ValueError, match='in the traced prediction'):
    report(none())


def test_a_view_shows_nothing_that_the_party_does_not_know():
  def expose(state, key, k, weights):
    return jax.tree.map(lambda x: x + state, weights)

  found = report(labels_kept(expose=expose))
  assert ends(found) == {
      (ledger.MEMORY, f'what party {k} reads') for k in (1, 2)
  }
  own = Defense(
      init=lambda key, spec: slots(spec, state=(ZERO, ZERO)),
      lent=lambda state, k: state[k - 1],
      expose=lambda state, key, k, w: expose(state[k - 1], key, k, w),
  )
  assert not report(own).leaks
  others = own._replace(
      expose=lambda state, key, k, w: expose(state[2 - k], key, k, w)
  )
  assert ends(report(others)) == {
      (f'{ledger.MEMORY}, lent to party {k}', f'what party {3 - k} reads')
      for k in (1, 2)
  }


def test_vmask_tells_a_party_which_of_its_layers_are_in_shares():
  secret = make('vmask')
  noise = secret._replace(lent=lambda state, k: state.offset[k - 1])
  assert ends(report(noise)) == {
      (ledger.MEMORY, f'what party {k} reads') for k in (1, 2)
  }
  assert not report(secret).leaks


def test_what_python_does_with_a_buffer_is_not_followed():
  def ask(u):
    shape = jax.ShapeDtypeStruct(u.shape, u.dtype)
    return buffer_callback.buffer_callback(
        lambda context, out, x: None, shape
    )(u)

  share = functools.partial(jax.tree.map, ask)
  with pytest.raises(ValueError, match='buffer_callback'):
    report(Defense(share=lambda key, g: share(g)))


@pytest.mark.parametrize('kind', ['bfloat16', 'float16'])
def test_labels_in_half_precision_are_no_leak(kind):
  labels = jax.ShapeDtypeStruct((ROWS, 2), kind)
  for name in 'none', 'mixup':
    assert not report(make(name), SHAPES._replace(labels=labels)).leaks


@pytest.mark.parametrize('one, other, same', [
    ('bfloat16', 'float32', True), ('float16', 'float32', True),
    ('float8_e4m3fn', 'float32', True), ('float32', 'bfloat16', False),
    ('float32', 'float16', False), ('bfloat16', 'float16', False),
    ('float16', 'bfloat16', False), ('float32', 'int32', False),
    ('int8', 'float32', False),
])
def test_a_wider_type_has_the_same_numbers(one, other, same):
  """What is rounded before its sum may tell the class."""
  taint, = flow.follow(
      jax.make_jaxpr(lambda x: lax.convert_element_type(x, other))(
          jnp.zeros(3, one)
      ), ['a'],
  )
  assert (taint['a'] is None) == same


@pytest.mark.parametrize('simple', [False, True])
def test_constants_are_found_where_jax_writes_them_into_equations(simple):
  known = jnp.arange(2.0 * ROWS).reshape(ROWS, 2)

  def solved(u):
    return lax.custom_linear_solve(
        lambda x: x * (known + 1), lax.stop_gradient(u),
        lambda _, b: b / (known + 1),
    )

  option = 'jax_use_simplified_jaxpr_constants'
  before = getattr(jax.config, option)
  for add in (lambda u: u + known), jax.jit(lambda u: u + known), solved:
    told = Defense(send=lambda own, key, u, add=add: (add(u), ZERO))
    jax.config.update(option, simple)
    try:
      found = report(told)
    finally:
      jax.config.update(option, before)
    assert ((ROWS, 2), 'float32') in found.constants
    assert {leak.source for leak in found.leaks} == {ledger.PER_ROW}


def soft():
  """Labels whose rows add up to 1.001 in the second class."""
  rows = np.tile(np.array([[1, 0], [0.001, 1]], np.float32), (3, 1))
  rows[-1] = 0
  return jnp.asarray(rows)


def test_which_rows_count_says_nothing_of_soft_labels():
  """Neither inside of a round nor in a view of it."""
  seen, x = [], jnp.ones((ROWS, 4))

  def send(own, key, u):
    seen.append(crossing.of_round())
    return u, ZERO

  data = Batch((x, x, x), soft())
  defense, key = Defense(send=send), jax.random.key(0)
  state = protocol.init(key, VFL, defense, TXS, data)
  with jax.ensure_compile_time_eval():
    protocol.play_round(key, VFL, defense, TXS, state, data)
  for rows in seen:
    assert rows is None or rows.tolist() == [1, 1, 1, 1, 1, 0]
  assert any(rows is not None for rows in seen)
  played = Round((), data, Messages((x,) * 2, (x,) * 2), ZERO, ())
  view = views.cut_gradients(1, played)
  assert view.valid.tolist() == [1, 1, 1, 1, 1, 0]


def hands_over(key, data):
  """One passive party's features, to the next if there is one."""
  own, one, *others = data.features
  return data._replace(features=(own, one, *(one + x for x in others)))


def test_a_defense_is_tried_with_two_passive_parties_that_may_leak():
  audit.check(
      Defense(batch=hands_over), of_defenses.federation(), of_defenses.TXS,
      of_defenses.batch(),
  )
  with pytest.raises(ValueError, match='features of party 1 -> .*hands_over'):
    several.check_crossing(Defense(batch=hands_over))
  with pytest.raises(ValueError, match='features of party 1 -> .*hands_over'):
    contracts.check_defense(lambda: Defense(batch=hands_over))
  for_one = Defense(init=lambda key, spec: slots(spec, passive=(ZERO,)))
  several.check_crossing(for_one)


def only_one_class(key, x, labels):
  return labels * labels[:, :1]


def all_labeled(key, x, labels):
  return jnp.maximum(labels, 0.5)


@pytest.mark.parametrize('prepare', [only_one_class, all_labeled])
def test_prepared_labels_have_the_same_rows(prepare):
  """All parties know which rows are samples, and would know the class."""
  labels = (soft() > 0.5).astype(jnp.float32)
  with pytest.raises(ValueError, match='mine: prepare must leave which rows'):
    samples.check_prepared(labels, prepare(0, 0, labels), 'mine')
  with pytest.raises(ValueError, match='prepare must leave which rows'):
    contracts.check_defense(lambda: Defense(prepare=prepare))
  x, defense = jnp.ones((ROWS, 4)), Defense(prepare=prepare)
  plan = train.Plan(VFL, defense, TXS, 1, ROWS)
  with pytest.raises(ValueError, match='^prepare must leave which rows'):
    train.start(jax.random.key(0), plan, Batch((x, x, x), labels))
  samples.check_prepared(labels, labels[:, ::-1])


def test_samples_may_be_mixed_twice():
  """The second time by rows that came in, not by labels that were mixed."""
  assert not report(chain(make('mixup'), make('mixup'))).leaks


def noisy(tree):
  """By the same key in every round."""
  draw = lambda x: x + jax.random.normal(jax.random.key(0), x.shape)
  return jax.tree.map(draw, tree)


def test_rows_of_the_message_that_hooks_get_are_multiples_of_the_first():
  """All different, and none is noise: what differs came from the hook."""
  first, *others = np.asarray(luck.message())
  assert len(others) > 1 and (first > 0).all()
  for times, one in enumerate(others, 2):
    np.testing.assert_allclose(one, times * first, rtol=1e-6)


@pytest.mark.parametrize('where, hooks', [
    ('a hook in the round', dict(share=lambda key, g: noisy(g))),
    ('a hook in the round', dict(
        batch=lambda key, b: b._replace(features=noisy(b.features))
    )),
    ('prepare', dict(prepare=lambda key, x, labels: noisy(labels))),
])
def test_no_hook_has_a_key_of_its_own(where, hooks):
  """Not even one whose luck is not tried alone."""
  begun = protocol.init(
      jax.random.key(0), luck.federation(), none(), luck.TXS, luck.batch()
  )
  with pytest.raises(ValueError, match=f'mine: {where} has a key of its own'):
    luck.check('mine', Defense(**hooks), begun)
