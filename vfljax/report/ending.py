"""The last lines of a run at a terminal; the verdict comes at the end."""
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
  """The ranking, the timings, the verdict, and where the report is.

  Args:
    path: A work directory with its report.
    goal: The limits on loss and leakage that the user gave.

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
  """The ranking without the scores by group of attacks, to save width."""
  kept = [
      i for i, name in enumerate(ranking.columns)
      if not name.startswith('against')
  ]
  return ranking._replace(
      columns=tuple(ranking.columns[i] for i in kept),
      rows=[[row[i] for i in kept] for row in ranking.rows],
  )
