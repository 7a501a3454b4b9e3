"""A paper's numbers beside ours."""
from collections.abc import Iterable, Mapping

from vfljax.report import reading
from vfljax.report.reading import Cell, Results, Summary


def compare(results: Results, paper: Iterable[Mapping]) -> list[dict]:
  """Compares a paper's numbers with ours.

  Args:
    results: Our results.
    paper: Dicts with 'defense', 'metric', 'mean' and perhaps 'strength',
      'attack', 'std', 'source', 'dataset', 'algorithm'. An entry without a
      strength is compared with all strengths of its defense.

  Returns:
    A dict for each compared number of ours: the entry's keys, 'strength',
    'ours' (a Summary), 'difference' (ours minus the paper's), and 'sds', the
    difference in the paper's standard deviations (None if it gives none). A
    deviation printed as 0.00 counts as 0.005, the largest that rounds to it.
  """
  compared = []
  for entry in paper:
    here = dict(zip(('dataset', 'algorithm'), results.title[1:]))
    if any(entry.get(key) not in (None, here[key]) for key in here):
      continue
    for cell in results.cells:
      asked = entry.get('strength')
      if cell[0] == entry['defense'] and asked in (None, cell[1]):
        found = reading.find(
            results, cell, entry.get('attack'), entry['metric']
        )
        ours = reading.summarize(found.values())
        if ours.count:
          compared.append(_beside(entry, cell, ours))
  return compared


def _beside(entry: Mapping, cell: Cell, ours: Summary) -> dict:
  difference, std = ours.mean - entry['mean'], entry.get('std')
  sds = None if std is None else difference / (std or 0.005)
  return {
      **entry, 'strength': cell[1], 'ours': ours, 'difference': difference,
      'sds': sds,
  }
