"""What the records of runs say of one defense or one attack, as tables.

Everything is computed from experiments/*/records; nothing is kept here.
"""
from collections.abc import Iterator
import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import evidence
from vfljax import attacks, data, defenses
from vfljax.attack import recipe_of
from vfljax.data.table import counted
from vfljax.report import reading
from vfljax.report.reading import Cell, Results
from vfljax.runner.errors import UserError
from vfljax.scene import two_classes

_WHEN = dict(
    max='; attacks in training in their best epoch',
    last='; attacks in training in the last epoch',
)


class Run(NamedTuple):
  """A record of a run, and what it calls which defense."""

  paper: str
  name: str
  results: Results
  methods: dict[str, tuple[str, ...]]
  samples: str

  def cells(self, defense: str) -> list[Cell]:
    """The rows of a defense, those chained with others included."""
    return [
        c for c in self.results.cells
        if defense in self.methods.get(c[0], (c[0],))
    ]


@functools.cache
def runs() -> tuple[Run, ...]:
  """All records that runs of the command line have written."""
  return tuple(_runs())


def _runs() -> Iterator[Run]:
  for file in sorted(evidence.HERE.glob('*/records/*.json')):
    try:
      kept = evidence.load(file.parts[-3], file.stem)
    except UserError:  # A study's own, which its paper's page tells of.
      continue
    methods = {
        entry.get('label') or entry['defense']: (
            entry['defense'], *(e['defense'] for e in entry.get('after', ())),
        )
        for entry in kept.record['config'].get('listed', ())
    }
    for row, _ in kept.results.cells:  # '<label> <argument>=<value>' of a grid.
      label = next((k for k in methods if row.startswith(f'{k} ')), row)
      methods.setdefault(row, methods.get(label, (row,)))
    yield Run(
        file.parts[-3], file.stem, kept.results, methods,
        _samples(kept.record['config']['data']),
    )


def _samples(config: dict[str, str]) -> str:
  """The data set, or the file that a loader of any file has read."""
  own = data.REGISTRY[config['name']].own and config['path']
  return Path(own).name if own else config['name']


def of_defense(name: str) -> str:
  """A table for each record: what the defense costs and what still leaks."""
  parts = []
  for run in runs():
    cells = run.cells(name)
    if not cells:
      continue
    names = [a for a in run.results.attacks if _known(run.results, a)]
    plain = reading.baseline(run.results)
    shown = [plain, *cells] if plain else cells
    rows = [_row(run.results, cell, names) for cell in shown]
    head = ('', f'{run.results.metric}, %', 'costs, points',
            *(reading.pretty(a) for a in names))
    parts.append(_titled(run, evidence.markdown(head, rows)))
  return '\n\n'.join(parts)


def of_attack(name: str) -> str:
  """A table for each record: what it learns in spite of each defense."""
  parts = []
  for run in runs():
    names = [
        a for a in (*run.results.attacks, *run.results.baselines)
        if reading.base(a) == name and _known(run.results, a)
    ]
    rows = [
        [reading.named(cell), *(_leak(run.results, cell, a) for a in names)]
        for cell in run.results.cells
    ]
    if names:
      head = ('learns, points', *(reading.pretty(a) for a in names))
      parts.append(_titled(run, evidence.markdown(head, rows)))
  return '\n\n'.join(parts)


def strengths(name: str) -> dict[str, list[str]]:
  """{paper: strengths that its records have of a defense}."""
  found: dict[str, list[str]] = {}
  for run in runs():
    mine = [reading.strength(c) for c in run.cells(name)]
    kept = found.setdefault(run.paper, [])
    kept += [s for s in mine if s and s not in kept]
  return {paper: values for paper, values in found.items() if values}


def _known(results: Results, attack: str) -> bool:
  return any(reading.leakage(results, c, attack) for c in results.cells)


def _row(results: Results, cell: Cell, names: list[str]) -> list[str]:
  utility = [100 * v for v in reading.utility(results, cell).values()]
  loss = list(reading.utility_loss(results, cell).values())
  plain = cell == reading.baseline(results)
  return [
      reading.named(cell), evidence.spread(utility) if utility else '',
      evidence.spread(loss) if loss and not plain else '',
      *(_leak(results, cell, a) for a in names),
  ]


def _leak(results: Results, cell: Cell, attack: str) -> str:
  found = list(reading.leakage(results, cell, attack).values())
  return evidence.spread(found) if np.size(found) else ''


def _titled(run: Run, table: str) -> str:
  experiment, _, algorithm = run.results.title
  seeds = counted(len(run.results.seeds), 'seed')
  return (
      f'**{run.samples}, {algorithm}**, {seeds} '
      f'([{run.paper}](../results/{run.paper}.md), record '
      f'`experiments/{run.paper}/records/{run.name}.json`, experiment '
      f'`{experiment}`{_WHEN.get(run.results.when, "")})\n\n{table}'
  )


def unknown(kind: str, name: str) -> str:
  """How to measure what no record has."""
  flags = f'--config.defenses=none,{name}' if kind == 'defenses' else (
      f'--config.attacks={name}'
  )
  return (
      'No record of a run has it yet. This measures it on the quick start\'s '
      f'data:\n\n    vfljax --config=experiments/quickstart.py {flags}\n'
  )


def binary(kind: str, name: str) -> bool:
  """Whether it is for two classes only."""
  if kind == 'defenses':
    return defenses.REGISTRY[name].binary
  return two_classes in recipe_of(attacks.REGISTRY[name]).needs
