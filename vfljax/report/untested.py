"""What a run did not measure: other attacks, defenses, seeds and strengths."""
from collections.abc import Mapping
from typing import Any

from vfljax import attacks, defenses
from vfljax.attack import recipe_of
from vfljax.data.table import listing
from vfljax.report import ranks, reading
from vfljax.report.reading import Results
from vfljax.runner.config import Config, ModelConfig
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import federations
from vfljax.runner.workdir import saved

MOST = 30  # Names in a sentence.


def sentences(
    results: Results, config: Mapping[str, Any], classes: int
) -> list[str]:
  """Sentences that name what was not tested, and how to test it.

  Args:
    results: The results of one data set and algorithm.
    config: The work directory's configuration. If it is {}, which attacks apply
      is unknown, and none are named.
    classes: Number of classes; 0 if unknown.
  """
  ran = {reading.base(name) for name in results.attacks}
  fits, cannot = applying(config, classes or 2)
  more = [name for name in fits if name not in ran]
  there = {defense.split()[0] for defense in results.defenses}
  # `lost` names the defenses that are asked for but did not run yet.
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
      'Strengths between those that were run, other divisions of the columns '
      'among the parties, and attackers who know more or combine attacks.'
  ]


def _other_seeds(results: Results) -> list[str]:
  """A warning about selection if the best of several rows was chosen.

  The lowest of several means is on average below its true value, and its
  interval does not account for that.
  """
  # Rows that lack numbers, as those that diverged, are never chosen.
  rows = [t for t in ranks.trades(results)
          if t.cell[0] != 'none' and not t.lost.any]
  if len(rows) < 2 or not results.seeds:
    return []
  return [
      f'Other seeds: the best of {len(rows)} rows was chosen by the same '
      'numbers that are shown with it. So they are too favourable, and more '
      'so the more seeds differ; its interval does not show that. To check '
      f'the choice, run it with --config.first_seed={max(results.seeds) + 1} '
      'in another --workdir.'
  ]


def applying(
    config: Mapping[str, Any], classes: int
) -> tuple[list[str], list[str]]:
  """(attacks that apply to such a federation, attacks that do not).

  Baselines are left out, because they use no leak. Both lists are empty if the
  configuration cannot be read.
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
