"""What a person at the command line did that cannot work."""


class UserError(Exception):
  """A message for that person: what is wrong, and what would be right.

  One or two lines, no traceback: `launch.py` prints it on stderr and exits
  with code 2.
  """
