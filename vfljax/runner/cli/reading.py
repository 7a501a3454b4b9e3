"""Says that a large file is being read, before anything else can be shown."""
import os

from vfljax.data import files

# Bytes from which a file is announced; smaller ones are read in some seconds.
LARGE = 100 << 20


def announce(path: str) -> None:
  """Prints a line if there is a large file at `path`.

  A folder, or a path with no file, prints nothing: a loader knows what they
  mean.
  """
  try:
    places = [os.path.expanduser(one) for one in files.parted(path)]
    size = sum(os.path.getsize(one) for one in places if os.path.isfile(one))
  except (OSError, ValueError):
    return
  if size >= LARGE:
    print(f'Reading {path} ({size / 2**20:,.0f} MiB) ...', flush=True)
