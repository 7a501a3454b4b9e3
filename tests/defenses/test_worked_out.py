"""Steps of defenses by numbers worked out by hand."""
import re

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import target
from vfljax.defense import Spec
from vfljax.defenses import (
    dcor, discrete_sgd, fedpass, fedpass_cut, gafm, label_dp, marvell,
    multi_head, plugvfl, ppdl, randomized, rvfr, vmask,
)
from vfljax.types import Net

KEY = jax.random.key(0)


def test_the_active_party_is_trusted_in_full():
  """One number each, which should be equal: 10 of its own against 0."""
  us = (jnp.full((3, 1), 10.0), jnp.zeros((3, 1)))
  where = jnp.zeros(2), jnp.full((2, 1), 0.5**0.5), jnp.full(2, 1e-4)
  (own, clean), (_, one, other) = jax.jit(lambda: (
      rvfr.purify(us, *where, steps=20),
      rvfr.purify((None, *us), *where, steps=20),
  ))()
  np.testing.assert_array_equal(own, us[0])
  np.testing.assert_allclose(clean, 10, atol=0.1)
  np.testing.assert_allclose(one, 5, atol=0.1)  # Nobody is to be believed.
  np.testing.assert_allclose(other, 5, atol=0.1)


def test_no_batch_of_equations_waits_for_itself():
  """On CPUs one system at a time is solved, elsewhere all; the same numbers.

  The solution by NumPy's solver is neither's.
  """
  rng = np.random.default_rng(0)
  matrices = rng.normal(size=(5, 3, 3)).astype(np.float32) + 3 * np.eye(3)
  vectors = rng.normal(size=(5, 3)).astype(np.float32)
  expected = np.linalg.solve(matrices, vectors[..., None])[..., 0]
  for platform, batched in ('cpu', False), ('cuda', True):
    with target.tracing_for(platform):
      solve = lambda *both: rvfr._solved(*both)
      traced = str(jax.make_jaxpr(solve)(matrices, vectors))
      found = jax.jit(solve)(matrices, vectors)
    solved = re.findall(r'f32\[([\d,]*)\] = triangular_solve', traced)
    assert solved and all(('5,' in x[:2]) == batched for x in solved), solved
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_negatives_of_a_batch_are_no_padding():
  labels = np.eye(3, dtype=np.float32)[np.arange(60) % 3]
  labels[:40] = 0
  drawn = np.asarray(jax.jit(
      lambda y: plugvfl._others(KEY, 'batch', jnp.zeros(3), y)
  )(labels))
  np.testing.assert_array_equal(drawn.sum(1), 1)
  assert (drawn.sum(0) > 5).all()


def test_marvells_moments_are_of_the_population():
  x = np.random.default_rng(0).normal(size=(7, 3))
  mask = np.arange(7) % 2 == 0
  count, center, spread = jax.jit(marvell._moments)(x, mask)
  assert count == 4
  np.testing.assert_allclose(center, x[mask].mean(0), rtol=1e-5)
  np.testing.assert_allclose(spread, x[mask].var(0).mean(), rtol=1e-5)


def test_padding_has_no_response():
  labels = np.diag(np.float32([1, 0, 1]))
  found = jax.jit(label_dp.flip)(KEY, labels, 0.5)
  np.testing.assert_array_equal(np.sum(found, 1), [1, 0, 1])


def test_the_bits_of_a_subset_are_its_parties():
  assert multi_head.absent('abc', 0b011) == ('a', 'b', None)
  assert multi_head.absent('abc', 0b100) == (None, None, 'c')


def test_a_party_is_there_whatever_the_signs_of_its_embeddings():
  """Which of four heads answers; only zeros are nobody."""
  numbered = Net(lambda key, us: (), lambda params, us: params)
  heads, u = multi_head.heads(numbered), jnp.ones((2, 3))
  for one, other, answers in ((-1, 0, 1), (0, -1, 2), (-1, -1, 3)):
    found = heads.apply(jnp.arange(4), (u, one * u, other * u))
    assert found == answers


def test_an_element_in_the_middle_of_a_bin_goes_down():
  """Zero mean, so that one bin's middle is 0 to the last digit."""
  end = 2 * (2 / 3) ** 0.5
  x = np.float32([[-1], [0], [1]])
  found = jax.jit(lambda x: discrete_sgd.discretize(x, 1))(x)
  np.testing.assert_allclose(found[:, 0], [-end, -end, end], rtol=1e-6)


def test_a_layers_mean_output_is_over_its_passports():
  layer = dict(kernel=jnp.array([[1.0, 2.0], [3.0, 4.0]]), bias=jnp.ones(2))
  found = fedpass.own_mean(layer, jnp.array([[1.0, 0.0], [3.0, 2.0]]))
  np.testing.assert_allclose(found, [2 + 3 + 1, 4 + 4 + 1], rtol=1e-6)


def test_every_partys_embeddings_are_kept_from_the_labels():
  """Labels correlate with themselves by 1; constants count as 1e-4."""
  labels = np.eye(2, dtype=np.float32)[np.arange(6) % 2]
  up = (labels, np.ones((6, 2), 'f4'), np.ones((6, 3), 'f4'))
  _, penalty = jax.jit(dcor.dcor(0.5).receive)((), (), KEY, up, labels)
  np.testing.assert_allclose(penalty, np.log(1e-4), rtol=1e-4)


def test_ppdl_releases_magnitudes_from_tau_on():
  own = ppdl.ppdl(1.0, 1e9, gamma=1e3, tau=10.0)
  d, labels = np.float32([[5.0, 20.0, -20.0]]), np.float32([[1.0, 0.0]])
  (found,), _ = jax.jit(own.gradient)((), KEY, (d,), labels)
  np.testing.assert_allclose(found, [[0, 20, -20]], atol=1e-3)


def test_ppdls_noise_grows_with_the_sensitivity():
  """The same luck: all noise is twice as large, and all are above tau."""
  d = np.full((4, 2), 1e3, np.float32)
  labels = np.eye(2, dtype=np.float32)[np.arange(4) % 2]
  sent = jax.jit(lambda size: ppdl.ppdl(
      1.0, 1.8, gamma=1e9, sensitivity=size
  ).gradient((), KEY, (d,), labels)[0][0])
  one, two = (sent(size) - d for size in (1.0, 2.0))
  np.testing.assert_allclose(two, 2 * one, rtol=1e-3)


def test_the_subspaces_dimensions_are_rounded():
  us = (None, jnp.zeros((5, 4)), jnp.zeros((5, 2)))
  shares = (0.3, 0.6, 0.7, 1.0, 0.01)
  assert [rvfr.dimensions(us, rank) for rank in shares] == [2, 4, 4, 6, 1]


def test_a_round_weighs_samples_by_the_median_distance():
  """Off a line at distances 1, 2 and 9, of which the last counts 2/9."""
  seen = dict(
      mean=np.zeros(2, 'f4'), square=np.diag(np.float32([8, 0])),
      weight=np.float32(2), rounds=np.float32(3),
  )
  u = np.array([[4.0, 1.0], [-2.0, 2.0], [1.0, -9.0]])
  weights = np.array([1, 1, 2 / 9])
  absorb = lambda seen, u: rvfr.absorbed(seen, (None, u), 1, 0.5)
  found = jax.jit(absorb)(seen, u.astype('f4'))
  np.testing.assert_allclose(found['weight'], 0.5 * 2 + weights.sum())
  np.testing.assert_allclose(found['mean'], weights @ u, atol=1e-5)
  square = 0.5 * np.diag([8, 0]) + (u.T * weights) @ u
  np.testing.assert_allclose(found['square'], square, rtol=1e-5)
  assert found['rounds'] == 4


def test_a_subspace_is_of_what_differs_from_the_mean():
  """Two points far from the origin, one above the other."""
  z = np.array([[10.0, 1.0], [10.0, -1.0]], np.float32)
  seen = dict(mean=z.sum(0), square=z.T @ z, weight=np.float32(2))
  mean, basis, rest = jax.jit(lambda seen: rvfr.subspace(seen, 1))(seen)
  np.testing.assert_allclose(mean, [10, 0], atol=1e-5)
  np.testing.assert_allclose(np.abs(basis[:, 0]), [0, 1], atol=1e-3)
  np.testing.assert_allclose(rest, 0, atol=1e-3)


def test_a_party_counts_by_squares_up_to_twice_what_is_usual():
  """Equal numbers are sent but one: Huber's point by hand, usual being 1."""
  ones = np.ones(3, np.float32)
  where = 0 * ones, 3**-0.5 * ones[:, None], ones
  purify = jax.jit(lambda us: rvfr.purify(us, *where, steps=40))
  for far, point in (2.7, 0.9), (6.0, 1.0):  # A third of it; 2 m = 2.
    us = (None, *(np.full((1, 1), x, 'f4') for x in (0.0, 0.0, far)))
    np.testing.assert_allclose(purify(us)[1], point, atol=1e-3)


def test_an_embedding_out_of_all_proportion_hides_no_outlier():
  """Nor does padding: neither in its own sample nor in the one beside it, which
  is recovered as in the last test."""
  ones = np.ones(3, np.float32)
  where = 0 * ones, 3**-0.5 * ones[:, None], ones
  us = np.float32([[0, 0], [0, 0], [6, 1e6]])[..., None]
  found = jax.jit(lambda us: rvfr.purify(us, *where, steps=40))((None, *us))
  np.testing.assert_allclose(found[1], 1, atol=1e-3)


def test_a_point_is_fitted_in_as_many_steps_as_it_was_asked():
  """The far party of the last test weighs 1/2 after the first step."""
  line = np.full((3, 3), 1 / 3)
  square = 9 * line + 1.5 * (np.eye(3) - line)  # 1 a party off the line.
  seen = dict(mean=np.zeros(3, 'f4'), square=square.astype('f4'),
              weight=np.float32(1), rounds=np.float32(0))
  us = (None, *(np.full((1, 1), x, 'f4') for x in (0.0, 0.0, 6.0)))
  plain = Net(lambda key, us: (), lambda _, us: rvfr.together(us))
  for steps, point in (1, 6 * 0.5 / 2.5), (40, 1.0):
    own = rvfr.Settings(1 / 3, False, 0, 0.9, steps)
    apply = jax.jit(rvfr.purifying(own, plain).apply)
    found = apply(dict(net=(), seen=seen), us)
    np.testing.assert_allclose(found, [[point] * 3], atol=1e-3)


def test_a_fixed_u_is_what_the_cross_entropy_pulls_towards():
  y, share = np.arange(8) % 2, np.linspace(0, 0.9, 8)
  f = np.linspace(0.2, 0.8, 8)
  own = gafm.gafm(0.4, part='ce', reading=gafm.Reading('none', redraw=False))

  def objective(f):
    hidden = randomized.hide(jnp.eye(2)[y], jnp.asarray(share, jnp.float32))
    return own.objective((), KEY, lambda up: up[0], (f,), hidden)

  pulled = jax.jit(jax.grad(objective))(f[:, None].astype('f4'))
  target = 0.5 + (2 * y - 1) * 0.4 * share
  expected = (f - target) / (f * (1 - f)) / 8
  np.testing.assert_allclose(pulled[:, 0], expected, rtol=1e-3, atol=1e-5)


def test_the_critic_sees_labels_and_not_the_u_that_they_carry():
  shape = jax.ShapeDtypeStruct((8, 1), jnp.float32)
  labels = np.eye(2, dtype=np.float32)[np.arange(8) % 2]
  f = np.linspace(0.2, 0.8, 8, dtype=np.float32)[:, None]

  def critic(redraw, labels):
    own = gafm.gafm(reading=gafm.Reading(redraw=redraw))
    state = own.init(KEY, Spec((shape,), 2)).state
    return own.adapt(state, KEY, lambda up: up[0], (f,), labels).critic

  @jax.jit
  def both():
    hidden = randomized.hide(jnp.asarray(labels), jnp.linspace(0, 0.9, 8))
    return critic(False, hidden), critic(True, labels)

  one, other = both()
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), one, other
  )


def test_who_reads_is_lent_what_is_its_own():
  own = fedpass.fedpass(side='passive')
  assert own.lent(('one', 'two'), 2) == 'two'
  shared = vmask.vmask(0.5).lent
  memory = vmask.Memory(
      ('a', 'b'), ('one', 'two'), (), (), (), (), jnp.zeros(())
  )
  assert [shared(memory, k) for k in (1, 2)] == [('one', 'a'), ('two', 'b')]


def test_a_top_with_passports_keeps_its_statistics():
  net = Net(lambda key, us: (), lambda params, us: us)._replace(
      absorb=lambda params, stats: stats
  )
  stamped = fedpass.stamped(net, lambda key, shape: jnp.zeros(shape))
  found = stamped.absorb(dict(net='old', passports='kept'), 'new')
  assert found == dict(net='new', passports='kept')


def test_with_nobody_to_hear_the_head_of_all_answers():
  """A label-only active party has no head for nothing at all."""
  numbered = Net(lambda key, us: (), lambda params, us: params)
  nothing = (None, jnp.zeros((2, 3)), jnp.zeros((2, 3)))
  assert multi_head.heads(numbered).apply(jnp.arange(4), nothing) == 3


def test_six_parties_have_a_head_for_every_subset():
  numbered = Net(lambda key, us: len(us), lambda params, us: params)
  assert len(multi_head.heads(numbered).init(KEY, (1,) * 7)) == 64


def test_a_cut_passports_mean_is_taken_before_its_code():
  one = jnp.ones((1, 1))
  plain = dict(kernel=one, bias=jnp.zeros(1))
  params = dict(
      first=plain, second=plain, encode=one, decode=one,
      scale_key=jnp.array([[-1.0], [3.0]]), bias_key=jnp.zeros((2, 1)),
  )
  y, scale, _ = fedpass_cut.block(params, one)
  assert scale == 1  # LeakyReLU of each would have a mean of 1.495.
  np.testing.assert_allclose(y, np.tanh(1), rtol=1e-6)


def test_every_embedding_passes_the_block_of_its_party():
  u = jax.random.normal(KEY, (5, 4))
  shape = jax.ShapeDtypeStruct(u.shape, u.dtype)
  own = fedpass_cut.fedpass_cut(hidden=3)
  active = own.init(KEY, Spec((shape,) * 2, 2)).active
  found, _ = own.receive(active, (), KEY, (u, u), None)
  for block, z in zip(active, found):
    np.testing.assert_allclose(z, fedpass_cut.through(block, u), rtol=1e-5)


def test_the_link_is_that_of_the_loss_and_of_the_prediction():
  f = np.linspace(-2, 2, 8, dtype=np.float32)[:, None]
  reading = gafm.Reading('none', False, 'sigmoid')
  own = gafm.gafm(0.5, part='ce', reading=reading)

  @jax.jit
  def both(f):
    hidden = jnp.eye(2)[jnp.arange(8) % 2]
    labels = randomized.hide(hidden, jnp.zeros(8))  # All targets are 1/2.
    pulled = jax.grad(lambda f: own.objective(
        (), KEY, lambda up: up[0], (f,), labels
    ))(f)
    return pulled, jax.nn.softmax(own.decode((), f))

  pulled, guess = both(f)
  p = 1 / (1 + np.exp(-f.astype(np.float64)))
  np.testing.assert_allclose(pulled, (p - 0.5) / 8, atol=1e-6)
  np.testing.assert_allclose(guess[:, 1:], p, rtol=1e-5)


def test_padding_is_no_part_of_the_cross_entropy():
  f = np.linspace(0.2, 0.8, 8, dtype=np.float32)[:, None]
  labels = np.eye(2, dtype=np.float32)[np.arange(8) % 2]
  labels[5:] = 0
  own = gafm.gafm(0.4, part='ce', reading=gafm.Reading(redraw=False))

  @jax.jit
  def loss(f, labels):
    hidden = randomized.hide(labels, jnp.full(len(f), 0.5))
    return own.objective((), KEY, lambda up: up[0], (f,), hidden)

  padded = loss(f, labels)
  np.testing.assert_allclose(padded, loss(f[:5], labels[:5]), rtol=1e-6)
