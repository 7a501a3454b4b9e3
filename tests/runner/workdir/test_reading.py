"""Files of a work directory that were edited, copied or are another's."""
import dataclasses
import errno
import json
import os
from pathlib import Path

import pytest

from tests.workdirs import CONFIG, UNITS, run_all
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import store


@pytest.fixture
def work(tmp_path):
  made = store.open_workdir(tmp_path, CONFIG, UNITS)
  run_all(made)
  return made.path


@pytest.mark.parametrize('change', [
    dict(value='0.5'), dict(value=[1]), dict(seed='x'), dict(seed=0.5),
    dict(strength='abc'), dict(metric=3), dict(attack=3), dict(defense=None),
    dict(dataset=3), dict(algorithm=None), dict(experiment=7), None,
])
def test_a_line_that_no_run_writes_is_named(work, change):
  file = work / 'results.jsonl'
  lines = file.read_text().splitlines()
  second = json.loads(lines[1]) | (change or {})
  # A blank line counts: so does an editor.
  lines[1] = '\n' + (json.dumps(second) if change else lines[1][:-9])
  file.write_text('\n'.join(lines) + '\n')
  with pytest.raises(UserError, match='results.jsonl is damaged: line 3 is no'):
    store.read_results(work)


@pytest.mark.parametrize('change, said', [
    (dict(unit=3), 'a unit has no name'),
    (dict(classes='x'), 'classes of none is no number'),
    (dict(compile_seconds='x'), 'compile_seconds of none is no number'),
])
def test_a_timing_that_no_run_writes_is_named(work, change, said):
  file = work / 'timings.json'
  first, *rest = json.loads(file.read_text())
  file.write_text(json.dumps([first | change, *rest]))
  with pytest.raises(UserError, match=f'timings.json is damaged: {said}'):
    store.read_timings(work)


@pytest.mark.parametrize('text', [
    '[' * 200 + ']' * 200, '[' * 100_000 + ']' * 100_000,
    '[' + '9' * 5000 + ']',  # Python reads no number of so many digits.
])
def test_what_python_cannot_read_is_damage(work, text):
  for name, read in (
      ('results.jsonl', store.read_results),
      ('timings.json', store.read_timings),
  ):
    before = (work / name).read_text()
    (work / name).write_text(text)
    said = 'line 1 is no meas|it is no list of units'
    with pytest.raises(UserError, match=f'{name} is damaged: ({said})'):
      read(work)
    (work / name).write_text(before)


def test_a_line_of_timings_that_is_no_json_is_named(work):
  file = work / 'timings.json'
  file.write_text(file.read_text()[:-3] + ',\n')
  number = file.read_text().count('\n') + 1
  with pytest.raises(UserError, match=f'damaged: line {number} is no JSON'):
    store.read_timings(work)


def test_a_mark_and_line_ends_of_an_editor_are_no_damage(work):
  before = store.read_results(work), store.read_timings(work)
  for name in 'results.jsonl', 'timings.json':
    text = (work / name).read_text().replace('\n', '\r\n')
    (work / name).write_bytes(text.encode('utf-8-sig'))
  assert (store.read_results(work), store.read_timings(work)) == before


def test_what_is_anothers_is_not_called_damaged(work, monkeypatch):
  real = Path.read_text

  def refused(self, *args, **options):
    if self.name == 'results.jsonl':
      raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
    return real(self, *args, **options)

  monkeypatch.setattr(Path, 'read_text', refused)
  with pytest.raises(UserError, match='Cannot read .*: Permission denied'):
    store.read_results(work)


@pytest.mark.parametrize('change, said', [
    (dict(attack=3), 'attack is 3, not an object'),
    (dict(variants=3), 'variants is 3, not a list'),
    (dict(defenses=3), 'defenses is 3, not text'),
    (dict(attack=dict(when=['max'])), "attack.when is ['max'], not text"),
    (dict(listed=[3]), 'listed has 3, not an object'),
    (dict(listed=[dict(defense='iso', strengths=3)]),
     'listed.strengths is 3, not a list'),
    (dict(listed=[dict(strengths=[3])]),
     'listed has {"strengths": [3]} without a defense'),
    (dict(listed=[dict(defense='iso', options=[3])]),
     'listed.options is [3], not an object'),
    (dict(listed=[dict(defense='iso', after=['mid'])]),
     "after has 'mid', not an object"),
    (dict(listed=[dict(defense='iso', after=[dict(label='mid')])]),
     'after has {"label": "mid"} without a defense'),
    (dict(listed=[dict(defense='iso', after=[dict(defense='mid', label=3)])]),
     'after.label is 3, not text'),
    (dict(listed_attacks=['iso', 3]), 'listed_attacks has 3, not text'),
    (dict(variants=[[]]), 'variants has [], not an object'),
    (dict(sources=3), 'sources is 3, not an object'),
])
def test_a_field_edited_beyond_use_counts_as_its_copy(tmp_path, change, said):
  saved = json.loads(json.dumps(dataclasses.asdict(Config())))
  store.open_workdir(tmp_path, saved, UNITS)
  (tmp_path / 'config.json').write_text(json.dumps(saved | change))
  assert store.read_config(tmp_path) == saved
  (tmp_path / '.config.json').unlink()
  with pytest.raises(UserError) as error:
    store.read_config(tmp_path)
  assert f'config.json is damaged: {said}.\n' in str(error.value)
