"""Damaged parts: set aside and run again, or left for another day."""
import errno
import json
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from tests.workdirs import CONFIG, UNITS, everything, rows, run_all
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import parts, store
from vfljax.runner.workdir.shares import Share


DAMAGES = {
    'cut': lambda content: content[:-20], 'emptied': lambda content: b'',
    'garbage': lambda content: bytes(range(256)), 'null': lambda content: b'{}',
    'flipped': lambda content: content[:90] + b'~' + content[91:],
    'last': lambda content: content[:-1] + bytes([content[-1] ^ 1]),
}


@pytest.mark.parametrize('how', [*DAMAGES, 'a folder', 'gone'])
@pytest.mark.parametrize('name', ['parts/iso@0.json', 'parts/iso@0.npz'])
def test_a_damaged_part_runs_again(tmp_path, capsys, name, how):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  curves = {'auc': np.zeros((2, 40))}
  work.save('none', rows('none'), {}, curves)
  work.save('iso/0', rows('iso/0'), {}, curves)
  before = (tmp_path / 'results.jsonl').read_bytes()
  file = tmp_path / name
  content = file.read_bytes()
  file.unlink()
  if how == 'a folder':
    file.mkdir()
  elif how != 'gone':
    file.write_bytes(DAMAGES[how](content))
  again = store.open_workdir(tmp_path, CONFIG, UNITS)
  assert [again.done(unit) for unit in UNITS] == [True, False, False, False]
  assert {r['defense'] for r in store.read_results(tmp_path)} == {'none'}
  said = capsys.readouterr().err.splitlines()
  if name.endswith('npz') or how != 'gone':  # A part that is gone was never.
    assert len(said) == 1 and 'its unit runs again' in said[0]
    assert said[0].startswith('parts/iso@0.json is damaged: ')
    assert (tmp_path / 'damaged/parts@iso@0.json').exists()
  again.save('iso/0', rows('iso/0'), {}, curves)
  assert (tmp_path / 'results.jsonl').read_bytes() == before
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert not capsys.readouterr().err


@pytest.mark.parametrize('number', [
    errno.EACCES, errno.EMFILE, errno.ESTALE, errno.ENOMEM, errno.EIO
])
@pytest.mark.parametrize('name', ['iso@0.json', 'iso@0.npz'])
def test_what_cannot_be_read_today_is_not_damaged(
    tmp_path, monkeypatch, name, number
):
  """But for a sector that is gone: that part runs again."""
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('iso/0', rows('iso/0'), {}, {'auc': np.zeros((2, 40))})
  before, read = everything(tmp_path), Path.read_bytes

  def refuse(self):
    if self.name == name:
      raise OSError(number, os.strerror(number), str(self))
    return read(self)

  with monkeypatch.context() as refusing:
    refusing.setattr(Path, 'read_bytes', refuse)
    if number == errno.EIO:
      assert not store.open_workdir(tmp_path, CONFIG, UNITS).done('iso/0')
      return
    with pytest.raises(UserError, match=os.strerror(number)) as error:
      store.open_workdir(tmp_path, CONFIG, UNITS)
  assert len(str(error.value).splitlines()) == 2
  assert everything(tmp_path) == before


@pytest.mark.parametrize('error', [MemoryError, ValueError])
def test_whole_curves_that_numpy_does_not_read_stay(
    tmp_path, monkeypatch, error
):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('none', rows('none'), {}, {'auc': np.zeros((2, 40))})

  def refuse(*_):
    raise error

  monkeypatch.setattr(np, 'load', refuse)
  with pytest.raises(error):
    store.open_workdir(tmp_path, CONFIG, UNITS)
  assert work.done('none') and not (tmp_path / 'damaged').exists()


def test_what_is_damaged_twice_is_kept_twice(tmp_path):
  for _ in range(3):
    work = store.open_workdir(tmp_path, CONFIG, UNITS)
    work.save('none', rows('none'), {})
    (tmp_path / 'parts/none.json').write_text('')
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert {p.name for p in (tmp_path / 'damaged').iterdir()} == {
      'parts@none.json', 'parts@none.json-2', 'parts@none.json-3'
  }


def as_before(file):
  """Makes of a part what version 0.1 wrote: no digests."""
  part = json.loads(file.read_text())
  file.write_text(json.dumps({k: part[k] for k in ('unit', 'rows', 'timing')}))
  return part


def test_parts_without_digests_are_taken_if_they_can_be(tmp_path, capsys):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  for unit in UNITS:
    work.save(unit, rows(unit), {}, {'auc': np.zeros((2, 40))})
  before = (tmp_path / 'results.jsonl').read_bytes()
  files = [tmp_path / 'parts' / (u.replace('/', '@') + '.json') for u in UNITS]
  for file in files:
    as_before(file)
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert (tmp_path / 'results.jsonl').read_bytes() == before
  assert not capsys.readouterr().err
  first = json.loads(files[0].read_text())
  first['rows'][0]['value'] = '0.5'
  files[0].write_text(json.dumps(first))
  files[1].write_text(files[1].read_text().replace('"metric"', '"metrik"', 1))
  files[2].write_text(files[3].read_text())  # Another unit's.
  curves = files[3].with_suffix('.npz')
  curves.write_bytes(curves.read_bytes()[:-30])
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  assert not any(map(work.done, UNITS)) and not store.read_results(tmp_path)
  assert len(capsys.readouterr().err.splitlines()) == 4


@pytest.mark.parametrize('change, why', [
    (dict(timing=None), 'it has no timing'), (dict(sha256=7), 'its digest is'),
    (dict(sha256=None), 'its digest is none'),
    (dict(sha256=''), 'it is not what was written'),
])
def test_a_part_without_a_timing_or_a_digest_runs_again(
    tmp_path, capsys, change, why
):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('none', rows('none'), {})
  file = tmp_path / 'parts/none.json'
  part = json.loads(file.read_text())
  if 'timing' in change:
    part = {k: part[k] for k in ('unit', 'rows')}
  file.write_text(json.dumps(part | change))
  assert not store.open_workdir(tmp_path, CONFIG, UNITS).done('none')
  assert why in capsys.readouterr().err


def test_a_header_that_claims_too_much_is_damaged(tmp_path):
  """Who believes it has no memory left."""
  parts.file(tmp_path, 'iso', '.json').parent.mkdir()
  parts.file(tmp_path, 'iso', '.json').write_text(
      json.dumps(dict(unit='iso', rows=[], timing={}))
  )
  arrays = parts.file(tmp_path, 'iso', '.npz')
  np.savez(arrays, x=np.zeros(99999))  # More than is read with the header.
  assert parts.curves(tmp_path, 'iso')['x'].shape == (99999,)
  whole, claim = arrays.read_bytes(), b'(777777777777777,), }'
  assert whole.count(b'(99999,), }') == 1
  odd = whole.replace(b'(99999,), }'.ljust(len(claim)), claim)
  assert odd != whole and len(odd) == len(whole)
  arrays.write_bytes(odd)
  with pytest.raises(parts.Damaged, match='no archive of arrays'):
    parts.curves(tmp_path, 'iso')


OPTIONAL = {'strength', 'attack', 'split', 'value'}
NUMBERS = {'strength', 'seed', 'value'}


@pytest.mark.parametrize('field', store.FIELDS)
def test_a_row_has_values_of_its_fields_types(field):
  other = rows('none')[0]
  row = {name: other[name] for name in store.FIELDS}
  assert parts.is_row(row) and not parts.is_row(other)
  fits = lambda value: parts.is_row(row | {field: value})
  assert fits(None) == (field in OPTIONAL)
  assert fits('x') == (field not in NUMBERS)
  assert fits(3) == fits(-3) == (field in NUMBERS)
  assert fits(0.5) == (field in NUMBERS - {'seed'})
  wrong = True, [1], {}, float('inf'), float('-inf'), float('nan'), b'x'
  assert not any(map(fits, wrong))
  del row[field]
  assert not parts.is_row(row)
  assert not parts.is_row(row | {field: 'x'} | {'more': 1})


@pytest.mark.parametrize('field, value', [
    ('value', [1]), ('seed', True), ('strength', 'x'), ('attack', 'x'),
])
def test_a_part_without_digests_and_with_a_row_of_other_types(
    tmp_path, capsys, field, value
):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('none', rows('none'), {})
  file = tmp_path / 'parts/none.json'
  part = as_before(file)
  part['rows'][0][field] = value
  old = {k: part[k] for k in ('unit', 'rows', 'timing')}
  file.write_text(json.dumps(old))
  taken = field == 'attack'
  assert store.open_workdir(tmp_path, CONFIG, UNITS).done('none') == taken
  assert ('its rows do not have' in capsys.readouterr().err) != taken


@pytest.mark.parametrize('name, folder', [
    ('results.jsonl', True), ('timings.json', True), ('report.html', True),
    ('summary.md', True), ('parts', False), ('checkpoints', False),
    ('checkpoints/iso@1', False), ('parts/iso@1.npz', True),
])
def test_what_stands_in_the_way_is_set_aside(tmp_path, capsys, name, folder):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  place = tmp_path / name
  if place.is_dir():
    place.rmdir()
  place.unlink(missing_ok=True)
  place.mkdir() if folder else place.write_text('')
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('iso/1', 1, [jnp.ones(2)])
  run_all(work)
  assert f'{name} is in the way' in capsys.readouterr().err
  assert len(store.read_results(tmp_path)) == 8


def test_lines_are_read_as_they_were_written():
  # Two of the characters end a line for `str.splitlines`, none for JSON.
  rows = [dict(a=1, file='odd\u2028name\x85.csv'), dict(a=None), [], 2.5]
  assert parts.lines(''.join(map(parts.dumps, rows))) == rows
  assert parts.lines('') == []


@pytest.mark.parametrize('text', [
    '{"a": 1\n"b": 2}\n',  # One value, but for the comma between lines.
    '{"a": 1}, {"a": 2}\n', '{"a": 1}\n{"a"', '1\n]\n[\n',
])
def test_a_line_that_is_no_value_is_refused(text):
  with pytest.raises(ValueError):
    parts.lines(text)


@pytest.mark.parametrize('content', [
    b'{"value"', b'[1]', b'\xff\xfe', b'{"a": 1}'
])
def test_damaged_results_are_written_anew(tmp_path, content):
  run_all(store.open_workdir(tmp_path, CONFIG, UNITS))
  files = [tmp_path / name for name in ('results.jsonl', 'timings.json')]
  before = [file.read_bytes() for file in files]
  for file, read in zip(files, (store.read_results, store.read_timings)):
    file.write_bytes(content)
    with pytest.raises(UserError, match='damaged.*\n.*to write it again'):
      read(tmp_path)
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert [file.read_bytes() for file in files] == before


def test_a_part_damaged_meanwhile_does_not_get_into_the_results(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('none', rows('none'), {})
  before = (tmp_path / 'results.jsonl').read_bytes()
  file = tmp_path / 'parts/none.json'
  file.write_text(file.read_text().replace('0.25', '0.35'))
  with pytest.raises(UserError, match='same command runs'):
    work.save('iso/0', rows('iso/0'), {})
  shared = work._replace(share=Share(0, 2))
  with pytest.raises(UserError, match='of the process that ran it runs'):
    shared.collect()
  assert (tmp_path / 'results.jsonl').read_bytes() == before


def test_curves_that_are_damaged_are_left_out_with_a_word(tmp_path, capsys):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  for unit in UNITS[:2]:
    work.save(unit, rows(unit), {}, {'auc': np.zeros((2, 3))})
  (tmp_path / 'parts/none.npz').write_bytes(b'PK')
  (owner, _), = store.read_curves(tmp_path)
  assert owner['defense'] == 'iso'
  assert 'none.npz is not what was written' in capsys.readouterr().err


def test_no_file_is_called_like_a_device_of_windows():
  for unit, name in {
      'aux': '%61ux', 'Nul': '%4Eul', 'com1.5': '%63om1.5',
      'auxiliary': 'auxiliary', 'con/1': 'con@1', '.a': '%2Ea',
  }.items():
    assert parts.file_name(unit) == name
