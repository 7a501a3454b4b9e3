"""Each measured epoch in TensorBoard's event files: `--tensorboard`.

`tensorboard --logdir=<workdir>/tensorboard` shows a run per unit, a defense at
a strength, with the means over its seeds: ten seeds of twenty units would be
two hundred curves that nobody can tell apart, and each seed's own are in
parts/. The files are written by tensorboardX, of the extra `tensorboard`; to
look at them takes TensorBoard itself, which may be on another machine.
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
  """Before a run: can event files be written?

  Raises:
    UserError: with what to install.
  """
  try:
    _library()
  except ValueError as error:
    raise UserError(f'--tensorboard: {error}') from None


class Events:
  """A sink of `epoch_log`."""

  def __init__(self, place: Path):
    self._folder, self._open = place / FOLDER, {}
    self._writer, self._event = _library()

  def finished(self, who: Mapping, points: Sequence[Point]) -> None:
    # A unit is done after its events are written: these are all there are.
    if not list(self._place(who).glob('events.*')):
      self.begin(who, points)
      self.close()

  def begin(self, who: Mapping, points: Sequence[Point]) -> None:
    # TensorBoard reads all files of a folder: what a killed run had written
    # after its last checkpoint would be there twice.
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
  """tensorboardX's writer of records, and what an event is.

  Not its SummaryWriter, which writes in a process of its own, some time later.

  Raises:
    ValueError: if it is not installed.
  """
  with extra('tensorboard'):
    from tensorboardX import event_file_writer
    from tensorboardX.proto import event_pb2
    messages: Any = event_pb2  # Protobuf makes its classes when imported.
    return event_file_writer.EventsWriter, messages.Event
