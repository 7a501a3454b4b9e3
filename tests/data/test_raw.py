"""Every loader of raw files on what goes wrong with them: a file that is not
there, one that is cut off, one with a label that there is not."""
import bz2
from collections.abc import Callable
import gzip
import pathlib
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
import pytest
from scipy import io

from tests.raw_layouts import (
    write_bhi, write_credit, write_criteo, write_imdb, write_isic,
    write_nuswide, write_reviews, write_vehicle,
)
from vfljax import data
from vfljax.data.npz import CIFAR10_CLASSES

Write = Callable[[pathlib.Path], Any]


class Layout(NamedTuple):
  """How a data set lies on the disk.

  Attributes:
    write: Puts a small one into a folder.
    file: One of its files.
    mislabel: Puts a wrong label there.
    cut: After whose last occurrence a text file is cut off; '' cuts anywhere,
      for files of which every byte is needed.
    blamed: The file that the wrong label is in, where it is another.
    place: What the loader is given, below the folder.
    options: The loader's.
  """

  write: Write
  file: str
  mislabel: Write
  cut: str = ''
  blamed: str = ''
  place: str = ''
  options: dict[str, Any] = {}


def edit(file: str, old: str, new: str) -> Write:
  """Replaces the first `old` in a file."""
  def change(folder):
    place = folder / file
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new, 1))

  return change


def append(file: str, text: str) -> Write:
  return lambda folder: (folder / file).write_text(
      (folder / file).read_text() + text
  )


def picture(folder, name: str, side: int) -> None:
  file = folder / name
  file.parent.mkdir(parents=True, exist_ok=True)
  draw = np.random.default_rng(0)
  Image.fromarray(draw.integers(0, 256, (side, side, 3), np.uint8)).save(
      file, 'png' if file.suffix == '.png' else 'jpeg'
  )


def cinic(folder):
  for part in ('train', 'valid', 'test'):
    for name in CIFAR10_CLASSES:
      picture(folder, f'{part}/{name}/0.png', 32)


def tiny(folder):
  names = [f'n{i}' for i in range(100, 300)]
  (folder / 'wnids.txt').write_text('\n'.join(names))
  for name in names:
    picture(folder, f'train/{name}/images/{name}_0.JPEG', 64)
  picture(folder, 'val/images/val_0.JPEG', 64)
  (folder / 'val/val_annotations.txt').write_text('val_0.JPEG\tn100\t0\t0\n')


def svhn(folder, label=1):
  x = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), np.uint8)
  for part in ('train', 'test'):
    y = np.array([[1], [10], [3], [label if part == 'test' else 1]], np.uint8)
    io.savemat(folder / f'{part}_32x32.mat', dict(X=x, y=y))


def spambase(folder):
  lines = [','.join(['0.5'] * 57) + f',{i % 2}' for i in range(6)]
  (folder / 'spambase.data').write_text('\n'.join(lines) + '\n')


def mnist(folder, label=1):
  draw = np.random.default_rng(0)
  x, y = draw.integers(0, 256, (20, 28, 28), np.uint8), np.arange(20) % 10
  y[-1] = label
  np.savez(folder / 'mnist.npz', x_train=x, y_train=y)


def packed(folder):
  write_vehicle(folder, True)


def criteo_packed(folder):
  write_criteo(folder)
  text = (folder / 'train.txt').read_bytes()
  (folder / 'train.txt.gz').write_bytes(gzip.compress(text))


def repack(folder):
  text = (folder / 'train.txt').read_bytes().replace(b'0\t', b'5\t', 1)
  (folder / 'train.txt.gz').write_bytes(gzip.compress(text))


def bzipped(folder):
  (folder / 'combined.t.bz2').write_bytes(bz2.compress(b'4 1:0.5 100:1\n'))


WIDE: dict[str, Any] = dict(options=dict(concepts='sky,lake'))
LABELS = 'Groundtruth/TrainTestLabels/Labels_lake_Test.txt'
LAYOUTS = {
    'credit': Layout(
        lambda folder: write_credit(folder, True), 'credit.csv',
        edit('credit.csv', ',23,1', ',23,2'), '\n3,3,4,',
    ),
    'vehicle': Layout(
        write_vehicle, 'combined', edit('combined', '2 1:', '7 1:'), ' 1:',
    ),
    'vehicle packed': Layout(packed, 'combined.t.bz2', bzipped),
    'nuswide': Layout(
        write_nuswide, LABELS, edit(LABELS, '0', '2'), '\n1\n', **WIDE
    ),
    'nuswide images': Layout(
        write_nuswide, 'Low_Level_Features/Train_Normalized_EDH.dat',
        edit(LABELS, '0', 'no'), '\n9 9', LABELS, **WIDE,
    ),
    'criteo': Layout(
        write_criteo, 'train.txt', edit('train.txt', '\n1\t', '\n3\t'),
        '\tbb',
    ),
    'criteo packed': Layout(
        criteo_packed, 'train.txt.gz', repack, place='train.txt.gz'
    ),
    'bhi': Layout(
        write_bhi, '8000/1/a_0.png',
        lambda folder: (folder / '8001/0').rename(folder / '8001/2'),
        blamed='8001',
    ),
    'isic': Layout(
        write_isic, 'train.csv', edit('train.csv', ',P,1', ',P,2'),
        'ISIC_3,P',
    ),
    'isic images': Layout(
        write_isic, 'jpeg/train/ISIC_2.jpg',
        edit('train.csv', ',P,1', ',P,melanoma'), blamed='train.csv',
    ),
    'cinic10': Layout(
        cinic, 'valid/frog/0.png',
        lambda folder: (folder / 'test/zebra').mkdir(), blamed='test',
    ),
    'tiny_imagenet': Layout(
        tiny, 'val/images/val_0.JPEG',
        edit('val/val_annotations.txt', 'n100', 'n99'),
        blamed='val_annotations.txt',
    ),
    'svhn': Layout(
        svhn, 'test_32x32.mat', lambda folder: svhn(folder, label=11)
    ),
    'spambase': Layout(
        spambase, 'spambase.data', edit('spambase.data', ',1\n', ',2\n'),
        '\n0.5,',
    ),
    'mnist': Layout(
        mnist, 'mnist.npz', lambda folder: mnist(folder, label=10)
    ),
    'reviews': Layout(
        write_reviews, 'movie_reviews.tsv',
        append('movie_reviews.tsv', '3\tfine\n'), '\n0',
        place='movie_reviews.tsv',
    ),
    'imdb': Layout(
        write_imdb, 'imdb_reviews/1.0.0/imdb_reviews-train.array_record-'
        '00000-of-00001', lambda folder: write_imdb(folder, -1),
        blamed='imdb_reviews', place='imdb_reviews',
    ),
}


def refusal(name: str, folder, kind) -> str:
  """What the loader says, on one line."""
  layout = LAYOUTS[name]
  with pytest.raises(kind) as error:
    data.load(
        name.split()[0], str(folder / layout.place), **layout.options
    )
  assert type(error.value) is kind and '\n' not in str(error.value)
  return str(error.value)


@pytest.mark.parametrize('name', LAYOUTS)
def test_a_whole_one_is_read(name, tmp_path):
  layout = LAYOUTS[name]
  layout.write(tmp_path)
  table = data.load(
      name.split()[0], str(tmp_path / layout.place), **layout.options
  )
  assert len(table.labels) > 1


@pytest.mark.parametrize('name', LAYOUTS)
def test_a_missing_file_is_named(name, tmp_path):
  layout = LAYOUTS[name]
  layout.write(tmp_path)
  file = tmp_path / layout.file
  file.unlink()
  if name == 'bhi':  # No patch is owed; a patient's folder without any is.
    for label in '01':
      (tmp_path / '8000' / label).rename(tmp_path / f'8000-{label}')
    assert '8000' in refusal(name, tmp_path, FileNotFoundError)
    return
  said = refusal(name, tmp_path, FileNotFoundError)
  known = {
      'cinic10': 'frog', 'imdb': 'imdb_reviews', 'isic images': 'ISIC_2',
  }
  plain = file.name.removesuffix('.bz2')
  assert (known[name] if name in known else plain) in said
  assert any(word in said for word in ('Get ', 'Give ', 'Prepare '))


@pytest.mark.parametrize('kept', [0.0, 0.5, 0.8])
@pytest.mark.parametrize('name', LAYOUTS)
def test_a_file_that_is_cut_off_is_named(name, kept, tmp_path):
  layout = LAYOUTS[name]
  layout.write(tmp_path)
  file, mark = tmp_path / layout.file, layout.cut.encode()
  whole = file.read_bytes()
  end = int(kept * len(whole))
  if mark and kept:  # Of text the last line that is there is half a line.
    end = whole.rfind(mark) + len(mark)
    assert end >= len(mark)
  file.write_bytes(whole[:end])
  said = refusal(name, tmp_path, ValueError)
  assert file.name in said or name == 'imdb' and 'imdb_reviews' in said


@pytest.mark.parametrize('name', LAYOUTS)
def test_a_label_that_there_is_not_is_refused(name, tmp_path):
  layout = LAYOUTS[name]
  layout.write(tmp_path)
  layout.mislabel(tmp_path)
  said = refusal(name, tmp_path, ValueError)
  assert (layout.blamed or layout.file).split('/')[-1] in said


def narrower(file: str) -> Write:
  """Leaves out the first number of each line."""
  def change(folder):
    lines = (folder / file).read_text().splitlines()
    cut = [line.split(maxsplit=1)[1] for line in lines]
    (folder / file).write_text('\n'.join(cut) + '\n')

  return change


def one_patient(folder):
  for number in range(8001, 8005):
    (folder / str(number)).rename(folder.parent / f'of-{folder.name}-{number}')


def one_patch_each(folder):
  for file in folder.rglob('a_[123].png'):
    file.unlink()


def text_labels(folder):
  file = folder / 'test_32x32.mat'
  x = io.loadmat(file)['X']
  io.savemat(file, dict(X=x, y=np.array(['a', 'b', 'c', 'd'])))


def nothing(folder):
  del folder


EDH = 'Low_Level_Features/Test_Normalized_EDH.dat'
TAGS = 'NUS_WID_Tags/Test_Tags1k.dat'


@pytest.mark.parametrize('name, spoil, options, message', [
    ('nuswide', nothing, dict(concepts='sky,sky'), "different .*got 'sky,sky'"),
    ('nuswide', nothing, dict(concepts='a,b,c', ratio=2), 'exactly two conce'),
    ('nuswide', nothing, dict(only='tags'), "'image' or 'tag'; got 'tags'"),
    ('nuswide', narrower(EDH), {}, 'Test files have 633 .*, not 634'),
    ('nuswide', narrower(TAGS), {}, 'has 999 columns; it should have 1000'),
    ('bhi', nothing, dict(train=1.0), r'train must be inside \(0, 1\); got 1'),
    ('bhi', one_patient, {}, 'has 1 folders of .*, not 2 or more. Get Breast'),
    ('bhi', one_patch_each, {}, 'no patient has two patches of one label'),
    ('tiny_imagenet', edit('wnids.txt', 'n101', 'n100'), {}, 'wnids.txt must '),
    ('tiny_imagenet', lambda folder: (folder / 'wnids.txt').write_text(''), {},
     'wnids.txt must name every class once'),
    ('svhn', text_labels, {}, 'test_32x32.mat .*no numbers but <U1'),
    ('reviews', lambda folder: (folder / 'movie_reviews.tsv').write_text(
        '1\t...\n0\t!\n'), {}, 'movie_reviews.tsv: The texts contain no words'),
])
def test_what_else_there_is_not(name, spoil, options, message, tmp_path):
  layout = LAYOUTS[name]
  folder = tmp_path / 'of'
  folder.mkdir()
  layout.write(folder)
  spoil(folder)
  with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
    data.load(
        name, str(folder / layout.place), **layout.options | options
    )
  assert '\n' not in str(error.value)


@pytest.mark.parametrize('given, message', [
    ('combined', 'combined is a file, not a folder. Get combined.bz2 and'),
    ('elsewhere', 'elsewhere is not there. Get combined.bz2 and'),
    ('', 'No path to combined given. Get combined.bz2 and'),
])
def test_vehicle_takes_the_folder_of_its_files(given, message, tmp_path):
  write_vehicle(tmp_path)
  with pytest.raises(FileNotFoundError, match=message):
    data.load('vehicle', given and str(tmp_path / given))


def test_imdb_needs_its_folder():
  with pytest.raises(FileNotFoundError, match='No path to imdb.*builder'):
    data.load('imdb')
