"""Nothing crosses between parties but messages, and what does is caught."""
import functools

import jax
from jax.ad_checkpoint import checkpoint_name
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import DEFENSES, SAMPLES, TXS, batch, federation, make
from vfljax import algorithms, audit, crossing, ledger, nets, protocol, target
from vfljax.adversary import Adversary
from vfljax.defense import Defense, chain, none, slots
from vfljax.types import Batch

ROWS, PARTIES = 6, 3
VFL = algorithms.vhnn([nets.mlp(2, norm='batch', final='relu')] * 3,
                      nets.mlp(2))
TXS_OF_3 = (optax.sgd(0.1, 0.9),) * 3
SHAPES = Batch(
    tuple(jax.ShapeDtypeStruct((ROWS, 4), jnp.float32) for _ in range(3)),
    jax.ShapeDtypeStruct((ROWS, 2), jnp.float32),  # pyright: ignore
)


@pytest.mark.parametrize('name', DEFENSES)
def test_every_defense_sends_messages_and_nothing_else(name):
  found = audit.check(
      make(name), federation(), TXS, batch(), auxiliary=batch()
  )
  assert [c[:3] for c in found.crossing] == [
      (1, 'up', (SAMPLES, 6)), (1, 'down', (SAMPLES, 6))
  ]
  assert found.bytes_a_sample('up') == found.bytes_a_sample('down') == 24


def report(defense, adversary=protocol.HONEST, vfl=VFL):
  return audit.report(defense, vfl, TXS_OF_3, SHAPES, adversary)


def test_batch_statistics_and_adversaries_stay_within_parties():
  liars = Adversary(
      (1, 2), init=lambda key, own: own,
      features=lambda state, key, own: (own[1], own[0]),
      update=lambda state, key, sent, got: got,
  )
  for adversary in protocol.HONEST, liars:
    assert not report(none(), adversary).leaks
  alone = liars._replace(parties=(1,), features=lambda s, key, own: own)
  assert not report(none(), alone).leaks


class Stash:
  """What a hook should not do: it tells another hook what it was given."""

  said = None

  def tell(self, value):
    self.said = value


def labels_in_send(stash):
  def look(key, data):
    stash.tell(data.labels)
    return data

  return Defense(batch=look, send=lambda own, key, u: (
      u + stash.said[:, :1], jnp.zeros(())
  ))


def features_across(stash):
  def swap(key, data):
    own, one, two = data.features
    return data._replace(features=(own, one, one + two))

  return Defense(batch=swap)


def top_in_the_passive_update(stash):
  def look(state, key, predict, up, labels):
    stash.tell(predict(up).mean())
    return state

  return Defense(adapt=look, share=lambda key, gradients: jax.tree.map(
      lambda g: g + stash.said, gradients
  ))


def memory_at_a_passive_party(stash):
  """The network that hides the round's labels in what all parties compute."""
  def shifted(state, k, net):
    return net._replace(train=lambda p, key, x: (
        net.run(p, key, x)[0] + state, net.run(p, key, x)[1]
    ))

  return Defense(
      init=lambda key, spec: slots(spec, state=jnp.zeros(())), bottom=shifted,
      adapt=lambda state, key, predict, up, labels: labels[:, 0].mean(),
  )


def lent_memory_of_labels(stash):
  return memory_at_a_passive_party(stash)._replace(lent=lambda s, k: s)


def features_down(stash):
  def look(key, data):
    stash.tell(data.features[2])
    return data

  return Defense(batch=look, gradient=lambda state, key, cut, labels: (
      (cut[0] + stash.said[:, :2], cut[1]), state
  ))


def closed_over(stash):
  known = jnp.arange(ROWS * 2.0).reshape(ROWS, 2)
  return Defense(send=lambda own, key, u: (u + known, jnp.zeros(())))


def mask_of_a_class(stash):
  """A sum over some classes tells them, whatever it is marked as."""
  def look(key, data):
    stash.tell(crossing.rows(data.labels * jnp.array([1.0, 0.0])))
    return data

  return labels_in_send(stash)._replace(batch=look, send=lambda own, key, u: (
      u + stash.said[:, None], jnp.zeros(())
  ))


def message_to_another_party(stash):
  """What the active party may know the other passive one may not."""
  def adapt(state, key, predict, up, labels):
    stash.tell(up[0].mean())
    return state

  return top_in_the_passive_update(stash)._replace(adapt=adapt)


def classes_counted(stash):
  """Of a sum of rows the mark says nothing."""
  def look(key, data):
    stash.tell(checkpoint_name(data.labels.sum(0), crossing.ROWS))
    return data

  return mask_of_a_class(stash)._replace(batch=look, send=lambda own, key, u: (
      u + stash.said, jnp.zeros(())
  ))


def after_a_step(labels):
  """What a loop carries is the labels at first, and then no longer."""
  def step(carry, _):
    return carry * jnp.array([0.0, 1.0]), crossing.rows(carry)

  return jax.lax.scan(step, labels, None, length=2)[1][1]


def after_two_steps(labels):
  """The same by way of a second carry, which is put in the first one's place
  unchanged."""
  def step(carry, _):
    one, two = carry
    return (two * jnp.array([0.0, 1.0]), one), crossing.rows(two)

  start = labels, jnp.zeros_like(labels)
  return jax.lax.scan(step, start, None, length=4)[1][3]


def of_a_device(labels):
  """The sum over the classes that a device has of them."""
  mesh = jax.sharding.Mesh(jax.devices()[:2], ('i',))
  spec = jax.sharding.PartitionSpec
  part = jax.shard_map(
      lambda own: crossing.rows(own)[None], mesh=mesh, in_specs=spec(None, 'i'),
      out_specs=spec('i', None),
  )
  return part(labels)[1]


def one_at_a_time(labels):
  """Rows of a matrix that a loop takes a row of."""
  stacked = jnp.stack([labels, labels])
  return jax.lax.map(lambda own: crossing.rows(own * own[:1]), stacked)[0]


def telling(find):
  """A defense whose passive parties send what `find` makes of the labels."""
  def make(stash):
    def look(key, data):
      stash.tell(find(data.labels))
      return data

    return labels_in_send(stash)._replace(
        batch=look, send=lambda own, key, u: (
            u + stash.said[:, None], jnp.zeros(())
        ),
    )

  return make


def closed_over_columns(stash):
  known = jnp.arange(2.0 * ROWS).reshape(2, ROWS)
  return Defense(send=lambda own, key, u: (u + known.T, jnp.zeros(())))


@pytest.mark.parametrize('make, source, sink, place', [
    (telling(after_a_step), 'labels', 'message up, party 1', 'after_a_step'),
    (telling(after_two_steps), 'labels', 'message up, party 1', 'after_two'),
    (telling(of_a_device), 'labels', 'message up, party 1', 'of_a_device'),
    (telling(one_at_a_time), 'labels', 'message up, party 1', 'one_at_a_time'),
    (closed_over_columns, ledger.PER_ROW, 'message up, party 1', 'columns'),
    (message_to_another_party, 'message up, party 1', 'weights of party 2',
     'message_to'),
    (classes_counted, 'labels', 'message up, party 1', 'classes_counted'),
    (labels_in_send, 'labels', 'message up, party 1', 'labels_in_send'),
    (labels_in_send, 'labels', 'message up, party 2', 'labels_in_send'),
    (features_across, 'features of party 1', 'message up, party 2', 'swap'),
    (top_in_the_passive_update, 'weights of party 0', 'weights of party 1',
     'top_in_the_passive_update'),
    (memory_at_a_passive_party, 'memory of the defense',
     'message up, party 1', 'memory_at'),
    (lent_memory_of_labels, 'labels', 'lent to party 1, 2', 'memory_at'),
    (features_down, 'features of party 2', 'message down, party 1',
     'features_down'),
    (closed_over, ledger.PER_ROW, 'message up, party 1', 'closed_over'),
    (mask_of_a_class, 'labels', 'message up, party 1', 'mask_of_a_class'),
])
def test_a_leak_is_caught_with_its_way(make, source, sink, place):
  defense = make(Stash())
  with pytest.raises(ValueError) as caught:
    audit.check(defense, VFL, TXS_OF_3, SHAPES)
  lines = [
      line for line in str(caught.value).splitlines()
      if line.startswith(f'  {source} -> ') and line.endswith(sink)
  ]
  assert len(lines) == 1, caught.value
  assert place in lines[0] and '.py:' in lines[0]


def test_what_attackers_remember_is_not_for_others():
  stash = Stash()
  liar = Adversary((1,), init=lambda key, own: own, features=lambda s, key, x: (
      stash.tell(s[0]) or x
  ))
  told = Defense(send=lambda own, key, u: (
      u + stash.said[:, :2], jnp.zeros(())
  ))
  assert {(leak.source, leak.sink) for leak in report(told, liar).leaks} == {
      (ledger.EVIL, 'message up, party 2')
  }


def test_what_is_lent_to_an_attacker_its_friends_may_know():
  lent = Defense(
      init=lambda key, spec: slots(spec, state=jnp.zeros(())),
      bottom=lambda state, k, net: net if k != 1 else net._replace(
          train=lambda p, key, x: (net.run(p, key, x)[0] + state, net.run(
              p, key, x
          )[1])
      ), lent=lambda state, k: state if k == 1 else (),
  )
  friends = Adversary(
      (1, 2), init=lambda key, own: jnp.zeros((ROWS, 2)),
      update=lambda state, key, sent, got: sent[0],
  )
  found = report(lent, friends)
  assert found.borrowers == (1,) and not found.leaks
  stranger = friends._replace(parties=(2,), update=lambda s, key, sent, got: s)
  assert not report(lent, stranger).leaks


def test_a_leak_that_a_chain_hides_is_caught():
  hidden = chain(none(), labels_in_send(Stash()), make('iso'))
  assert {leak.source for leak in report(hidden).leaks} == {'labels'}


@pytest.mark.parametrize('name', ['fedpass', 'vmask'])
def test_what_parties_share_has_to_be_declared(name):
  secret = make(name)._replace(lent=Defense().lent)
  found = audit.report(
      secret, federation(), TXS, batch(), auxiliary=batch()
  )
  assert {leak.source for leak in found.leaks} == {ledger.MEMORY}
  both = chain(make('none'), make(name))
  audit.check(both, federation(), TXS, batch(), auxiliary=batch())


def of_auxiliary(key, spec):
  """Passive party 1 begins with a mean of the active party's own samples."""
  told = spec.auxiliary.features[0].mean(0)
  return slots(spec, passive=(told, ()))


def lent_of_auxiliary(key, spec):
  return slots(spec, state=spec.auxiliary.labels.mean())


@pytest.mark.parametrize('init, sink, lent', [
    (of_auxiliary, 'weights of party 1', Defense().lent),
    (lent_of_auxiliary, 'memory of the defense, lent to party 2',
     lambda state, k: state if k == 2 else ()),
])
def test_nobody_begins_with_what_is_the_active_partys(init, sink, lent):
  leak, = audit.report(
      Defense(init=init, lent=lent), VFL, TXS_OF_3, SHAPES, auxiliary=SHAPES
  ).leaks
  assert (leak.source, leak.sink) == (ledger.AUXILIARY, sink)
  assert init.__name__ in leak.path[0]


def test_what_is_handed_on_between_epochs_is_told():
  """By party, of what each of them does not know."""
  def epoch(state, key, has):
    weights, *_ = jax.tree.leaves(has.params['top'])
    return state | dict(
        a=state['a'] + weights.sum(),
        b=state['ours'] + has.auxiliary.labels.sum(),
    )

  made = Defense(
      init=lambda key, spec: slots(
          spec, state=dict.fromkeys(('ours', 'a', 'b'), jnp.zeros(()))
      ), epoch=epoch, lent=lambda state, k: state[' ab'[k]],
  )
  found = audit.check(made, VFL, TXS_OF_3, SHAPES, auxiliary=SHAPES)
  assert found.handed == (
      (1, ('weights of party 0',)), (2, (ledger.AUXILIARY, ledger.MEMORY)),
  )
  assert found.made_anew_of == (
      ledger.AUXILIARY, ledger.MEMORY, 'weights of party 0'
  )
  kept = made._replace(epoch=lambda state, key, has: state)
  assert not audit.check(kept, VFL, TXS_OF_3, SHAPES).handed


def test_marks_are_gone_in_the_compiled_program(monkeypatch):
  """Letter by letter what is handed to the compiler is what it was."""
  state = jax.eval_shape(
      lambda key, data: protocol.init(key, VFL, make('mixup'), TXS_OF_3, data),
      jax.random.key(0), SHAPES,
  )

  def lowered():
    def play(key, state, data):
      return protocol.play_round(
          key, VFL, make('mixup'), TXS_OF_3, state, data
      )

    return jax.jit(play).lower(jax.random.key(0), state, SHAPES).as_text()

  marked = lowered()
  monkeypatch.setattr(crossing, 'checkpoint_name', lambda x, name: x)
  assert lowered() == marked


def test_a_round_without_marks_is_not_passed(monkeypatch):
  monkeypatch.setattr(crossing, 'checkpoint_name', lambda x, name: x)
  with pytest.raises(ValueError, match='No mark'):
    report(none())


@pytest.mark.parametrize('way', ['up', 'down'])
def test_nor_is_one_that_marks_one_way_alone(way, monkeypatch):
  monkeypatch.setattr(crossing, 'checkpoint_name', lambda x, name: (
      x if f' {way},' in name else checkpoint_name(x, name)
  ))
  with pytest.raises(ValueError, match=f'No mark of message {way}, party 1'):
    report(none())


def test_rows_are_those_that_came_in_whatever_is_made_of_the_labels():
  """What a party counts cannot tell which labels a hook has left."""
  def send(own, key, u):
    return u + crossing.counted(u)[:, None], jnp.zeros(())

  def first_class(key, data):
    return data._replace(labels=data.labels * data.labels[:, :1])

  defense = Defense(batch=first_class, send=send)
  assert not report(defense).leaks
  shapes = jax.eval_shape(lambda: protocol.init(
      jax.random.key(0), VFL, defense, TXS_OF_3, SHAPES
  ))
  state = jax.tree.map(lambda x: np.ones(x.shape, x.dtype), shapes)

  @jax.jit
  def up(labels):
    data = Batch((np.ones((ROWS, 4), np.float32),) * 3, labels)
    return protocol.play_round(
        jax.random.key(0), VFL, defense, TXS_OF_3, state, data
    )[1].messages.up[0]

  one_hot = np.eye(2, dtype=np.float32)
  one, other = (up(one_hot[y]) for y in ([0] * 6, [0, 1, 0, 1, 1, 0]))
  np.testing.assert_array_equal(one, other)


def test_a_matrix_as_long_as_a_round_by_chance_is_no_leak():
  """Winograd's have 4, 9 and 16 rows, and so may a batch."""
  known = np.arange(2.0 * ROWS, dtype=np.float32).reshape(ROWS, 2)
  found = report(Defense(
      send=lambda own, key, u: (u @ known.T @ known, jnp.zeros(()))
  ))
  assert ((ROWS, 2), 'float32') in found.constants and not found.leaks


def test_what_python_is_asked_is_not_followed():
  """Between two of its calls a hook could carry anything."""
  def ask(u):
    return jax.pure_callback(
        lambda x: x, jax.ShapeDtypeStruct(u.shape, u.dtype), u
    )

  one_by_one = lambda u: jax.lax.map(ask, u)
  for asked in (ask, jax.jit(ask), jax.checkpoint(ask), one_by_one):
    share = functools.partial(jax.tree.map, asked)
    with pytest.raises(ValueError, match='pure_callback'):
      report(Defense(share=lambda key, g, share=share: share(g)))


@pytest.mark.parametrize('kind', target.KINDS)
def test_a_round_is_clean_for_whatever_device_it_is_meant(kind):
  with target.tracing_for(kind):
    assert not report(none()).leaks


def test_a_hook_cannot_mark_a_message():
  launder = Defense(send=lambda own, key, u: (
      crossing.sent('up', (u,))[0], jnp.zeros(())
  ))
  with pytest.raises(ValueError, match='twice'):
    report(launder)


def test_marks_and_parties_that_are_none():
  """No audit would know the mark, and the leak would not be told."""
  u = jnp.zeros((3, 2))
  for direction in ('upp', '', None):
    with pytest.raises(ValueError, match="direction must be one of 'up', 'dow"):
      crossing.sent(direction, (u,))
  for k in (0, -1, 1.5, True):
    with pytest.raises(ValueError, match='k must be an integer'):
      crossing.name('up', k)
  for labels in (u[0], u[None]):
    with pytest.raises(ValueError, match=r'labels must be \[batch, classes\]'):
      crossing.rows(labels)
  for count in (0, -1, 1.5, True):
    with pytest.raises(ValueError, match='parties must be an integer'):
      ledger.Ledger(count, (), 4)
    with pytest.raises(ValueError, match='rows must be an integer'):
      ledger.Ledger(3, (), count)
  for liar in (0, 3, -1, 1.5, True):
    with pytest.raises(ValueError, match='A party that deviates must be an i'):
      ledger.Ledger(3, (liar,), 4)
  for k in (3, -1, 1.5, True):
    with pytest.raises(ValueError, match='k must be an integer'):
      ledger.Ledger(3, (), 4).own('features', k)
