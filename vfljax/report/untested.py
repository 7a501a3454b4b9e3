"""What a run did not look at: attacks, defenses, and what no run looks at."""
from collections.abc import Mapping
from typing import Any

from vfljax import attacks, defenses
from vfljax.attack import recipe_of
from vfljax.data.table import listing
from vfljax.report import reading
from vfljax.report.reading import Results
from vfljax.runner.config import Config, ModelConfig
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import federations
from vfljax.runner.workdir import saved

MOST = 30  # Names in a sentence.


def sentences(
    results: Results, config: Mapping[str, Any], classes: int
) -> list[str]:
  """Attacks and defenses without a measurement here, and why not.

  Args:
    config: Of the work directory; {} if unknown, and then nobody knows which
      attacks would apply.
    classes: How many; 0 if unknown.
  """
  ran = {reading.base(name) for name in results.attacks}
  fits, cannot = applying(config, classes or 2)
  more = [name for name in fits if name not in ran]
  there = {defense.split()[0] for defense in results.defenses}
  # Of what did not run yet it is said elsewhere (`lost`).
  there |= {name.split()[0] for name, _ in results.wanted}
  there |= {e.get('defense') for e in config.get('listed') or ()
            if e.get('label') in there}
  others = [
      name for name in sorted(defenses.REGISTRY)
      if name not in there and name != 'none'
      and (classes <= 2 or not defenses.REGISTRY[name].binary)
  ]
  said = []
  if more:
    said.append(
        f'Attacks that would apply and were not run: {listing(more, MOST)} '
        '(--config.attacks=...).'
    )
  if cannot:
    said.append(f'Attacks that do not apply: {listing(cannot, MOST)}.')
  if others:
    said.append(
        f'Defenses that were not run: {listing(others, MOST)} '
        '(--config.defenses=...).'
    )
  return said + _other_seeds(results) + [
      'Strengths between those that were run, other divisions of the columns, '
      'and attackers who know more than these do or combine them.'
  ]


def _other_seeds(results: Results) -> list[str]:
  """A sentence where one of several was chosen; none where nothing was.

  The least of several means is below what it is a mean of, on average, and its
  interval knows nothing of that.
  """
  rows = [cell for cell in results.cells if cell[0] != 'none']
  if len(rows) < 2 or not results.seeds:
    return []
  return [
      f'Other seeds: the best of {len(rows)} rows was chosen by the same '
      'numbers that are shown with it. That flatters it, the more so the more '
      'seeds differ, and its interval does not show it. To check the choice, '
      f'run it with --config.first_seed={max(results.seeds) + 1} in another '
      '--workdir.'
  ]


def applying(
    config: Mapping[str, Any], classes: int
) -> tuple[list[str], list[str]]:
  """(attacks whose needs such a federation meets, those it does not).

  Baselines are left out: they are no attacks.
  """
  try:
    known = saved.completed(dict(config))['model'] if config else {}
    names = ModelConfig.__dataclass_fields__
    model = ModelConfig(**{k: v for k, v in known.items() if k in names})
    scene = federations.scene(Config(model=model), classes)
  except (UserError, AttributeError, LookupError, TypeError, ValueError):
    return [], []
  fits, cannot = [], []
  for name, factory in sorted(attacks.REGISTRY.items()):
    made = recipe_of(factory)
    if not made.is_baseline:
      (cannot if made.why_not(name, scene) else fits).append(name)
  return fits, cannot
