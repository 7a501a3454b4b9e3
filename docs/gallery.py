"""The papers' figures, as far as records of runs can draw them."""
from collections.abc import Callable, Iterator
import json
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from docs import measured
from experiments import evidence
from experiments.gafm import pictures as gafm
from experiments.vmask import charts, older, pictures as vmask
from vfljax.report import drawing, reading, svg
from vfljax.report.plots import PRINT, Drawn


class Own(NamedTuple):
  """A figure that a paper's own code draws of one of its own records."""

  paper: str
  record: str
  draw: Callable[[dict], Figure]
  caption: str


OWN = (
    Own('gafm', 'delta_tenth', lambda r: gafm.bars([r]),
        "GAFM, Figure 7: leak AUC over training AUC by Delta, on a tenth of "
        'the data; red is the lowest.'),
    Own('vmask', 'fig5_tm', vmask.curves,
        'VMask, Figure 5: accuracy of completion after every epoch, MLP3 on '
        'MNIST.'),
    Own('vmask', 'fig5_tm', vmask.norms,
        "VMask, Figure 14: each layer's share of the accumulated gradient "
        'norm.'),
    Own('vmask', 'table1_mlp3', vmask.hidden_layers,
        'VMask, Figure 2: accuracy of completion by the layers hidden, MLP3.'),
    Own('vmask', 'table1_lenet5', vmask.hidden_layers,
        'VMask, Figure 2: the same of LeNet5.'),
    Own('vmask', 'table1_mlp3_authors', vmask.hidden_layers,
        "VMask, Figure 2: MLP3 with the settings of the authors' code."),
    Own('vmask', 'table1_lenet5_authors', vmask.hidden_layers,
        "VMask, Figure 2: LeNet5 with the settings of the authors' code."),
    Own('vmask', 'fig8', lambda _: charts.budgets(older.budgets('fig8')),
        'VMask, Figure 8: what a budget buys, MLP3, three trainings.'),
    Own('vmask', 'fig8_authors',
        lambda _: charts.budgets(older.budgets('fig8_authors')),
        "VMask, Figure 8: the same with the settings of the authors' code, "
        'three trainings.'),
    Own('vmask', 'sizes', charts.samples,
        "VMask, Figure 9: by the number of the defender's samples, MLP3."),
    Own('vmask', 'sizes_lenet5', charts.samples,
        'VMask, Figure 9: the same of LeNet5.'),
    Own('vmask', 'classes', charts.samples,
        "VMask, Figure 10: by the classes of the defender's samples, MLP3."),
    Own('vmask', 'classes_lenet5', charts.samples,
        'VMask, Figure 10: the same of LeNet5.'),
)
# Records of tables alone, which the papers' pages show as tables.
TABLES = dict(
    gafm=('averaging', 'terms', 'terms_reviews'), vmask=(
        'adaptive', 'adaptive_lenet5', 'adaptive_mlp3_later', 'attackers',
        'crypto', 'crypto_leaks', 'noise', 'noise_lenet5', 'outside',
        'outside_lenet5', 'parties', 'table1_mlp3_known4',
        'table3_lenet5', 'table3_mlp3', 'transcript_m', 'transcript_tfm',
        'transcript_tm',
    ),
)


def page(source: Path) -> str:
  """The gallery's Markdown; its pictures are written below `source`."""
  (source / 'images').mkdir(parents=True, exist_ok=True)
  parts = [
      '# Gallery\n\nFigures in the form of the papers, drawn from our records '
      'when this site was built; nothing in them is copied from a paper. The '
      'tables beside the papers\' numbers are on the pages of their folders.\n'
  ]
  parts += [part for paper in evidence.papers() for part in _of(paper, source)]
  return '\n'.join(parts)


def _of(paper: str, source: Path) -> Iterator[str]:
  figures = [*_trade_offs(paper), *_own(paper)]
  if figures:
    yield f'## {paper}\n\nMore: [{paper}](results/{paper}.md)\n'
  for name, caption, drawn in figures:
    text = svg.saved(drawn, name, 'svg').decode()
    start = text.index('>') + 1  # Of a page its fonts are the page's.
    (source / 'images' / f'{name}.svg').write_text(
        f'{text[:start]}<style>text{{font-family:sans-serif}}</style>'
        + text[start:], 'utf-8',
    )
    yield f'![{caption}](images/{name}.svg)\n\n{caption}\n'


def _trade_offs(paper: str) -> Iterator[tuple[str, str, Drawn]]:
  """Cost against leakage, a figure for each record and attack."""
  for run in measured.runs():
    if run.paper != paper:
      continue
    _, dataset, algorithm = run.results.title
    for figure in drawing.trade_offs(run.results, PRINT):
      if figure.name.endswith('worst') and len(run.results.attacks) > 1:
        continue
      attack = reading.pretty(figure.name.removeprefix('trade-off-'))
      yield (
          f'{paper}-{run.name}-{figure.name}',
          f'Cost against leakage to {attack}, {dataset}, {algorithm} '
          f'(record {run.name})', figure.drawn,
      )


def _own(paper: str) -> Iterator[tuple[str, str, Drawn]]:
  for i, own in enumerate(OWN):
    if own.paper == paper:
      file = evidence.HERE / paper / 'records' / f'{own.record}.json'
      figure = own.draw(json.loads(file.read_text('utf-8')))
      if figure.get_layout_engine() is None:
        figure.tight_layout()
      yield f'{paper}-own-{i}', f'{own.caption} Record {own.record}.', Drawn(
          figure
      )
