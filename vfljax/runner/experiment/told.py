"""What timing records say of attacks from outside of vfljax.

Reports ask how an attack's success becomes a leakage, and whether it is a
baseline. Of vfljax's own the registry says so, of others only the process in
which they were registered.
"""
from collections.abc import Mapping, Sequence
import contextlib
from typing import Any

from vfljax.leakage import AttackName, Known, Score
from vfljax.runner.config import outside
from vfljax.runner.experiment import attackers
from vfljax.runner.experiment.setting import Setting

FIELD = 'attacks'  # Of a timing record.


def of(setting: Setting) -> dict[str, dict[str, Any]]:
  """Each such attack by its name in the registry, as JSON takes it."""
  made = {
      **setting.in_training, **setting.replayed, **setting.after_training,
      **({setting.backdoor: None} if setting.backdoor else {}),
  }
  found = {}
  for name, attack in made.items():
    recipe = attackers.recipe(name)
    if not outside.is_ours(recipe):
      found[AttackName.parse(name).base] = said(recipe.known(attack))
  return found


def said(known: Known) -> dict[str, Any]:
  """One of them."""
  return known._asdict() | dict(score=known.score._asdict())


def read(units: Sequence[Mapping[str, Any]]) -> dict[str, Known]:
  """What timing records say, by the attack's name; {} of older ones."""
  found: dict[str, Known] = {}
  for unit in units:
    said = unit.get(FIELD)
    for name, about in said.items() if isinstance(said, Mapping) else ():
      with contextlib.suppress(TypeError, KeyError, ValueError):  # Damaged.
        found.setdefault(name, _known(about))
  return found


def _known(about: Mapping[str, Any]) -> Known:
  score = Score(**about['score'])
  whole = score._replace(
      metrics=tuple(score.metrics), chance=tuple(score.chance)
  )
  return Known(**about)._replace(score=whole)
