"""Any TensorFlow data set that is on disk, without TensorFlow.

TFDS reads the array_record (and Parquet) layout as NumPy examples. Only files
are read: no code of the data set runs and nothing is downloaded. Images stay as
they are. Other features become columns as in `frame`: text and classes one-hot,
a vector as one column for each entry.
"""
import os
import pathlib
import re

import numpy as np

from vfljax.data import columns as of_frames
from vfljax.data.files import at, one_line
from vfljax.data.labels import labels
from vfljax.data.options import Names, several
from vfljax.data.source import Source
from vfljax.data.table import Table, listing
from vfljax.need import extra

HOW = (
    "Prepare it once with tfds.builder(name, file_format='array_record')"
    '.download_and_prepare() and give its folder: ~/tensorflow_datasets/NAME.'
)
_INFO = 'dataset_info.json'


def load(
    path: str = '', dataset: str = '', split: str = '', data_dir: str = '',
    label: str = '', missing: str = 'refuse', categories: int = 100,
    text: Names = '',
) -> Table:
  """A prepared TFDS data set with one image, or with tabular columns.

  Args:
    path: The data set's folder, such as ~/tensorflow_datasets/mnist, or that of
      one configuration or version below it.
    dataset: Instead of `path`, its name in TFDS: 'mnist', 'name/config:1.0.0'.
    split: For example 'train[:80%]'. By default 'train', with the rows of
      'test', if there is one, as the official test set.
    data_dir: With `dataset`: the folder that holds the data sets; by default
      TFDS's own (~/tensorflow_datasets).
    label: Name of the label; by default the second of the supervised pair.
    missing: As in `frame.csv`, for tabular columns.
    categories: As in `frame.csv`.
    text: As in `frame.csv`.

  Raises:
    FileNotFoundError: if it is missing, or its layout can only be read with
      TensorFlow.
    ValueError: if TFDS is not installed, there is no such split or label, or
      the examples have an unsupported shape.
  """
  if bool(path) == bool(dataset):
    raise ValueError(
        'tfds: give either the folder of one data set (path) or its name'
        ' (dataset), and not both.'
    )
  if data_dir and not dataset:
    raise ValueError(
        'tfds: data_dir needs the name of the data set in it: dataset=...'
    )
  builder = _builder(path, dataset, data_dir)
  label = label or _supervised_label(builder.info)
  if split:
    rows, test = _rows(builder, split), None
  else:
    rows = _rows(builder, 'train')
    official = 'test' in builder.info.splits
    extra = _rows(builder, 'test') if official else []
    test = np.arange(len(rows) + len(extra)) >= len(rows) if extra else None
    rows = rows + extra
  if not rows:
    raise ValueError(
        f'{builder.name}: the split {split or "train"!r} has no rows.'
    )
  names = _class_names(builder.info.features)
  table = _table(rows, label, names, missing, categories, several(text))
  return table._replace(test=test)


def rows(path: str, split: str) -> list[dict]:
  """One split's examples unchanged, except that bytes become text.

  Args:
    path: As in `load`.
    split: For example 'train'.

  Raises:
    FileNotFoundError: as `load`.
    ValueError: as `load`.
  """
  return [_flat(row) for row in _rows(_builder(path, '', ''), split)]


def _builder(path: str, dataset: str, data_dir: str):
  """TFDS's reader of one data set's files."""
  with extra('data'):
    from tensorflow_datasets.core import constants, read_only_builder

  folder = _version(at(path)) if path else ''
  try:
    if path:
      return read_only_builder.builder_from_directory(folder)
    place = os.path.expanduser(data_dir or constants.DATA_DIR)
    return read_only_builder.builder_from_files(dataset, data_dir=place)
  except Exception as error:  # Its JSON readers raise whatever they meet.
    raise FileNotFoundError(
        f'There is no prepared TFDS data set at {path or dataset!r}. {HOW}'
    ) from error


def _version(folder: pathlib.Path) -> pathlib.Path:
  """The folder itself, or the newest of the versions below it."""
  if (folder / _INFO).exists():
    return folder
  below = (f'*/{_INFO}', f'*/*/{_INFO}')  # Versions; configurations' versions.
  found = [file.parent for depth in below for file in folder.glob(depth)]
  if len({f.parent for f in found}) > 1:
    raise ValueError(
        f'{folder} holds several data sets or configurations; name one of them:'
        f' {listing(sorted(found))}.'
    )
  number = lambda f: [int(n) for n in re.findall(r'\d+', f.name)]
  return max(found, key=number, default=folder)


def _rows(builder, split: str) -> list[dict]:
  try:
    if not builder.info.splits[split].num_examples:  # No reader takes none.
      return []
    with extra('data'):  # TFDS imports the layout's own reader here.
      found = list(builder.as_data_source(split=split))
    # From a damaged file TFDS may also return examples without values.
    if any(value is None for row in found for value in row.values()):
      raise RuntimeError('an example is not whole')
    return found
  except NotImplementedError as error:  # TFRecord, which needs TensorFlow.
    raise FileNotFoundError(
        f'TFDS data set {builder.name!r} is there, but not as array_record.'
        f' {HOW}'
    ) from error
  except RuntimeError as error:  # What array_record raises.
    if 'No such file' in str(error):
      raise FileNotFoundError(
          f'A file of the TFDS data set {builder.name!r} is not there: '
          f'{one_line(error)}. {HOW}'
      ) from error
    raise ValueError(
        f'The TFDS data set {builder.name!r}, split {split!r}, is damaged: '
        f'{one_line(error)}. Prepare it again.'
    ) from error
  except Exception as error:  # Of protocol buffers, shapes, codecs, ...
    raise ValueError(
        f'TFDS data set {builder.name!r}, split {split!r}: {one_line(error)}'
    ) from error


def _supervised_label(info) -> str:
  pair = info.supervised_keys
  return pair[-1] if pair and isinstance(pair[-1], str) else 'label'


def _class_names(features, prefix: str = '') -> dict[str, tuple[str, ...]]:
  """The names of the classes of every feature that is a TFDS class label."""
  names = {}
  for key, feature in features.items():
    if hasattr(feature, 'items'):
      names |= _class_names(feature, f'{prefix}{key}/')
    elif getattr(feature, 'names', None):
      names[prefix + key] = tuple(map(str, feature.names))
  return names


def _table(rows, label, names, missing, categories, text) -> Table:
  with extra():
    import pandas as pd

  rows = [_flat(row) for row in rows]
  if label not in rows[0]:
    raise ValueError(
        f'There is no label {label!r}; the features are {listing(rows[0], 10)}.'
    )
  column = pd.Series([row[label] for row in rows], name=label)
  if np.ndim(rows[0][label]):
    raise ValueError(f'The label {label!r} is not one value a row.')
  if label in names:
    y, classes = column.to_numpy(np.int32), names[label]
  else:
    y, classes = labels(
        column, text=label in text, most=categories
    )
  images = [k for k, v in rows[0].items() if np.ndim(v) == 3]
  if images:
    return Table(_images(rows, images), y, (), classes, ())
  columns = _columns(rows, label)
  for key in columns.keys() & names.keys():
    if max(columns[key]) >= len(names[key]):
      raise ValueError(
          f'Feature {key!r} has a class beyond its {len(names[key])}; the data'
          ' set is damaged. Prepare it again.'
      )
    # In TFDS -1 means that the class is unknown.
    columns[key] = [None if i < 0 else names[key][i] for i in columns[key]]
  x, titles, groups = of_frames.features(
      pd.DataFrame(columns), missing, categories, text
  )
  return Table(x, y, titles, classes, groups)


def _images(rows: list[dict], keys: list[str]) -> np.ndarray:
  if len(keys) > 1:
    raise ValueError(f'The examples have several images: {listing(keys)}.')
  shapes = {row[keys[0]].shape for row in rows}
  if len(shapes) > 1:
    raise ValueError(
        f'The images have {len(shapes)} different shapes, such as'
        f' {listing(sorted(shapes), 2)}; one shape is needed.'
    )
  x = np.stack([row[keys[0]] for row in rows])
  return x if x.dtype == np.uint8 else x.astype(np.float32)


def _columns(rows: list[dict], label: str) -> dict[str, list]:
  columns = {}
  for key, first in rows[0].items():
    if key == label:
      continue
    if np.ndim(first) == 0:
      columns[key] = [row[key] for row in rows]
    elif np.ndim(first) == 1 and len({len(row[key]) for row in rows}) == 1:
      for i in range(len(first)):
        columns[f'{key}[{i}]'] = [row[key][i] for row in rows]
    else:
      raise ValueError(
          f'Feature {key!r} is neither an image, a value nor a vector of fixed'
          ' length.'
      )
  return columns


def _flat(row: dict, prefix: str = '') -> dict:
  """Nested features as 'outer/inner', bytes as text."""
  flat = {}
  for key, value in row.items():
    if isinstance(value, dict):
      flat |= _flat(value, f'{prefix}{key}/')
    elif isinstance(value, bytes):
      flat[prefix + key] = value.decode('utf-8', 'replace')
    else:
      flat[prefix + key] = value
  return flat


SOURCE = Source(load, 'any', HOW, "the data set's own")
