"""`vfljax export DIR --to=csv,latex`: a run's numbers for other programs.

  csv, parquet   every measurement, a row each
  latex          the tables of the report, as tabular with booktabs' lines
  svg, png       its figures, a file each

Files go to DIR/export, or to --out.
"""
from collections.abc import Callable, Iterable, Sequence
import csv
import io
from pathlib import Path
import re
import sys
from typing import Any

from vfljax.commands import given
from vfljax.report import (
    drawing, lost, ranks, reading, tables, terminal, words,
)
from vfljax.report.reading import Results
from vfljax.report.tables import Table
from vfljax.report.text import printable
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import collecting, store

_LATEX = {
    '\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#',
    '_': r'\_', '{': r'\{', '}': r'\}', '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
    # Plain, LaTeX's default font prints ¡, ¿ and a dash in their places.
    '<': r'\textless{}', '>': r'\textgreater{}', '|': r'\textbar{}',
}
_SPECIAL = re.compile('|'.join(map(re.escape, _LATEX)))


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Writes a finished work directory in other formats.

  Raises:
    UserError: if there is no such directory, for an unknown format, or if the
      files cannot be written.
  """
  del stop  # It is done in no time.
  parser = given.Parser(
      prog='vfljax export', description=__doc__,
      formatter_class=given.AsWritten,
  )
  parser.add_argument('folder', help='the --workdir of a run')
  parser.add_argument(
      '--to', required=True, help=f'one or more of {", ".join(_FORMATS)}'
  )
  parser.add_argument('--out', default='', help='the folder to write into')
  asked = parser.parse_args(argv)
  kinds = _kinds(asked.to)
  folder = given.finished(asked.folder)
  target = Path(asked.out).expanduser() if asked.out else folder / 'export'
  # Everything is read first: an error leaves no folder behind.
  files = _apart(file for kind in kinds for file in _FORMATS[kind](folder))
  with disk.writing(target, '--out'):
    target.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
      disk.replace(target / name, content)
      print(target / name)
  gone = [said for _, found in _named(folder) for said in lost.sentences(found)]
  if gone:  # Not among the names of files, which a script may read.
    print(terminal.paragraphs(gone), file=sys.stderr)
  return 0


def _kinds(to: str) -> list[str]:
  """'csv,latex' as a list, each once."""
  kinds = [kind.strip() for kind in to.split(',') if kind.strip()]
  there = f'there are {", ".join(_FORMATS)}: --to=csv,svg.'
  if not kinds:
    raise UserError(f'--to={to} names no format; {there}')
  for kind in kinds:
    if kind not in _FORMATS:
      raise UserError(f'--to={to}: there is no format {kind!r}; {there}')
  return list(dict.fromkeys(kinds))


def latex(t: Table) -> str:
  """A table as LaTeX: needs \\usepackage{booktabs}."""
  line = lambda cells: ' & '.join(cells) + r' \\'
  head = line([escaped(c) for c in t.columns])
  rows = [
      line([
          rf'\textbf{{{escaped(c.text)}}}' if c.strong and c.text
          else escaped(c.text) for c in row
      ]) for row in t.rows
  ]
  numbers = ['l' if i < 1 else 'r' for i in range(len(t.columns))]
  note = t.note
  if '±' not in note and any('±' in c.text for row in t.rows for c in row):
    note = f'{note} {words.INTERVAL}'
  return '\n'.join([
      f'% {printable(t.title)}: {printable(note)}',
      rf'\begin{{tabular}}{{{"".join(numbers)}}}', r'\toprule', head,
      r'\midrule', *rows, r'\bottomrule', r'\end{tabular}', '',
  ])


def escaped(text: str) -> str:
  """Text for LaTeX, with its sign for intervals and a dash for no value."""
  plain = _SPECIAL.sub(lambda m: _LATEX[m[0]], printable(text))
  for sign, own in (('±', r'$\pm$'), ('–', '--'), ('≈', r'$\approx$')):
    plain = plain.replace(sign, own)
  return plain


def _rows(folder: Path) -> list[dict]:
  found = store.read_results(folder)
  config = store.read_config(folder)
  more = collecting.labels_of(config)
  return [row | more for row in found]


def _csv(folder: Path) -> Sequence[tuple[str, str]]:
  rows = _rows(folder)
  text = io.StringIO()
  writer = csv.DictWriter(text, [*rows[0]] if rows else store.FIELDS)
  writer.writeheader()
  writer.writerows(rows)
  return [('results.csv', text.getvalue())]


def _parquet(folder: Path) -> Sequence[tuple[str, bytes]]:
  import pandas as pd  # With pyarrow of the extra `run`: checked at the start.

  content = io.BytesIO()
  pd.DataFrame(_rows(folder)).to_parquet(content, index=False)
  return [('results.parquet', content.getvalue())]


def _latex(folder: Path) -> Sequence[tuple[str, str]]:
  found = []
  for name, results in _named(folder):
    ranked = ranks.rank(results)
    shown = dict(
        utility_and_leakage=tables.overview(results),
        baselines=tables.baselines(results),
    )
    if ranked:
      shown |= dict(ranking=tables.ranking(results, ranked))
    # A table of a run that was stopped looks like one of a whole run.
    gone = ''.join(f'% {printable(s)}\n' for s in lost.sentences(results))
    found += [
        (f'{name}{title}.tex', gone + latex(t))
        for title, t in shown.items() if t.rows
    ]
  return found


def _figures(kind: str) -> Callable[[Path], Sequence[tuple[str, bytes]]]:
  def drawn(folder: Path) -> Sequence[tuple[str, bytes]]:
    return [
        # An attack's variant may have any name, such as 'a/b'. On Windows a
        # colon hides the file in another one.
        (re.sub(r'[/\\\0-\x1f:*?"<>|]', '-', f'{name}{title}.{kind}'), content)
        for name, results in _named(folder)
        for title, content in drawing.files(results, kind)
    ]

  return drawn


def _apart(files: Iterable[tuple[str, Any]]) -> dict[str, Any]:
  """{name: content}; a second file of a name becomes 'name-2'."""
  found = {}
  for name, content in files:
    stem, _, kind = name.rpartition('.')
    free, count = name, 1
    while free in found:
      count += 1
      free = f'{stem}-{count}.{kind}'
    found[free] = content
  return found


def _named(folder: Path) -> list[tuple[str, Results]]:
  """A run's settings, each with the prefix of its files' names."""
  classes = max(
      (t.get('classes', 0) for t in store.read_timings(folder)), default=0
  )
  found = reading.read(folder, classes)
  if len(found) == 1:
    return [('', found[0])]
  return [
      (re.sub(r'[^\w.]+', '-', '-'.join(results.title[1:])) + '-', results)
      for results in found
  ]


_FORMATS: dict[str, Callable] = dict(
    csv=_csv, parquet=_parquet, latex=_latex, svg=_figures('svg'),
    png=_figures('png'),
)
