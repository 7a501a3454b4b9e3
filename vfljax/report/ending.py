"""How a run's last lines look at a terminal: verdict and report come last."""
import os
from pathlib import Path

from vfljax.report import (
    advice, crossings, papers, ranks, results as found, spent, tables, terminal,
    verdict, words,
)
from vfljax.runner.cli.goals import Goal
from vfljax.runner.experiment import told
from vfljax.runner.workdir import about, store


def text(path: str | os.PathLike, goal: Goal = Goal()) -> str:
  """The ranking, then what it took, then who wins and where the report is.

  Args:
    path: A work directory with its report.
    goal: What may be lost, and what may leak.

  Raises:
    UserError: if the directory cannot be read.
  """
  config, units = store.read_config(path), store.read_timings(path)
  classes = max((unit.pop('classes', 0) for unit in units), default=0)
  parts, last = [], [terminal.paragraphs(crossings.warnings(units))]
  known = told.read(units)
  rows = store.read_results(path)
  for results in found.of_rows(
      rows, config, classes, (), known, about.read(path)
  ):
    ranked = ranks.rank(results)
    parts.append(words.headline(results))
    if ranked:
      parts.append(terminal.table(_narrow(tables.ranking(results, ranked))))
    compared = papers.compare(results, config.get('paper') or [])
    if compared:
      parts.append(terminal.paragraphs([tables.paper(compared).note]))
    said = verdict.sentences(results, ranked)
    if goal.asked:
      more = advice.sentences(results, goal)
      said += [s for s in more if s not in said]
    last.append(terminal.paragraphs(said))
  if units:
    parts.append(terminal.paragraphs([spent.timing_sentence(units)]))
  place = Path(path)
  last.append(
      f'All numbers: {place / "summary.md"}\nReport: {place / "report.html"}'
  )
  return '\n\n'.join(filter(None, parts + last))


def _narrow(ranking: tables.Table) -> tables.Table:
  """Without the scores against some attacks, which the report has."""
  kept = [
      i for i, name in enumerate(ranking.columns)
      if not name.startswith('against')
  ]
  return ranking._replace(
      columns=tuple(ranking.columns[i] for i in kept),
      rows=[[row[i] for i in kept] for row in ranking.rows],
  )
