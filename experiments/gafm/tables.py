"""Rows of results.jsonl as a table: AUC raw and folded, flips, leaks, ratios.

  python -m experiments.gafm.tables out/gafm/table2 [out/gafm/table4 ...]

What the runner's report leaves to this paper: the share of seeds whose model
has the classes the wrong way round (AUC below 1/2), AUC folded as the paper
folds leaks, worst and best seed, and Table 3's ratios of AUC to leak AUC. Means
and population deviations over seeds.
"""
import argparse
from collections import defaultdict
import json
from pathlib import Path

import numpy as np

SHORT = dict(
    norm_scoring='norm', mean_scoring='mean', median_scoring='median',
    value_scoring='value', residual_scoring='residual',
)
Rows = dict[tuple[str, float | None], dict[str, np.ndarray]]


def read(workdir: str) -> Rows:
  """{(defense, strength): {'auc' or attack: [seeds]}} of a finished run."""
  found: dict = defaultdict(lambda: defaultdict(dict))
  with (Path(workdir) / 'results.jsonl').open() as lines:
    for row in map(json.loads, lines):
      of_model = row['attack'] is None and row['metric'] == 'auc'
      if of_model or row['metric'] == 'leak_auc':
        name = SHORT.get(row['attack'], row['attack'] or 'auc')
        cell = found[row['defense'], row['strength']]
        cell[name][row['seed']] = row['value']
  return {
      cell: {
          name: np.array([by_seed[s] for s in sorted(by_seed)])
          for name, by_seed in values.items()
      } for cell, values in found.items()
  }


def table(rows: Rows) -> str:
  """A Markdown table."""
  attacks = [a for a in SHORT.values() if any(a in v for v in rows.values())]
  head = [
      'row', 'AUC (worst-best)', 'flipped', 'folded', *attacks,
      'AUC/median', 'AUC/mean',
  ]
  lines = [head, ['---'] * len(head)]
  for (defense, strength), values in rows.items():
    auc = values['auc']
    name = defense if strength is None else f'{defense} {strength:g}'
    lines.append([
        name, f'{_spread(auc)} ({auc.min():.2f}-{auc.max():.2f})',
        f'{(auc < 0.5).sum()}/{len(auc)}',
        _spread(np.maximum(auc, 1 - auc)),
        *(_spread(values[a]) for a in attacks),
        *(_ratio(auc, values.get(a)) for a in ('median', 'mean')),
    ])
  return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def _spread(values: np.ndarray) -> str:
  return f'{values.mean():.3f}+-{values.std():.3f}'


def _ratio(auc: np.ndarray, leak: np.ndarray | None) -> str:
  return '' if leak is None else f'{(auc / leak).mean():.2f}'


def main() -> None:
  parser = argparse.ArgumentParser(description='Tables of finished runs.')
  parser.add_argument('workdirs', nargs='+')
  for workdir in parser.parse_args().workdirs:
    print(f'\n{workdir}\n\n{table(read(workdir))}')


if __name__ == '__main__':
  main()
