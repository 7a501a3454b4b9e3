"""BUILD.md's own examples of a defense and an attack, as if somebody copied
them: the file, and for a defense its line in the registry.

The contract tests take them along, since what BUILD.md promises is that one
file, one line and one test file are all that there is to do.
"""
from pathlib import Path
import re
import sys
import types

from vfljax.defense import Method

BUILD = Path(__file__).parents[1] / 'BUILD.md'
_FILE = r'whole\s+of\s+`vfljax/{}/(\w+)\.py`[^`]*^```python\n(.*?)^```$'


def _module(text: str, folder: str) -> types.ModuleType:
  """The one file of `folder` that the text has the whole of."""
  pattern = _FILE.format(folder)
  (name, code), = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
  module = types.ModuleType(name)
  sys.modules[name] = module  # Where `inspect` looks for what made a recipe.
  exec(compile(code, f'BUILD.md: {name}.py', 'exec'), module.__dict__)
  return module


def _defense(text: str) -> dict[str, Method]:
  module = _module(text, 'defenses')
  name = module.__name__
  line, = re.findall(rf'^    ({name}=Method\(.*\)),$', text, re.MULTILINE)
  return eval(f'dict({line})', {name: module, 'Method': Method})


def _attack(text: str) -> dict[str, object]:
  module = _module(text, 'attacks')
  return {module.__name__: getattr(module, module.__name__)}


DEFENSES = _defense(BUILD.read_text('utf-8'))
ATTACKS = _attack(BUILD.read_text('utf-8'))
