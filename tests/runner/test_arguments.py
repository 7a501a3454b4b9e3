"""Where a config file may lie, and where its results go by default."""
from pathlib import Path

import pytest

from vfljax.runner import arguments

CONFIG = (
    'from {neighbour} import SEEDS\n'
    'from vfljax.runner.config import Config\n'
    'def get_config():\n'
    '  return Config(seeds=SEEDS)\n'
)


@pytest.fixture
def write(tmp_path, monkeypatch):
  """A function that writes a config and its neighbour; we are in `here`."""
  monkeypatch.syspath_prepend('')  # It takes back what is added to sys.path.
  (tmp_path / 'here').mkdir()
  monkeypatch.chdir(tmp_path / 'here')

  def make(folder, neighbour):
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f'{neighbour}.py').write_text('SEEDS = 3\n')
    (Path(folder) / 'my.py').write_text(CONFIG.format(neighbour=neighbour))
    return arguments.parse(['vfljax', f'--config={folder}/my.py'])

  return make


@pytest.mark.parametrize('folder, neighbour, workdir', [
    ('.', 'beside_us', 'out/my'),
    ('deep/er/yet', 'below_us', 'out/yet/my'),
    ('experiments', 'as_in_a_clone', 'out/my'),
    ('experiments/paper', 'of_a_paper', 'out/paper/my'),
    ('../there', 'elsewhere', 'out/there/my'),
])
def test_neighbours_and_the_default_workdir(write, folder, neighbour, workdir):
  found = write(folder, neighbour)
  assert found.config.seeds == 3
  assert found.workdir == str(Path(workdir))
