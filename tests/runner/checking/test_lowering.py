"""Numbers that a small table is too small for, where nobody chose them."""
import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments import quickstart
from vfljax.commands import point
from vfljax.data.table import Table
from vfljax.runner import main, run
from vfljax.runner.checking import checks, knowing, lowering
from vfljax.runner.config import AttackConfig, Config, TrainConfig, Variant
from vfljax.runner.errors import UserError
from vfljax.views import RecordedGradients

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
    (46, 2, 32, 5),  # As many training samples as a round has.
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
    (['vfljax', '--config.train.epochs=3'], 0),  # No samples of one's own.
])
def test_what_somebody_chose_stays(typed, said):
  config, lines = lowering.lowered(quick(), table(30, 3), typed)
  assert len(lines) == said
  if not said:
    assert config == quick()


def test_each_number_is_told_with_its_reason():
  assert lowering.lowered(quick(), table(30, 3), OWN)[1] == [
      'train.batch_size is 7 here, not 32: there are 21 training samples.',
      'attack.known is 3 here, not 5 labels per class: there are 30 rows, 10 '
      'of the rarest class.',
  ]


def test_rounds_that_were_asked_for_hold_fewer_labels():
  """One of 32 samples; all of the epoch's would have enough."""
  once = dataclasses.replace(quick().attack, replay_rounds=1)
  config, said = lowering.lowered(quick(attack=once), table(240, 4), OWN)
  assert config.attack.known == 4 and len(said) == 1


def test_where_no_label_can_be_known_it_is_refused():
  """And not made 0, which is all of them."""
  config, said = lowering.lowered(quick(), table(60, 30), OWN)
  assert config == quick() and not said
  with pytest.raises(UserError, match='between 1 and 1 labels .* got 5'):
    checks.make(config, table(60, 30))


def test_a_split_may_have_fewer_labels_than_its_share():
  whole = Config(seeds=1, defenses='none', attacks='model_completion')
  config, _ = lowering.lowered(whole, table(15, 3))
  assert config.attack.known == 2
  more = dataclasses.replace(config, attack=AttackConfig(known=3))
  with pytest.raises(UserError, match='known must be between 1 and 2 .* got 3'):
    checks.make(more, table(15, 3))


@pytest.mark.parametrize('command', [main.main, point.play])
def test_commands_run_what_was_lowered(command, tmp_path, monkeypatch):
  begun = []

  def play(config, *_, **__):
    begun.append(config)
    raise UserError('That is enough.')

  monkeypatch.setattr(run, 'run', play)
  y = np.arange(30) % 3
  lines = [f'{i % 7},{i % 11},{i % 5},{k}' for i, k in enumerate(y)]
  (tmp_path / 'my.csv').write_text('\n'.join(['a,b,c,y', *lines]))
  command([
      'vfljax', f'--config={quickstart.__file__}', '--config.data.name=csv',
      f'--config.data.path={tmp_path}/my.csv', '--config.data.label=y',
      '--cache=', f'--workdir={tmp_path}/out',
  ])
  assert (begun[0].train.batch_size, begun[0].attack.known) == (7, 3)


@pytest.mark.parametrize('classes, known, seen, message', [
    (2, 0, None, ''), (2, 2, None, ''), (2, 3, None, '2 labels.*, or 0 for al'),
    (2, 3, RecordedGradients, r'2 labels per class \(the rar.*\); got 3\.'),
    (3, 0, None, ''), (3, 1, None, 'No sample is of class 2 of 3,'),
])
def test_who_knows_labels_needs_samples_of_each_class(
    classes, known, seen, message
):
  setting: Any = SimpleNamespace(
      samples=SimpleNamespace(labels=np.eye(classes)[[0, 1, 0, 1, 0, 1]]),
      sizes=SimpleNamespace(train=6), classes=classes,
      replayed=dict(own=SimpleNamespace(view=seen)),
  )
  if not message:
    knowing.check(setting, known)
    return
  with pytest.raises(ValueError, match=message):
    knowing.check(setting, known)


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


@pytest.mark.parametrize('each, most', [(50, 20), (5, 2), (3, 1), (1, 1)])
def test_known_labels_are_as_many_as_every_split_has(each, most):
  """A random split may leave a class fewer than its share, half of them."""
  labels = np.eye(2)[np.arange(2 * each) % 2]
  setting = SimpleNamespace(
      samples=SimpleNamespace(labels=labels), classes=2, replayed={},
      sizes=SimpleNamespace(train=each),
  )
  knowing.check(setting, 0)
  knowing.check(setting, most)
  for known in (most + 1, -1):
    with pytest.raises(ValueError, match=f'between 1 and {most} labels'):
      knowing.check(setting, known)
