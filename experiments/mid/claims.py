"""What the paper says of MID in words, against finished runs.

  python -m experiments.mid.claims out/mid/fig4-dli out/mid/fig5-noisy ...

A defense's curve is its points (main accuracy, attack success), one a strength,
means over seeds. "At equal accuracy" is a comparison of the lowest success that
each defense reaches within a loss of accuracy of at most so many points against
no defense. Where MID merely ignores the passive party, its accuracy is that of
the active party alone: the share of that party's worth that is left is printed
beside it.
"""
import argparse
from collections import defaultdict
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

# What each attack is measured by; larger is better for the attacker.
SUCCESS = {
    'direct_label': 'accuracy',
    'direct_label:replayed': 'accuracy_start',
    'learned_gradient': 'accuracy_end',
    'gradient_inversion': 'accuracy_start',
    'label_replacement': 'backdoor_accuracy',
    'noisy_sample': 'drop',
    'missing_features': 'drop',
    'cafe': 'psnr_end',
    'mixmatch': 'accuracy_last',
    'direction_scoring': 'leak_auc',
}
LOSSES = (0.005, 0.01, 0.02, 0.05)  # of main accuracy


class Point(NamedTuple):
  """A defense at one strength: means over seeds."""

  strength: float | None
  accuracy: float
  success: float
  spread: float  # standard deviation of `success` over seeds


class Curves(NamedTuple):
  """One attack of a run: curves by defense, and what the passive party is
  worth."""

  attack: str
  undefended: Point
  alone: float  # the active party's accuracy without the others, or nan
  by_defense: dict[str, list[Point]]


def read(folder: Path) -> list[Curves]:
  """The curves of every attack of a run.

  Raises:
    FileNotFoundError: if there are no results.
  """
  values: dict = defaultdict(lambda: defaultdict(list))
  alone: list[float] = []
  with open(folder / 'results.jsonl') as lines:
    for line in lines:
      row = json.loads(line)
      if row['metric'] == 'alone_accuracy':
        alone.append(row['value'])
      key = row['attack'] or '', row['metric']
      values[row['defense'], row['strength']][key].append(row['value'])
  attacks = {a for found in values.values() for a, _ in found if a in SUCCESS}
  return [
      _curves(name, values, float(np.mean(alone)) if alone else float('nan'))
      for name in SUCCESS if name in attacks
  ]


def _curves(attack: str, values, alone: float) -> Curves:
  points = defaultdict(list)
  for (defense, strength), found in values.items():
    success = found.get((attack, SUCCESS[attack]))
    if success and ('', 'accuracy') in found:
      points[defense].append(Point(
          strength, float(np.mean(found['', 'accuracy'])),
          float(np.mean(success)), float(np.std(success)),
      ))
  undefended = points.pop('none')[0]
  return Curves(attack, undefended, alone, dict(points))


def lowest(points: list[Point], least: float) -> Point | None:
  """The point of the least success among those of `least` accuracy or more."""
  possible = [p for p in points if p.accuracy >= least]
  return min(possible, key=lambda p: p.success) if possible else None


def verdicts(curves: Curves, one: str = 'MID') -> list[str]:
  """Whether `one` is below every other defense, for each loss of accuracy."""
  lines = []
  for loss in LOSSES:
    least = curves.undefended.accuracy - loss
    best = {
        name: lowest(points, least)
        for name, points in curves.by_defense.items()
    }
    mine = best.get(one)
    others = {n: p for n, p in best.items() if n != one and p}
    if not mine or not others:
      reached = 'no strength of it' if not mine else 'no other defense'
      lines.append(f'  loss <= {100 * loss:g} points: not decided: {reached}')
      continue
    name, rival = min(others.items(), key=lambda item: item[1].success)
    won = mine.success < rival.success
    near = abs(mine.success - rival.success) < mine.spread + rival.spread
    verdict = 'holds' if won else 'FAILS'
    verdict += ' (within the spread)' if near else ''
    lines.append(
        f'  loss <= {100 * loss:g} points: {verdict}: {one} {_show(mine)}; '
        f'{name} {_show(rival)}'
    )
  return lines


def worth_left(curves: Curves, point: Point) -> float:
  """Share of what the passive party adds to accuracy that a defense leaves."""
  added = curves.undefended.accuracy - curves.alone
  return (point.accuracy - curves.alone) / added


def _show(point: Point) -> str:
  strength = '' if point.strength is None else f' at {point.strength:g}'
  return (
      f'{point.success:.3f} +- {point.spread:.3f}{strength} (accuracy '
      f'{point.accuracy:.3f})'
  )


def report(folder: Path) -> str:
  """A run's verdicts and curves, as text."""
  lines = []
  for curves in read(folder):
    lines.append(
        f'{folder.name}, {curves.attack}: no defense {_show(curves.undefended)}'
        f', active party alone {curves.alone:.3f}'
    )
    lines += ['MID below the others at equal accuracy:', *verdicts(curves)]
    for name in ('CAE', 'RVFR', 'MARVELL'):
      if name in curves.by_defense:
        lines += [f'{name} below the others:', *verdicts(curves, name)]
    for name, points in curves.by_defense.items():
      for p in sorted(points, key=lambda p: p.strength or 0):
        left = worth_left(curves, p)
        lines.append(
            f'    {name} {_show(p)}, passive party\'s worth left {left:.0%}'
        )
  return '\n'.join(lines)


def main() -> None:
  parser = argparse.ArgumentParser(description='Checks claims of the paper.')
  parser.add_argument('folders', nargs='+', type=Path)
  for folder in parser.parse_args().folders:
    print(report(folder), end='\n\n')


if __name__ == '__main__':
  main()
