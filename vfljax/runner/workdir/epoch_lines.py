"""Each measured epoch as a line of JSON: `epochs/U.jsonl` for unit U.

  {"unit": "iso/5", "defense": "iso", "strength": 5.0, "epoch": 4, "seeds": 10,
   "train_loss": 0.31, "auc": 0.95, "norm_scoring/leak_auc": 0.61}

Numbers are means over so many seeds as the line says: who stopped early or
diverged altogether is in none (results.jsonl has a null for him), and null is a
measurement that one of them lacks. `tail -f` follows a run, and `cat
epochs/*.jsonl` is one file of all units.
"""
from collections.abc import Mapping, Sequence
from pathlib import Path

from vfljax.runner.machine import disk
from vfljax.runner.workdir import parts
from vfljax.runner.workdir.epoch_points import Point

FOLDER = 'epochs'


class Lines:
  """A sink of `epoch_log`."""

  def __init__(self, place: Path):
    self._place = place

  def finished(self, who: Mapping, points: Sequence[Point]) -> None:
    disk.renew(self._file(who), _text(who, points))

  def begin(self, who: Mapping, points: Sequence[Point]) -> None:
    disk.replace(self._file(who), _text(who, points))

  def add(self, who: Mapping, points: Sequence[Point]) -> None:
    # Not flushed to the disk itself: what is lost is written again.
    with self._file(who).open('a', encoding='utf-8') as end:
      end.write(_text(who, points))

  def close(self) -> None:
    pass

  def _file(self, who: Mapping) -> Path:
    found = file(self._place, who['unit'])
    found.parent.mkdir(exist_ok=True)
    return found


def file(place: Path, unit: str) -> Path:
  """A unit's file in the work directory `place`."""
  return place / FOLDER / (parts.file_name(unit) + '.jsonl')


def _text(who: Mapping, points: Sequence[Point]) -> str:
  return ''.join(
      parts.dumps(parts.plain(
          {**who, 'epoch': p.epoch, 'seeds': p.seeds} | _short(p.values)
      )) for p in points
  )


def _short(values: Mapping[str, float]) -> dict[str, float]:
  """With as many digits as float32 has, whatever they were averaged in."""
  return {name: float(f'{value:.6g}') for name, value in values.items()}
