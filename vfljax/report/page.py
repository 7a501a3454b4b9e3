"""HTML for the report's page, and Markdown for the tables of its summary."""
from collections.abc import Iterable, Sequence
from pathlib import Path
import re

from vfljax.report import ranks, reading, svg
from vfljax.report.ranks import Ranked
from vfljax.report.tables import Table, Text, leak_text, loss_text
from vfljax.report.text import markdown, markup as escape


def page(title: str, body: Iterable[str]) -> str:
  """A whole HTML page, which loads no other file."""
  css = Path(__file__).with_name('report.css').read_text('utf-8')
  body = _with_contents(list(body))
  return '\n'.join([
      '<!doctype html>', '<html lang="en">', '<head>',
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      '<meta name="color-scheme" content="light dark">',
      f'<title>{escape(title)}</title>', f'<style>\n{css}</style>', '</head>',
      '<body>', '<main>', *body, '</main>', '</body>', '</html>', '',
  ])


def _with_contents(body: list[str]) -> list[str]:
  """The page's parts with a table of contents.

  It stands after the page's heading, verdict and facts. Every section gets an
  id to link to. A page of fewer than three sections gets no contents.
  """
  found: list[str] = []

  def numbered(match: re.Match) -> str:
    found.append(match[1])
    return f'<h2 id="section-{len(found)}">{match[1]}</h2>'

  body = [re.sub(r'<h2>(.*?)</h2>', numbered, part) for part in body]
  if len(found) < 3:
    return body
  items = ''.join(
      f'<li><a href="#section-{i}">{name}</a></li>'
      for i, name in enumerate(found, start=1)
  )
  nav = f'<nav aria-label="Contents"><ol>{items}</ol></nav>'
  # On a page about one data set the verdict stands above all sections.
  ends = ('<h2', '<h1>', 'class="verdict"', 'class="facts"')
  kinds = [next((e for e in ends if e in part), '') for part in body]
  head = kinds[: kinds.index('<h2')]
  after = len(head) - head[::-1].index(next(k for k in head[::-1] if k))
  return [*body[:after], nav, *body[after:]]


def heading(text: str, level: int = 2) -> str:
  """A heading."""
  return f'<h{level}>{escape(text)}</h{level}>'


def verdict(sentences: Sequence[str], warns: bool = False) -> str:
  """The box that is read first; with `warns` it looks like a warning."""
  paragraphs = ''.join(f'<p>{escape(s)}</p>' for s in sentences)
  kind = 'verdict warns' if warns else 'verdict'
  return f'<div class="{kind}">{paragraphs}</div>'


def note(text: str) -> str:
  """A paragraph in small print; flags in it stay on one line."""
  said = re.sub(r'(?<!\w)--[a-z][\w.]*', r'<code>\g<0></code>', escape(text))
  return f'<p class="note">{said}</p>' if text else ''


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
        f'{"●" * r.optimal}{"○" * (5 - r.optimal)}<b>{r.optimal}/5</b>'
        f'{_groups(r)}</span>'
        + _bar('leak', leak / most_leak, leak_text(
            r.best.leakage[r.best.worst]), 'leaks')
        + _bar('loss', loss / most_loss, loss_text(r.best.loss), 'costs')
        + '</li>'
    )
  return f'<ol class="podium">{"".join(items)}</ol>'


def facts(entries: Iterable[tuple[str, str]]) -> str:
  """A list of (name, value): what was run."""
  items = ''.join(
      f'<dt>{escape(what)}</dt><dd>{escape(how)}</dd>' for what, how in entries
  )
  return f'<dl class="facts">{items}</dl>' if items else ''


def _groups(r: Ranked) -> str:
  """The scores by group of attacks, if there is more than one group."""
  if len(r.groups) < 2:
    return ''
  said = ', '.join(f'{name} {score}' for name, score in r.groups.items())
  return f'<small>{escape(said)}</small>'


def terms(entries: Iterable[tuple[str, str]]) -> str:
  """Words and their meanings."""
  items = ''.join(
      f'<div><dt>{escape(word)}</dt><dd>{escape(meaning)}</dd></div>'
      for word, meaning in entries
  )
  return f'<dl class="terms">{items}</dl>'


def legend(names: Iterable[tuple[int, str]]) -> str:
  """What each curve's colour and marker stand for: (style, name) for each."""
  items = ''.join(
      f'<li>{svg.swatch(style)}{escape(name)}</li>' for style, name in names
  )
  return f'<ul class="legend">{items}</ul>'


def figure(drawn: str, caption: str) -> str:
  """A figure, an <svg>, with its caption above it."""
  return f'<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>'


def tabs(group: str, figures: Sequence[tuple[str, str]]) -> str:
  """Shows one figure at a time on a screen, and all of them on paper.

  Args:
    group: A name that no other tabs on the page have.
    figures: (name on the tab, figure as HTML) for each.
  """
  if len(figures) < 2:
    return ''.join(shown for _, shown in figures)
  items = ''.join(
      f'<div class="tab"><label><input type="radio" name="{escape(group)}"'
      f'{"" if i else " checked"}> {escape(name)}</label>{shown}</div>'
      for i, (name, shown) in enumerate(figures)
  )
  return f'<div class="tabs">{items}</div>'


def together(*parts: str) -> str:
  """Parts that a printed page keeps together if they fit on it."""
  return f'<div class="together">{"".join(parts)}</div>'


def figures(parts: Iterable[str]) -> str:
  """Figures side by side if there is room."""
  return f'<div class="figures">{"".join(parts)}</div>'


def table(t: Table, level: int = 3) -> str:
  """A table that scrolls sideways if it does not fit."""
  # A screen reader would announce an empty heading, so there is none.
  head = ''.join(
      f'<th scope="col">{escape(c)}</th>' if c else '<td></td>'
      for c in t.columns
  )
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
