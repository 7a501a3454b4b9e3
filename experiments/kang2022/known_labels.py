"""Figure 11: how much known labels help model completion.

MC's leakage is measured over a local model with the same labels. The paper says
that it is larger with few labels (40 or 80 of the five numbers), because the
local model gains more from further labels than the attacker does.
"""
from collections.abc import Sequence
from typing import NamedTuple

from experiments import evidence
from experiments.claims import Verdict
from experiments.kang2022 import by_seed
from experiments.kang2022.measured import COUNTS, PAPER
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed, Results

FEW = (40, 80)


class Shares(NamedTuple):
  """Counts over all protections' strengths, and no protection.

  Attributes:
    few: In how many the mean over seeds is largest with 40 or 80 labels.
    more: In how many 40 labels leak more than 400, by more than seeds differ.
    count: The number of all.
  """

  few: int
  more: int
  count: int


def leakage(results: Results, cell: Cell, known: int) -> PerSeed:
  """Over a local model that knows the same labels.

  Raises:
    ValueError: if there is no such local model.
  """
  attack = f'model_completion:{known}'
  if not reading.is_paired(results, cell, attack):
    raise ValueError(f'{attack} has no local model of its own to compare with.')
  return reading.leakage(results, cell, attack)


def shares(results: Results) -> Shares:
  """A mean that is no number is largest nowhere and counts against the paper.
  """
  few = more = 0
  for cell in results.cells:
    found = {n: leakage(results, cell, n) for n in COUNTS}
    few += largest({n: list(x.values()) for n, x in found.items()}) in FEW
    gain = by_seed.difference(found[COUNTS[0]], found[COUNTS[-1]])
    more += by_seed.greater(gain) is True
  return Shares(few, more, len(results.cells))


def largest(leaks: dict[int, Sequence[float]]) -> int | None:
  """The number of labels of the largest mean; `None` if a seed diverged."""
  means = {n: sum(x) / len(x) for n, x in leaks.items() if len(x)}
  if len(means) < len(leaks) or any(m != m for m in means.values()):
    return None
  return max(means, key=lambda n: means[n])


def of_record(algorithm: str) -> Shares:
  return shares(evidence.load(PAPER, f'fig11_{algorithm}').results)


def judged() -> Verdict:
  """Whether both are so of more than half of the strengths in both."""
  found = {a.upper(): of_record(a) for a in by_seed.ALGORITHMS}
  return Verdict(
      all(2 * min(s.few, s.more) > s.count for s in found.values()), '; '.join(
          f'{name} on Spambase: the largest mean is that of 40 or 80 labels in '
          f'{s.few} of {s.count} rows; 40 above 400 by more than seeds differ '
          f'in {s.more} of {s.count}' for name, s in found.items()
      ),
  )
