"""Breast Histopathology Images (Janowczyk and Madabhushi, 2016).

Kaggle's archive has one folder for each patient. In it are the folders 0 and 1
(IDC positive) with PNG patches of 50 x 50 pixels.
Source: https://www.kaggle.com/datasets/paultimothymooney/breast-histopathology-images

Kang et al. (2022), Appendix B: two patches of one patient with the same label
are one sample, one patch at each party; 80 % of the patients are for training.
Here a sample is an image of both patches side by side, so that the split
'left_right' gives each party its patch.
"""
import pathlib

import numpy as np

from vfljax.data.files import folder as folder_at
from vfljax.data.options import whole
from vfljax.data.photo import photo
from vfljax.data.source import Facts, Source
from vfljax.data.table import Table, listing

HOW = (
    'Get Breast Histopathology Images from https://www.kaggle.com/datasets/'
    'paultimothymooney/breast-histopathology-images and give the folder of the'
    " patients' folders."
)
SIDE = 50


def load(path: str = '', pairs: int = 0, train: float = 0.8) -> Table:
  """BHI: pairs of patches, uint8 [n, 50, 100, 3]; class 1 is IDC positive.

  Args:
    path: The folder of the patients' folders.
    pairs: At most so many pairs for each patient and label; 0 takes all (140000
      pairs are 2 GB).
    train: Share of the patients for training, drawn with a fixed seed.

  Raises:
    FileNotFoundError: if the folder is missing or has fewer than two patients,
      or a patient's folder has neither 0 nor 1.
    ValueError: if a file is no image, a patient has other folders than 0 and
      1, there are no pairs, or Pillow is not installed.
  """
  if not 0 < train < 1:
    raise ValueError(f'bhi: train must be inside (0, 1); got {train}.')
  whole('bhi', 0, pairs=pairs)
  root = folder_at(path, HOW)
  patients = sorted(p for p in root.iterdir() if p.is_dir())
  if len(patients) < 2:
    raise FileNotFoundError(
        f'{root} has {len(patients)} folders of patients, not 2 or more. {HOW}'
    )
  draw = np.random.default_rng(0)
  first = max(1, min(len(patients) - 1, round(train * len(patients))))
  training = set(draw.permutation(len(patients))[:first].tolist())
  images, labels, test = [], [], []
  for i, patient in enumerate(patients):
    odd = {p.name for p in patient.iterdir() if p.is_dir()} - {'0', '1'}
    if odd:
      raise ValueError(
          f"{patient}: a patient's folders are 0 and 1; there is also "
          f'{listing(sorted(odd))}.'
      )
    if not any((patient / label).is_dir() for label in '01'):
      raise FileNotFoundError(f'{patient} has no folder 0 or 1. {HOW}')
    for label in (0, 1):
      found = _pairs(draw, patient / str(label), pairs)
      images += found
      labels += [label] * len(found)
      test += [i not in training] * len(found)
  if not images:
    raise ValueError(f'{root}: no patient has two patches of one label.')
  return Table(
      np.stack(images), np.array(labels, np.int32), (),
      ('IDC negative', 'IDC positive'), (), np.array(test),
  )


def _pairs(draw, folder: pathlib.Path, most: int) -> list[np.ndarray]:
  """Random pairs of a folder's patches, without smaller ones from the edges."""
  files = sorted(folder.glob('*.png'))
  files = [files[i] for i in draw.permutation(len(files))]
  found: list[np.ndarray] = []
  waiting: list[np.ndarray] = []
  for file in files:
    if most and len(found) == most:
      break
    patch = photo(file)
    if patch.shape != (SIDE, SIDE, 3):
      continue
    waiting.append(patch)
    if len(waiting) == 2:
      found.append(np.concatenate(waiting, axis=1))
      waiting = []
  return found


SOURCE = Source(
    load, 'binary', HOW, 'as on Kaggle',
    Facts(
        # Patches at the edge and patients' odd ones have no pair.
        138762, (198738, 78786), 'https://www.kaggle.com/datasets/'
        'paultimothymooney/breast-histopathology-images (277524 patches)',
        (50, 100, 3), whole=(('pairs', 0),), about=0.05,
    ),
    files=('BHI', 'bhi', 'IDC_regular_ps50_idx5'), parties='2: a patch each',
)
