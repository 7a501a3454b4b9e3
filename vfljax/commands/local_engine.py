"""A grid's experiments in this process, one after the other.

Each uses the whole machine: its trainings are spread over the cores, or over an
accelerator. Several at a time would take as long, and need further processes,
which vfljax does not start (SECURITY.md).
"""
from collections.abc import Sequence

from vfljax.commands import point
from vfljax.commands.axes import Point
from vfljax.commands.tasks import Resources
from vfljax.runner.machine.stopping import Stop


def run(
    left: Sequence[Point], resources: Resources, stop: Stop | None = None
) -> dict[str, str]:
  """Runs experiments; returns why some could not be finished, by name.

  Raises:
    run.Interrupted: after `stop` and saving.
  """
  del resources  # Each experiment uses the whole machine.
  failed = {}
  for i, one in enumerate(left):
    print(f'\n{one.name}, {i + 1} of {len(left)}', flush=True)
    if why := point.tried(one.argv, stop):
      print(f'Not finished: {why}', flush=True)
      failed[one.name] = why
  return failed
