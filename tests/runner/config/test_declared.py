"""Lists and NumPy's numbers in a configuration become what is declared."""
import dataclasses
import json
from typing import Any, NamedTuple

import numpy as np
import pytest

from vfljax.runner.checking import checks
from vfljax.runner.cli import arguments
from vfljax.runner.config import Config, Entry, ModelConfig, TrainConfig, ranges
from vfljax.runner.config.declared import as_declared


class Pair(NamedTuple):
  a: Any
  b: Any


def entry(*given: Any, **more: Any) -> Any:
  """An entry that no type checker looks at."""
  return Entry(*given, **more)


def odd() -> Any:
  """A configuration with values of other types than declared."""
  changed: dict[str, Any] = dict(
      seeds=np.int64(3), alone=np.bool_(False),
      model=ModelConfig(**dict(bottom=[np.int32(8), 4])),
      train=TrainConfig(learning_rate=np.float32(0.5)),
      listed=[
          entry('none'),
          entry('iso', [1., 2.], dict(a=[np.int64(1), 2]), grid=dict(b=[1, 2]),
                after=[entry('gafm', [np.float32(2)])]),
      ],
      listed_attacks=['norm_scoring'],
  )
  return Config(**changed)


WANT = Config(
    seeds=3, alone=False, model=ModelConfig(bottom=(8, 4)),
    train=TrainConfig(learning_rate=0.5),
    listed=(
        Entry('none'),
        Entry('iso', (1., 2.), dict(a=[1, 2]), grid=dict(b=(1, 2)),
              after=(Entry('gafm', (2.,)),)),
    ),
    listed_attacks=('norm_scoring',),
)


def test_lists_and_numpys_numbers_become_what_is_declared():
  given = odd()
  found = as_declared(given)
  # Equal is not enough: np.int64(3) == 3.
  assert repr(found) == repr(WANT)
  ranges.check(found)
  assert given.listed[1].strengths == [1., 2.]  # A person's own, left alone.
  asdict = dataclasses.asdict
  assert json.dumps(asdict(found)) == json.dumps(asdict(WANT))


def test_what_is_declared_stays_the_same_object():
  """So that the programs of valid experiments are traced as they were."""
  pair = Pair((1, 2), np.float64(0.5))
  config = Config(listed=(Entry('iso', (np.float64(1),), dict(a=pair)),))
  assert as_declared(config) is config
  config.listed[0].options['a'] = Pair((1, np.int32(2)), 3)
  found = as_declared(config).listed[0].options['a']
  assert repr(found) == 'Pair(a=(1, 2), b=3)'


def test_what_is_of_another_type_is_left_to_be_refused():
  endless: list = []
  endless.append(endless)
  for value in (endless, 'abc', None, {1: 2}, np.arange(3), [len]):
    config = Config(listed=(entry('iso', value, dict(a=value)),))
    with pytest.raises(ranges.UserError):
      ranges.check(as_declared(config))


def test_both_ways_in_take_them(tmp_path, monkeypatch):
  file = tmp_path / 'my.py'
  file.write_text(
      'from vfljax.runner.config import *\nimport numpy as np\n'
      'def get_config():\n'
      "  return Config(seeds=np.int64(3), listed=[Entry('iso', [1., 2.])],\n"
      '                model=ModelConfig(bottom=[8, 4]))\n'
  )
  found = arguments.parse(['vfljax', f'--config={file}']).config
  assert type(found.seeds) is int and found.model.bottom == (8, 4)
  assert found.listed == (Entry('iso', (1., 2.)),)

  class Enough(Exception):
    pass

  def seen(config, table):
    assert repr(config) == repr(WANT)
    raise Enough

  monkeypatch.setattr(checks, 'from_config', seen)
  monkeypatch.setattr(checks.combinations, 'check', lambda config: None)
  table: Any = None
  with pytest.raises(Enough):
    checks.make(odd(), table)
