"""One of several defenses, by its number."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import defenses, switching
from vfljax.defense import none

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
