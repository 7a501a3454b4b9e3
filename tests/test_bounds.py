"""Numbers of defenses and attacks are taken to the ends of their ranges.

Each row is a parameter: its ends, whether they are inside, and the name that
the refusal calls it by. The end itself and what is just past it are tried, so a
bound that moves by one, opens or closes fails.
"""
from functools import partial
import math
from typing import NamedTuple

import jax.numpy as jnp
import pytest

from vfljax import attacks, completion, nets
from vfljax.attack import recipe_of
from vfljax.attacks import (
    gradient_clustering, gradient_inversion, missing_features, mixmatch,
    noisy_sample, residual_scoring,
)
from vfljax.attacks.active_completion import malicious_sgd
from vfljax.attacks.gradient_inversion import Search
from vfljax.attacks.label_replacement import label_replacement
from vfljax.attacks.mixmatch import MixMatch
from vfljax.completion import Schedule
from vfljax.defenses import REGISTRY, shadow
from vfljax.defenses.gan import GAN
from vfljax.nets.heads import normalized_head
from vfljax.scene import Amounts, Scene

INF = math.inf
NET = nets.mlp(2, 3)
SCENE = Scene(classes=2)
AMOUNTS = Amounts(
    train=40, test=20, auxiliary=10, batch=10, least=7, scale='none',
    shape=(8, 8, 1),
)
TINY = 1e-6


class Range(NamedTuple):
  """[low, high], an end that is `open` is not in it; whole numbers or not;
  infinity is one of them if `endless`. Of an `option` a configuration has seen
  to the type."""

  make: object
  low: float
  high: float = INF
  open: str = ''
  whole: bool = False
  says: str = ''
  endless: bool = False
  option: bool = False


def of(name, parameter, low, high=INF, open='', whole=False, **others):
  """A parameter of a defense."""
  factory = REGISTRY[name].factory
  make = lambda value: factory(**others | {parameter: value})
  return Range(make, low, high, open, whole, parameter)


def whole(name, parameter, low, **others):
  return of(name, parameter, low, whole=True, **others)


def positive(name, parameter, **others):
  return of(name, parameter, 0, open='low high', **others)


def clipped(name):
  row = of(name, 'clip_norm', 0, open='low', std=1)
  return row._replace(endless=True)


def gan(field):
  return lambda value: REGISTRY['gafm'].factory(
      networks=GAN()._replace(**{field: value})
  )


def masked(field, part):
  """vmask with one field of its attacker or shadows set."""
  kind = dict(attacker=shadow.Attacker, shadows=shadow.Learning)[part]
  return lambda value: REGISTRY['vmask'].factory(
      0.5, **{part: kind()._replace(**{field: value})}
  )


def imagining(**given):
  return REGISTRY['vmask'].factory(
      0.5, attacker=shadow.Attacker(draws=5)._replace(**given)
  )


def mixing(field):
  how = MixMatch(epochs=8, stages=2)
  make = lambda value: mixmatch(NET, NET, how._replace(**{field: value}))
  return partial(Range, make, says=field)


def searching(field):
  return lambda value: gradient_inversion(
      NET, 2, Search()._replace(**{field: value})
  )


def replacing(**own):
  poisons = [jnp.zeros((1, 4, 4, 1))]
  return label_replacement(0, jnp.arange(3), poisons, parties=(1,), **own)


DEFENSES = [
    of('coae', 'confusion', 0), whole('coae', 'samples', 1),
    whole('coae', 'epochs', 1), whole('coae', 'batch_size', 1),
    positive('coae', 'learning_rate'),
    of('dcor', 'weight', 0),
    whole('discrete_sgd', 'bins', 1), positive('discrete_sgd', 'bound', bins=4),
    of('discrete_sgd', 'noise', 0, bins=4),
    of('dp_gaussian', 'std', 0),
    clipped('dp_gaussian'),
    of('dp_laplace', 'scale', 0),
    of('dp_weights', 'std', 0),
    clipped('dp_weights'),
    of('fedpass', 'variance', 0), of('fedpass', 'mean', -INF, open='low high'),
    of('fedpass_cut', 'variance', 0), whole('fedpass_cut', 'hidden', 1),
    of('gafm', 'delta', 0, 0.5), of('gafm', 'sigma', 0),
    positive('gafm', 'weight'), positive('gafm', 'clip'),
    Range(gan('generator_rate'), 0, open='low high', says='generator_rate'),
    Range(gan('critic_rate'), 0, open='low high', says='critic_rate'),
    Range(gan('critic_steps'), 1, whole=True, says='critic_steps'),
    of('gradient_compression', 'keep', 0, 1, 'low'),
    of('iso', 'amplifier', 0),
    of('kdk', 'smoothing', 0, 1), whole('kdk', 'k', 2, smoothing=0.3),
    whole('kdk', 'epochs', 1, smoothing=0.3),
    whole('kdk', 'batch_size', 1, smoothing=0.3),
    positive('kdk', 'learning_rate', smoothing=0.3),
    of('label_dp', 'epsilon', 0),
    of('marvell', 'power', 0),
    of('mid', 'weight', 0), whole('mid', 'scale', 1, weight=1),
    whole('mid', 'hidden', 0, weight=1),
    whole('mixup', 'samples', 2), positive('mixup', 'concentration', samples=2),
    of('plugvfl', 'weight', 0, 1),
    of('plugvfl', 'drop', 0, 1, 'high', weight=0.5),
    whole('plugvfl', 'psi_steps', 1, weight=0.5),
    positive('plugvfl', 'psi_learning_rate', weight=0.5),
    of('ppdl', 'share', 0, 1, 'low'), of('ppdl', 'tau', 0, share=0.5),
    positive('ppdl', 'epsilon', share=0.5),
    positive('ppdl', 'gamma', share=0.5),
    positive('ppdl', 'sensitivity', share=0.5),
    positive('ppdl', 'scale', share=0.5),
    of('precode', 'weight', 0), whole('precode', 'width', 1),
    of('residue_mask', 'ratio', 0, 1),
    of('rvfr', 'rank', 0, 1, 'low'), whole('rvfr', 'warmup', 0),
    of('rvfr', 'decay', 0, 1, 'high'), whole('rvfr', 'steps', 1),
    of('vmask', 'budget', 0, 1), of('vmask', 'noise', 0, budget=0.5),
    whole('vmask', 'least', 0, budget=0.5),
    Range(masked('learning_rate', 'shadows'), 0, open='low high',
          says='learning_rate'),
    Range(masked('batch_size', 'shadows'), 1, whole=True, says='batch_size'),
    Range(masked('known', 'attacker'), 1, whole=True, says='known'),
    Range(masked('draws', 'attacker'), 1, whole=True, says='draws'),
    Range(lambda n: imagining(plays=n), 1, 5, whole=True, says='plays'),
    Range(lambda n: imagining(epochs=n), 1, 20, whole=True, says='epochs'),
]
ATTACKS = [
    Range(residual_scoring, 1, whole=True, says='degree'),
    Range(lambda n: gradient_clustering(starts=n), 1, whole=True,
          says='starts'),
    Range(lambda n: gradient_clustering(iterations=n), 1, whole=True,
          says='iterations'),
    Range(noisy_sample, 0, 1, says='rate'),
    Range(lambda std: noisy_sample(0.1, std), 0, says='std'),
    Range(lambda high: noisy_sample(0.1, 1.0, (0.5, high)), 0.5,
          says='the upper bound'),
    Range(missing_features, 0, 1, says='rate'),
    Range(searching('learning_rate'), 0, open='low high',
          says='learning_rate'),
    Range(searching('steps'), 1, whole=True, says='steps'),
    Range(searching('restarts'), 1, whole=True, says='restarts'),
    Range(lambda n: gradient_inversion(NET, n), 2, whole=True, says='classes'),
    *(mixing(f)(1, whole=True) for f in ('iterations', 'batch_size')),
    mixing('epochs')(2, whole=True), mixing('unlabeled')(0),
    Range(lambda n: mixmatch(NET, NET, MixMatch(epochs=8, stages=n)), 1, 8,
          whole=True, says='stages|epochs'),
    *(mixing(f)(0, open='low high')
      for f in ('learning_rate', 'alpha', 'temperature')),
    mixing('average')(0, 1, 'high'), mixing('decay')(0),
    Range(lambda n: replacing(per_round=n), 1, whole=True, says='per_round'),
    Range(lambda x: replacing(per_round=1, amplify=x), 0, open='low high',
          says='amplify'),
    Range(malicious_sgd, 0, open='low high', says='learning_rate'),
    Range(lambda x: malicious_sgd(0.1, momentum=x), 0, 1, 'high',
          says='momentum'),
    Range(lambda x: malicious_sgd(0.1, weight_decay=x), 0, says='weight_decay'),
    Range(lambda x: malicious_sgd(0.1, gamma=x), 0, says='gamma'),
    Range(lambda x: malicious_sgd(0.1, low=x), 0, says='low'),
    Range(lambda x: malicious_sgd(0.1, low=0.5, high=x), 0.5, says='high'),
    Range(lambda n: normalized_head(2, layers=n), 1, whole=True,
          says='layers'),
]


def checked(attack, field, **others):
  """An option of an attack in an experiment."""
  options = recipe_of(getattr(attacks, attack)).options()._replace(**others)
  check = recipe_of(getattr(attacks, attack)).check
  return lambda value: check(
      options._replace(**{field: value}), SCENE, AMOUNTS
  )


def scheduled(field):
  schedule = Schedule(epochs=4, stages=2)
  return lambda value: completion.check(schedule._replace(**{field: value}))


def sized(name, **given):
  """A number of a network that is a size, in a tuple if it has several."""
  field, = given
  return Range(
      lambda n: nets.REGISTRY[name](**{field: given[field](n)}), 1, whole=True,
      says=f'({field}|widths) must be',
  )


one = lambda n: n
first = lambda n: (n, 8)
NETWORKS = [
    Range(nets.mlp, 1, whole=True, says='widths must be'),
    *(sized(name, width=one) for name in nets.REGISTRY if name != 'encoder'),
    *(sized(name, hidden=first) for name in nets.REGISTRY
      if 'hidden' in nets.REGISTRY[name].options),
    *(sized(name, channels=first) for name in nets.REGISTRY
      if 'channels' in nets.REGISTRY[name].options),
    *(sized(name, **{size: one}) for name in ('embedding', 'wide_deep')
      for size in ('buckets', 'size')),
    Range(lambda x: nets.make('vgg13', dropout=x), 0, 1, 'high',
          says='dropout'),
]


OPTIONS = [
    Range(checked('model_completion', 'learning_rate'), 0, open='low high',
          says='learning_rate'),
    Range(checked('cafe', 'pool', batch=1), 1, 40, whole=True, says='pool',
          option=True),
    Range(checked('cafe', 'batch', pool=30), 1, 30, whole=True, says='batch',
          option=True),
    Range(checked('model_inversion', 'samples'), 1, 20, whole=True,
          says='samples', option=True),
    Range(checked('label_replacement', 'targets'), 1, 7, whole=True,
          says='targets', option=True),
    # Of ten samples a round leaves one: 9.5 are ten.
    Range(checked('label_replacement', 'triggered', targets=1), 0, 0.95,
          'low high', says='triggered'),
    Range(checked('label_replacement', 'amplify', targets=1), 0,
          open='low high', says='amplify'),
    Range(scheduled('epochs'), 2, whole=True, says='stages|epochs'),
    Range(scheduled('stages'), 1, 4, whole=True, says='stages'),
    Range(scheduled('batch_size'), 0, whole=True, says='batch_size'),
    Range(scheduled('bottom_rate'), 0, open='low', says='bottom_rate'),
    Range(scheduled('weight_decay'), 0, says='weight_decay'),
]


def named(row):
  return row.says


ROWS = DEFENSES + ATTACKS + NETWORKS + OPTIONS


@pytest.mark.parametrize('row', ROWS, ids=named)
def test_a_number_may_be_at_its_ends_and_not_past_them(row):
  step = 1 if row.whole else TINY
  inside, outside = [], [] if row.whole else [math.nan]
  for name, end, away in ('low', row.low, -step), ('high', row.high, step):
    closed = name not in row.open and (math.isfinite(end) or row.endless)
    if math.isfinite(end) or not row.whole:
      (inside if closed else outside).append(end)
    if math.isfinite(end):
      inside.append(end - away)
      outside.append(end + away)
  if row.whole and not row.option:
    outside.append(row.low + 0.5)
  for value in inside:
    row.make(value)
  for value in outside:
    with pytest.raises(ValueError, match=row.says):
      row.make(value)
