"""Checkpoints: what comes back, what is found damaged, what is kept."""
import errno
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest

from vfljax.runner.errors import UserError
from vfljax.runner.workdir import checkpoints, store

CONFIG, UNITS = {'seeds': 2}, ['none', 'iso/0', 'iso/1']


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
  assert checkpoints.steps(tmp_path / 'checkpoints/iso@0') == [1, 2]
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
  work.save('iso/0', [], {})
  assert not list((tmp_path / 'checkpoints').iterdir())


def test_a_checkpoint_may_have_no_arrays(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('none', 4, {'no': None, 'rest': ()})
  assert work.load_checkpoint('none', {'no': None, 'rest': ()}) == (
      4, {'no': None, 'rest': ()}
  )


@pytest.mark.parametrize('error, said', [
    (ValueError('no space left\nat tensorstore.cc'), 'no space left'),
    (ValueError(), 'ValueError'), (OSError(errno.ENOSPC, 'is full'), 'is full'),
])
def test_a_disk_that_takes_no_checkpoint_is_told_in_two_lines(
    tmp_path, monkeypatch, error, said
):
  """TensorStore has errors of its own for it; what was there is whole."""
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('none', 1, [jnp.ones(3)])

  def refuse(*_, **__):
    raise error

  monkeypatch.setattr(ocp.Checkpointer, 'save', refuse)
  with pytest.raises(UserError, match=f'Cannot write to .*{said}') as found:
    work.save_checkpoint('none', 2, [jnp.ones(3)])
  assert len(str(found.value).splitlines()) <= 2
  assert 'tensorstore' not in str(found.value)
  assert work.load_checkpoint('none', [jnp.ones(3)])[0] == 1


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
  half = tmp_path / 'checkpoints/none/.vfljax-2.tmp/leaves'
  half.mkdir(parents=True)
  (half / 'manifest.ocdbt').write_bytes(b'half')
  loaded = work.load_checkpoint('none', [jnp.ones(3)])
  assert loaded is not None and loaded[0] == 1
  store.open_workdir(tmp_path, CONFIG, UNITS)
  assert not half.exists()


def kept(folder):
  return checkpoints.steps(folder / 'checkpoints/iso@0')


def test_the_last_two_are_kept_and_none_of_a_later_step(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  for step in (0, 3, 5, 9):
    work.save_checkpoint('iso/0', step, [jnp.ones(1)])
  assert kept(tmp_path) == [5, 9]
  # A run that could not go on from step 9 has come to step 7.
  work.save_checkpoint('iso/0', 7, [jnp.ones(1)])
  assert kept(tmp_path) == [5, 7]
  work.save_checkpoint('iso/0', 7, [jnp.zeros(1)])
  loaded = work.load_checkpoint('iso/0', [jnp.ones(1)])
  assert loaded is not None and loaded[0] == 7 and loaded[1][0] == 0
  loaded = work.load_checkpoint('iso/0', [jnp.ones(1)], stride=5)
  assert loaded is not None and loaded[0] == 5
  assert work.load_checkpoint('iso/0', [jnp.ones(1)], stride=4) is None
  last = work.load_checkpoint('iso/0', [jnp.ones(1)], stride=4, end=loaded[0])
  assert last is not None and last[0] == loaded[0]
  # An end in between, or beyond, is not the one that is there.
  for end in (6, 8):
    assert work.load_checkpoint('iso/0', [jnp.ones(1)], 4, end) is None


def test_a_snapshot_is_what_was_there_when_it_was_taken(tmp_path):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  ours, theirs = np.zeros(3), jnp.arange(3.0)
  taken = checkpoints.snapshot([ours, theirs])
  ours += 1
  jax.jit(lambda x: x + 1, donate_argnums=0)(theirs)
  work.save_checkpoint('none', 1, taken)
  loaded = work.load_checkpoint('none', [np.ones(3), jnp.ones(3)])
  assert loaded is not None
  np.testing.assert_array_equal(loaded[1], [np.zeros(3), np.arange(3.0)])


# Every kind of file that a checkpoint has, by what to look for.
PATTERNS = [
    'digests.json', 'leaves/manifest.ocdbt', 'leaves/_METADATA',
    'leaves/_CHECKPOINT_METADATA', 'leaves/d/*', 'leaves/ocdbt.process_0/d/*',
]


@pytest.mark.parametrize('pattern', PATTERNS)
@pytest.mark.parametrize('how', ['cut', 'emptied', 'gone', 'flipped'])
def test_the_one_before_a_damaged_one_is_used(tmp_path, capsys, pattern, how):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  like = {'w': jnp.arange(500.0), 'key': jax.random.key(0)}
  for step in (2, 4):
    work.save_checkpoint('iso/0', step, like)
  for step, then in ((4, 'that of step 2 is tried'), (2, 'starts again')):
    file, *_ = sorted((tmp_path / f'checkpoints/iso@0/{step}').glob(pattern))
    content = file.read_bytes()
    file.unlink()
    if how != 'gone':
      file.write_bytes({
          'cut': content[:len(content) // 2], 'emptied': b'',
          'flipped': bytes([content[0] ^ 1]) + content[1:],
      }[how])
    loaded = work.load_checkpoint('iso/0', like)
    line, = capsys.readouterr().err.splitlines()
    assert line.startswith(f'checkpoints/iso@0/{step} is damaged: ')
    assert then in line
    assert (tmp_path / f'damaged/checkpoints@iso@0@{step}').is_dir()
    assert loaded is None if step == 2 else loaded and loaded[0] == 2


def test_a_file_where_a_checkpoint_should_be(tmp_path, capsys):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('iso/0', 2, [jnp.ones(1)])
  for name in ('4', '5x', '\u00b2'):
    (tmp_path / 'checkpoints/iso@0' / name).write_text('')
  loaded = work.load_checkpoint('iso/0', [jnp.ones(1)])
  assert loaded is not None and loaded[0] == 2
  assert 'iso@0/4 is damaged' in capsys.readouterr().err


@pytest.mark.parametrize('like, said', [
    ({'w': jnp.zeros(4)}, "['w'] [3] float32 where ['w'] [4]"),
    ({'w': jnp.zeros(3, jnp.int32)}, 'int32 is expected'),
    ({'w': jnp.zeros(3), 'v': jnp.zeros(3)}, "['v']"),
    ({}, 'nothing is expected'),
])
def test_one_of_another_program_is_set_aside(tmp_path, capsys, like, said):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('none', 1, {'w': jnp.zeros(3)})
  assert work.load_checkpoint('none', like) is None
  line, = capsys.readouterr().err.splitlines()
  assert 'does not fit this program' in line and said in line
  assert (tmp_path / 'damaged/checkpoints@none@1').is_dir()


@pytest.mark.parametrize('error, kind, said', [
    (KeyError('array 0'), KeyError, 'array 0'),
    (MemoryError(), UserError, 'too little memory'),
    (ValueError('RESOURCE_EXHAUSTED: 3 GiB'), UserError, 'too little memory'),
    (OSError(errno.EMFILE, 'Too many open files'), UserError, 'Too many'),
])
def test_whole_checkpoints_that_orbax_does_not_read_stay(
    tmp_path, monkeypatch, error, kind, said
):
  """Their digests are right: what is wrong now is wrong somewhere else.

  Orbax's own errors leave coroutines behind, which would be warnings here.
  """
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  for step in (1, 2):
    work.save_checkpoint('iso/0', step, [jnp.zeros(3)])

  def refuse(*_, **__):
    raise error

  monkeypatch.setattr(ocp.Checkpointer, 'restore', refuse)
  with pytest.raises(kind, match=said) as raised:
    work.load_checkpoint('iso/0', [jnp.zeros(3)])
  assert len(str(raised.value).splitlines()) <= 2
  assert kept(tmp_path) == [1, 2] and not (tmp_path / 'damaged').exists()


@pytest.mark.parametrize('name', ['digests.json', 'manifest.ocdbt'])
def test_a_disk_that_does_not_let_us_look_damages_nothing(
    tmp_path, monkeypatch, name
):
  work = store.open_workdir(tmp_path, CONFIG, UNITS)
  work.save_checkpoint('iso/0', 1, [jnp.zeros(3)])
  whole = Path.open

  def refuse(self, *arguments, **options):
    if self.name == name:
      raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(self))
    return whole(self, *arguments, **options)

  monkeypatch.setattr(Path, 'open', refuse)
  with pytest.raises(UserError, match='Stale file handle'):
    work.load_checkpoint('iso/0', [jnp.zeros(3)])
  assert kept(tmp_path) == [1] and not (tmp_path / 'damaged').exists()
