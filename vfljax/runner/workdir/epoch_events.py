"""Writes measured epochs to TensorBoard's event files: `--tensorboard`.

`tensorboard --logdir=<workdir>/tensorboard` shows a run for each unit (a
defense at a strength), with means over its seeds: ten seeds of twenty units
would be two hundred curves that nobody can tell apart. Each seed's own curves
are in parts/. tensorboardX, of the extra `tensorboard`, writes the files;
TensorBoard, perhaps on another machine, shows them.
"""
from collections.abc import Mapping, Sequence
from pathlib import Path
import time
from typing import Any

from absl import flags

from vfljax.need import extra
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import parts
from vfljax.runner.workdir.epoch_points import Point

FOLDER = 'tensorboard'


def define(found: flags.FlagValues) -> None:
  """Adds the flag."""
  flags.DEFINE_boolean(
      'tensorboard', False, 'Write event files into tensorboard/ of the work '
      "directory while it runs; needs pip install 'vfljax[tensorboard]'.",
      flag_values=found,
  )


def check() -> None:
  """Checks before a run that event files can be written.

  Raises:
    UserError: if tensorboardX is missing; says what to install.
  """
  try:
    _library()
  except ValueError as error:
    raise UserError(f'--tensorboard: {error}') from None


class Events:
  """An `epoch_log.Sink` that writes event files."""

  def __init__(self, place: Path):
    self._folder, self._open = place / FOLDER, {}
    self._writer, self._event = _library()

  def finished(self, who: Mapping, points: Sequence[Point]) -> None:
    # Events are written before a unit is done, so existing files are complete.
    if not list(self._place(who).glob('events.*')):
      self.begin(who, points)
      self.close()

  def begin(self, who: Mapping, points: Sequence[Point]) -> None:
    # TensorBoard reads all files of a folder. Epochs that a killed run wrote
    # after its last checkpoint would appear twice.
    for old in self._place(who).glob('events.*'):
      disk.remove(old)
    self._place(who).mkdir(parents=True, exist_ok=True)
    self._open[who['unit']] = self._writer(str(self._place(who) / 'events'))
    self.add(who, points)

  def add(self, who: Mapping, points: Sequence[Point]) -> None:
    writer = self._open[who['unit']]
    for point in points:
      event = self._event(step=point.epoch, wall_time=time.time())
      for name, value in point.values.items():
        event.summary.value.add(tag=name, simple_value=value)
      writer.write_event(event)
    writer.flush()

  def close(self) -> None:
    while self._open:
      self._open.popitem()[1].close()

  def _place(self, who: Mapping) -> Path:
    return self._folder / parts.file_name(who['unit'])


def _library() -> tuple[Any, Any]:
  """tensorboardX's writer of records, and its class of events.

  Not its SummaryWriter, which writes later and in another process.

  Raises:
    ValueError: if tensorboardX is not installed.
  """
  with extra('tensorboard'):
    from tensorboardX import event_file_writer
    from tensorboardX.proto import event_pb2
    messages: Any = event_pb2  # Protobuf makes its classes when imported.
    return event_file_writer.EventsWriter, messages.Event
