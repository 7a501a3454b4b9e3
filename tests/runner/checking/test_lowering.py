"""Numbers that a small table is too small for, where nobody chose them."""
import dataclasses

import numpy as np
import pytest

from experiments import quickstart
from vfljax.data.table import Table
from vfljax.runner.checking import checks, lowering
from vfljax.runner.config import AttackConfig, Config, TrainConfig, Variant
from vfljax.runner.errors import UserError

OWN = ['vfljax', '--config.data.path=my.csv']


def table(rows, classes):
  y = (np.arange(rows) % classes).astype(np.int32)
  x = np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float32)
  return Table(
      x, y, ('a', 'b', 'c', 'd'), tuple(map(str, range(classes))),
      (0, 1, 2, 3),
  )


def quick(**changed):
  config = quickstart.get_config()
  return dataclasses.replace(
      config, seeds=1, alone=False, defenses='none', **changed
  )


@pytest.mark.parametrize('rows, classes, batch, known', [
    (30, 2, 7, 5), (30, 3, 7, 3), (40, 3, 10, 3), (60, 6, 32, 2),
    (60, 3, 32, 5), (90, 3, 32, 5), (569, 2, 32, 5), (5000, 10, 32, 5),
])
def test_the_quickstart_runs_on_small_tables(rows, classes, batch, known):
  there = table(rows, classes)
  config, said = lowering.lowered(quick(), there, OWN)
  assert (config.train.batch_size, config.attack.known) == (batch, known)
  assert len(said) == (batch < 32) + (known < 5)
  assert all('\n' not in line and ' here, not ' in line for line in said)
  checks._check(checks.assembled(config, there))  # It is not refused.
  if said:  # What could be run stays as it is.
    with pytest.raises((ValueError, UserError)):
      checks._check(checks.assembled(quick(), there))
  else:
    assert config == quick()


@pytest.mark.parametrize('typed, said', [
    (['vfljax'], 0),  # The file's numbers, for the file's own samples.
    ([*OWN, '--config.train.batch_size=32'], 0),  # Nor is a label to be known.
    ([*OWN, '--config.train.batch_size', '32'], 0),
    ([*OWN, '-config.attack.known=5'], 1), (OWN, 2),
])
def test_what_somebody_chose_stays(typed, said):
  config, lines = lowering.lowered(quick(), table(30, 3), typed)
  assert len(lines) == said
  if not said:
    assert config == quick()


def test_defaults_of_fields_are_nobodys_choice():
  whole = Config(seeds=1, defenses='none', attacks='model_completion')
  config, said = lowering.lowered(whole, table(30, 3))
  assert config.train.batch_size == 7 and config.attack.known == 4
  assert whole.train == TrainConfig() and len(said) == 1
  mine = dataclasses.replace(
      whole, train=TrainConfig(batch_size=65), attack=AttackConfig(known=9)
  )
  assert lowering.lowered(mine, table(30, 3)) == (mine, [])


@pytest.mark.parametrize('attack, replay, classes', [
    ('model_completion', False, 2), ('gradient_clustering', True, 3),
])
def test_a_variant_with_its_own_number_lowers_nobodys(attack, replay, classes):
  """Or a work directory of before could not be continued."""
  name, there = f'{attack}:few', table(40, classes)
  config = Config(
      seeds=1, defenses='none', attacks=name, listed_attacks=(name,),
      variants=(Variant(name, dict(known=1)),),
      train=TrainConfig(batch_size=8),
      attack=AttackConfig(known=30, replay=replay),
  )
  checks._check(checks.assembled(config, there))
  assert lowering.lowered(config, there, OWN) == (config, [])
  plain = dataclasses.replace(
      config, attacks=attack, listed_attacks=(attack,), variants=()
  )
  assert len(lowering.lowered(plain, there, OWN)[1]) == 1


def test_what_cannot_be_divided_is_left_to_the_checks():
  whole = Config(seeds=1, defenses='none', attacks='model_completion')
  few = table(2, 2)
  test = few._replace(test=np.ones(2, bool))
  config, said = lowering.lowered(whole, test)
  assert config == whole and not said
  with pytest.raises(UserError):
    checks.make(config, test)
