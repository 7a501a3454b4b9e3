"""The README's tables of networks: settings 4 and 5, Tables 13 to 15.

A defense that diverged in a seed has no place among the others: its
row says in how many, and its score is 0 (`pu_scores`).
"""
from collections.abc import Mapping, Sequence

from experiments import evidence, readers
from experiments.evidence import Table
from experiments.kang2022 import known_labels, measured, pu_scores
from experiments.kang2022.measured import COUNTS, PAPER, RUNS, SHORT
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed, Results

# Data set: its name in tables.
DATA = {
    'spambase': 'Spambase', 'fashion_mnist_binary': 'Fashion-MNIST, 1 : 9',
    'fashion_mnist': 'Fashion-MNIST, ten classes',
}
SCORED = (
    'vlr', 'vhnn_spambase', 'vsnn_spambase', 'vhnn_fashion_imbalanced',
    'vsnn_fashion_imbalanced', 'vhnn_fashion10', 'vsnn_fashion10',
)


def _strongest(**records: str) -> Table:
  """Each protection at its best strength against NS and DS, and MC there.

  A row for each protection, columns for each record, by its name in the table.
  """

  @evidence.of_records(PAPER, RUNS, *records.values())
  def made() -> str:
    columns: dict[str, dict[str, list[str]]] = {}
    for algorithm, record in records.items():
      results = evidence.load(PAPER, record).results
      for defense, texts in _best(results).items():
        columns.setdefault(defense, {})[algorithm] = texts
    head = ['protection'] + [
        f'{algorithm}: {what}' for algorithm in records
        for what in ('strength', 'loss', 'NS', 'DS', 'MC', 'score')
    ]
    rows = [
        [SHORT[defense], *(x for a in records for x in found[a])]
        for defense, found in columns.items()
    ]
    return evidence.markdown(head, rows)

  return made


def _best(results: Results) -> dict[str, list[str]]:
  """{defense: strength, loss, NS, DS, MC and score} at its best strength."""
  scores = pu_scores.optimal(results, pu_scores.SCORING)
  found = {}
  for defense in results.defenses:
    best = pu_scores.best(results, defense, pu_scores.SCORING)
    assert best is not None  # Every one has been measured.
    shown = [''] * 4
    if not best.lost.diverged:
      attacks = (*pu_scores.SCORING, 'model_completion')
      shown = [
          measured.loss(results, best.cell),
          *(measured.leak(results, best.cell, a) for a in attacks),
      ]
    found[defense] = [
        reading.strength(best.cell), f'{best.lost}' or shown[0], *shown[1:],
        f'{scores[defense]}',
    ]
  return found


TEN = dict(VHNN='vhnn_fashion10', VSNN='vsnn_fashion10')


@evidence.of_records(PAPER, RUNS, *TEN.values())
def ten() -> str:
  """Ten classes: MC at every strength, and who completes without a bottom."""
  found = {k: evidence.load(PAPER, name).results for k, name in TEN.items()}
  rows = [
      [measured.name(cell), *(
          x for results in found.values() for x in _completed(results, cell)
      )]
      for cell in found['VHNN'].cells
  ]
  for attack, said in (
      ('local_model', 'a local model, no federation'),
      ('scratch', 'the same network from scratch'),
  ):
    rows.append([said, *(
        x for results in found.values()
        for x in ('', '', _accuracy(results, ('none', None), attack), '')
    )])
  alone = [evidence.alone(results).values() for results in found.values()]
  rows.append(['the active party alone', *(
      x for a in alone
      for x in (evidence.spread(100 * v for v in a) if a else '', '', '', '')
  )])
  head = ['protection'] + [
      f'{algorithm}: {what}' for algorithm in found
      for what in ('accuracy, %', 'loss', 'MC reads, %', 'MC')
  ]
  return evidence.markdown(head, rows)


def _completed(results: Results, cell: Cell) -> list[str]:
  """Accuracy, loss, MC's accuracy and its leakage."""
  return [
      evidence.spread(evidence.quantity(results, cell, 'accuracy').values()),
      measured.loss(results, cell),
      _accuracy(results, cell, 'model_completion'),
      measured.leak(results, cell, 'model_completion'),
  ]


def _accuracy(results: Results, cell: Cell, attack: str) -> str:
  found = reading.find(results, cell, attack, 'accuracy_last')
  return evidence.spread(100 * value for value in found.values())


def gradients(record: str) -> Table:
  """Ten classes: what is read in gradients, beside MC of the main record."""

  @evidence.of_records(PAPER, RUNS, f'{record}_gradients')
  def made() -> str:
    main = evidence.load(PAPER, record).results
    return readers.table(
        evidence.load(PAPER, f'{record}_gradients').results, measured.name,
        lambda cell: _accuracy(main, cell, 'model_completion'),
        _accuracy(main, ('none', None), 'scratch'),
    )

  return made


@evidence.of_records(PAPER, RUNS, 'fig11_vhnn', 'fig11_vsnn')
def fig11() -> str:
  """MC's leakage by how many labels the attacker knows, at its lowest."""
  rows = []
  for algorithm in ('vhnn', 'vsnn'):
    results = evidence.load(PAPER, f'fig11_{algorithm}').results
    for defense in results.defenses:
      cells = [c for c in results.cells if c[0] == defense]
      leaks = [
          min(_mean(known_labels.leakage(results, c, n)) for c in cells)
          for n in COUNTS
      ]
      rows.append([
          algorithm.upper(), SHORT[defense], *(f'{x:.1f}' for x in leaks)
      ])
  head = ('', 'protection', *(f'{n} labels' for n in COUNTS))
  return evidence.markdown(head, rows)


def _mean(leaks: PerSeed) -> float:
  return reading.summarize(leaks.values()).mean


def few_labels(which: str) -> str:
  """'44 of 44': of both algorithms' rows, see `known_labels.Shares`."""
  found = [known_labels.of_record(a) for a in ('vhnn', 'vsnn')]
  return (f'{sum(getattr(s, which) for s in found)} of '
          f'{sum(s.count for s in found)}')


def preferences() -> str:
  """Optimal PU scores and the orders that follow, by setting and data set."""
  best = [
      evidence.load(PAPER, n).results for n in SCORED
      if evidence.exists(PAPER, n)
  ]
  last = [reading.at_epoch(results, 'last') for results in best]
  rows = []
  for number in pu_scores.SETTINGS:
    most, late = (_orders(number, found) for found in (best, last))
    said = {'both': most} if most == late else {'best': most, 'last': late}
    rows += [
        [f'{number}', epoch, *row] for epoch, found in said.items()
        for row in found
    ]
  return evidence.markdown(
      ('setting', 'epoch', 'data', 'order of preference', 'optimal PU scores'),
      rows,
  )


def _orders(number: int, everything: Sequence[Results]) -> list[list[str]]:
  """A row for each data set and, if there are several, one for all."""
  rows = []
  for dataset, said in DATA.items():
    mine = [r for r in everything if r.title[1] == dataset]
    tables = pu_scores.of_setting(mine, number)
    if tables:
      rows.append([said, pu_scores.order(tables), '; '.join(
          f"{name.rpartition(', ')[2]}: {_scores(table)}"
          for name, table in tables.items()
      )])
  if len(rows) > 1:
    tables = pu_scores.of_setting(everything, number)
    rows.append(['all', pu_scores.order(tables), ''])
  return rows


def _scores(table: Mapping[str, int]) -> str:
  return ', '.join(f'{SHORT[d]} {s}' for d, s in table.items())


TABLES: dict[str, Table] = dict(
    vnn=_strongest(VHNN='vhnn_spambase', VSNN='vsnn_spambase'),
    vnn_all=_strongest(VSNN='vsnn_spambase_all'),
    vnn_imbalanced=_strongest(
        VHNN='vhnn_fashion_imbalanced', VSNN='vsnn_fashion_imbalanced'
    ),
    **{f'{record}_gradients': gradients(record) for record in TEN.values()},
    vnn_ten=ten, fig11=fig11, preferences=preferences,
)
