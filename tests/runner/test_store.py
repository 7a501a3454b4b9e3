"""The work directory: kills, resumption, damage and refusals."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest

from vfljax.runner import disk, store
from vfljax.runner.errors import UserError

UNITS = ['none', 'iso/0', 'iso/1', 'marvell/0']
CONFIG = {'data': {'name': 'digits'}, 'seeds': 2, 'train': {'epochs': 50}}


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
  (first.path / 'parts' / 'iso@0.json.tmp').write_text('{"unit": "iso/0"')
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


@pytest.mark.parametrize('name', ['config.json', 'parts/none.json'])
def test_damaged_files_are_named(tmp_path, name):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save('none', rows('none'), {})
  file = tmp_path / name
  file.write_bytes(file.read_bytes()[:-20])
  with pytest.raises(UserError, match=name):
    store.open_workdir(tmp_path, CONFIG, UNITS)


def federation():
  """Something like a State: keys, an optimizer's named tuples, oddities."""
  params = {'bottom': jnp.arange(6.0).reshape(2, 3), 'defense': ()}
  return {
      'params': params, 'opt': optax.adam(1e-3).init(params),
      'key': jax.random.split(jax.random.key(7), 3),
      'other': jax.random.key(1, impl='rbg'), 'empty': jnp.zeros((0, 4)),
      'half': jnp.full((2,), 1.5, jnp.bfloat16), 'step': 3, 'rate': 0.5,
      'no': None,
  }


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
  work, tree = store.open_workdir(tmp_path, CONFIG, UNITS), federation()
  assert work.load_checkpoint('iso/0', tree) is None
  work.save_checkpoint('iso/0', 1, tree | {'step': 1})
  work.save_checkpoint('iso/0', 2, tree)
  assert [p.name for p in (tmp_path / 'checkpoints/iso@0').iterdir()] == ['2']
  for like in (tree, jax.eval_shape(lambda: tree)):
    loaded = work.load_checkpoint('iso/0', like)
    assert loaded is not None and loaded[0] == 2
    assert jax.tree.structure(loaded[1]) == jax.tree.structure(tree)
    for ours, kept in zip(jax.tree.leaves(loaded[1]), jax.tree.leaves(tree)):
      if jnp.issubdtype(getattr(kept, 'dtype', float), jax.dtypes.prng_key):
        assert ours.dtype == kept.dtype
        ours, kept = map(jax.random.key_data, (ours, kept))
      assert jnp.result_type(ours) == jnp.result_type(kept)
      np.testing.assert_array_equal(ours, kept)
  assert work.load_checkpoint('iso/1', tree) is None
  work.save('iso/0', rows('iso/0'), {})
  assert not list((tmp_path / 'checkpoints').iterdir())


def test_a_checkpoint_keeps_the_sharding_asked_for(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  mesh = jax.make_mesh((jax.device_count(),), ('seeds',))
  over = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('seeds'))
  x = jax.device_put(jnp.zeros((jax.device_count(), 2)), over)
  work.save_checkpoint('none', 5, [x])
  loaded = work.load_checkpoint('none', [x])
  assert loaded is not None and loaded[1][0].sharding == over


def test_a_kill_while_writing_leaves_the_earlier_checkpoint(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('none', 1, [jnp.ones(3)])
  half = tmp_path / 'checkpoints/none/2.tmp/leaves'
  half.mkdir(parents=True)
  (half / 'manifest.ocdbt').write_bytes(b'half')
  loaded = work.load_checkpoint('none', [jnp.ones(3)])
  assert loaded is not None and loaded[0] == 1
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert not half.exists()


def checkpoint_files():
  """Every kind of file that a checkpoint has, by what to look for."""
  return ['digests.json', 'leaves/manifest.ocdbt', 'leaves/_METADATA',
          'leaves/_CHECKPOINT_METADATA', 'leaves/d/*', 'leaves/_sharding',
          'leaves/ocdbt.process_0/d/*']


@pytest.mark.parametrize('pattern', checkpoint_files())
@pytest.mark.parametrize('how', ['truncated', 'emptied', 'removed', 'flipped'])
def test_a_damaged_checkpoint_is_refused(tmp_path, pattern, how):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  like = {'w': jnp.arange(5000.0), 'key': jax.random.key(0)}
  work.save_checkpoint('iso/0', 4, like)
  files = sorted((tmp_path / 'checkpoints/iso@0/4').glob(pattern))
  assert files
  content = files[0].read_bytes()
  if how == 'removed':
    files[0].unlink()
  else:
    files[0].write_bytes({
        'truncated': content[:len(content) // 2], 'emptied': b'',
        'flipped': bytes([content[0] ^ 1]) + content[1:],
    }[how])
  with pytest.raises(UserError) as e:
    work.load_checkpoint('iso/0', like)
  message = str(e.value)
  assert f'Delete {tmp_path}/checkpoints/iso@0 to start' in message
  assert len(message.splitlines()) == 2


@pytest.mark.parametrize('like, said', [
    ({'w': jnp.zeros(4)}, r"\['w'\] \[3\] float32 where \['w'\] \[4\]"),
    ({'w': jnp.zeros(3, jnp.int32)}, 'int32 is expected'),
    ({'w': jnp.zeros(3), 'v': jnp.zeros(3)}, r"\['v'\]"),
    ({}, 'nothing is expected'),
])
def test_a_checkpoint_of_another_program_is_refused(tmp_path, like, said):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('none', 1, {'w': jnp.zeros(3)})
  with pytest.raises(UserError, match=said):
    work.load_checkpoint('none', like)


def test_what_orbax_itself_refuses_is_told_too(tmp_path, monkeypatch):
  """Damage that the list of digests does not show.

  Orbax's own errors leave coroutines behind, which would be warnings here.
  """
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('none', 1, [jnp.zeros(3)])

  def refuse(*_, **__):
    raise KeyError('array 0\nis not there')

  monkeypatch.setattr(ocp.Checkpointer, 'restore', refuse)
  with pytest.raises(UserError, match='array 0.*\n.*to start that unit again'):
    work.load_checkpoint('none', [jnp.zeros(3)])


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
