"""Adds flags to environment variables that compilers read."""
from collections.abc import MutableMapping


def add(
    environment: MutableMapping[str, str], variable: str, flag: str, value: str
) -> None:
  """Adds `flag=value` to a variable, unless the user has set the flag.

  Nothing is added if the flag is there with any value, or if the variable does
  not start with a dash: XLA then reads it as the name of a file of flags.
  """
  said = environment.get(variable, '').strip()
  if flag not in said and said[:1] in ('', '-'):
    environment[variable] = f'{said} {flag}={value}'.strip()
