"""How long the configurations of the papers compile, entry by entry.

  python -m experiments.bench.compiling --data=FOLDER --out=compiling.json
  python -m experiments.bench.compiling --data=FOLDER \\
      --only='mid/fig3.py gafm/table2' --beside=/path/to/another/clone

FOLDER has the files that `--config.data.path` names: mnist.npz, spambase.data,
... A configuration whose samples are missing is left out, and named. Each runs
in its own process without a cache and trains nothing: it compiles the programs
of one entry after the other, as a run does, and waits for them. An entry that
shares its programs with an earlier one takes no time. Programs that a run
compiles while it trains are waited for here. Seconds are wall-clock time and
processor time on all cores; a shared machine affects the latter less. Another
clone, such as an earlier version, takes turns with this one, `--turns` times:
on a busy machine one turn can differ from the next by a fifth. The record is
written after each configuration, and the same command continues if it was
stopped and the commits are the same.
"""
import argparse
import gc
import importlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import jax
import jax.monitoring

from experiments.bench import records
from vfljax.runner import variants
from vfljax.runner.checking import checks
from vfljax.runner.cli import arguments
from vfljax.runner.compiled.compiling import Compiler
from vfljax.runner.config import Config
from vfljax.runner.experiment.jobs import jobs
from vfljax.runner.machine import device
from vfljax.runner.machine.roomy import roomy

ROOT = pathlib.Path(__file__).parents[2]
PAPERS = 'kang2022', 'vmask', 'gafm', 'mid', 'plugvfl'
FILES = dict(
    mnist='mnist.npz', fashion_mnist='fashion_mnist.npz', cifar10='cifar10.npz',
    fashion_mnist_binary='fashion_mnist.npz', spambase='spambase.data',
    reviews='movie_reviews.tsv',
)
LIMIT = 8.0  # Seconds an entry, which none should be over.
LONGEST = 3600.0  # Seconds until an entry is given up.
_COMPILED = '/jax/core/compile/backend_compile_duration'


def names() -> list[str]:
  """All configurations of the papers, as --config takes them."""
  found = []
  for paper in PAPERS:
    for path in sorted((ROOT / 'experiments' / paper).glob('*.py')):
      if '\ndef get_config' in path.read_text('utf-8'):
        file = str(path.relative_to(ROOT))
        own = getattr(_module(file), 'VARIANTS', ())
        found += [f'{file}:{variant}' for variant in own] or [file]
  return found


def _module(file: str) -> Any:
  parts = pathlib.Path(file).with_suffix('').parts
  return importlib.import_module('.'.join(parts))


def config(name: str) -> Config:
  """The configuration of that name."""
  file, variant = variants.split(name)
  return _module(file).get_config(*[variant] if variant else [])


def measured(name: str, folder: pathlib.Path) -> dict[str, Any]:
  """Seconds of each of its entries, in this process."""
  slowest: list[tuple[float, str]] = []

  def heard(event: str, duration_secs: float, **about: Any) -> None:
    if event == _COMPILED:
      slowest.append((round(duration_secs, 1), str(about.get('fun_name', ''))))

  jax.monitoring.register_event_duration_secs_listener(heard)
  gc.set_threshold(50_000, 20, 20)  # As the command line does.
  asked = config(name)
  if asked.data.name in FILES:
    asked.data.path = str(folder / FILES[asked.data.name])
  device.set_up(0, '')
  setting = checks.assembled(asked, arguments.load_data(asked.data))
  everything, entries = jobs(setting), []
  with Compiler(everything, everything) as compiler:
    for job in everything:
      began, spent = time.perf_counter(), time.process_time()
      compiler.programs(job).ready(LONGEST)
      entries.append(dict(
          name=job.name, seconds=round(time.perf_counter() - began, 2),
          cpu=round(time.process_time() - spent, 2),
      ))
  return dict(entries=entries, programs=sorted(slowest, reverse=True)[:5])


def apart(
    name: str, folder: pathlib.Path, clone: pathlib.Path
) -> dict[str, Any]:
  """The same, measured by another clone's code; `error` if that failed."""
  own = clone / pathlib.Path(__file__).relative_to(ROOT)
  command = [sys.executable, str(own), f'--data={folder}', f'--one={name}']
  asked = subprocess.run(
      command, cwd=clone, capture_output=True, text=True, check=False,
      env=dict(os.environ, PYTHONPATH=str(clone)),
  )
  if asked.returncode:
    last = asked.stderr.strip().splitlines() or ['']
    return dict(error=last[-1])
  return json.loads(asked.stdout.splitlines()[-1])


def main() -> None:
  first = (__doc__ or '').partition('\n')[0]
  parser = argparse.ArgumentParser(description=first)
  parser.add_argument('--data', required=True, type=pathlib.Path)
  parser.add_argument(
      '--only', default='', help='names that contain one of these words'
  )
  parser.add_argument('--beside', type=records.clone, help='another clone')
  parser.add_argument('--turns', type=int, default=1, help='measurements each')
  parser.add_argument('--one', help=argparse.SUPPRESS)
  parser.add_argument('--out', default='', help='where the record is written')
  given = parser.parse_args()
  folder = given.data.resolve()
  if not folder.is_dir():
    parser.error(f'--data={given.data} is no folder.')
  if given.turns < 1:
    parser.error(f'--turns={given.turns}: how often, at least 1.')
  if given.one is not None:
    print(json.dumps(roomy(measured)(given.one, folder)))
    return
  chosen = [
      name for name in names()
      if any(word in name for word in given.only.split())
  ] if given.only else names()
  if not chosen:
    parser.error(f'--only={given.only} is in no name of: {", ".join(names())}.')
  clones = dict(here=ROOT)
  if given.beside:
    clones['beside'] = given.beside
  commits = records.commits(clones)
  found = _begun(given.out, commits)
  record = records.begin() | records.machine() | dict(
      limit=LIMIT, commits=commits, configs=found,
  )
  for name, turn in itertools.product(chosen, range(given.turns)):
    label = f'{name}, turn {turn + 1}' if turn else name
    if label not in found:
      found[label] = {}
      for which, clone in clones.items():
        found[label][which] = apart(name, folder, clone)
        print(which, label, _said(found[label][which]), flush=True)
      records.write(record, given.out, aloud=False)


def _begun(out: str, commits: dict[str, str]) -> dict[str, dict[str, Any]]:
  """What an earlier start of the command has measured at these commits."""
  if not out or not os.path.exists(out):
    return {}
  record = json.loads(pathlib.Path(out).read_text('utf-8'))
  return record['configs'] if record['commits'] == commits else {}


def _said(found: dict[str, Any]) -> str:
  if 'error' in found:
    return found['error']
  seconds = [entry['seconds'] for entry in found['entries']]
  slow = sum(s > LIMIT for s in seconds)
  return (
      f'{sum(seconds):.1f} s, {len(seconds)} entries, {slow} over {LIMIT:g} s: '
      f'{found["programs"][:3]}'
  )


if __name__ == '__main__':
  main()
