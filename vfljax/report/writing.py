"""A work directory's results for people: summary.md and report.html.

The page needs nothing else: no network, no script, no other file. It says first
which defense wins and why, then shows it, and lists every number after that.
"""
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vfljax.report import (
    advice, crossings, lost, page, papers, plots, ranks, reading, spent,
    tables, untested, verdict, words,
)
from vfljax.report.plots import Curve
from vfljax.report.ranks import Ranked
from vfljax.report.reading import Cell, Results
from vfljax.report.tables import Table
from vfljax.report.text import markdown
from vfljax.runner import disk, store
from vfljax.runner.goals import Goal


def write(
    path: str | os.PathLike, paper: Iterable[Mapping] | None = None,
    classes: int = 0, goal: Goal = Goal(),
) -> Path:
  """Writes summary.md and report.html from what is in a work directory.

  Args:
    path: The work directory; a run that is not finished is reported as it is.
    paper: A paper's numbers to put beside ours, see `papers.compare`; by
      default the configuration's `paper`.
    classes: Number of classes; by default what the timings say as 'classes'.
      Unknown, it leaves out leakages measured by the accuracy of a federation
      that has no AUC.
    goal: What may be lost, and what may leak: adds advice.

  Returns:
    The page.

  Raises:
    UserError: if the directory cannot be read or written.
  """
  config = store.read_config(path)
  units = store.read_timings(path)
  said = [unit.pop('classes', 0) for unit in units]
  crossing = crossings.taken(units)
  found = reading.read(path, classes or max(said, default=0))
  numbers = list(config.get('paper') or [] if paper is None else paper)
  config = {k: v for k, v in config.items() if k != 'paper'}
  classes = classes or max(said, default=0)
  title = _title(found, config)
  html, text = [page.heading(title, 1)], [f'# {markdown(title)}']
  for results in found:
    ranked = ranks.rank(results)
    compared = papers.compare(results, numbers)
    given = _advice(results, goal, config, classes)
    html += _section(results, ranked, compared, given, alone=len(found) == 1)
    text += _summary(results, ranked, compared, given, alone=len(found) == 1)
  if not found:
    html.append(page.note('There are no results yet.'))
    text.append('There are no results yet.')
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
  return target


class Advice(NamedTuple):
  """What is advised within a goal, on what ground, and what nobody tested."""

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


def _section(
    results: Results, ranked: Sequence[Ranked], compared: list[dict],
    given: Advice | None, alone: bool,
) -> list[str]:
  """Everything about one data set and algorithm, as HTML."""
  parts = [] if alone else [page.heading(words.headline(results))]
  level = 2 if alone else 3
  parts.append(page.verdict(verdict.sentences(results, ranked)))
  if given:
    parts += [
        page.heading(given.title, level), page.verdict(given.said),
        page.table(given.evidence, level + 1),
        page.heading('Not tested', level + 1), *map(page.note, given.untested),
    ]
  if ranked:
    parts += [
        page.heading('Which defense, and why', level),
        page.note(
            'Each at its best strength: what the worst attack still learns, '
            'and what the defense costs. Short bars are good.'
        ),
        page.podium(ranked),
        page.note(f'Preference: {ranks.preference(ranked)}.'),
        page.note(words.not_ranked(results)),
        page.heading('Privacy against utility', level),
        *map(page.note, lost.sentences(results)),
        _legend(results, [(d, d) for d in results.defenses]),
        *_trade_offs(results),
    ]
  if compared:
    parts.append(page.table(tables.paper(compared), level))
  shown = [tables.overview(results), tables.baselines(results)]
  parts += [page.table(t, level) for t in shown if t.rows]
  parts += _epochs(results, ranked, level)
  if ranked:
    parts.append(page.table(tables.ranking(results, ranked), level))
  parts.append(page.heading('Every measurement', level))
  everything = [None, *results.attacks, *results.baselines]
  details = [tables.measurements(results, a) for a in everything]
  return parts + [page.table(t, level + 1) for t in details if t.rows]


def _summary(
    results: Results, ranked: Sequence[Ranked], compared: list[dict],
    given: Advice | None, alone: bool,
) -> list[str]:
  """The same in short, as Markdown."""
  parts = [] if alone else ['# ' + markdown(words.headline(results))]
  first, *rest = map(markdown, verdict.sentences(results, ranked))
  parts.append(f'**{first}** ' + ' '.join(rest))
  if given:
    parts += [
        f'## {markdown(given.title)}', ' '.join(map(markdown, given.said)),
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


def _trade_offs(results: Results) -> list[str]:
  """Against the worst attack, and against each of them."""
  known = ranks.trades(results)
  worst = [
      (t.cell, t.loss.mean, t.leakage[t.worst].mean) for t in known
  ]
  lead = page.figure(
      plots.trade_off(
          _curves(results, worst), 'trade-off-worst',
          'Utility loss against the leakage of the worst attack.',
      ), 'The worst attack on each',
      'Lower left is best. Shaded: the PU scores. Numbers at the points are '
      'strengths.', lead=True,
  )
  lead = page.beside(lead, page.terms(words.terms(results)))
  small = []
  for attack in results.attacks:
    points = [
        (t.cell, t.loss.mean, t.leakage[attack].mean)
        for t in known if attack in t.leakage
    ]
    if points:
      name = reading.pretty(attack)
      small.append(page.figure(
          plots.trade_off(
              _curves(results, points), f'trade-off-{attack}',
              f'Utility loss against the leakage of {name}.',
          ), name.capitalize(),
      ))
  return [lead, page.figures(small) if len(small) > 1 else '']


def _curves(
    results: Results, points: Iterable[tuple[Cell, float, float]]
) -> list[Curve]:
  """One curve a defense, in the order of its strengths."""
  points, curves = list(points), []
  for style, defense in enumerate(results.defenses):
    mine = [p for p in points if p[0][0] == defense]
    if mine:
      labels = [reading.strength(cell) for cell, _, _ in mine]
      curves.append(
          Curve(style, [p[1] for p in mine], [p[2] for p in mine], labels)
      )
  return curves


def _epochs(
    results: Results, ranked: Sequence[Ranked], level: int
) -> list[str]:
  """Leak AUC over the epochs, each defense at its best strength."""
  best = {r.defense: r.best.cell for r in ranked}
  first = {d: c for c in reversed(results.cells) for d in [c[0]]}
  cells = [best.get(d, first[d]) for d in results.defenses]
  drawn = []
  for attack in results.attacks:
    curves = [
        _over_epochs(style, results.curves[cell, f'{attack}/leak_auc'])
        for style, cell in enumerate(cells)
        if (cell, f'{attack}/leak_auc') in results.curves
    ]
    curves = [c for c in curves if len(c.x)]
    if curves:
      name = reading.pretty(attack)
      drawn.append(page.figure(
          plots.over_epochs(
              curves, f'epochs-{attack}',
              f'Leak AUC of {name} over the epochs.', 'leak AUC',
          ), name.capitalize(),
      ))
  if not drawn:
    return []
  return [
      page.heading('Leakage during training', level),
      page.note(
          'Leak AUC by epoch, mean and 95 % interval over seeds; each defense '
          'at its best strength.'
      ),
      *map(page.note, lost.sentences(results)),
      _legend(results, [(c[0], reading.named(c)) for c in cells]),
      page.figures(drawn),
  ]


def _over_epochs(style: int, curve: np.ndarray) -> Curve:
  """[seeds, epochs] as a curve over the epochs that were measured."""
  measured = np.flatnonzero(np.isfinite(curve).any(0))
  summaries = [reading.summarize(curve[:, i].tolist()) for i in measured]
  return Curve(
      style, [int(i) + 1 for i in measured], [s.mean for s in summaries],
      band=[s.half for s in summaries],
  )


def _legend(results: Results, names: Iterable[tuple[str, str]]) -> str:
  return page.legend(
      (results.defenses.index(defense), reading.pretty(name))
      for defense, name in names
  )


def _title(found: Sequence[Results], config: Mapping[str, Any]) -> str:
  if len(found) == 1:
    return words.headline(found[0])
  return f"{config.get('experiment', 'vfljax')}: {len(found)} settings"
