"""Options of the parties' files: one word for all, or one of each file.

A bank's export and a shop's may be written differently, and call the same ids
otherwise. `decimal=comma` is of all files, `decimal=comma,point` of two.
"""
import contextlib

from vfljax.data.options import Names, meant


# Options whose word may be a comma.
_SPELLED: dict[str, str] = dict.fromkeys(
    ('sep', 'decimal'), " A comma is spelled 'comma'."
)


def each(name: str, value: Names, files: int) -> tuple[str, ...]:
  """The option's word for each of so many files.

  Args:
    name: The option's, for the message.
    value: One word for all; or words in a sequence, or between commas, in the
      files' order; blanks around them are ignored. '' is what holds if nothing
      is typed. One character is itself, such as the separator ','.
    files: Their number.

  Raises:
    ValueError: for some other number of words.
  """
  if not isinstance(value, str):
    words = tuple(map(str, value))
  elif len(value) > 1 and ',' in value:
    words = tuple(part.strip() for part in value.split(','))
  else:
    words = (value,)
  if len(words) not in (1, files):
    example = ','.join(f'<{name} of table {k + 1}>' for k in range(files))
    raise ValueError(
        f'{name} has {len(words)} words for {files} tables: type one for all, '
        f'or one of each, {name}={example}.{_SPELLED.get(name, "")}'
    )
  return words if len(words) == files else words * files


def advising(
    file: int, typed: dict[str, tuple[str, ...]]
) -> contextlib.AbstractContextManager[None]:
  """A context where what `flag` advises for a file leaves the others alone.

  Args:
    file: Its place.
    typed: The words of all files by option, '' for those that are recognised:
      said of all, a decimal comma would make thousands of another file's 1.250.
  """
  def of_all(name: str, word: str) -> str:
    if name not in typed:
      return word
    words = [*typed[name]]
    words[file] = word
    if not any(words):
      return ''  # A comma alone would be a word.
    return ','.join('comma' if one == ',' else one for one in words)

  return meant(lambda given: {
      name: of_all(name, word) for name, word in given.items()
  })
