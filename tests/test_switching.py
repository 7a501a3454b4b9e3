"""One of several defenses, by its number."""
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import defenses, switching
from vfljax.check import Misfit
from vfljax.defense import Defense, Spec, each, none, slots
from vfljax.defenses.gradient_compression import gradient_compression
from vfljax.defenses.mid import mid

KEY = jax.random.key(3)
CUT = (jnp.arange(12.0).reshape(4, 3) / 7, jnp.ones((4, 2)))
LABELS = jax.nn.one_hot(jnp.array([0, 1, 1, 0]), 2)


def ready(name):
  method = defenses.REGISTRY[name]
  return method(*method.strengths[:1])


PREPARING = 'kdk', 'label_dp'
RECEIVING = 'dcor', 'mid'
ALIKE = [
    n for n in defenses.REGISTRY
    if switching.can_be_one(ready(n)) and n not in (*PREPARING, *RECEIVING)
]
SPEC = Spec(tuple(jax.eval_shape(lambda: CUT)), 2)


def test_who_can_be_one_of_several():
  assert all(switching.can_be_one(ready(name)) for name in PREPARING)
  for name in RECEIVING:
    assert switching.can_be_one(ready(name))
    assert switching.receives(ready(name))
  assert not any(switching.receives(ready(name)) for name in ALIKE)
  assert set(ALIKE) == {
      'none', 'discrete_sgd', 'dp_gaussian', 'dp_laplace',
      'gradient_compression', 'iso', 'marvell', 'max_norm', 'ppdl',
      'residue_mask',
  }


@pytest.mark.slow
def test_each_does_what_it_does_alone():
  members = [ready(name) for name in ALIKE]

  @jax.jit
  def sent(which):
    chosen = switching.one_of(which, members)
    return chosen.gradient((), KEY, CUT, LABELS)

  @jax.jit
  def alone():
    return [member.gradient((), KEY, CUT, LABELS)[0] for member in members]

  seen = []
  for i, expected in enumerate(alone()):
    cut, state = sent(i)
    assert state == ()
    for a, b in zip(cut, expected, strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    seen.append(np.asarray(cut[0]))
  different = {x.tobytes() for x in seen}
  assert len(different) >= len(members) - 1  # No mistaken branch.


def test_only_one_is_computed():
  """The others are branches, which a loop over trainings does not take."""
  members = [none(), ready('marvell')]
  traced = jax.make_jaxpr(
      lambda i: switching.one_of(i, members).gradient((), KEY, CUT, LABELS)
  )(0)
  names = [eqn.primitive.name for eqn in traced.eqns]
  assert 'cond' in names and 'while' not in names


def test_who_does_more_is_refused():
  with pytest.raises(ValueError, match='gradient only'):
    switching.one_of(0, [none(), ready('multi_head')])


MEMBERS = [none(), ready('mid'), ready('iso'), ready('dcor'), mid(0.3, scale=2)]


@pytest.fixture(scope='module')
def received():
  """(which, begun, labels) -> its embeddings and penalty, and the gradients of
  both with respect to weights and embeddings."""

  def play(which, active, labels):
    chosen = switching.one_of(which, MEMBERS)

    def total(active, up):
      up, penalty = chosen.receive(active, ((), ()), KEY, up, labels)
      return penalty + sum((u ** 2).sum() for u in up), (up, penalty)

    return jax.grad(total, (0, 1), has_aux=True)(active, CUT)

  return jax.jit(play)


@pytest.mark.parametrize('labels', [LABELS, None], ids=['trained', 'inferred'])
def test_each_receives_as_alone(received, labels):
  """With its own weights; those of the others get gradients of 0."""
  begun = switching.one_of(0, MEMBERS).init(KEY, SPEC)
  assert len(begun.active) == 3 and begun.active[1] == ()  # dCor has none.
  assert begun.state == ((), ()) and begun.passive == ((), ())
  for i, place in ((0, None), (1, 0), (2, None), (3, 1), (4, 2)):
    slopes, (up, penalty) = received(i, begun.active, labels)
    own = MEMBERS[i].init(KEY, SPEC).active
    for a, b in zip(
        jax.tree.leaves(own), jax.tree.leaves(begun.active[place or 0])
    ):
      np.testing.assert_array_equal(a, b)

    def total(active, up, i=i):
      up, penalty = MEMBERS[i].receive(active, (), KEY, up, labels)
      return penalty + sum((u ** 2).sum() for u in up), (up, penalty)

    expected, (heard, loss) = jax.jit(
        jax.grad(total, (0, 1), has_aux=True)
    )(own, CUT)
    for a, b in zip((*up, penalty), (*heard, loss), strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    for k, found in enumerate(slopes[0]):
      own = jax.tree.leaves(expected[0]) if k == place else itertools.repeat(0)
      for a, b in zip(jax.tree.leaves(found), own):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    for a, b in zip(slopes[1], expected[1], strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_nothing_is_between_where_nobody_receives_otherwise():
  """A program without such a defense is what it was."""
  plain = switching.one_of(0, [none(), ready('iso')])
  assert plain.receive is Defense().receive


def test_a_penalty_is_as_wide_as_embeddings():
  """One of float64 would lose digits; branches must agree."""
  half = tuple(u.astype(jnp.bfloat16) for u in CUT)
  given = Defense(receive=lambda active, state, key, up, labels: ([*up], 2))
  chosen = switching.one_of(jnp.int32(1), [none(), given])
  up, penalty = chosen.receive(((),), (), KEY, half, None)
  assert (penalty, penalty.dtype) == (2, jnp.float32)
  assert isinstance(up, tuple) and up[0].dtype == jnp.bfloat16
  with jax.enable_x64(True):
    wide = tuple(u.astype(jnp.float64) for u in CUT)
    _, penalty = chosen.receive(((),), (), KEY, wide, None)
    assert penalty.dtype == jnp.float64


@pytest.mark.parametrize('changed', [
    lambda u: u[:, :1], lambda u: u.astype(jnp.float16)
])
def test_other_shapes_are_refused_by_name(changed):
  narrow = Defense(receive=lambda active, state, key, up, labels: (
      tuple(map(changed, up)), 0.0
  ))
  chosen = switching.one_of(jnp.int32(0), [none(), narrow], ['none', 'mine'])
  with pytest.raises(Misfit, match='mine: to be one of several, receive must'):
    chosen.receive(((),), (), KEY, CUT, LABELS)


def test_slots_of_each_are_checked():
  wrong = Defense(init=lambda key, spec: slots(spec, (), ((),)))
  with pytest.raises(Misfit, match='weights for 1 passive parties'):
    switching.one_of(0, [none(), wrong]).init(KEY, SPEC)


def test_gradients_may_be_a_list():
  """As they may be where a defense has a program of its own."""
  halved = none()._replace(
      gradient=lambda state, key, cut, labels: ([g / 2 for g in cut], state)
  )
  both = switching.one_of(jnp.int32(1), [none(), halved])
  cut, state = both.gradient((), KEY, CUT, LABELS)
  assert state == ()
  np.testing.assert_allclose(cut[0], CUT[0] / 2)


def test_each_keeps_its_own_memory():
  """As alone, and nobody else's changes; one without a memory has no place."""
  members = [
      none(), gradient_compression(0.5, residual=True), ready('iso'),
      gradient_compression(0.2, residual=True),
  ]
  spec = Spec(tuple(jax.eval_shape(lambda: CUT)), 2)
  begun = switching.one_of(0, members).init(KEY, spec)
  assert (begun.active, begun.passive) == ((), ((), ()))
  assert len(begun.state) == 2
  for i, place in ((1, 0), (3, 1), (0, None)):
    chosen, alone = switching.one_of(i, members), members[i]
    state, own = begun.state, alone.init(KEY, spec).state
    for _ in range(2):
      cut, state = chosen.gradient(state, KEY, CUT, LABELS)
      expected, own = alone.gradient(own, KEY, CUT, LABELS)
      assert all(map(np.array_equal, cut, expected))
    for k in range(2):
      left = own if k == place else begun.state[k]
      assert all(map(np.array_equal, state[k], left))


def test_each_memory_is_begun_by_its_own_defense():
  remembering = lambda x: Defense(
      init=lambda key, spec: slots(spec, state=x),
      gradient=each(lambda key, d, labels: d),
  )
  members = [remembering(3), none(), remembering(5)]
  assert switching.one_of(0, members).init(KEY, Spec((), 2)).state == (3, 5)


def test_weights_that_nobody_gets_are_left_out():
  """They would be trained by all."""
  odd = Defense(
      init=lambda key, spec: slots(spec, active=jnp.ones(3), state=jnp.ones(2)),
      gradient=each(lambda key, d, labels: d),
  )
  begun = switching.one_of(0, [none(), odd]).init(KEY, Spec((), 2))
  assert begun.active == () and len(begun.state) == 1


@pytest.mark.parametrize('i', [0, 1, 2])
def test_labels_are_prepared_by_the_chosen_one(i):
  members = [none(), ready('label_dp'), ready('kdk')]
  labels, x = jnp.tile(LABELS, (16, 1)), jnp.arange(64.0)[:, None] / 64
  prepare = switching.one_of(jnp.int32(i), members).prepare
  assert prepare is not None
  own = members[i].prepare
  expected = own(KEY, x, labels) if own else labels
  np.testing.assert_allclose(prepare(KEY, x, labels), expected, atol=1e-5)
  assert i == 0 or (expected != labels).any()
  assert switching.one_of(0, [none(), ready('iso')]).prepare is None


def test_prepared_labels_of_another_type_or_number():
  half = Defense(prepare=lambda key, x, labels: labels.astype(jnp.float16))
  found = switching.one_of(1, [none(), half]).prepare(KEY, None, LABELS)
  assert found.dtype == LABELS.dtype
  more = Defense(prepare=lambda key, x, labels: jnp.ones((4, 3)))
  with pytest.raises(Misfit, match='mine: prepare must return as many columns'):
    switching.one_of(0, [none(), more], ['', 'mine']).prepare(KEY, None, LABELS)


@pytest.mark.parametrize('which', [2, -1, 0.5, True, jnp.int32(7)])
def test_there_is_none_of_another_number(which):
  """Past the last it was the last, and before the first it was the first."""
  with pytest.raises(ValueError, match=r'which must be a whole number'):
    switching.one_of(which, [none(), ready('iso')])


@pytest.mark.parametrize('members', [[], [none], (d for d in (none(), none))])
def test_what_is_no_defense_is_refused(members):
  with pytest.raises(ValueError, match='one_of: '):
    switching.one_of(0, members)


def test_whole_labels_are_softened_as_others():
  """Rounded to whole numbers again they were zeros: samples without a label."""
  members = [ready('kdk'), ready('label_dp')]
  soften = jax.jit(switching.one_of(0, members).prepare)
  x = jnp.arange(4.0)[:, None]
  np.testing.assert_array_equal(
      soften(KEY, x, LABELS.astype(int)), soften(KEY, x, LABELS)
  )
