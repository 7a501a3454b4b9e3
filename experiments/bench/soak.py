"""Many small runs in one process: do memory, descriptors and threads stay flat?

  python -m experiments.bench.soak --hours=2 --out=experiments/bench/soak.json

Each run is an experiment from data to report in its own work directory:
undefended and under one defense in turn, stopped and continued every few runs.
The record says, for points in time, what the process held after a run and a
garbage collection: its memory, and its memory after the C library has returned
what it had kept for later (`malloc_trim` of glibc), which is the memory in use.
`growth` is the slope over the second half, when everything that is kept only
once has been kept.
"""
import argparse
import contextlib
import ctypes
import dataclasses
import gc
import io
import itertools
import os
import pathlib
import signal
import tempfile
import threading
import time

import numpy as np

from experiments import quickstart
from experiments.bench import records
from vfljax import data, defenses
from vfljax.report import writing
from vfljax.runner import run
from vfljax.runner.config import Config, TrainConfig
from vfljax.runner.machine import device
from vfljax.runner.workdir import recording

# Each draws other programs; those that need other samples are left out.
DEFENDED = [
    name for name, method in defenses.REGISTRY.items()
    if name not in ('none', 'coae', 'rvfr', 'vmask', 'multi_head')
]
KEPT_LINES = 60


def config(defense: str) -> Config:
  """A few seconds of an experiment."""
  return dataclasses.replace(
      quickstart.get_config(), seeds=2, defenses=f'none,{defense}',
      attacks='norm_scoring', train=TrainConfig(epochs=4, batch_size=32),
  )


def once(defense: str, table: data.Table, interrupted: bool) -> None:
  """One experiment; if interrupted, it is asked to stop and then continued."""
  with tempfile.TemporaryDirectory() as place:
    where = str(pathlib.Path(place) / 'out')
    if interrupted:
      timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
      timer.start()
      with contextlib.suppress(run.Interrupted, KeyboardInterrupt):
        run.run(config(defense), table, where)
      timer.cancel()
      timer.join()
    writing.write(run.run(config(defense), table, where).path)


def held() -> dict[str, float]:
  """What this process has: MiB of memory, descriptors, threads, objects."""
  resident = _status('VmRSS') / 1024
  with contextlib.suppress(OSError, AttributeError):
    ctypes.CDLL('libc.so.6').malloc_trim(0)
  return dict(
      rss_mib=round(resident, 1), used_mib=round(_status('VmRSS') / 1024, 1),
      descriptors=len(os.listdir('/proc/self/fd')),
      threads=_status('Threads'), objects=len(gc.get_objects()),
  )


def _status(name: str) -> int:
  """A number of /proc/self/status: KiB, or a count."""
  lines = pathlib.Path('/proc/self/status').read_text('utf-8').splitlines()
  return int(dict(x.split(':', 1) for x in lines)[name].split()[0])


def growth(lines: list[dict]) -> dict[str, float]:
  """A run's worth of each, by least squares over the second half."""
  later = lines[len(lines) // 2 :]
  runs = [line['runs'] for line in later]
  return {
      name: round(float(np.polyfit(runs, [x[name] for x in later], 1)[0]), 4)
      for name in lines[0] if name not in ('runs', 'minutes')
  }


def soak(hours: float, rest: float) -> list[dict]:
  """What was held after each run."""
  table = data.load('breast_cancer')
  begun, lines = time.monotonic(), []
  for i, defense in enumerate(itertools.cycle(DEFENDED)):
    with contextlib.redirect_stderr(io.StringIO()):
      once(defense, table, interrupted=i % 5 == 4)
    gc.collect()
    minutes = (time.monotonic() - begun) / 60
    lines.append(dict(runs=i + 1, minutes=round(minutes, 1), **held()))
    print(lines[-1], flush=True)
    if minutes >= 60 * hours and len(lines) > 3:
      return lines
    time.sleep(rest)
  raise AssertionError  # A cycle has no end.


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--hours', type=float, default=2.0)
  parser.add_argument('--rest', type=float, default=0.0,
                      help='seconds between two runs')
  parser.add_argument('--cache', default='~/.cache/vfljax')
  parser.add_argument('--out')
  own = parser.parse_args()
  device.set_up(1, own.cache)
  record = records.begin() | dict(code=recording.code())
  lines = soak(own.hours, own.rest)
  step = max(1, len(lines) // KEPT_LINES)
  records.write(record | dict(
      runs=len(lines), rest=own.rest, growth_per_run=growth(lines),
      first=lines[0], last=lines[-1], lines=lines[::step],
  ), own.out)


if __name__ == '__main__':
  main()
