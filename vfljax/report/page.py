"""Tables, sentences and figures as one HTML page and as one Markdown file."""
from collections.abc import Iterable, Sequence
from pathlib import Path

from vfljax.report import plots, ranks, reading
from vfljax.report.ranks import Ranked
from vfljax.report.tables import Table, Text, leak_text, loss_text
from vfljax.report.text import markdown, markup as escape


def page(title: str, body: Iterable[str]) -> str:
  """A page that needs nothing but itself."""
  css = Path(__file__).with_name('report.css').read_text()
  return '\n'.join([
      '<!doctype html>', '<html lang="en">', '<head>',
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      '<meta name="color-scheme" content="light dark">',
      f'<title>{escape(title)}</title>', f'<style>\n{css}</style>', '</head>',
      '<body>', *body, '</body>', '</html>', '',
  ])


def heading(text: str, level: int = 2) -> str:
  """A heading."""
  return f'<h{level}>{escape(text)}</h{level}>'


def verdict(sentences: Sequence[str]) -> str:
  """The box that a newcomer reads first."""
  paragraphs = ''.join(f'<p>{escape(s)}</p>' for s in sentences)
  return f'<div class="verdict">{paragraphs}</div>'


def note(text: str) -> str:
  """A paragraph in small print."""
  return f'<p class="note">{escape(text)}</p>' if text else ''


def podium(ranked: Sequence[Ranked]) -> str:
  """The defenses, best first, with bars for what they leak and cost."""
  leaks = [r.best.leakage[r.best.worst].mean for r in ranked]
  losses = [r.best.loss.mean for r in ranked]
  most_leak, most_loss = max([25.0, *leaks]), max([6.0, *losses])
  items = []
  for place, r, leak, loss in zip(ranks.places(ranked), ranked, leaks, losses):
    free = r.defense == 'none'
    value = reading.strength(r.best.cell)
    at = f'at strength {value}' if value else 'has no strength to choose'
    gone = f', {r.best.lost}' if r.best.lost.any else ''
    who = escape(reading.pretty(r.defense))
    items.append(
        f'<li{" class=free" if free else ""}>'
        f'<span class="who">{place}. {who}'
        f'<small>{escape(f"for comparison{gone}" if free else at + gone)}'
        '</small></span>'
        f'<span class="pips" title="PU score">'
        f'{"●" * r.optimal}{"○" * (5 - r.optimal)}<b>{r.optimal}/5</b></span>'
        + _bar('leak', leak / most_leak, leak_text(
            r.best.leakage[r.best.worst]), 'leaks')
        + _bar('loss', loss / most_loss, loss_text(r.best.loss), 'costs')
        + '</li>'
    )
  return f'<ol class="podium">{"".join(items)}</ol>'


def terms(entries: Iterable[tuple[str, str]]) -> str:
  """Words and their meanings."""
  items = ''.join(
      f'<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>'
      for word, meaning in entries
  )
  return f'<dl>{items}</dl>'


def beside(left: str, right: str) -> str:
  """Two things side by side where there is room."""
  return f'<div class="beside">{left}<div>{right}</div></div>'


def legend(names: Iterable[tuple[int, str]]) -> str:
  """What each curve's colour and marker stand for."""
  items = ''.join(
      f'<li>{plots.swatch(style)}{escape(name)}</li>' for style, name in names
  )
  return f'<ul class="legend">{items}</ul>'


def figure(svg: str, caption: str, remark: str = '', lead: bool = False) -> str:
  """A figure with its caption above it."""
  kind = ' class="lead"' if lead else ''
  rest = f' <span>{escape(remark)}</span>' if remark else ''
  return (
      f'<figure{kind}><figcaption>{escape(caption)}{rest}</figcaption>{svg}'
      '</figure>'
  )


def figures(parts: Iterable[str]) -> str:
  """Figures side by side where there is room."""
  return f'<div class="figures">{"".join(parts)}</div>'


def table(t: Table, level: int = 3) -> str:
  """A table that scrolls sideways where it does not fit."""
  head = ''.join(f'<th scope="col">{escape(c)}</th>' for c in t.columns)
  rows = '\n'.join(f'<tr>{_row(row)}</tr>' for row in t.rows)
  return (
      f'{heading(t.title, level)}{note(t.note)}'
      '<div class="scroll" tabindex="0"><table>'
      f'<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
  )


def markdown_table(t: Table, level: int = 2) -> str:
  """The same table in Markdown."""
  bold = lambda cell: '**' if cell.strong and cell.text else ''
  show = lambda cell: f'{bold(cell)}{markdown(cell.text)}{bold(cell)}'
  lines = [
      '| ' + ' | '.join(map(markdown, t.columns)) + ' |',
      '|' + '---|' * len(t.columns),
      *('| ' + ' | '.join(map(show, row)) + ' |' for row in t.rows),
  ]
  title = f'{"#" * level} {markdown(t.title)}'
  parts = [title, markdown(t.note), '\n'.join(lines)]
  return '\n\n'.join(part for part in parts if part)


def _row(row: Sequence[Text]) -> str:
  cells = []
  for i, cell in enumerate(row):
    kinds = [f't{cell.score}'] if cell.score is not None else []
    kinds += ['wrap'] if len(cell.text) > 44 else []
    attribute = f' class="{" ".join(kinds)}"' if kinds else ''
    text = escape(cell.text)
    if not i:
      cells.append(f'<th scope="row"{attribute}>{text}</th>')
    else:
      text = f'<b>{text}</b>' if cell.strong and text else text
      cells.append(f'<td{attribute}>{text}</td>')
  return ''.join(cells)


def _bar(kind: str, share: float, text: Text, verb: str) -> str:
  width = 100 * min(max(share, 0.0), 1.0)
  little = ' class="little"' if text.score and text.score >= 4 else ''
  return (
      f'<span class="bar {kind}"><i{little} style="width:{width:.1f}%"></i>'
      f'{verb} {escape(text.text)} points</span>'
  )
