"""The work directory: kills, resumption, damage and refusals."""
import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.runner import disk, identity, store
from vfljax.runner.errors import UserError

UNITS = ['none', 'iso/0', 'iso/1', 'marvell/0']
CONFIG = {'data': {'name': 'digits'}, 'seeds': 2, 'train': {'epochs': 50}}


def completed(saved):
  """Somebody else's configuration may have anything anywhere."""
  return saved | {'data': {'name': saved['data']['name']}}


def rows(unit, values=(0.5, 0.25)):
  """One measurement per seed, with the keys in another order than FIELDS."""
  defense, _, strength = unit.partition('/')
  return [
      {
          'value': value, 'split': 'test', 'metric': 'auc', 'seed': seed,
          'attack': None, 'strength': float(strength) if strength else None,
          'defense': defense, 'algorithm': 'vsnn', 'dataset': 'digits',
          'experiment': 'tiny',
      }
      for seed, value in enumerate(values)
  ]


def run_all(work):
  for unit in work.units:
    if not work.done(unit):
      work.save(unit, rows(unit), {'run_seconds': 1.5})


def test_lines_have_the_fixed_form(tmp_path):
  work = store.open_workdir(tmp_path / 'out', CONFIG, UNITS)
  work.save('iso/1', rows('iso/1', (1 / 3, float('nan'))), {})
  work.save('none', rows('none', (np.float32(0.1), jnp.float32(-0.0))), {})
  start = '{"experiment": "tiny", "dataset": "digits", "algorithm": "vsnn", '
  assert (tmp_path / 'out/results.jsonl').read_text().splitlines() == [
      start + '"defense": "none", "strength": null, "attack": null, "seed": 0,'
      ' "metric": "auc", "split": "test", "value": 0.1}',
      start + '"defense": "none", "strength": null, "attack": null, "seed": 1,'
      ' "metric": "auc", "split": "test", "value": 0.0}',
      start + '"defense": "iso", "strength": 1.0, "attack": null, "seed": 0,'
      ' "metric": "auc", "split": "test", "value": 0.3333333}',
      start + '"defense": "iso", "strength": 1.0, "attack": null, "seed": 1,'
      ' "metric": "auc", "split": "test", "value": null}',
  ]
  read = store.read_results(work.path)
  assert [r['value'] for r in read[:3]] == [0.1, 0.0, 0.3333333]
  assert np.isnan(read[3]['value'])


def test_order_and_interruption_do_not_change_the_results(tmp_path):
  straight = store.open_workdir(tmp_path / 'a', CONFIG, UNITS)
  run_all(straight)
  first = store.open_workdir(tmp_path / 'b', CONFIG, UNITS)
  first.save('iso/1', rows('iso/1'), {'run_seconds': 1.5})
  first.save('none', rows('none'), {'run_seconds': 1.5})
  # A kill between the unit's rename and the rewriting of the results.
  (first.path / 'results.jsonl').unlink()
  unfinished = first.path / 'parts' / '.vfljax-iso@0.json.tmp'
  unfinished.write_text('{"unit": "iso/0"')
  second = store.open_workdir(tmp_path / 'b', CONFIG, UNITS)
  assert [second.done(u) for u in UNITS] == [True, False, True, False]
  assert len(store.read_results(second.path)) == 4
  run_all(second)
  for name in ('results.jsonl', 'timings.json', 'config.json'):
    assert (tmp_path / 'a' / name).read_bytes() == (
        tmp_path / 'b' / name
    ).read_bytes()
  assert [t['unit'] for t in store.read_timings(second.path)] == UNITS
  assert not list(second.path.rglob('*.tmp'))


def test_results_survive_kill_minus_nine(tmp_path):
  """A child saves many units and is killed somewhere in the middle."""
  units = [f'dp/{i}' for i in range(400)]
  program = textwrap.dedent("""
      import sys
      from vfljax.runner import store
      units = [f'dp/{i}' for i in range(400)]
      work = store.open_workdir(sys.argv[1], {}, units)
      row = dict.fromkeys(store.FIELDS, 'x') | dict(seed=0, value=0.5)
      for unit in work.units:
        if not work.done(unit):
          work.save(unit, [row | dict(strength=unit)] * 50, {}, None)
          print(unit, flush=True)
  """)
  root = Path(__file__).parents[2]
  command = [sys.executable, '-c', program, str(tmp_path / 'out')]
  env = os.environ | {'JAX_PLATFORMS': 'cpu'}
  for _ in range(2):
    child = subprocess.Popen(
        command, cwd=root, env=env, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.stdout.close()
    child.wait()
    lines = (tmp_path / 'out/results.jsonl').read_text().splitlines()
    seen = [json.loads(line)['strength'] for line in lines]
    assert 0 < len(seen) < 20000
    assert seen == [u for u in units[:len(seen) // 50] for _ in range(50)]


def test_curves_come_back_with_their_owner(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  curve = np.arange(6, dtype=np.float32).reshape(2, 3)
  work.save('iso/0', rows('iso/0'), {}, {'norm_scoring/leak_auc': curve})
  work.save('none', rows('none'), {})
  (owner, curves), = store.read_curves(tmp_path)
  assert (owner['defense'], owner['strength']) == ('iso', 0.0)
  np.testing.assert_array_equal(curves['norm_scoring/leak_auc'], curve)


def test_a_row_with_other_fields_is_refused(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  with pytest.raises(ValueError, match='attack'):
    row, = rows('none', (1.0,))
    del row['attack']
    work.save('none', [row], {})
  assert not work.done('none')


@pytest.mark.parametrize('units', [['a', 'b', 'a'], ['a', '']])
def test_units_need_names_of_their_own(tmp_path, units):
  with pytest.raises(ValueError):
    store.open_workdir(tmp_path / 'out', CONFIG, units)
  assert not (tmp_path / 'out').exists()


def test_odd_unit_names_stay_apart_and_inside(tmp_path):
  units = ['..', '../x', '/etc', 'a/b', 'a@b', 'GAFM (no CE)', 'x.tmp', '%2E']
  work = store.open_workdir(tmp_path / 'out', CONFIG, units)
  for i, unit in enumerate(units):
    work.save_checkpoint(unit, i, [jnp.full(2, i)])
    work = store.open_workdir(tmp_path / 'out', CONFIG, units)
  for i, unit in enumerate(units):
    loaded = work.load_checkpoint(unit, [jnp.zeros(2, int)])
    assert loaded is not None and loaded[0] == i
    work.save(unit, rows('none', (float(i),)), {})
  assert [r['value'] for r in store.read_results(work.path)] == [*range(8)]
  assert [p.name for p in tmp_path.iterdir()] == ['out']
  assert len(list((work.path / 'parts').iterdir())) == len(units)


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


def test_tuples_and_lists_of_a_config_are_the_same(tmp_path):
  first = store.open_workdir(tmp_path, {'widths': (3, 4)}, UNITS)
  again = store.open_workdir(tmp_path, {'widths': [3, 4]}, UNITS)
  assert first == again
  assert store.read_config(tmp_path) == {'widths': [3, 4]}


def test_a_file_in_the_way_is_refused(tmp_path):
  (tmp_path / 'out').write_text('mine')
  with pytest.raises(UserError, match='--workdir'):
    store.open_workdir(tmp_path / 'out', CONFIG, UNITS)
  with pytest.raises(UserError, match='--workdir'):
    store.open_workdir(tmp_path / 'out' / 'deeper', CONFIG, UNITS)
  assert (tmp_path / 'out').read_text() == 'mine'


@pytest.mark.parametrize('number, words', [
    (30, 'Read-only file system'), (28, 'No space left on device'),
    (13, 'Permission denied'),
])
def test_a_refusing_disk_is_told_in_two_lines(
    tmp_path, monkeypatch, number, words
):
  """The errors of read-only and full disks, which tests cannot make."""
  work = store.open_workdir(tmp_path / 'a', CONFIG, UNITS)
  work.save('none', rows('none'), {})
  before = (work.path / 'results.jsonl').read_bytes()

  def refuse(*_):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(os, 'fsync', refuse)
  actions = [
      lambda: store.open_workdir(tmp_path / 'b', CONFIG, UNITS),
      lambda: work.save('iso/0', rows('iso/0'), {}),
      lambda: work.save_checkpoint('iso/0', 1, {'w': jnp.ones(2)}),
  ]
  for action in actions:
    with pytest.raises(UserError) as e:
      action()
    assert words in str(e.value) and len(str(e.value).splitlines()) == 2
  assert not work.done('iso/0')
  assert (work.path / 'results.jsonl').read_bytes() == before
  assert not list(tmp_path.rglob('*.tmp'))


def test_a_read_only_directory_is_refused(tmp_path):
  tmp_path.chmod(0o500)
  # Permissions do not stop root, but nobody makes directories in /proc.
  place = Path('/proc/out') if os.geteuid() == 0 else tmp_path / 'out'
  with pytest.raises(UserError, match='Cannot write'):
    store.open_workdir(place, CONFIG, UNITS)


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


def everything(folder):
  """Every file below a folder, and what is in it."""
  return {p: p.read_bytes() for p in folder.rglob('*') if p.is_file()}


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


def test_only_what_this_program_left_unfinished_is_removed(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('iso/0', 1, [jnp.ones(2)])
  gone = [
      '.vfljax-config.json.tmp', 'parts/.vfljax-none.json.tmp',
      'checkpoints/iso@0/.vfljax-3.tmp/leaves', 'parts/iso@0.npz.tmp',
      'parts/none.json.tmp', 'checkpoints/iso@0/3.tmp/leaves',
  ]
  stay = [
      'paper.tmp', 'config.json.tmp', 'notes/.vfljax-x.tmp', 'parts/mine.tmp',
      'parts/none.json.tmp.tmp', 'checkpoints/mine/3.tmp/leaves',
      'checkpoints/iso@0/notes.tmp', 'checkpoints/iso@0/best/weights',
      'checkpoints/iso@0/0003/weights', 'checkpoints/7/weights',
  ]
  for name in gone + stay:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('')
  again = store.open_workdir(tmp_path, CONFIG, UNITS)
  again.save_checkpoint('iso/0', 2, [jnp.ones(2)])
  again.save('iso/0', rows('iso/0'), {})
  assert not [name for name in gone if (tmp_path / name).exists()]
  assert not [name for name in stay if not (tmp_path / name).exists()]
  assert not (tmp_path / 'checkpoints/iso@0/1').exists()
  assert not (tmp_path / 'checkpoints/iso@0/2').exists()


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


@pytest.mark.parametrize('field', store.FIELDS)
@pytest.mark.parametrize('value', [[1], {}, 'x', True, float('inf')])
def test_a_part_without_digests_and_with_a_row_of_other_types(
    tmp_path, capsys, field, value
):
  texts = {'strength', 'seed', 'value'} ^ set(store.FIELDS)
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('none', rows('none'), {})
  file = tmp_path / 'parts/none.json'
  part = as_before(file)
  part['rows'][0][field] = value
  old = {k: part[k] for k in ('unit', 'rows', 'timing')}
  file.write_text(json.dumps(old))
  taken = field in texts and value == 'x'
  assert store.open_workdir(tmp_path, CONFIG, UNITS).done('none') == taken
  assert ('its rows are not' in capsys.readouterr().err) != taken


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


@pytest.mark.parametrize('content', [
    b'{"value"', b'[1]', b'\xff\xfe', b'{"a": 1}'
])
def test_damaged_results_are_written_anew(tmp_path, content):
  run_all(store.open_workdir(tmp_path, CONFIG, UNITS))
  files = [tmp_path / name for name in ('results.jsonl', 'timings.json')]
  before = [file.read_bytes() for file in files]
  for file, read in zip(files, (store.read_results, store.read_timings)):
    file.write_bytes(content)
    with pytest.raises(UserError, match='damaged.*\n.*writes it anew'):
      read(tmp_path)
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert [file.read_bytes() for file in files] == before


def test_a_part_damaged_meanwhile_does_not_get_into_the_results(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('none', rows('none'), {})
  before = (tmp_path / 'results.jsonl').read_bytes()
  file = tmp_path / 'parts/none.json'
  file.write_text(file.read_text().replace('0.25', '0.35'))
  with pytest.raises(UserError, match='same command'):
    work.save('iso/0', rows('iso/0'), {})
  assert (tmp_path / 'results.jsonl').read_bytes() == before


def test_curves_that_are_damaged_are_left_out_with_a_word(tmp_path, capsys):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  for unit in UNITS[:2]:
    work.save(unit, rows(unit), {}, {'auc': np.zeros((2, 3))})
  (tmp_path / 'parts/none.npz').write_bytes(b'PK')
  (owner, _), = store.read_curves(tmp_path)
  assert owner['defense'] == 'iso'
  assert 'none.npz is not what was written' in capsys.readouterr().err


def test_two_processes_cannot_share_a_directory(tmp_path):
  with disk.alone(tmp_path / 'out'):
    held = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(f'''
            from vfljax.runner import disk, errors
            try:
              with disk.alone({str(tmp_path / 'out')!r}):
                print('entered')
            except errors.UserError as e:
              print(e)
        ''')], capture_output=True, text=True, check=True,
    )
    assert 'Another process is running in' in held.stdout
  with disk.alone(tmp_path / 'out'):
    pass  # Free again.
