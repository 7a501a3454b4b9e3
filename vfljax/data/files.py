"""Finds the file of a data set, or says in one line how to get it."""
import pathlib


def find(path: str, usual: str, how: str) -> pathlib.Path:
  """The file at `path`, or the one called `usual` in the folder `path`.

  Args:
    path: A file or a folder; '~' is the home folder.
    usual: The file's customary name; '' where it has none.
    how: One sentence on where to get the file or put it.

  Raises:
    FileNotFoundError: if it is not there; the message ends with `how`.
  """
  if not path:
    raise FileNotFoundError(f'No path to {usual or "a file"} given. {how}')
  place = pathlib.Path(path).expanduser()
  if usual and place.is_dir():
    place = place / usual
  if not place.exists():
    raise FileNotFoundError(f'{place} is not there. {how}')
  if place.is_dir():
    raise FileNotFoundError(f'{place} is a folder, not a file. {how}')
  return place


def one_line(error: Exception) -> str:
  """The first line of an error's message, for use inside another message."""
  return (str(error).strip().splitlines() or [type(error).__name__])[0]
