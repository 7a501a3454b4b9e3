"""The report's tables, independent of HTML, Markdown or a terminal."""
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from vfljax import evaluation
from vfljax.report import ranks, reading, words
from vfljax.report.ranks import Ranked, Trade
from vfljax.report.reading import Results, Summary
from vfljax.report.words import about, name

OFF = 2.0  # Standard deviations above which a difference is pointed out.


class Text(NamedTuple):
  """A table's cell.

  Attributes:
    text: What it says.
    score: PU score 0..5 that decides the tint; None for no tint.
    strong: Whether it is in bold.
  """

  text: str
  score: int | None = None
  strong: bool = False


class Table(NamedTuple):
  """A titled table; `note` is a sentence or two on how to read it."""

  title: str
  note: str
  columns: tuple[str, ...]
  rows: list[list[Text]]


def ranking(results: Results, ranked: Sequence[Ranked]) -> Table:
  """Optimal PU scores and what they are made of."""
  groups = list(ranks.attack_groups(results))
  split = groups if len(groups) > 1 else []
  rows = []
  for r in ranked:
    worst = r.best.leakage[r.best.worst]
    rows.append([
        Text(reading.pretty(r.defense), strong=True),
        Text(reading.strength(r.best.cell)),
        score_text(r.optimal, r.best),
        *(Text(f'{r.groups[g]}' if g in r.groups else '') for g in split),
        leak_text(worst), Text(reading.pretty(r.best.worst)),
        loss_text(r.best.loss),
    ])
  return Table(
      'Optimal PU scores', f'Preference: {ranks.preference(ranked)}.',
      ('defense', 'best strength', 'PU score',
       *(f'against attacks on {g}' for g in split), 'worst leakage', 'by',
       'utility loss'),
      rows,
  )


def score_text(score: int, trade: Trade) -> Text:
  """A PU score, with a remark if seeds diverged or did not finish."""
  gone = f' ({trade.lost})' if trade.lost.any else ''
  return Text(f'{score}{gone}', score, True)


def overview(results: Results) -> Table:
  """Utility and every attack's leakage, defense x strength."""
  known = {t.cell: t for t in ranks.trades(results)}
  rows = []
  for cell in results.cells:
    trade = known.get(cell)
    leaks = [
        leak_text(
            reading.summarize(reading.leakage(results, cell, a).values()),
            reading.in_last_epoch(results, cell, a),
        ) for a in results.attacks
    ]
    use = reading.summarize(reading.utility(results, cell).values())
    loss = reading.summarize(reading.utility_loss(results, cell).values())
    rows.append([
        Text(reading.pretty(cell[0]), strong=True),
        Text(reading.strength(cell)),
        score_text(trade.score, trade) if trade else Text('–'),
        Text(interval(use)),
        loss_text(loss), *leaks,
    ])
  return Table(
      'Utility and leakage',
      f'{words.INTERVAL} Loss and leakage are in percentage points. The darker '
      'a cell, the lower its score.' + words.which_epoch(results),
      ('defense', 'strength', 'PU score', f'test {name(results.metric)}',
       'utility loss',
       *(f'{reading.pretty(a)} leakage' for a in results.attacks)),
      rows,
  )


def measurements(results: Results, attack: str | None) -> Table:
  """Every metric of an attack, or of the utility, defense x strength."""
  keys = dict.fromkeys(
      (m, split) for _, a, m, split in results.values
      if a == attack and not m.startswith('alone_')
  )
  several = len({split for _, split in keys}) > 1
  columns = tuple(f'{s} {name(m)}' if several else name(m) for m, s in keys)
  rows = []
  for cell in results.cells:
    found = [results.values.get((cell, attack, m, s), {}) for m, s in keys]
    if any(found):
      texts = [Text(interval(reading.summarize(f.values()))) for f in found]
      rows.append([
          Text(reading.pretty(cell[0]), strong=True),
          Text(reading.strength(cell)),
          *texts,
      ])
  title = reading.pretty(attack).capitalize() if attack else 'Utility'
  columns = ('defense', 'strength', *columns)
  return Table(title, about(results, attack), columns, rows)


def baselines(results: Results) -> Table:
  """What is reached without any leak, beside the undefended federation."""
  none = reading.baseline(results) or (results.cells or [('none', None)])[0]
  entries: list[tuple[str, str | None, str]] = [
      ('joint model, no defense', None, ''),
      ('active party alone', None, 'alone_'),
  ]
  entries += [
      (f'attacker: {reading.pretty(a)}', a, '') for a in results.baselines
  ]
  rows: list[dict[str, str]] = []
  for label, attack, prefix in entries:
    row = {'': label}
    for _, a, metric, _ in results.values:
      fits = metric.startswith(prefix) and (
          bool(prefix) == metric.startswith('alone_')
      )
      if a == attack and fits:
        found = reading.find(results, none, attack, metric)
        if found:  # Metrics that defenses report of themselves are not here.
          row[name(metric.removeprefix(prefix))] = interval(
              reading.summarize(found.values())
          )
    if len(row) > 1:
      rows.append(row)
  columns = list(dict.fromkeys(c for row in rows for c in row if c))
  columns = [c for c in columns if c != 'loss']
  return Table(
      'What needs no leak',
      'What is reached without any leak: by the active party with its own '
      'features alone, and by an attacker with the few labels it knows. The '
      'attacker trains a model on its raw features (local model), or its '
      'bottom network from random weights (scratch).',
      ('who', *columns),
      [[Text(r[''], strong=True), *(Text(r.get(c, '–')) for c in columns)]
       for r in rows],
  )


def paper(compared: Iterable[Mapping]) -> Table:
  """A paper's numbers beside ours."""
  rows = []
  for c in compared:
    sds = c['sds']
    off = sds is not None and abs(sds) > OFF
    word = '' if sds is None else ('DIFFERS' if off else 'agrees')
    given = _printed(c['mean'])
    if c.get('std') is not None:
      given += f" ± {_printed(c['std'])}"
    ours, attack = c['ours'], reading.pretty(c.get('attack'))
    rows.append([
        Text(reading.pretty(c['defense']), strong=True),
        Text(reading.strength((c['defense'], c['strength']))),
        Text(f"{attack or 'utility'} {name(c['metric'])}"),
        Text(given),
        Text(number(ours.mean) + _plus(ours.std) + _lost(ours)),
        Text(f"{c['difference']:+.3f}"),
        Text('–' if sds is None else f'{sds:+.1f}'),
        Text(word, 0 if off else None, off),
        Text(c.get('source') or ''),
    ])
  off = sum(row[7].strong for row in rows)
  told = sum(c['sds'] is not None for c in compared)
  which = 'these' if told == len(rows) else 'the'
  less = '' if told == len(rows) else ' in which the paper has one,'
  return Table(
      "The paper's numbers beside ours",
      'Here ± is the standard deviation over seeds. ' + (
          f'In {off} of {which} {told} rows{less} ours is off by more than '
          f"{OFF:g} of the paper's standard deviations (one printed as 0.00 "
          'counts as 0.005).' if told else 'The paper gives none, so nothing '
          'here says which differences are more than chance.'
      ),
      ('defense', 'strength', 'what', 'paper', 'ours', 'difference',
       "in paper's sds", '', 'source'),
      rows,
  )


def number(x: float) -> str:
  """Three decimals, or three digits from 100 on; '–' if it is not finite."""
  if not math.isfinite(x):
    return '–'
  return f'{x:.3f}' if abs(x) < 100 else f'{x:.3g}'


def interval(s: Summary) -> str:
  """'0.952 ± 0.004', with a remark if seeds are missing."""
  return number(s.mean) + _plus(s.half) + _lost(s)


def _lost(s: Summary) -> str:
  return f' ({s.count} of {s.count + s.missing} seeds)' if s.missing else ''


def leak_text(s: Summary, last: Summary | None = None) -> Text:
  """A leakage in points, tinted by its score.

  Args:
    s: The leakage that counts.
    last: The leakage in the last epoch, to show beside it; `None` for none.
  """
  found = _tinted(s, evaluation.leakage_score)
  if last is None or not last.count or not s.count:
    return found
  return found._replace(
      text=f'{found.text}, last {ranks.shown(last.mean):.1f}'
  )


def loss_text(s: Summary) -> Text:
  """A utility loss in points, tinted by its score."""
  return _tinted(s, evaluation.loss_score)


def _tinted(s: Summary, score: Callable[[float], int]) -> Text:
  if not s.count:
    return Text('–')
  half = f' ± {s.half:.1f}' if math.isfinite(s.half) else ''
  lost = f' ({s.count} of {s.count + s.missing})' if s.missing else ''
  shown = ranks.shown(s.mean)
  return Text(f'{shown:.1f}{half}{lost}', int(score(shown)))


def _printed(x: float) -> str:
  """A paper's number with two decimals, or with more if it has more."""
  return f'{x:.2f}' if round(x, 2) == x else f'{x:g}'


def _plus(x: float) -> str:
  return f' ± {number(x)}' if math.isfinite(x) else ''
