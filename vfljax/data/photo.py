"""Reads a PNG or JPEG file as an array of its pixels.

Only these two formats are read: a file's name does not prove its content, and
some of Pillow's other formats start programs. The size in a picture's header is
checked before it is decompressed. A photograph is turned upright, as its camera
noted; of 16 bits a pixel the upper 8 are kept.
"""
import io
import pathlib

import numpy as np

from vfljax.data.files import ordinary, reading
from vfljax.need import extra

MOST = 200_000_000  # Bytes of a file, and pixels; a camera makes fewer.


def photo(
    file: pathlib.Path, mode: str = 'RGB', size: tuple[int, int] | None = None,
    scaled: tuple[int, int] | None = None,
) -> np.ndarray:
  """A picture as uint8 [height, width, 3], or [height, width] for grey.

  Args:
    file: A PNG or JPEG file.
    mode: 'RGB', or 'L' for grey.
    size: (width, height) that it must have; `None` for any.
    scaled: (width, height) to rescale it to; `None` for its own size.

  Raises:
    FileNotFoundError: if it is missing, or is a pipe or a device.
    ValueError: if it is no PNG or JPEG, is visibly damaged (PNG has checksums,
      JPEG has none), or has another size.
  """
  with extra():
    from PIL import Image, ImageOps, UnidentifiedImageError

  ordinary(file, 'Get it again.')
  if file.stat().st_size > MOST:
    raise ValueError(f'{file} is too large for a picture: more than 200 MB.')
  with reading(file, 'is not an image'):
    raw = file.read_bytes()
    try:
      opened = Image.open(io.BytesIO(raw), formats=('PNG', 'JPEG'))
    except UnidentifiedImageError:  # It names an object in memory.
      raise ValueError('neither PNG nor JPEG') from None
    with opened as image:
      found = image.size
      if found[0] * found[1] > MOST:
        raise ValueError(f'{found[0]} by {found[1]} pixels')
      image.verify()
  if size and found != size:
    raise ValueError(
        f'{file} has {found[0]} by {found[1]} pixels, not {size[0]} by'
        f' {size[1]}.'
    )
  with reading(file, 'is not an image'):
    # Opened again, as verifying the checksums consumed the first.
    with Image.open(io.BytesIO(raw), formats=('PNG', 'JPEG')) as image:
      upright = ImageOps.exif_transpose(image)
      if upright.mode.startswith('I'):  # Pillow would cut off above 255.
        upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
      flat = upright.convert(mode)
      if scaled:
        flat = flat.resize(scaled, Image.Resampling.BILINEAR)
      return np.asarray(flat)
