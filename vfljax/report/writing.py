"""Writes a work directory's report: summary.md and report.html.

The page needs no network, script or other file. It first says which defense
wins and why, then shows it in figures, then lists every number.
"""
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vfljax.report import (
    advice, crossings, current, drawing, head, learned, lost, page, papers,
    ranks, reading, spent, svg, tables, untested, verdict, words,
)
from vfljax.report.ranks import Ranked
from vfljax.report.reading import Results
from vfljax.report.tables import Table
from vfljax.report.text import markdown
from vfljax.runner.cli.goals import Goal
from vfljax.runner.machine import disk
from vfljax.runner.workdir import about, store


def write(
    path: str | os.PathLike, paper: Iterable[Mapping] | None = None,
    classes: int = 0, goal: Goal = Goal(),
) -> Path:
  """Writes summary.md and report.html from what is in a work directory.

  Args:
    path: The work directory; a run that is not finished is reported as it is.
    paper: For `papers.compare`; by default the configuration's `paper`.
    classes: Number of classes; 0 for that in the timings. If it is unknown and
      there is no AUC, leakages over guessing's accuracy are left out.
    goal: The limits on loss and leakage; with any, the report has advice.

  Returns:
    The path of report.html.

  Raises:
    UserError: if the directory cannot be read or written.
  """
  config, units = store.read_config(path), store.read_timings(path)
  said = [unit.pop('classes', 0) for unit in units]
  leaking, crossing = crossings.warnings(units), crossings.taken(units)
  found = reading.read(path, classes or max(said, default=0))
  numbers = list(config.get('paper') or [] if paper is None else paper)
  config = {k: v for k, v in config.items() if k != 'paper'}
  classes = classes or max(said, default=0)
  title = _title(found, config)
  warning = [page.verdict(leaking, warns=True)] if leaking else []
  html = [page.heading(title, 1), *warning]
  text = [f'# {markdown(title)}', *(f'**{markdown(w)}**' for w in leaking)]
  facts = head.facts(about.read(path), config, found, units)
  for results in found:
    ranked = ranks.rank(results)
    compared = papers.compare(results, numbers)
    given = _advice(results, goal, config, classes)
    html += section(
        results, ranked, compared, given, alone=len(found) == 1, drawn=True
    )
    text += _summary(results, ranked, compared, given, alone=len(found) == 1)
  if not found:
    html.append(page.note('There are no results yet.'))
    text.append('There are no results yet.')
  first = len(leaking[:1]) + (len(found) == 1)
  html.insert(1 + first, page.facts(facts))
  text.append('## What was run\n\n' + '\n'.join(
      f'- {markdown(what)}: {markdown(how)}' for what, how in facts
  ))
  html += [page.table(t, 2) for t in crossing]
  text += [page.markdown_table(t) for t in crossing]
  if units:
    html.append(page.table(spent.timings(units), 2))
    text.append('## Timings\n\n' + markdown(spent.timing_sentence(units)))
  if config:
    html.append(page.table(spent.configuration(config), 2))
  text.append('Figures and every measurement: report.html. Raw: results.jsonl.')
  disk.write_text(Path(path) / 'summary.md', '\n\n'.join(text) + '\n')
  target = Path(path) / 'report.html'
  disk.write_text(target, page.page(title, html))
  current.note(path, goal)
  return target


class Advice(NamedTuple):
  """Advice within a goal.

  Attributes:
    title: The goal in words.
    said: The advice, sentence by sentence.
    evidence: All measured trades.
    untested: What was not tested, sentence by sentence.
  """

  title: str
  said: list[str]
  evidence: Table
  untested: list[str]


def _advice(
    results: Results, goal: Goal, config: Mapping[str, Any], classes: int
) -> Advice | None:
  if not goal.asked:
    return None
  return Advice(
      advice.within(goal), advice.sentences(results, goal),
      advice.evidence(results, goal),
      untested.sentences(results, config, classes),
  )


def section(
    results: Results, ranked: Sequence[Ranked], compared: list[dict],
    given: Advice | None, alone: bool, drawn: bool,
) -> list[str]:
  """Everything about one data set and algorithm, as HTML.

  Args:
    drawn: Whether with figures, which take most of the time and of the page.
  """
  parts = [] if alone else [page.heading(words.headline(results))]
  level, group = (2, 'attack') if alone else (3, '-'.join(results.title))
  said, warns = verdict.sentences(results, ranked), learned.nothing(results)
  parts += _first(said, given, level, warns)
  if ranked:
    parts += [
        page.heading('Which defense, and why', level),
        page.note(
            'Each defense at its best strength: what the worst attack still '
            'learns, and what the defense costs. Short bars are good.'
        ),
        page.podium(ranked),
        page.note(words.not_ranked(results)),
        *(_trade_offs(results, level, group) if drawn else ()),
        page.terms(words.terms(results)),
    ]
  if compared:
    parts.append(page.table(tables.paper(compared), level))
  shown = [tables.overview(results), tables.baselines(results)]
  parts += [page.table(t, level) for t in shown if t.rows]
  parts += _epochs(results, ranked, level, group) if drawn else []
  parts.append(page.heading('Every measurement', level))
  everything = [None, *results.attacks, *results.baselines]
  details = [tables.measurements(results, a) for a in everything]
  return parts + [page.table(t, level + 1) for t in details if t.rows]


def _first(
    said: list[str], given: Advice | None, level: int, warns: bool
) -> list[str]:
  """The box at the top: the verdict, or the advice if the user set a goal."""
  if not given:
    return [page.verdict(said, warns)]
  return [
      page.verdict(given.said, warns),
      page.heading('By the PU score, at any price', level),
      *map(page.note, (s for s in said if s not in given.said)),
      page.heading(f'{given.title}: the evidence', level),
      page.table(given.evidence, level + 1),
      page.heading('Not tested', level + 1), *map(page.note, given.untested),
  ]


def _summary(
    results: Results, ranked: Sequence[Ranked], compared: list[dict],
    given: Advice | None, alone: bool,
) -> list[str]:
  """The same as `section` in short, as Markdown, without figures."""
  parts = [] if alone else ['# ' + markdown(words.headline(results))]
  boxes = [given.said] if given else []
  for first, *rest in [*boxes, verdict.sentences(results, ranked)]:
    parts.append(f'**{markdown(first)}** ' + ' '.join(map(markdown, rest)))
  if given:
    parts += [
        f'## {markdown(given.title)}: the evidence',
        page.markdown_table(given.evidence, 3), '### Not tested',
        ' '.join(map(markdown, given.untested)),
    ]
  if ranked:
    parts.append(page.markdown_table(tables.ranking(results, ranked)))
    parts += [markdown(words.not_ranked(results))]
    parts += [markdown(f'{w}: {means}') for w, means in words.terms(results)]
  if compared:
    parts.append(page.markdown_table(tables.paper(compared)))
  shown = [tables.overview(results), tables.baselines(results)]
  parts += [page.markdown_table(t) for t in shown if t.rows]
  return [part for part in parts if part]


def _trade_offs(results: Results, level: int, group: str) -> list[str]:
  """The trade-off figures: the worst attack first, then each attack."""
  found = drawing.trade_offs(results)
  remark = (
      'Lower left is best. The shaded steps are the regions of the PU scores. '
      'The dotted line is the frontier: nothing measured both leaks less and '
      'costs less. Bars are 95 % intervals; where one reaches an edge, it goes '
      'on. Each defense is named at its best strength. Hold the pointer over a '
      'mark to read its numbers.'
  )
  tabs = page.tabs(group, [
      (f.caption, _figure(f, group)) for f in found
  ])
  return [page.together(
      page.heading('Privacy against utility', level),
      *map(page.note, lost.sentences(results)),
      _legend(results, [(d, d) for d in results.defenses]),
      page.note(remark), tabs,
  )]


def _figure(f: drawing.Figure, group: str) -> str:
  drawn = svg.inline(f.drawn, f'{group}-{f.name}', f.description)
  return page.figure(drawn, f.caption)


def _epochs(
    results: Results, ranked: Sequence[Ranked], level: int, group: str
) -> list[str]:
  """Leak AUC over the epochs, each defense at its best strength."""
  drawn = drawing.over_epochs(results, ranked)
  if not drawn:
    return []
  names = [(c[0], reading.named(c)) for c in drawing.shown(results, ranked)]
  shown = [_figure(f, group) for f in drawn]
  return [page.together(
      page.heading('Leakage during training', level),
      page.note(
          'Leak AUC in each measured epoch, mean and 95 % interval over seeds; '
          'each defense at its best strength.'
      ),
      *map(page.note, lost.sentences(results)),
      _legend(results, names), page.figures(shown),
  )]


def _legend(results: Results, names: Iterable[tuple[str, str]]) -> str:
  return page.legend(
      (results.defenses.index(defense), reading.pretty(name))
      for defense, name in names
  )


def _title(found: Sequence[Results], config: Mapping[str, Any]) -> str:
  if len(found) == 1:
    return words.headline(found[0])
  return f"{config.get('experiment', 'vfljax')}: {len(found)} settings"
