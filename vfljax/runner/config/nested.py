"""Groups within groups, as a list of paths."""
from collections.abc import Mapping
import dataclasses
from typing import Any


def flat(tree: Any, prefix: str = '') -> dict[str, Any]:
  """Nested mappings or dataclasses as {'a.b': leaf}, in their order.

  All else is a leaf: lists, too, and mappings with nothing in them.
  """
  if dataclasses.is_dataclass(tree):
    tree = vars(tree)
  if not isinstance(tree, Mapping) or not tree:
    return {prefix: tree}
  found = {}
  for key, value in tree.items():
    found |= flat(value, f'{prefix}.{key}' if prefix else str(key))
  return found
