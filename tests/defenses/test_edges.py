"""Defenses at the edges of what they are given."""
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import algorithms, nets, protocol
from vfljax.defense import Holdings
from vfljax.defenses import rvfr, shadow, vmask
from vfljax.defenses.ppdl import _chosen
from vfljax.defenses.shadow import _score
from vfljax.types import Batch

KEY = jax.random.key(0)


def test_before_the_first_round_nothing_is_purified():
  u = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
  us = (None, jnp.asarray(u), jnp.asarray(2 * u[::-1]))
  plain = nets.Net(lambda key, us: (), lambda params, us: us)
  net = rvfr.purifying(rvfr.Settings(0.4, True, 0, 0.9, 3), plain)
  apply = jax.jit(net.apply)
  params = net.init(None, us)
  found = apply(params, us)
  assert found[0] is None
  np.testing.assert_array_equal(found[1], us[1])
  np.testing.assert_array_equal(found[2], us[2])

  _, stats = jax.jit(net.run)(params, None, us)
  assert stats['seen']['weight'] == 5  # No row is an outlier of nothing.
  later = apply(net.absorb(params, stats), us)
  assert not np.allclose(later[1], us[1])


def test_releases_are_those_of_one_visit_after_the_other():
  """All crossings of four visits, all numbers of releases."""
  cases = list(itertools.product((0.0, 1.0), repeat=4))
  chosen_of = jax.jit(jax.vmap(
      lambda case, count: _chosen(case, jnp.full(4, 0.5), count), (0, None)
  ))
  for count in range(5):
    found = chosen_of(np.array(cases, np.float32), count)
    for crosses, chosen in zip(cases, np.asarray(found)):
      left = itertools.accumulate(crosses)
      wanted = [c > 0 and n <= count for c, n in zip(crosses, left)]
      assert chosen.tolist() == wanted, (crosses, count)


def test_the_imagined_attacker_is_scored_by_auc_where_there_are_two_classes():
  guess = np.float32([[1, 3], [-2, 1], [1, 2], [9, 0]])  # All say 1 but one.
  labels = np.eye(2, dtype=np.float32)[[1, 0, 1, 1]]
  counts = np.array([True, True, True, False])
  score = jax.jit(_score)
  assert float(score(guess, labels, counts)) == 0  # Accuracy: 2/3.
  three = np.pad(guess, ((0, 0), (0, 1)), constant_values=-9)
  wide = np.pad(labels, ((0, 0), (0, 1)))
  np.testing.assert_allclose(score(three, wide, counts), 2 / 3, rtol=1e-6)


def test_the_imagined_attackers_head_is_as_it_was_asked(monkeypatch):
  seen = []

  def best(key, schedule, net, start, samples, score, *rest):
    seen.append(start['second'])
    return score(labels)

  monkeypatch.setattr(shadow, 'best', best)
  labels, x = jnp.asarray(np.eye(3, dtype='f4')), jnp.ones((3, 4))
  net = nets.mlp(6)
  for norm in 'none', 'batch':
    who = shadow.Attacker(known=1, head=(5,), norm=norm)
    jax.eval_shape(lambda who=who: shadow.leakage(
        KEY, who, net, net.init(KEY, x), jnp.zeros(1, bool), x, labels,
        shadow.known_samples(KEY, who, labels),
    ))
  plain, normalized = (
      [leaf.shape for leaf in jax.tree.leaves(head)] for head in seen
  )
  assert sorted(plain) == [(3,), (5,), (5, 3), (6, 5)]
  assert len(normalized) > len(plain)


def passed(samples, pace=1e-9, net=nets.mlp(2), norms='sum'):
  """What one step on all samples makes of two parties' shadows."""
  vfl = algorithms.vsnn([net] * 2, nets.mlp(2), 'sum')

  @jax.jit
  def run(samples):
    first = net.init(KEY, samples.features[1])
    top = dict(top=vfl.top.init(KEY, (None, *[jnp.zeros((1, 2))] * 2)))
    return first, *shadow.update(
        KEY, Holdings(vfl, top, samples), (first,) * 2,
        shadow.Learning(pace, 99), norms,
    )

  return run(samples)


def samples(count=20):
  x = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)]
  return Batch((None, jnp.asarray(x), jnp.asarray(x)), jnp.asarray(labels))


def test_samples_without_a_label_teach_a_shadow_nothing():
  whole = jax.tree.map(np.asarray, samples())
  few = jax.tree.map(lambda x: x[:12], whole)
  real = (np.arange(20) < 12).astype(np.float32)[:, None]
  padded = whole._replace(labels=whole.labels * real)
  for one, other in zip(passed(few)[2], passed(padded)[2]):
    np.testing.assert_allclose(one, other, rtol=1e-4)


def test_a_shadow_learns_from_the_features_of_its_party():
  data = samples()
  blank = data._replace(features=(*data.features[:2], 0 * data.features[2]))
  first, moved, _ = passed(blank, 1.0)
  kernels = [w['Dense_0']['Dense_0']['kernel'] for w in (first, *moved)]
  assert not np.allclose(kernels[0], kernels[1])
  np.testing.assert_array_equal(kernels[0], kernels[2])


def test_a_shadow_keeps_the_statistics_of_its_batches():
  net = nets.mlp(4, 2, norm='batch')
  first, moved, _ = passed(samples(), net=net)
  linear = first['params']['Dense_0']['Dense_0']
  made = samples().features[1] @ linear['kernel'] + linear['bias']
  kept = moved[0]['batch_stats']['Norm_0']['BatchNorm_0']['mean']
  np.testing.assert_allclose(kept, 0.1 * made.mean(0), atol=1e-5)


def test_norms_of_a_shadow_are_sums_or_means():
  """Of two kernels of 12 and 8 weights; sums have the biases', too."""
  net = nets.mlp(4, 2)
  sums, means = (passed(samples(), net=net, norms=n)[2][0]
                 for n in ('sum', 'mean'))
  part = np.asarray(means) * [12, 8] / np.asarray(sums)
  assert (part > 0.2).all() and (part < 1).all()


def played(monkeypatch, **options):
  """VMask's memory after an epoch in which no attack got anything, and the
  features that were attacked."""
  seen, data = [], samples()

  def leakage(key, who, net, params, hidden, features, *rest):
    seen.append(features)
    return jnp.zeros(())

  monkeypatch.setattr(shadow, 'leakage', leakage)
  vfl = algorithms.vsnn([nets.mlp(4, 2)] * 2, nets.mlp(2), 'sum')
  own = vmask.vmask(0.5, **options)
  state = protocol.init(
      KEY, vfl, own, (optax.sgd(0.1),) * 3, data, auxiliary=data
  )
  held = Holdings(vfl, state.parties[0].params, data)
  return own.epoch(state.defense, KEY, held), seen, data


def test_each_party_is_attacked_on_samples_of_its_own(monkeypatch):
  memory, seen, data = played(monkeypatch)
  assert seen[0] is data.features[1] and seen[-1] is data.features[2]
  assert not np.any(memory.masked)


def test_vmask_hides_and_ranks_as_it_was_asked(monkeypatch):
  """One layer whatever leaks; that of the largest mean, not sum."""
  memory, *_ = played(
      monkeypatch, least=1, norms='mean', shadows=shadow.Learning(1e-9, 99)
  )
  for masked, norms in zip(memory.masked, memory.norms):
    assert masked.sum() == 1 and masked[norms.argmax()]
  sums = played(monkeypatch, shadows=shadow.Learning(1e-9, 99))[0].norms[0]
  part = np.asarray(memory.norms[0]) * [12, 8] / np.asarray(sums)
  assert (part > 0.2).all() and (part < 1).all()
