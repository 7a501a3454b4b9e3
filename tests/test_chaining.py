"""Several defenses as one: each with its own luck, in the order given."""
import jax
import jax.numpy as jnp
import numpy as np

import pytest

from tests.contracts import TXS, WIDTH, batch, federation, make
from vfljax import protocol, train
from vfljax.defense import Defense, Spec, chain, none, slots
from vfljax.defenses import fedpass, vmask
from vfljax.defenses.dp_gaussian import dp_gaussian

KEY = jax.random.key(0)
U = jnp.ones((4, WIDTH))


def probe(seen):
  """A defense that notes every key that it is given, by hook."""

  def noting(name, out):
    def hook(key, *others):
      seen.append((name, jax.random.key_data(key).tolist()))
      return out(*others)

    return hook

  second = lambda hook: lambda first, key, *rest: hook(key, first, *rest)
  return Defense(
      init=noting('init', slots),
      prepare=noting('prepare', lambda features, labels: labels),
      batch=noting('batch', lambda whole: whole),
      send=second(noting('send', lambda own, u: (u, 0.0))),
      label=second(noting('label', lambda state, labels: labels)),
      adapt=second(noting('adapt', lambda state, *_: state)),
      receive=lambda active, state, key, up, labels: noting(
          'receive', lambda: (up, 0.0)
      )(key),
      gradient=second(noting('gradient', lambda state, cut, _: (cut, state))),
      share=noting('share', lambda gradients: gradients),
      epoch=second(noting('epoch', lambda state, has: state)),
      expose=second(noting('expose', lambda state, k, weights: weights)),
  )


def test_every_hook_of_each_has_a_key_of_its_own():
  seen = []
  both, two = chain(probe(seen), probe(seen)), ((), ())
  spec = Spec((jax.ShapeDtypeStruct(U.shape, U.dtype),), 2, federation())
  both.init(KEY, spec)
  both.prepare(KEY, None, batch().labels)
  both.batch(KEY, batch())
  both.send(two, KEY, U)
  both.label(two, KEY, batch().labels)
  both.adapt(two, KEY, None, (U,), None)
  both.receive(two, two, KEY, (U,), None)
  both.gradient(two, KEY, (U,), None)
  both.share(KEY, {})
  both.epoch(two, KEY, None)
  both.expose(two, KEY, 1, {})
  names = [name for name, _ in seen]
  assert names == [name for name in dict.fromkeys(names) for _ in range(2)]
  assert len(set(names)) == 11
  for i in range(0, len(seen), 2):
    assert seen[i][1] != seen[i + 1][1], seen[i][0]


def test_noise_upon_noise_adds_as_independent_noise_does():
  noise = dp_gaussian(1.0, clip_norm=None)
  cut = (jnp.zeros((4000, 2)),)
  labels = jax.nn.one_hot(jnp.arange(4000) % 2, 2)
  (d,), _ = chain(noise, noise).gradient(((), ()), KEY, cut, labels)
  # One draw taken twice would have a deviation of 2.
  np.testing.assert_allclose(np.std(d), np.sqrt(2), rtol=0.03)


def test_the_second_gets_what_the_first_made():
  add = Defense(gradient=lambda s, k, cut, y: ((cut[0] + 1,), s + 1))
  double = Defense(gradient=lambda s, k, cut, y: ((2 * cut[0],), s + 10))
  (d,), kept = chain(add, double).gradient((0, 0), KEY, (U,), None)
  np.testing.assert_array_equal(d, 2 * (U + 1))
  assert kept == (1, 10)


def step(change, penalty):
  """A defense that changes whatever a hook is given."""
  return Defense(
      prepare=lambda key, features, labels: change(labels),
      batch=lambda key, whole: change(whole),
      bottom=lambda state, k, net: change(net),
      top=change,
      send=lambda own, key, u: (change(u), penalty),
      label=lambda state, key, labels: change(labels),
      receive=lambda active, state, key, up, labels: (change(up), penalty),
      share=lambda key, gradients: change(gradients),
      decode=lambda state, logits: change(logits),
      expose=lambda state, key, k, weights: change(weights),
      lent=lambda state, k: (state, k, penalty),
      facts=lambda state: {f'of {penalty}': state},
  )


def test_every_hook_builds_upon_what_the_one_before_made():
  both = chain(step(lambda x: x + 1, 1), step(lambda x: 2 * x, 10))
  two = ('one', 'other')
  in_order = [
      both.prepare(KEY, None, 3), both.batch(KEY, 3), both.bottom(two, 1, 3),
      both.top(3), both.send(two, KEY, 3)[0], both.label(two, KEY, 3),
      both.receive(two, two, KEY, 3, None)[0], both.share(KEY, 3),
  ]
  assert in_order == [2 * (3 + 1)] * 8
  undone = both.decode(two, 3), both.expose(two, KEY, 1, 3)
  assert undone == (2 * 3 + 1,) * 2
  assert both.send(two, KEY, 3)[1] == 11
  assert both.receive(two, two, KEY, 3, None)[1] == 11
  assert both.lent(two, 2) == (('one', 2, 1), ('other', 2, 10))
  assert both.facts(two) == {'of 1': 'one', 'of 10': 'other'}


@pytest.mark.parametrize('names, said', [
    (('gafm', 'coae'), 'Chain coae first'),
    (('multi_head', 'rvfr'), 'numbers a sample, but its top network got'),
    (('rvfr', 'multi_head'), 'cannot keep statistics'),
])
def test_networks_that_do_not_fit_are_refused_in_words(names, said):
  """Both put a top network in the place of the federation's."""
  both = chain(*map(make, names))
  with pytest.raises(ValueError, match=said):
    jax.eval_shape(lambda data: train.fit(
        jax.random.key(0), federation(), both, TXS, data, epochs=1,
        batch_size=8,
    ), batch())


def test_an_objective_has_the_memory_of_its_own_defense():
  whose = Defense(objective=lambda state, *others: state)
  assert chain(none(), whose).objective((1, 2), KEY, None, (), None) == 2


def test_weights_that_a_chain_trains_are_each_partys_own():
  u = jax.ShapeDtypeStruct(U.shape, U.dtype)
  of = lambda name: Defense(init=lambda key, spec: slots(
      spec, f'{name} 0', (f'{name} 1', f'{name} 2'), name
  ))
  made = chain(of('a'), of('b')).init(KEY, Spec((u, u), 2))
  assert made.active == ('a 0', 'b 0') and made.state == ('a', 'b')
  assert made.passive == (('a 1', 'b 1'), ('a 2', 'b 2'))


@pytest.mark.parametrize('first', ['fedpass', 'vmask'])
def test_what_is_read_of_nested_networks_is_what_they_compute_with(first):
  """Noise in the weights, passports on top of it, or the other way round."""
  parts = dict(
      fedpass=fedpass.fedpass(side='passive'),
      vmask=vmask.vmask(0.5, 'all', noise=0.3),
  )
  order = [first, *({*parts} - {first})]
  both, data = chain(*(parts[name] for name in order)), batch()
  state = protocol.init(KEY, federation(), both, TXS, data)
  memory = [*state.defense]
  at = order.index('vmask')  # All its layers are shown again.
  memory[at] = memory[at]._replace(
      masked=tuple(jnp.zeros_like(m) for m in memory[at].masked)
  )
  state = state._replace(defense=tuple(memory))
  own = state.parties[1].params['bottom']
  read = both.expose(state.defense, KEY, 1, own)
  x = data.features[1]
  sent = protocol.embed(KEY, federation(), both, state, 1, x)
  net = federation().bottom(1)
  np.testing.assert_allclose(net.apply(read, x), sent, rtol=1e-5, atol=1e-6)
  assert not np.allclose(net.apply(own, x), sent)
