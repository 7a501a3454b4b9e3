"""Experiments drawn at random, run to their end: no traceback, right numbers.

`test_fuzz_config` asks which configurations are taken, and compiles nothing.
Here those that are taken run, and then once more in another way that must not
change a number: killed and continued, with seeds added later, in other chunks,
with a defense or an attack less. Defenses and attacks come from the registries.
"""
import dataclasses
import inspect
import itertools
import json
import math
import random

import pytest

from tests.processes import Started, kept
from vfljax import attacks, defenses
from vfljax.completion import Schedule
from vfljax.defenses.shadow import Attacker
from vfljax.runner import run
from vfljax.runner.checking import checks
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import strides
from vfljax.runner.config import (
    AttackConfig, AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig,
    TrainConfig,
)
from vfljax.runner.errors import UserError

DRAWS, MOST = 8, 200  # Experiments that run; tries for each, at most.
IMAGES = DataConfig('digits', limit=150, scale='none', split='strips')
DATA = (
    DataConfig('synthetic', options='samples=120;columns=4'),
    DataConfig('synthetic', options='samples=150;columns=4;classes=3'),
    DataConfig('breast_cancer', limit=150), DataConfig('wine'), IMAGES, IMAGES,
)
FIELDS = {  # What else is drawn of a group, each field one time in three.
    'data': dict(
        parties=(3, 4), split=('random', 'importance', 'correlation'),
        stream=(2,), validation=(0.2,), resplit=(False,), flips=(True,),
        scale=('minmax',), test=(0.5,),
    ),
    'model': dict(
        algorithm=('vlr', 'vsnn'), aggregation=('sum', 'mean', 'max'),
        top=((4,),), activation=('tanh',), dropout=(0.2,), channels=((2,),),
        padding=(False,), norm=('group',),
    ),
    'train': dict(
        optimizer=('sgd', 'momentum'), schedule=('cosine',), best=(True,),
        remainder=('keep', 'pad'), measure_every=(1, 3), patience=(1,),
        learning_rate=(0.1,), batch_size=(8, 30), epochs=(1, 3),
    ),
    'attack': dict(
        party=(0,), pool=('round',), when=('last', 'mean'), known=(0, 2),
        repeats=(2,), replay=(True,), auxiliary=(20,), replay_rounds=(2,),
        replay_at=('start', 'end'),
    ),
    'auxiliary': dict(samples=(20,)),
}
SHORT = dict(  # Attackers who learn for a moment only.
    completion=dict(epochs=2, stages=2), mixmatch=dict(epochs=2, iterations=2),
    cafe=dict(pool=16, batch=8, steps=4), gradient_inversion=dict(steps=4),
    model_inversion=dict(shadow_steps=4, samples=8),
    label_replacement=dict(targets=2),
)
BRIEF = dict(
    coae=dict(epochs=1, samples=100), kdk=dict(epochs=1, k=2),
    rvfr=dict(warmup=1, steps=2), plugvfl=dict(psi_hidden=(4,)),
    vmask=dict(attacker=Attacker(Schedule(2, 0, 2, 0.1, 'sgd'), 2, (4,))),
)
# A checkpoint after every epoch.
OFTEN = {(run.__name__, 'SAVE_SECONDS'): 0.0, (strides.__name__, 'SHORT'): 0}
SHARES = 'auc', 'accuracy', 'matched', 'untriggered'  # From 0 to 1.


def drawn(draw: random.Random) -> Config:
  """A small experiment, which may be refused."""
  data = dataclasses.replace(draw.choice(DATA))
  config = Config(
      experiment='drawn', seeds=2, data=data,
      model=ModelConfig(bottom=(4,), top=()), alone=draw.random() < 0.3,
      train=TrainConfig(epochs=2, batch_size=16), attack=AttackConfig(known=1),
      auxiliary=AuxiliaryConfig(), quitting=draw.random() < 0.3,
  )
  for group, fields in FIELDS.items():
    for name, values in fields.items():
      if draw.random() < 0.33 / (2 if group == 'attack' else 1):
        setattr(getattr(config, group), name, draw.choice(values))
  chosen = draw.sample([*defenses.REGISTRY], 2)
  config.listed = Entry('none'), *(
      Entry(name, defenses.REGISTRY[name].strengths[:2], BRIEF.get(name, {}))
      for name in chosen if name != 'none'
  )
  config.listed_attacks = tuple(draw.sample([*attacks.REGISTRY], 2))
  groups = {attacks.REGISTRY[name].group for name in config.listed_attacks}
  config.attack.own = {k: v for k, v in SHORT.items() if k in groups}
  return config


def written(config: Config, place) -> str:
  """The configuration as a file, and its argument."""
  file = place.with_suffix('.py')
  file.write_text(
      'from vfljax.completion import Schedule\n'
      'from vfljax.defenses.shadow import Attacker\n'
      'from vfljax.runner.config import *\n'
      'from vfljax.runner.config import Entry\n'
      f'def get_config():\n  return {config!r}\n'
  )
  return f'--config={file}'


def taken(config: Config, place) -> bool:
  try:
    given = arguments.parse(['vfljax', written(config, place)])
    checks.make(given.config, arguments.load_data(given.config.data))
  except UserError:
    return False
  return True


def played(config: Config, place, fault='') -> dict:
  """What a run measured: its rows without the value -> the value."""
  started = Started(
      [written(config, place), f'--workdir={place}', '--devices=1', kept()],
      fault, OFTEN,
  )
  said, _ = started.communicate(300)
  assert 'Traceback' not in said and 'Warning' not in said, said
  if fault:
    assert started.returncode == -9, said
    return {}
  assert started.returncode == 0, said
  assert (place / 'report.html').exists()
  lines = (place / 'results.jsonl').read_text().splitlines()
  rows = [json.loads(line) for line in lines]
  found = {}
  for row in rows:
    value = row.pop('value')
    found[json.dumps(row)] = value
  assert len(found) == len(rows) > 0
  return found


def check_values(found: dict, page: str) -> None:
  """Numbers are in their ranges; the report says of those that are missing."""
  for row, value in found.items():
    if value is None:
      assert 'ithout a number' in page or 'could not give' in page, row
      continue
    metric = json.loads(row)['metric']
    assert math.isfinite(value), row
    if any(word in metric for word in SHARES):
      assert -1e-6 <= value <= 1 + 1e-6, (row, value)


def _killed(config, place, found, draw):
  """Killed after a checkpoint, or before it counts as done, and continued."""
  del found
  config.train.epochs = 4
  what = draw.choice(['checkpoints/*:3', 'checkpoints/*:6', 'parts/*.json:2'])
  assert not played(config, place, f'*/{what}:kill')
  assert played(config, place) == played(config, place.with_name('longer'))


def _raised(config, place, found, draw):
  """One seed, then all of them in the same folder."""
  del draw
  played(dataclasses.replace(config, seeds=1), place)
  assert played(config, place) == found


def _chunked(config, place, found, draw):
  """Seeds or strengths one at a time."""
  name = draw.choice(['seeds_per_chunk', 'strengths_per_chunk'])
  assert played(dataclasses.replace(config, **{name: 1}), place) == found


def _fewer(config, place, found, draw):
  """A defense or an attack less: the other rows stay as they are."""
  name = draw.choice(['listed', 'listed_attacks'])
  less = dataclasses.replace(config, **{name: getattr(config, name)[:-1]})
  own = {attacks.REGISTRY[a].group for a in less.listed_attacks}
  less.attack = dataclasses.replace(less.attack, own={
      k: v for k, v in less.attack.own.items() if k in own
  })
  if taken(less, place):  # Some settings are for that attack alone.
    some = played(less, place)
    assert some.items() <= found.items()


WAYS = _killed, _raised, _chunked, _fewer


@pytest.mark.faults
@pytest.mark.parametrize('number', range(DRAWS))
def test_a_drawn_run_ends_and_another_way_ends_the_same(
    number, tmp_path, tally
):
  draw = random.Random(number)
  config = next((
      config for config in (drawn(draw) for _ in range(MOST))
      if taken(config, tmp_path / 'tried')
  ), None)
  assert config, 'nothing drawn is taken'
  found = played(config, tmp_path / 'whole')
  check_values(found, (tmp_path / 'whole' / 'summary.md').read_text())
  way = WAYS[number % len(WAYS)]
  way(config, tmp_path / 'again', found, draw)
  tally(f'drawn experiments, {inspect.getdoc(way)}')


def test_all_that_is_registered_can_be_drawn():
  """Else something new would never be among the runs."""
  draw, names = random.Random(0), set()
  for config in itertools.islice(iter(lambda: drawn(draw), None), 600):
    names |= {entry.defense for entry in config.listed}
    names |= set(config.listed_attacks)
  assert names == {*defenses.REGISTRY, *attacks.REGISTRY}
