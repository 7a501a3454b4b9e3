"""Data on which an attack leaves a protection something to thwart, or nothing.

Without a protection it leaks so little there that this alone scores `THWARTED`.
"""
from collections.abc import Sequence

from experiments.kang2022.pu_scores import THWARTED, named
from vfljax.evaluation import LEAKAGE_RANGES
from vfljax.report import reading
from vfljax.report.reading import Results


def scores(tables: dict[str, dict[str, int]]) -> dict[str, int]:
  """All defenses' scores by name, none's left out.

  So are data sets whose undefended federation leaks too little for a defense to
  have anything to thwart.
  """
  return {
      f'{reading.pretty(defense)} ({name})': score
      for name, table in tables.items() for defense, score in table.items()
      if defense != 'none' and table.get('none', 0) < THWARTED
  }


def said(tables: dict[str, dict[str, int]]) -> str:
  """Names the data sets on which there is nothing to thwart."""
  found = {
      name: table['none'] for name, table in tables.items()
      if table.get('none', 0) >= THWARTED
  }
  listed = ', '.join(f'{name}: {score}' for name, score in found.items())
  text = f'nothing to thwart, scores without a protection: {listed}'
  return text if found else ''


def near(
    everything: Sequence[Results], tables: dict[str, dict[str, int]]
) -> str:
  """Names the data sets of which seeds do not tell whether that is so.

  There the 95 % interval of the undefended leakage has the limit in it. What
  the scores with a protection would decide is said, too, as a mean just below
  the limit would keep it from sight.
  """
  limit = LEAKAGE_RANGES[5 - THWARTED]
  found = []
  for name, results in named(everything):
    leaks = list(reading.leakage(
        results, ('none', None), 'model_completion'
    ).values())
    s = reading.summarize(leaks)
    if name in tables and s.mean - s.half <= limit < s.mean + s.half:
      most = max(
          (n for d, n in tables[name].items() if d != 'none'), default=0
      )
      found.append(
          f'{name}: {s.mean:.2f} ({s.mean - s.half:.1f} to '
          f'{s.mean + s.half:.1f}), above {limit:g} in '
          f'{sum(x > limit for x in leaks)} of {len(leaks)} seeds; above it '
          f'the claim {"did not hold" if most >= THWARTED else "held"} there '
          f'(highest score with a protection: {most})'
      )
  return '' if not found else (
      'on these data seeds do not tell whether there is something to thwart '
      f'(more than {limit:g} points without a protection): '
      + '; '.join(found)
  )
