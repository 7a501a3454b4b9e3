"""Every config and each of its variants: what it says, if it can be made."""
import importlib
from pathlib import Path
import re

import pytest

from vfljax.runner import variants
from vfljax.runner.cli import arguments, listing
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError
from vfljax.runner.experiment.choosing import attack_names, entries
from vfljax.runner.experiment.grids import grid
from vfljax.runner.experiment.setting import build

ROOT = Path(__file__).parents[2]
FILES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / 'experiments').rglob('*.py')
    if '\ndef get_config' in path.read_text()
)


def load(file: str):
  return importlib.import_module('.'.join(Path(file).with_suffix('').parts))


def variants_of(file: str) -> tuple[str, ...]:
  """The file's variants, or () where it is one config."""
  return getattr(load(file), 'VARIANTS', ())


# As one types them: 'experiments/vmask/table2.py:tm'.
CONFIGS = [
    name for file in FILES
    for name in [f'{file}:{v}' for v in variants_of(file)] or [file]
]


def made(name: str) -> Config:
  file, variant = variants.split(name)
  return load(file).get_config(*[variant] if variant else [])


def labels(entry) -> list[str]:
  """What the results call an entry at each point of its grid."""
  return [
      ' '.join([entry.name, *(f'{k}={v:g}' for k, v in point.items())])
      for point in grid(entry)
  ]


@pytest.mark.parametrize('file', FILES)
def test_a_config_says_how_it_is_run(file):
  said = load(file).__doc__ or ''
  commands = re.findall(r'--config=(\S+)', said)
  assert any(command.startswith(file) for command in commands)
  for command in commands:
    assert isinstance(made(command), Config)
  for variant in variants_of(file):
    for word in variant.split(','):
      assert re.search(rf'\b{word}\b', said), 'each variant is told of'


@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_names_what_there_is(name):
  config = made(name)
  assert isinstance(config, Config)
  chosen = {entry.name for entry in entries(config, classes=2)}
  attacks = attack_names(config, classes=2)
  assert attacks or config.quitting
  rows = chosen | {label for entry in config.listed for label in labels(entry)}
  assert {p.defense for p in config.paper} <= rows
  known = {*attacks, *(v.name for v in config.variants), None}
  assert {p.attack for p in config.paper} <= known


@pytest.mark.parametrize('name', CONFIGS)
def test_a_configs_defenses_take_their_strengths_and_options(name):
  config = made(name)
  for entry in entries(config, classes=2):
    for others in grid(entry):
      for strength in entry.strengths or (None,):
        assert build(entry, strength, **others)


def test_no_two_configs_write_to_the_same_experiment():
  names = [made(name).experiment for name in CONFIGS]
  assert sorted(names) == sorted(set(names))


def test_no_two_configs_have_the_same_work_directory(monkeypatch):
  monkeypatch.chdir(ROOT)
  parse = lambda name: arguments.parse(['launch.py', f'--config={name}'])
  folders = [parse(name).workdir for name in CONFIGS]
  assert sorted(folders) == sorted(set(folders))
  name = 'experiments/kang2022/vnn.py:vhnn,spambase'
  assert folders[CONFIGS.index(name)] == 'out/kang2022/vnn-vhnn-spambase'


@pytest.mark.parametrize('file', [f for f in FILES if variants_of(f)])
@pytest.mark.parametrize('variant', ['', 'nothing'])
def test_a_variant_that_there_is_not_is_refused(file, variant):
  with pytest.raises(UserError) as refused:
    load(file).get_config(variant)
  for known in variants_of(file):
    assert known in str(refused.value)


def test_the_list_has_every_file_and_every_variant_once(monkeypatch):
  monkeypatch.chdir(ROOT)
  words = [
      line.split()[0] for line in listing.text('experiments').splitlines()[1:]
  ]
  assert sorted(words) == sorted({*FILES, *CONFIGS})


def test_the_list_of_a_folder_of_ones_own(tmp_path, monkeypatch):
  """A config that cannot be imported stands in it, and says so."""
  folder = tmp_path / 'experiments'
  folder.mkdir()
  ending = 'VARIANTS = tuple("ab")\ndef get_config(variant): ...\n'
  (folder / 'own_broken.py').write_text(f'"""Broken."""\n1 / 0\n{ending}')
  (folder / 'own_plain.py').write_text('"""Plain."""\ndef get_config(): ...\n')
  monkeypatch.chdir(tmp_path)
  lines = listing.text('experiments').splitlines()[1:]
  assert [line.split()[0] for line in lines] == [
      'experiments/own_broken.py', 'experiments/own_broken.py:VARIANT',
      'experiments/own_plain.py',
  ]
  assert 'ZeroDivisionError' in lines[1] and lines[2].endswith('Plain.')
