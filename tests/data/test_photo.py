"""Pictures: what they claim, and what their checksums say."""
import numpy as np
from PIL import Image
import pytest

from tests.faults.damage import resealed_png
from vfljax.data.photo import MOST, photo


@pytest.fixture
def png(tmp_path):
  draw = np.random.default_rng(0)
  file = tmp_path / 'a.png'
  Image.fromarray(draw.integers(0, 256, (20, 30, 3), np.uint8)).save(file)
  return file


def test_pixels_are_pillows(png):
  with Image.open(png) as image:
    np.testing.assert_array_equal(photo(png, size=(30, 20)), image)
    grey = image.convert('L').resize((8, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(photo(png, 'L', scaled=(8, 8)), grey)
  with pytest.raises(ValueError, match=r'30 by 20 pixels, not 20 by 20\.'):
    photo(png, size=(20, 20))


def test_a_flipped_bit_is_noticed(png):
  raw = bytearray(png.read_bytes())
  raw[-30] ^= 1
  png.write_bytes(raw)
  with pytest.raises(ValueError, match=r'a\.png is not an image'):
    photo(png)


def test_a_claim_of_many_pixels_is_not_believed(png):
  raw = bytearray(png.read_bytes())
  raw[16:24] = (10**5).to_bytes(4, 'big') * 2
  png.write_bytes(resealed_png(bytes(raw)))
  with pytest.raises(ValueError, match=r'a\.png is not an image'):
    photo(png)


def test_what_no_camera_makes_is_not_read(png, monkeypatch):
  """Also where a program has taken Pillow's own limit away."""
  monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', None)
  raw = bytearray(png.read_bytes())
  raw[16:24] = (20_000).to_bytes(4, 'big') + (10_001).to_bytes(4, 'big')
  png.write_bytes(resealed_png(bytes(raw)))
  with pytest.raises(ValueError, match=r'image: 20000 by 10001 pixels'):
    photo(png)
  with png.open('r+b') as file:
    file.truncate(MOST + 1)  # Of zeros, which a disk does not hold.
  with pytest.raises(ValueError, match='too large for a .*: more than 200 MB'):
    photo(png)


def test_other_formats_are_not_opened(png):
  Image.new('RGB', (30, 20)).save(png, 'bmp')
  with pytest.raises(ValueError, match='is not an image'):
    photo(png)


def test_sixteen_bits_are_not_cut_off(tmp_path):
  grey = np.arange(256, dtype=np.uint16).reshape(16, 16)
  Image.fromarray(grey * 257).save(tmp_path / 'a.png')
  np.testing.assert_array_equal(photo(tmp_path / 'a.png', 'L'), grey)
  np.testing.assert_array_equal(photo(tmp_path / 'a.png')[..., 1], grey)


def test_a_photograph_is_upright(png):
  turned = Image.Exif()
  turned[0x112] = 6  # A quarter to the left of what it shows.
  with Image.open(png) as image:
    image.save(png, exif=turned)
    np.testing.assert_array_equal(photo(png), np.rot90(image, -1))


def test_what_is_no_picture_is_told_alike_each_time(png):
  png.write_text('a list')
  with pytest.raises(ValueError, match='an image: neither PNG nor JPEG$'):
    photo(png)
