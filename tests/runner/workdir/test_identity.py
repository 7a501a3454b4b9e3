"""Whose work directory it is: refusals, and a configuration that is mended."""
import json
from types import SimpleNamespace

import pytest

from tests.workdirs import CONFIG, UNITS, completed, everything, run_all
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import identity, store


def test_another_config_is_refused_with_the_field_named(tmp_path):
  store.open_workdir(tmp_path, CONFIG, UNITS)
  store.open_workdir(tmp_path, json.loads(json.dumps(CONFIG)), UNITS)
  other = CONFIG | {'train': {'epochs': 20}, 'note': 'x'}
  before = (tmp_path / 'config.json').read_text()
  with pytest.raises(UserError) as e:
    store.open_workdir(tmp_path, other, UNITS)
  message = str(e.value)
  assert 'train.epochs is 50 there and 20 here' in message
  assert 'note is not set there and "x" here' in message
  assert '--workdir' in message and len(message.splitlines()) <= 2
  assert (tmp_path / 'config.json').read_text() == before


def test_of_lists_that_differ_is_said_what_is_new(tmp_path):
  # A defense added to a config file printed both lists whole, a page of JSON.
  entry = lambda name, *strengths: dict(
      defense=name, strengths=strengths, options={}, label='', after=[], grid={}
  )
  first = CONFIG | dict(listed=[entry('none'), entry('iso', 1.0)])
  store.open_workdir(tmp_path, first, UNITS)

  def refused(**changed):
    with pytest.raises(UserError) as e:
      store.open_workdir(tmp_path, first | changed, UNITS)
    return str(e.value)

  more = refused(listed=[*first['listed'], entry('marvell', 2.0)])
  assert (
      ': listed has {"defense": "marvell", "strengths": [2.0]} only here.\n'
  ) in more
  assert 'join them with vfljax merge' in more
  stronger = refused(listed=[entry('none'), entry('iso', 2.0)])
  assert 'join them with vfljax merge' in stronger
  # Two methods of one name are not parts of one experiment.
  method = entry('iso', 1.0) | dict(options=dict(power=2))
  assert 'merge' not in refused(listed=[entry('none'), method])
  other = refused(listed=[entry('none'), entry('iso', 2.0)], seeds=3, note='x')
  assert '"strengths": [1.0]} only there and {"defense": "iso"' in other
  assert 'seeds is 2 there and 3 here' in other and 'merge' not in other
  swapped = refused(listed=first['listed'][::-1])
  assert 'listed is [{' in swapped and len(swapped) < 700


def test_an_edited_file_is_named_if_nothing_else_differs(tmp_path):
  first = CONFIG | dict(sources={'mine.py': 'a', 'other.py': 'b'})
  store.open_workdir(tmp_path, first, UNITS)

  def refused(**changed):
    with pytest.raises(UserError) as e:
      store.open_workdir(tmp_path, first | changed, UNITS)
    return str(e.value)

  edited = {'mine.py': 'c', 'other.py': 'b'}
  assert refused(sources=edited).startswith('mine.py has changed since')
  both = {'mine.py': 'c', 'other.py': 'd'}
  assert refused(sources=both).startswith('mine.py, other.py has changed')
  more = refused(sources=edited, note='x')
  assert 'belongs to another configuration' in more and 'note is not' in more
  assert 'another configuration: note' in refused(note='x')


def test_a_folder_without_a_configuration_has_none(tmp_path):
  assert identity.read(tmp_path) == identity.said(tmp_path) == {}
  store.open_workdir(tmp_path, CONFIG, UNITS)
  expected = json.loads(json.dumps(CONFIG))
  for name in (identity.CONFIG, identity.COPY):
    whole = (tmp_path / name).read_text()
    (tmp_path / name).write_text('{')  # The other one is enough.
    assert identity.read(tmp_path) == identity.said(tmp_path) == expected
    (tmp_path / name).write_text(whole)
  for name in (identity.CONFIG, identity.COPY):
    (tmp_path / name).write_text('{')
  with pytest.raises(UserError, match='is damaged: not JSON'):
    identity.read(tmp_path)
  assert identity.said(tmp_path) == {}


def test_what_cannot_be_read_now_says_nothing(tmp_path, monkeypatch):
  """Who needs it will report that."""
  store.open_workdir(tmp_path, CONFIG, UNITS)

  def refuse(place):
    raise UserError(f'{place} cannot be read now')

  monkeypatch.setattr(identity.parts, 'opened', refuse)
  assert identity.said(tmp_path) == {}
  with pytest.raises(UserError, match='cannot be read now'):
    identity.read(tmp_path)


def test_tuples_and_lists_of_a_config_are_the_same(tmp_path):
  first = store.open_workdir(tmp_path, {'widths': (3, 4)}, UNITS)
  again = store.open_workdir(tmp_path, {'widths': [3, 4]}, UNITS)
  assert first == again
  assert store.read_config(tmp_path) == {'widths': [3, 4]}


def test_results_without_a_config_are_not_overwritten(tmp_path):
  (tmp_path / 'results.jsonl').write_text('{"value": 1}\n')
  with pytest.raises(UserError, match='no config.json'):
    store.open_workdir(tmp_path, CONFIG, UNITS)
  assert (tmp_path / 'results.jsonl').read_text() == '{"value": 1}\n'


STRANGERS = {
    'notes and drafts': {'notes.tmp': 'mine', 'a/b.tmp': 'mine'},
    'a config of another program': {'config.json': '{"hidden_size": 8}'},
    'a list': {'config.json': '[1, 2]'},
    'text': {'config.json': 'seeds: 3'},
    'parts without a config': {'parts/none.json': '{}'},
    'results without a config': {'results.jsonl': '{"value": 1}'},
    'a broken config of ours': {'config.json': '{"data": 3, "seeds": [}'},
    'what looks like ours inside': {'x': '', '.vfljax-x.tmp': 'mine'},
    'what we would remove': {'.vfljax-x.tmp': 'mine'},
    'a copy that is broken': {'.config.json': '{}'},
    'a log and a paper': {'run.log': 'begun', 'paper.tex': 'mine'},
    'a folder called as logs are': {'run.log/x': 'mine', 'log/x': 'mine'},
}


def test_a_configuration_without_a_field_of_ours_is_no_other_experiment(
    tmp_path
):
  """Its fields are not told one by one."""
  (tmp_path / 'config.json').write_text('{"hidden_size": 8}')
  with pytest.raises(UserError, match='config.json was not written by vfljax'):
    store.open_workdir(tmp_path, CONFIG, UNITS)
  assert [file.name for file in tmp_path.iterdir()] == ['config.json']


@pytest.mark.parametrize('case', STRANGERS)
def test_a_folder_of_others_is_refused_and_left_as_it_is(tmp_path, case):
  for name, text in STRANGERS[case].items():
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
  before = everything(tmp_path)
  with pytest.raises(UserError, match='--workdir') as e:
    store.open_workdir(tmp_path, CONFIG, UNITS, completed)
  assert len(str(e.value).splitlines()) == 2
  assert everything(tmp_path) == before


def test_a_start_that_was_killed_at_once_can_be_repeated(tmp_path):
  (tmp_path / '.lock').write_text('')
  (tmp_path / 'parts').mkdir()  # As version 0.1 began.
  (tmp_path / '.vfljax-config.json.tmp').write_text('{"da')
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  assert store.read_config(tmp_path) == CONFIG
  assert not any(work.done(unit) for unit in UNITS)


@pytest.mark.parametrize('name', [
    'run.log', 'slurm-1.out', 'slurm-1.err', 'log', 'stdout', 'stderr',
    '.DS_Store', '.gitkeep', '.nfs00a1', '.ipynb_checkpoints/x', 'lost+found/',
    'cache/jit_f-0-cache',
])
def test_what_is_nobodys_work_keeps_no_folder_from_being_used(
    tmp_path, monkeypatch, name
):
  (tmp_path / name).parent.mkdir(exist_ok=True)
  if name.endswith('/'):
    (tmp_path / name).mkdir()
  else:
    (tmp_path / name).write_text('begun')
  if name.startswith('cache'):
    with pytest.raises(UserError, match='holds files'):  # Of whom?
      store.open_workdir(tmp_path, CONFIG, UNITS)
    monkeypatch.chdir(tmp_path)
    kept = SimpleNamespace(jax_compilation_cache_dir='cache')
    monkeypatch.setattr(identity.jax, 'config', kept)
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert (tmp_path / name).exists()
  if not name.endswith('/'):
    assert (tmp_path / name).read_text() == 'begun'


def test_two_first_starts_at_once(tmp_path, monkeypatch):
  """One looks, the other begins, the one looks again: it is our folder."""
  whole = identity._is_new

  def begun_meanwhile(path):
    monkeypatch.setattr(identity, '_is_new', whole)
    run_all(store.open_workdir(tmp_path, CONFIG, UNITS))
    return whole(path)

  monkeypatch.setattr(identity, '_is_new', begun_meanwhile)
  assert identity.check(tmp_path, CONFIG) == {}
  assert (tmp_path / 'parts/none.json').exists()


@pytest.mark.parametrize('how', ['cut', 'flipped', 'gone', 'a folder', 'value'])
def test_the_configuration_is_mended_from_its_copy(tmp_path, capsys, how):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  run_all(work)
  file, results = tmp_path / 'config.json', tmp_path / 'results.jsonl'
  before, numbers = file.read_text(), results.read_text()
  file.unlink()
  if how == 'a folder':
    file.mkdir()
  elif how != 'gone':
    file.write_text({
        'cut': before[:-9], 'flipped': before.replace(':', ';', 1),
        'value': before.replace('50', '58'),
    }[how])
  with pytest.raises(UserError):  # It still is not anybody's.
    store.open_workdir(tmp_path, CONFIG | {'seeds': 9}, UNITS)
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert file.read_text() == before and results.read_text() == numbers
  said = capsys.readouterr().err.splitlines()
  assert len(said) == (how != 'gone')
  assert all('config.json is damaged' in line for line in said)
  assert (tmp_path / 'damaged/config.json').exists() == (how != 'gone')


@pytest.mark.parametrize('asked', ['wine', 'letter'])
def test_an_edited_configuration_does_not_claim_results_of_another(
    tmp_path, asked
):
  """The copy has a digest: it is what the parts were computed with."""
  run_all(store.open_workdir(tmp_path, CONFIG, UNITS))
  edited = CONFIG | {'data': {'name': 'wine'}}
  (tmp_path / 'config.json').write_text(json.dumps(edited))
  before, other = everything(tmp_path), CONFIG | {'data': {'name': asked}}
  said = f'json was edited.*: .*data.name is "digits" there and "{asked}" here'
  with pytest.raises(UserError, match=said) as error:
    store.open_workdir(tmp_path, other, UNITS)
  assert len(str(error.value).splitlines()) == 2
  assert everything(tmp_path) == before
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert store.read_config(tmp_path) == CONFIG


def test_without_a_copy_config_json_counts(tmp_path):
  store.open_workdir(tmp_path, CONFIG, UNITS)
  (tmp_path / '.config.json').unlink()  # As version 0.1 left it.
  with pytest.raises(UserError, match='seeds is 2 there and 9 here'):
    store.open_workdir(tmp_path, CONFIG | {'seeds': 9}, UNITS)
  (tmp_path / '.config.json').write_text('{}')
  with pytest.raises(UserError, match='seeds is 2 there and 9 here'):
    store.open_workdir(tmp_path, CONFIG | {'seeds': 9}, UNITS)
  store.open_workdir(tmp_path, CONFIG, UNITS)


def test_a_damaged_configuration_without_a_copy_is_refused(tmp_path):
  run_all(store.open_workdir(tmp_path, CONFIG, UNITS))
  (tmp_path / '.config.json').unlink()  # Version 0.1 wrote none.
  store.open_workdir(tmp_path, CONFIG, UNITS)
  for name in ('.config.json', 'config.json'):
    (tmp_path / name).write_text('{"data": {"na')
  before = everything(tmp_path)
  with pytest.raises(UserError, match=r'config.json is damaged: not JSON') as e:
    store.open_workdir(tmp_path, CONFIG, UNITS)
  assert 'to start again' in str(e.value)
  with pytest.raises(UserError):
    store.read_config(tmp_path)
  assert everything(tmp_path) == before
