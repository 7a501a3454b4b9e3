"""Flags that compilers read from a variable of the environment."""
from collections.abc import MutableMapping


def add(
    environment: MutableMapping[str, str], variable: str, flag: str, value: str
) -> None:
  """Adds `flag=value` to a variable's, unless somebody has said otherwise.

  Namely if the flag is there, whatever its value, or if the variable names a
  file of flags, as XLA takes it where no dash begins it.
  """
  said = environment.get(variable, '').strip()
  if flag not in said and said[:1] in ('', '-'):
    environment[variable] = f'{said} {flag}={value}'.strip()
