"""Writes measured epochs as lines of JSON: `epochs/U.jsonl` for unit U.

  {"unit": "iso/5", "defense": "iso", "strength": 5.0, "utility": "test",
   "epoch": 4, "seeds": 10, "train_loss": 0.31, "auc": 0.95,
   "norm_scoring/leak_auc": 0.61}

`utility` says of which samples accuracy, AUC and loss are: the validation
samples, or without any the test samples. Attacks' numbers are of the rounds.
Numbers are means over as many seeds as the line says. Seeds that stopped early
or diverged are not among them (in results.jsonl a diverged seed has null). null
means that one of the counted seeds lacks that measurement. `tail -f` follows a
run, and `cat epochs/*.jsonl` joins all units.
"""
from collections.abc import Mapping, Sequence
from pathlib import Path

from vfljax.runner.machine import disk
from vfljax.runner.workdir import parts
from vfljax.runner.workdir.epoch_points import Point

FOLDER = 'epochs'


class Lines:
  """An `epoch_log.Sink` that writes lines of JSON."""

  def __init__(self, place: Path):
    self._place = place

  def finished(self, who: Mapping, points: Sequence[Point]) -> None:
    disk.renew(self._file(who), _text(who, points))

  def begin(self, who: Mapping, points: Sequence[Point]) -> None:
    disk.replace(self._file(who), _text(who, points))

  def add(self, who: Mapping, points: Sequence[Point]) -> None:
    # No fsync: lost lines are written again at the next start.
    # The end of a line is that of `renew`, also on Windows.
    with self._file(who).open('a', encoding='utf-8', newline='\n') as end:
      end.write(_text(who, points))

  def close(self) -> None:
    pass

  def _file(self, who: Mapping) -> Path:
    found = file(self._place, who['unit'])
    found.parent.mkdir(exist_ok=True)
    return found


def file(place: Path, unit: str) -> Path:
  """A unit's file of epochs in the work directory `place`."""
  return place / FOLDER / (parts.file_name(unit) + '.jsonl')


def _text(who: Mapping, points: Sequence[Point]) -> str:
  return ''.join(
      parts.dumps(parts.plain(
          {**who, 'epoch': p.epoch, 'seeds': p.seeds} | _short(p.values)
      )) for p in points
  )


def _short(values: Mapping[str, float]) -> dict[str, float]:
  """The values rounded to six significant digits."""
  return {name: float(f'{value:.6g}') for name, value in values.items()}
