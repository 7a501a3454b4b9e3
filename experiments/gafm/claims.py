"""What the paper says of GAFM in words, against a finished run.

  python -m experiments.gafm.claims out/gafm/reviews-sentences

Each claim is compared on means over the run's seeds; a claim whose rows were
not run says so. Nothing is rounded in anyone's favour: "less" is any less, and
"similar" is within 0.02 of AUC.
"""
import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from experiments.gafm import tables

PAPERS = ('norm', 'mean', 'median')
SIMILAR = 0.02  # of AUC


class Claim(NamedTuple):
  """A sentence, the rows it is about, and whether their means bear it out."""

  text: str
  rows: tuple[str, ...]
  holds: Callable[..., bool]


def worst(row: dict[str, float]) -> float:
  """The strongest of the paper's three attacks."""
  return max(row[a] for a in PAPERS)


CLAIMS: Sequence[Claim] = (
    Claim('GAFM leaks less than vanilla to each attack', ('gafm', 'none'),
          lambda g, v: all(g[a] < v[a] for a in PAPERS)),
    Claim('GAFM leaks less than Max-Norm to each attack', ('gafm', 'max_norm'),
          lambda g, m: all(g[a] < m[a] for a in PAPERS)),
    Claim("GAFM's AUC is similar to vanilla's", ('gafm', 'none'),
          lambda g, v: g['auc'] > v['auc'] - SIMILAR),
    Claim("GAFM's AUC is at least Marvell's", ('gafm', 'marvell'),
          lambda g, m: g['auc'] >= m['auc']),
    Claim('GAFM leaks no more than Marvell (strongest attack)',
          ('gafm', 'marvell'), lambda g, m: worst(g) <= worst(m)),
    Claim('Mean and median attacks beat the norm attack on every row', (),
          lambda *rows: all(
              min(r['mean'], r['median']) > r['norm'] for r in rows)),
    Claim('Without the GAN more leaks (mean and median attack)',
          ('ce_only', 'gafm'),
          lambda c, g: c['mean'] > g['mean'] and c['median'] > g['median']),
    Claim('Without the cross-entropy the AUC is lower', ('gan_only', 'gafm'),
          lambda a, g: a['auc'] < g['auc']),
    Claim('G-M leaks less than GAFM and Marvell (strongest attack)',
          ('gafm_marvell', 'gafm', 'marvell'),
          lambda b, g, m: worst(b) < min(worst(g), worst(m))),
    Claim("GAFM is insensitive to sigma (leaks within 0.05, AUC within 0.02)",
          ('sigma_1', 'gafm'),
          lambda s, g: abs(s['auc'] - g['auc']) < SIMILAR
          and all(abs(s[a] - g[a]) < 0.05 for a in PAPERS)),
)


def check(rows: dict[str, dict[str, float]]) -> list[tuple[str, str, str]]:
  """(verdict, claim, the numbers) of every claim.

  Args:
    rows: {defense: {'auc' or attack: mean}}.
  """
  found = []
  for claim in CLAIMS:
    names = claim.rows or tuple(rows)
    if not all(name in rows for name in names):
      found.append(('not run', claim.text, ''))
      continue
    held = claim.holds(*(rows[name] for name in names))
    numbers = '; '.join(f'{name} {_numbers(rows[name])}' for name in names)
    found.append(('holds' if held else 'FAILS', claim.text, numbers))
  return found


def means(workdir: str) -> dict[str, dict[str, float]]:
  """Means over seeds by defense, at the first strength listed."""
  found: dict[str, dict[str, float]] = {}
  for (defense, _), values in tables.read(workdir).items():
    row = {name: float(np.mean(v)) for name, v in values.items()}
    found.setdefault(defense, row)
  return found


def _numbers(row: dict[str, float]) -> str:
  return 'AUC %.3f, leaks %.2f %.2f %.2f' % (
      row['auc'], *(row[a] for a in PAPERS)
  )


def main() -> None:
  parser = argparse.ArgumentParser(description="Checks GAFM's claims.")
  parser.add_argument('workdir')
  for verdict, text, numbers in check(means(parser.parse_args().workdir)):
    print(f'| {verdict} | {text} | {numbers} |')


if __name__ == '__main__':
  main()
