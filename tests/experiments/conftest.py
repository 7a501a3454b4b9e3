"""Records of a test's own, in place of those of the papers."""
import json

import pytest

from experiments import evidence


@pytest.fixture
def keep(tmp_path, monkeypatch):
  """A function that keeps a record of GAFM's under a name."""
  folder = tmp_path / 'gafm' / 'records'
  folder.mkdir(parents=True)
  monkeypatch.setattr(evidence, 'HERE', tmp_path)
  evidence.load.cache_clear()
  yield lambda name, made: (folder / f'{name}.json').write_text(
      json.dumps(made)
  )
  evidence.load.cache_clear()
