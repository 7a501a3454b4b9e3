"""What timing records say about attacks from outside vfljax.

A report needs to know how an attack is scored and whether it is a baseline. For
vfljax's own attacks the registry says so. Other attacks are registered only in
the process that runs them, which therefore records these facts.
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
  """Registry name -> facts that JSON can store, for each outside attack."""
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
  """The facts about one attack as a dict."""
  return known._asdict() | dict(score=known.score._asdict())


def read(units: Sequence[Mapping[str, Any]]) -> dict[str, Known]:
  """What timing records say about each attack; {} if they are older."""
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
