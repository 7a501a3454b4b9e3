"""How long a user waits: a first start, a second one, a finished run again.

  python -m experiments.bench.startup --out=experiments/bench/startup.json
  python -m experiments.bench.startup --beside=/path/to/another/clone
  python -m experiments.bench.startup --config=FILE --more='--config.seeds=1'

Each time is of the whole command on the quickstart, from the shell to the
prompt. The first start has an empty compile cache; the second has its programs
in the cache and another work directory; the third is on a finished work
directory. With --beside, another clone (such as an earlier version) takes turns
with this one. Processor time on all cores is recorded as well, because a shared
machine affects it less than the seconds. Python keeps its bytecode, as usual.
"""
import argparse
from collections.abc import Sequence
import json
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from typing import Any

from experiments.bench import records

CONFIG = 'experiments/quickstart.py'
STARTS = 'first', 'second', 'finished'


def once(
    clone: pathlib.Path, place: pathlib.Path, flags: Sequence[str]
) -> dict:
  """Seconds of the three starts of one clone, in a folder of its own."""
  found: dict[str, Any] = {}
  path = [str(clone), os.environ.get('PYTHONPATH', '')]  # The clone's first.
  environment = dict(
      os.environ, PYTHONPATH=os.pathsep.join(filter(None, path))
  )
  environment.pop('PYTHONDONTWRITEBYTECODE', None)
  for start in STARTS:
    work = place / ('first' if start == 'first' else 'second')
    command = [
        sys.executable, 'launch.py', *flags, f'--workdir={work}',
        f'--cache={place / "cache"}',
    ]
    spent, began = _cpu(), time.perf_counter()
    subprocess.run(
        command, cwd=clone, check=True, stdout=subprocess.DEVNULL,
        env=environment,
    )
    wall = time.perf_counter() - began
    found[start] = dict(seconds=round(wall, 2), cpu=round(_cpu() - spent, 2))
    if start != 'finished':
      timings = json.loads((work / 'timings.json').read_text('utf-8'))
      for key in ('compile_seconds', 'run_seconds'):
        found[start][key] = round(sum(t[key] for t in timings), 2)
  return found


def _cpu() -> float:
  """Seconds of all cores that our finished children took."""
  used = resource.getrusage(resource.RUSAGE_CHILDREN)
  return used.ru_utime + used.ru_stime


def measured(
    clones: dict[str, pathlib.Path], turns: int, flags: Sequence[str]
) -> dict:
  """The turns of each clone, taken one after the other."""
  found: dict[str, list] = {name: [] for name in clones}
  for turn in range(turns):
    for name, clone in clones.items():
      with tempfile.TemporaryDirectory() as place:
        found[name].append(once(clone, pathlib.Path(place), flags))
      print(f'turn {turn + 1}, {name}: {found[name][-1]}', file=sys.stderr)
  return found


def main() -> None:
  first = (__doc__ or '').partition('\n')[0]
  parser = argparse.ArgumentParser(description=first)
  parser.add_argument('--turns', type=int, default=1)
  parser.add_argument('--config', default=CONFIG)
  parser.add_argument('--more', default='', help="more of launch.py's flags")
  parser.add_argument('--beside', type=records.clone, help='another clone')
  parser.add_argument('--out', default='', help='where the record is written')
  given = parser.parse_args()
  if given.turns < 1:
    parser.error(f'--turns must be at least 1; got {given.turns}.')
  clones = {'here': pathlib.Path(__file__).parents[2]}
  if given.beside:
    clones['beside'] = given.beside
  record = records.begin() | records.machine() | dict(
      config=given.config, more=given.more,
      commits=records.commits(clones),
      turns=measured(
          clones, given.turns,
          [f'--config={given.config}', *shlex.split(given.more)],
      ),
  )
  records.write(record, given.out)


if __name__ == '__main__':
  main()
