"""Every config of every experiment: what it says, whether it can be made."""
import importlib
from pathlib import Path

import pytest

from vfljax.runner import config as configs
from vfljax.runner import setting as settings
from vfljax.runner.config import Config

ROOT = Path(__file__).parents[2]
CONFIGS = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / 'experiments').rglob('*.py')
    if '\ndef get_config' in path.read_text()
)


def load(name: str):
  return importlib.import_module('.'.join(Path(name).with_suffix('').parts))


def labels(entry) -> list[str]:
  """What the results call an entry at each point of its grid."""
  return [
      ' '.join([entry.name, *(f'{k}={v:g}' for k, v in point.items())])
      for point in settings.grid(entry)
  ]


@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_says_how_it_is_run_and_names_what_there_is(name):
  module = load(name)
  config = module.get_config()
  assert isinstance(config, Config)
  assert name in (module.__doc__ or ''), 'its own command'
  entries = {entry.name for entry in configs.entries(config, classes=2)}
  attacks = configs.attack_names(config, classes=2)
  assert attacks or config.quitting
  rows = entries | {label for entry in config.listed for label in labels(entry)}
  assert {p.defense for p in config.paper} <= rows
  known = {*attacks, *(v.name for v in config.variants), None}
  assert {p.attack for p in config.paper} <= known


@pytest.mark.parametrize('name', CONFIGS)
def test_a_configs_defenses_take_their_strengths_and_options(name):
  config = load(name).get_config()
  for entry in configs.entries(config, classes=2):
    for others in settings.grid(entry):
      for strength in entry.strengths or (None,):
        assert settings.build(entry, strength, **others)


def test_no_two_configs_write_to_the_same_experiment():
  names = [load(name).get_config().experiment for name in CONFIGS]
  assert sorted(names) == sorted(set(names))
