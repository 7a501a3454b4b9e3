"""theta_r hides all bits of what it is added to, not the first ones alone."""
import jax
import numpy as np
import pytest

from vfljax import nets
from vfljax.masked import masking, shares
from vfljax.masked.shares import Public
from vfljax.mpc import fixed_point

X = np.zeros((4, 64), np.float32)
NET = nets.mlp(48)
LAYER, = masking.layers(NET, jax.eval_shape(NET.init, jax.random.key(0), X), X)


def drawn(seed=0, **options):
  return masking.noise(jax.random.key(seed), [LAYER], **options)[LAYER.name]


@pytest.mark.parametrize('last', [False, True])
def test_the_last_bits_of_its_codes_are_as_likely_as_not(last):
  """At a kernel's fraction bits under T3 and T4, which sums of z g have: of a
  multiple of 2^10, as float32 noise is there, the bits below lie open. (A
  bias's sums of g are on a coarser grid than that.)"""
  layer = LAYER._replace(to_active=last)
  count = shares.weight_bits(Public(), layer)['kernel']
  several = [drawn(seed) for seed in range(80)]
  for name in layer.leaves:
    codes = np.concatenate([
        np.asarray(fixed_point.encode(own[name], count)).ravel()
        for own in several[: 1 if name == 'kernel' else None]
    ])
    assert len(codes) > 3000
    seen = np.bincount(codes & 31, minlength=32)
    expected = len(codes) / 32
    assert ((seen - expected) ** 2 / expected).sum() < 70  # 31 of freedom.


def test_it_is_gaussian_of_the_deviation_asked_for():
  kernel = np.asarray(drawn()['kernel'])
  np.testing.assert_allclose(kernel.std(), masking.STD, rtol=0.05)
  np.testing.assert_allclose(kernel.mean(), 0, atol=0.001)
  assert not np.asarray(drawn(std=0.0)['kernel']).any()
  assert kernel.dtype == np.float64


def test_every_weight_has_noise_of_its_own():
  """Not the last bits alone: both parts of it are."""
  own, other = ({k: np.asarray(v).ravel() for k, v in drawn(seed).items()}
                for seed in (0, 1))
  assert len(np.unique(own['kernel'])) == own['kernel'].size
  for a, b in ((own['kernel'][:48], own['bias']),
               (own['kernel'], other['kernel'])):
    far = np.abs(a - b) > masking.STD * 2.0**-11
    assert far.mean() > 0.9
