"""SIIM-ISIC melanoma classification: a folder of photographs and a CSV file.

`train.csv` names each image (`image_name`) and says whether it shows a melanoma
(`target`). The images are JPEG files. GAFM (appendix E.1) converts them to grey
and 64 x 64 pixels. Fewer than 2 % are positive.
Source: https://www.kaggle.com/c/siim-isic-melanoma-classification
"""
import pathlib

import numpy as np

from vfljax.data.files import at, find, fits, reading
from vfljax.data.options import whole
from vfljax.data.photo import photo
from vfljax.data.source import IMAGES, Facts, Source
from vfljax.data.table import Table, listing
from vfljax.need import extra

HOW = (
    'Get train.csv and the JPEG images from https://www.kaggle.com/c/'
    'siim-isic-melanoma-classification and give their folder.'
)
FOLDERS = ('', 'train', 'jpeg/train', 'images')
ENDINGS = ('.jpg', '.jpeg', '.png')


def load(path: str = '', size: int = 64, rows: int = 0) -> Table:
  """ISIC's images in grey, uint8 [n, size, size, 1]; class 1 is melanoma.

  Args:
    path: The folder with `train.csv`. The images are in it or in its `train`,
      `jpeg/train` or `images`.
    size: Side of the images in pixels, 1 to 4096.
    rows: How many images to read from the start of the list; 0 reads all.

  Raises:
    FileNotFoundError: if the CSV file or an image is not there.
    ValueError: if the CSV file has other columns or labels, or an image twice,
      an image cannot be read, an option is out of range, or pandas or Pillow is
      not installed.
  """
  with extra():
    import pandas as pd

  whole('isic', 1, 4096, size=size)
  whole('isic', 0, rows=rows)
  file = find(path, 'train.csv', HOW)
  with reading(file, 'cannot be read'):
    # A name as it stands there, be it 0012 or NA.
    listed = pd.read_csv(
        file, nrows=rows or None, dtype={'image_name': str},
        keep_default_na=False,
    )
  missing = {'image_name', 'target'} - set(listed.columns)
  if missing:
    raise ValueError(f'{file} has no column {listing(sorted(missing))}.')
  names = listed['image_name']
  if names.duplicated().any():
    raise ValueError(
        f'{file} has images twice: {listing(names[names.duplicated()])}.'
    )
  labels = listed['target'].to_numpy()
  if not np.isin(labels, (0, 1)).all():
    raise ValueError(f'{file}: every target must be 0 or 1.')
  fits(2 * len(labels) * size * size, f'{len(labels)} images')
  images = [
      photo(_place(file.parent, name), 'L', scaled=(size, size))
      for name in names
  ]
  blank = np.zeros((0, size, size), np.uint8)
  x = np.stack(images) if images else blank
  return Table(
      x[..., None], labels.astype(np.int32), (), ('benign', 'melanoma'), ()
  )


def _place(folder: pathlib.Path, name: str) -> pathlib.Path:
  for below in FOLDERS:
    for ending in ENDINGS:
      file = at(str(folder / below / f'{name}{ending}'))
      if file.exists():
        return file
  raise FileNotFoundError(f'There is no image {name} in {folder}. {HOW}')


SOURCE = Source(
    load, 'binary', HOW, 'CC BY-NC 4.0',
    Facts(
        33126, (32542, 584), 'Rotemberg et al. (2021), SIIM-ISIC 2020',
        whole=(('rows', 0),),
    ),
    files=('ISIC', 'isic'), parties=IMAGES,
)
