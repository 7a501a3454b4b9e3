"""One of several defenses, by its number."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import defenses, switching
from vfljax.check import Misfit
from vfljax.defense import Defense, Spec, each, none, slots
from vfljax.defenses.gradient_compression import gradient_compression

KEY = jax.random.key(3)
CUT = (jnp.arange(12.0).reshape(4, 3) / 7, jnp.ones((4, 2)))
LABELS = jax.nn.one_hot(jnp.array([0, 1, 1, 0]), 2)


def ready(name):
  method = defenses.REGISTRY[name]
  return method(*method.strengths[:1])


PREPARING = 'kdk', 'label_dp'
ALIKE = [
    n for n in defenses.REGISTRY
    if switching.can_be_one(ready(n)) and n not in PREPARING
]


def test_who_can_be_one_of_several():
  assert all(switching.can_be_one(ready(name)) for name in PREPARING)
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
    switching.one_of(0, [none(), ready('dcor')])


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
