"""Variants of a config: one file, and a word after a colon.

  python launch.py --config=experiments/kang2022/vnn.py:vhnn,nuswide10

A file with variants names all of them in `VARIANTS`, a tuple of text; its
`get_config(variant)` makes one of them (ml_collections passes the text after
the colon). None is the default, since a wrong guess would run for hours.
"""
from collections.abc import Sequence
import os

from vfljax.runner.errors import UserError


def choose(variant: str, known: Sequence[str]) -> str:
  """`variant`, if it is one of those that a config has.

  Raises:
    UserError: naming those that there are, if it is not or is empty.
  """
  if variant in known:
    return variant
  if variant:
    said = f'This config has no variant {variant!r}.'
  else:
    said = f'This config has variants: choose one, --config=FILE.py:{known[0]}.'
  # Separated by blanks, as names may have commas.
  raise UserError(f'{said}\nThere are: {" ".join(known)}')


def split(path: str) -> tuple[str, str]:
  """('vnn.py', 'vhnn,nuswide10') of 'vnn.py:vhnn,nuswide10'.

  On Windows the colon of a drive, as in 'C:\\my.py', is part of the file.
  """
  drive, rest = os.path.splitdrive(path)
  file, _, variant = rest.partition(':')
  return drive + file, variant
