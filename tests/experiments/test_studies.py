"""Records of scripts: what makes them again, and what is compared."""
import json
import sys

import numpy as np
import pytest

from experiments import studies
from experiments.gafm import averaging, terms
from experiments.vmask import table1, variations
from vfljax import data
from vfljax.runner.cli import asking
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import recording

TABLE = data.load('wine')
NAME = 'experiments.vmask.table1'


@pytest.fixture
def made(tmp_path):
  """(words, what was measured) -> the record."""
  def make(words=('mlp3', '/data/mnist.npz'), seeds=(0, 1), **found):
    file = tmp_path / 'record.json'
    begun = studies.begin(NAME, words)
    studies.write(str(file), begun, seeds, TABLE, **found)
    return studies.read(file)

  return make


def test_it_says_what_makes_it_again(made):
  found = made(sets={'1,2': [[0.1, 0.2], [0.3, 0.4]]})
  assert found['command'] == f'python -m {NAME} mlp3 mnist.npz'
  assert found['samples'] == asking.fingerprint(TABLE)
  assert found['versions'] == recording.versions()
  assert found['code'] == recording.code() and found['seconds'] >= 0
  assert found['seeds'] == [0, 1] and found['by_seed'] == ['sets']


@pytest.mark.parametrize('words, kept', [
    (['--out=/x/y.json', '--seeds=2'], ' --seeds=2'),
    (['--out', '/x/y.json', '--authors'], ' --authors'),
    (['--work=/x', '--other_path=/data/a.npz'], ' --other_path=a.npz'),
    (["--only=VMask 50x5"], " '--only=VMask 50x5'"),
])
def test_places_are_the_users_own(made, words, kept):
  assert made(words)['command'] == f'python -m {NAME}{kept}'


def test_again_it_has_first_seeds_and_data_of_a_folder(made, tmp_path):
  (tmp_path / 'mnist.npz').touch()
  (tmp_path / 'other.npz').touch()
  record = made(
      ('mlp3', 'mnist.npz', '--seeds=2', '--other=digits',
       '--other_path=other.npz'), a=[1, 2],
  )
  for seeds, wanted in ((1, 1), (9, 2)):
    argv = studies.command(record, seeds, str(tmp_path), tmp_path / 'again')
    assert argv == [
        sys.executable, '-m', NAME, 'mlp3', f'{tmp_path}/mnist.npz',
        '--other=digits', f'--other_path={tmp_path}/other.npz',
        f'--seeds={wanted}', f'--out={tmp_path}/again',
    ]


def test_every_number_is_a_row(made):
  record = made(
      rows={'2 parties': {'main': [0.5, 0.6], 'attack': [[1, 2], [3, 4]]}},
      none=[None, 0.1], note=[7, 8],
  )
  record['by_seed'].remove('note')
  *found, lost = studies.rows(record)
  assert found == [
      ['rows', '2 parties', 'main', [0.5, 0.6]],
      ['rows', '2 parties', 'attack', '[0]', [1, 3]],
      ['rows', '2 parties', 'attack', '[1]', [2, 4]],
  ]
  assert lost[0] == 'none' and np.isnan(lost[1][0]) and lost[1][1] == 0.1


def test_places_are_told_in_the_order_of_the_axes(made):
  """[seeds, epochs, attack runs] of numbers that are all others."""
  values = np.arange(12.0).reshape(2, 3, 2)
  found = studies.rows(made(curve=values.tolist()))
  assert len(found) == 6
  assert found[-2] == ['curve', '[2]', '[0]', values[:, 2, 0].tolist()]


def test_what_is_not_by_seed_is_refused(made):
  record = made(deltas=[1, 2, 3])
  with pytest.raises(UserError, match='deltas: 3 entries of 2 seeds'):
    studies.rows(record)


def test_a_difference_is_seen_in_a_diff(made, tmp_path):
  text = studies.text(made(
      sets={'1': [[float(np.float32(0.1)), 0.2], [1, 2]], '2': [0, 0]}
  ))
  assert '\n  "1": [[0.1, 0.2], [1, 2]],\n  "2": [0, 0]\n }\n' in text
  assert json.loads(text)['sets']['2'] == [0, 0]


def test_nothing_is_written_unless_asked_for(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  studies.write('', studies.begin(NAME, ()), (0,), None, a=[1])
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('text', ['', '[]', '{}', '{"format": "other"}'])
def test_other_files_are_no_records(tmp_path, text):
  (tmp_path / 'x.json').write_text(text)
  with pytest.raises(UserError, match='is no record of a study'):
    studies.read(tmp_path / 'x.json')


def test_a_part_that_was_measured_stays(tmp_path):
  asked = []
  measure = lambda: asked.append(1) or dict(best=[0.5, len(asked)])
  about = dict(seeds=2)
  assert studies.part(None, 'VMask', about, measure)[0] == dict(best=[0.5, 1])
  assert not [*tmp_path.iterdir()]
  first = studies.part(tmp_path / 'work', 'VMask', about, measure)
  assert studies.part(tmp_path / 'work', 'VMask', about, measure) == first
  assert studies.part(tmp_path / 'work', 'NG', about, measure)[0] != first[0]
  assert len(asked) == 3


def test_a_part_of_something_else_is_measured_again(tmp_path, monkeypatch):
  measured = iter(range(9))
  ask = lambda **about: studies.part(
      tmp_path, 'VMask', about, lambda: next(measured)
  )[0]
  assert [ask(seeds=n) for n in (2, 2, 3, 3)] == [0, 0, 1, 1]
  monkeypatch.setattr(recording, 'code', lambda: 'another')
  assert [ask(seeds=3), ask(seeds=3)] == [2, 2]
  monkeypatch.setattr(recording, 'versions', dict)
  assert ask(seeds=3) == 3


@pytest.mark.parametrize('script', [averaging, terms, table1, variations])
@pytest.mark.parametrize('seeds', ['0', '-1', '1.5', ''])
def test_a_study_of_no_seed_is_refused(script, seeds, capsys):
  """It would have written an empty record."""
  with pytest.raises(SystemExit) as error:
    script.main([f'--seeds={seeds}', 'a', 'b'])
  assert error.value.code == 2
  assert f"--seeds: '{seeds}' is no whole number" in capsys.readouterr().err
