"""Small directories in the layouts that data sets officially come in."""
import bz2
import json

import numpy as np
from PIL import Image

from array_record.python.array_record_module import ArrayRecordWriter
from tensorflow_datasets import features as tf
from vfljax.data import credit

COUNTS = dict(CH=64, CM55=225, CORR=144, EDH=73, WT=128)
CONCEPTS = ('sky', 'lake')
TEXTS = ('Good, good film!', "It's bad", 'a good film', 'bad film')


def write_credit(folder, numbered):
  names = ['ID', *credit.NAMES, 'default payment next month']
  lines = [','.join(['', *[f'X{i}' for i in range(1, 24)], 'Y'])]
  lines = (lines if numbered else []) + [','.join(names)]
  rows = [[i, *range(i, i + 23), i % 2] for i in (1, 2, 3)]
  lines += [','.join(map(str, row)) for row in rows]
  (folder / 'credit.csv').write_text('\n'.join(lines))


def write_vehicle(folder, packed=False):
  """Three samples of each type, feature 1 and 100 their numbers."""
  for name, base in (('combined', 0), ('combined.t', 10)):
    lines = [
        f'{kind} 1:{base + i} 100:{-base - i}'
        for i, kind in enumerate((1, 2, 3) * 3)
    ]
    text = '\n'.join(lines).encode()
    file = folder / (f'{name}.bz2' if packed else name)
    file.write_bytes(bz2.compress(text) if packed else text)


def write_nuswide(folder):
  """Ten rows a part: sky in 0..6, lake in 6..7; 6 has both, 8 and 9 none."""
  for place in ('Low_Level_Features', 'NUS_WID_Tags',
                'Groundtruth/TrainTestLabels'):
    (folder / place).mkdir(parents=True)
  rows = np.arange(10)
  for part, base in (('Train', 0), ('Test', 100)):
    for kind, width in COUNTS.items():
      x = np.repeat(rows[:, None] + base, width, 1)
      np.savetxt(
          folder / f'Low_Level_Features/{part}_Normalized_{kind}.dat', x,
          fmt='%d', newline=' \n',
      )
    np.savetxt(
        folder / f'NUS_WID_Tags/{part}_Tags1k.dat',
        np.repeat(rows[:, None] % 2, 1000, 1), fmt='%d', delimiter='\t',
        newline='\t\n',
    )
    for name, have in zip(CONCEPTS, (rows < 7, (rows == 6) | (rows == 7))):
      np.savetxt(
          folder / 'Groundtruth/TrainTestLabels' / f'Labels_{name}_{part}.txt',
          have, fmt='%d',
      )


def write_bhi(folder, patients=5):
  for patient in range(patients):
    for label in (0, 1):
      place = folder / f'{8000 + patient}' / str(label)
      place.mkdir(parents=True, exist_ok=True)
      for i in range(4 - label):  # The odd patch of class 1 has no partner.
        color = (patient * 10, label * 100, i)
        Image.new('RGB', (50, 50), color).save(place / f'a_{i}.png')
      Image.new('RGB', (50, 20)).save(place / 'edge.png')


def write_reviews(folder, lines=None):
  file = folder / 'movie_reviews.tsv'
  rows = lines or [f'{1 - i % 2}\t{text}' for i, text in enumerate(TEXTS)]
  file.write_text('\n'.join(rows) + '\n')
  return str(file)


def write_imdb(folder, label=1):
  """imdb_reviews as TFDS lays it out, five reviews in all."""
  features = tf.FeaturesDict({
      'text': tf.Text(), 'label': tf.ClassLabel(names=['neg', 'pos']),
  })
  rows = [dict(text=t, label=1 - i % 2) for i, t in enumerate(TEXTS)]
  splits = dict(train=rows, test=[dict(text='good film noir', label=label)])
  place = folder / 'imdb_reviews' / '1.0.0'
  place.mkdir(parents=True, exist_ok=True)
  for split, examples in splits.items():
    file = place / f'imdb_reviews-{split}.array_record-00000-of-00001'
    writer = ArrayRecordWriter(str(file), 'group_size:1')
    for row in examples:
      writer.write(features.serialize_example(features.encode_example(row)))
    writer.close()
  (place / 'dataset_info.json').write_text(json.dumps(dict(
      name='imdb_reviews', version='1.0.0', fileFormat='array_record',
      splits=[
          dict(
              name=split, shardLengths=[str(len(examples))], numBytes='1',
              filepathTemplate='{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}',
          ) for split, examples in splits.items()
      ],
  )))
  features.save_config(str(place))
  return place.parent


def write_criteo(folder, rows=24):
  """I1 counts up, I2 is empty, C1 has one frequent and one rare value."""
  lines = []
  for i in range(rows):
    counts = [str(i), ''] + ['1'] * 11
    categories = ['aa' if i < rows - 2 else 'bb'] + ['cc'] * 25
    lines.append('\t'.join([str(i % 2), *counts, *categories]))
  file = folder / 'train.txt'
  file.write_text('\n'.join(lines) + '\n')
  return str(folder)


def write_isic(folder):
  (folder / 'jpeg' / 'train').mkdir(parents=True)
  lines = ['image_name,patient_id,target']
  for i in range(4):
    pixels = np.full((40, 30, 3), 60 * i, np.uint8)
    Image.fromarray(pixels).save(folder / 'jpeg' / 'train' / f'ISIC_{i}.jpg')
    lines.append(f'ISIC_{i},P,{i % 2}')
  (folder / 'train.csv').write_text('\n'.join(lines) + '\n')
  return str(folder)
