"""Loaders without the packages that they need."""
import subprocess
import sys

import numpy as np
from PIL import Image
import pytest

from vfljax import data
from vfljax.need import extra
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import DataConfig
from vfljax.runner.errors import UserError
from vfljax.runner.main import main

RUN = r"pip install 'vfljax\[run\]'"


def test_data_is_imported_and_drawn_with_jax_flax_optax_and_numpy(tmp_path):
  file = tmp_path / 'my.npz'
  np.savez(file, x_train=np.eye(4), y_train=[0, 1, 0, 1])
  code = (
      'import sys\n'
      'for name in ("pandas", "sklearn", "PIL", "pyarrow", "tokenizers",\n'
      '             "tensorflow_datasets", "matplotlib"):\n'
      '  sys.modules[name] = None\n'
      'from vfljax import data\n'
      'assert data.load("synthetic").features.shape == (1000, 10)\n'
      f'assert len(data.load("npz", {str(file)!r}).labels) == 4\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('package, name, label', [
    ('sklearn', 'breast_cancer', ''), ('sklearn', 'digits', ''),
    ('sklearn', 'wine', ''), ('pandas', 'csv', 'y'), ('pandas', 'parquet', 'y'),
    ('pyarrow', 'parquet', 'y'), ('pandas', 'spambase', ''),
    ('pandas', 'credit', ''), ('pandas', 'criteo', ''), ('pandas', 'isic', ''),
])
def test_what_is_missing_and_how_to_get_it(package, name, label, monkeypatch):
  monkeypatch.setitem(sys.modules, package, None)
  with pytest.raises(ValueError, match=f'{package} .*{RUN}') as error:
    data.load(name, label=label)
  assert '\n' not in str(error.value)
  with pytest.raises(UserError, match=RUN):
    load_data(DataConfig(name, label=label))


def test_images_need_pillow(tmp_path, monkeypatch):
  for patient in 'ab':
    for i in range(2):
      folder = tmp_path / patient / '0'
      folder.mkdir(parents=True, exist_ok=True)
      Image.new('RGB', (50, 50)).save(folder / f'{i}.png')
  monkeypatch.setitem(sys.modules, 'PIL', None)
  with pytest.raises(ValueError, match=f'PIL .*{RUN}'):
    data.load('bhi', str(tmp_path))


def test_the_command_line_says_it_in_one_line(tmp_path, monkeypatch, capsys):
  monkeypatch.setitem(sys.modules, 'pandas', None)
  code = main([
      'vfljax', '--config=experiments/quickstart.py',
      f'--workdir={tmp_path / "out"}', '--cache=', '--config.data.name=csv',
      '--config.data.path=my.csv', '--config.data.label=y',
  ])
  said = capsys.readouterr().err
  assert code == 2 and said.count('\n') == 1 and "'vfljax[run]'" in said
  assert not (tmp_path / 'out').exists()


def test_other_extras_and_errors_without_a_name():
  with pytest.raises(ValueError, match=r"^x cannot .*'vfljax\[text\]' \(no x"):
    with extra('text'):
      raise ImportError('no x\nat all', name='x.y')
  with pytest.raises(ValueError, match='^A package cannot be imported'):
    with extra():
      raise ImportError('broken')
