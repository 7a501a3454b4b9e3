"""Data files with random damage: a table that can be trained on, or a refusal.

Whatever is done to a file's bytes, its loader gives a table that passes its
check, or says in a line or two what is wrong: no other exception, no case of
more than five seconds or a gigabyte. `pytest -m faults -s` tries some three
thousand cases.
"""
from collections import Counter
from collections.abc import Callable
import gzip
import io
import pathlib
import shutil
from typing import Any, NamedTuple
import warnings
import zipfile

import hypothesis
from hypothesis import strategies as st
import numpy as np
from PIL import Image
import pytest
from scipy import io as matrices
from tokenizers import Tokenizer, models as vocabularies, pre_tokenizers

from tests.faults.damage import (
    bounded, damaged, edits, resealed_cache, resealed_png, resealed_safetensors,
)
from tests.raw_layouts import (
    write_bhi, write_credit, write_criteo, write_isic, write_nuswide,
    write_vehicle,
)
from vfljax import data
from vfljax.data import cache
from vfljax.data.npz import CIFAR10_CLASSES
from vfljax.data.table import Table, check
from vfljax.nets import encoder_files

GOLDEN = pathlib.Path(__file__).parents[1] / 'golden'


class Kind(NamedTuple):
  """A kind of file.

  Attributes:
    write: Puts a small valid data set into a folder.
    file: The one that is damaged.
    load: (folder): a table, or anything of a reader that gives none.
    seal: Makes checksums right after damage that a checksum would show.
    inside: What is damaged instead of the file's own bytes.
    slow: It is tried so many times more seldom.
    exact: It has checksums: what is accepted is what it was.
  """

  write: Callable[[pathlib.Path], Any]
  file: str
  load: Callable[[pathlib.Path], Any]
  seal: Callable[[bytes], bytes] = lambda raw: raw
  inside: Callable[[bytes], bytes] = lambda raw: raw
  slow: int = 1
  exact: bool = False


def loader(name, file='', **options):
  return lambda folder: data.load(name, str(folder / file), **options)


def people(rows=24):
  cities = 'Rome', 'Oslo', 'Bern'
  lines = [
      f'{20 + i},{cities[i % 3]},{i % 4 == 0},{i / 7:.3f},{i % 2}'
      for i in range(rows)
  ]
  return '\n'.join(['age,city,member,pay,y', *lines, ''])


def write_csv(folder):
  (folder / 'a.csv').write_text(people())


def write_gz(folder):
  (folder / 'a.csv.gz').write_bytes(gzip.compress(people().encode()))


def write_npz(folder):
  draw = np.random.default_rng(0)
  np.savez(
      folder / 'a.npz', x_train=draw.normal(size=(20, 3)).astype('f4'),
      y_train=np.arange(20) % 2, x_test=draw.normal(size=(4, 3)).astype('f4'),
      y_test=np.arange(4) % 2,
  )


def member(raw, name='x_train.npy'):
  return zipfile.ZipFile(io.BytesIO(raw)).read(name)


def packed(raw, name='x_train.npy'):
  """An archive with `raw` as one of its arrays: all checksums are right."""
  out = io.BytesIO()
  with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr(name, raw)
    for other, y in (('y_train', np.arange(20) % 2),
                     ('x_train', np.zeros((20, 3)))):
      if name != f'{other}.npy':
        array = io.BytesIO()
        np.save(array, y)
        archive.writestr(f'{other}.npy', array.getvalue())
  return out.getvalue()


def write_cifar(folder):
  draw = np.random.default_rng(0)
  np.savez_compressed(
      folder / 'cifar10.npz', y_train=np.arange(20)[:, None] % 10,
      x_train=draw.integers(0, 256, (20, 32, 32, 3), np.uint8),
  )


def write_reviews(folder):
  (folder / 'movie_reviews.tsv').write_text(
      '\n'.join(f'{i % 2}\ta good film number {i}' for i in range(24)) + '\n'
  )
  words = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', 'a', 'good', 'film', 'number')
  made = Tokenizer(vocabularies.WordLevel(
      {word: i for i, word in enumerate(words)}, '[UNK]'
  ))
  made.pre_tokenizer = pre_tokenizers.Whitespace()
  made.save(str(folder / 'tokenizer.json'))


def write_spambase(folder):
  lines = [','.join(['0.5'] * 57) + f',{i % 2}' for i in range(6)]
  (folder / 'spambase.data').write_text('\n'.join(lines) + '\n')


def write_svhn(folder):
  x = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), np.uint8)
  for part in ('train', 'test'):
    matrices.savemat(
        folder / f'{part}_32x32.mat',
        dict(X=x, y=np.array([[1], [10], [3], [2]], np.uint8)),
    )


def write_cinic(folder):
  draw = np.random.default_rng(0)
  for part in ('train', 'valid', 'test'):
    for name in CIFAR10_CLASSES:
      file = folder / part / name / '0.png'
      file.parent.mkdir(parents=True)
      Image.fromarray(draw.integers(0, 256, (32, 32, 3), np.uint8)).save(file)


def write_cache(folder):
  write_csv(folder)
  cache.write(folder / 'kept', data.load('csv', str(folder / 'a.csv'), 'y'))


def read_cache(folder):
  """What was kept, or nothing."""
  found = cache.read(folder / 'kept')
  if found is not None:
    plain = data.load('csv', str(folder / 'a.csv'), 'y')
    assert found[2:] == plain[2:]
    np.testing.assert_array_equal(found.features, plain.features)
    np.testing.assert_array_equal(found.labels, plain.labels)


def copy_encoder(folder):
  shutil.copytree(GOLDEN / 'tiny_bert', folder, dirs_exist_ok=True)


def read_encoder(folder):
  like = encoder_files.read_structure(str(folder))
  params = encoder_files.read_weights(str(folder), like)
  assert np.isfinite(params['embed1_word']['embedding']).all()


def tensors(raw):
  """What follows on a safetensors file's header."""
  return raw[8 + int.from_bytes(raw[:8], 'little'):]


TINY = data.load('wine')  # Where there is nothing to check.
SAFE = (GOLDEN / 'tiny_bert' / 'model.safetensors').read_bytes()
TEXTS = dict(parts=2, length=6)
KINDS = {
    'csv': Kind(write_csv, 'a.csv', loader('csv', 'a.csv', label='y')),
    'csv imputed': Kind(
        write_csv, 'a.csv',
        loader('csv', 'a.csv', label='y', missing='impute', text='city'),
    ),
    'csv packed': Kind(
        write_gz, 'a.csv.gz', loader('csv', 'a.csv.gz', label='y'), exact=True
    ),
    'spambase': Kind(write_spambase, 'spambase.data', loader('spambase')),
    'credit': Kind(
        lambda folder: write_credit(folder, True), 'credit.csv',
        loader('credit'),
    ),
    'criteo': Kind(write_criteo, 'train.txt', loader('criteo', rare=2)),
    'npz': Kind(write_npz, 'a.npz', loader('npz', 'a.npz'), exact=True),
    'npz inside': Kind(
        write_npz, 'a.npz', loader('npz', 'a.npz'), packed, member
    ),
    'npz labels': Kind(
        write_npz, 'a.npz', loader('npz', 'a.npz'),
        lambda raw: packed(raw, 'y_train.npy'),
        lambda raw: member(raw, 'y_train.npy'),
    ),
    'cifar10': Kind(
        write_cifar, 'cifar10.npz', loader('cifar10'), exact=True
    ),
    'vehicle': Kind(write_vehicle, 'combined', loader('vehicle')),
    'vehicle packed': Kind(
        lambda folder: write_vehicle(folder, True), 'combined.bz2',
        loader('vehicle'), exact=True,
    ),
    'nuswide': Kind(
        write_nuswide, 'Groundtruth/TrainTestLabels/Labels_lake_Test.txt',
        loader('nuswide', concepts='sky,lake'), slow=4,
    ),
    'reviews': Kind(write_reviews, 'movie_reviews.tsv', loader('reviews')),
    'texts': Kind(
        write_reviews, 'movie_reviews.tsv',
        lambda folder: data.load(
            'texts', str(folder / 'movie_reviews.tsv'), encoder=str(folder),
            **TEXTS,
        ),
    ),
    'tokenizer': Kind(
        write_reviews, 'tokenizer.json',
        lambda folder: data.load(
            'texts', str(folder / 'movie_reviews.tsv'), encoder=str(folder),
            **TEXTS,
        ),
    ),
    'png': Kind(write_bhi, '8000/0/a_0.png', loader('bhi'), exact=True),
    'png claims': Kind(
        write_cinic, 'valid/frog/0.png', loader('cinic10'), resealed_png
    ),
    'jpeg': Kind(write_isic, 'jpeg/train/ISIC_2.jpg', loader('isic')),
    'isic': Kind(write_isic, 'train.csv', loader('isic')),
    'svhn': Kind(write_svhn, 'train_32x32.mat', loader('svhn')),
    'safetensors': Kind(copy_encoder, 'model.safetensors', read_encoder),
    'safetensors header': Kind(
        copy_encoder, 'model.safetensors', read_encoder,
        lambda raw: resealed_safetensors(raw + tensors(SAFE), tensors(SAFE)),
        lambda raw: raw[: -len(tensors(raw))],
    ),
    'config': Kind(copy_encoder, 'config.json', read_encoder),
    'cache': Kind(write_cache, 'kept/table.json', read_cache),
    'cache arrays': Kind(write_cache, 'kept/features.npy', read_cache),
    'cache forged': Kind(
        write_cache, 'kept/table.json',
        lambda folder: check(cache.read(folder / 'kept') or TINY),
        resealed_cache,
    ),
}
tried = Counter()


def outcome(kind, folder, changes, plain):
  """'accepted' or 'refused'; anything else is an error.

  The damaged file is mended afterwards; `plain` is what was read before.
  """
  file = folder / kind.file
  whole = file.read_bytes()
  file.write_bytes(kind.seal(damaged(kind.inside(whole), changes)))
  try:
    with bounded(), warnings.catch_warnings():
      warnings.simplefilter('ignore')
      found = kind.load(folder)
  except (ValueError, OSError) as error:
    assert type(error) is ValueError or isinstance(error, OSError), error
    said = str(error)
    assert said and said.count('\n') < 2 and len(said) < 2000, said
    return 'refused'
  finally:
    file.write_bytes(whole)
  if isinstance(found, Table):
    check(found)
    assert len(found.classes) <= max(20, len(found.labels) // 2)
  if kind.exact:
    for one, other in zip(found, plain):
      np.testing.assert_array_equal(one, other)
  return 'accepted'


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
  """A valid data set of each kind, written when it is first asked for."""
  made = {}

  def find(name):
    if name not in made:
      made[name] = tmp_path_factory.mktemp('kind')
      KINDS[name].write(made[name])
    return made[name]

  return find


def fuzz(name, folders, cases):
  kind, folder = KINDS[name], folders(name)
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', data.Mismatch)
    plain = kind.load(folder)

  @hypothesis.settings(
      max_examples=cases // kind.slow, deadline=None, database=None,
      suppress_health_check=list(hypothesis.HealthCheck),
  )
  @hypothesis.given(st.data())
  def play(drawn):
    changes = drawn.draw(edits)
    tried[outcome(kind, folder, changes, plain)] += 1

  play()


@pytest.mark.parametrize('name', KINDS)
def test_it_is_read_whole(name, folders):
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', data.Mismatch)
    KINDS[name].load(folders(name))


@pytest.mark.parametrize('name', KINDS)
def test_damage_is_refused_or_harmless(name, folders):
  fuzz(name, folders, 12)


@pytest.mark.faults
@pytest.mark.parametrize('name', KINDS)
def test_much_damage_is_refused_or_harmless(name, folders):
  fuzz(name, folders, 120)


@pytest.mark.faults
def test_the_count_of_it(capsys):
  """After the others: what came of it."""
  with capsys.disabled():
    print(
        f'\ntried {sum(tried.values())}, refused {tried["refused"]}, accepted'
        f' {tried["accepted"]}'
    )
