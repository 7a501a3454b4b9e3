"""`vfljax grid CONFIG ... --over data.name=wine,digits`: many experiments.

  vfljax grid experiments/quickstart.py --over data.name=wine,digits \\
      --over model.algorithm=vhnn,vsnn --over data.parties=2,4 \\
      --config.seeds=5 --workdir=out/grid
  vfljax grid a.py b.py:variant --engine=ray --workdir=/shared/grid

Runs every config with every combination of the values, each in a folder of its
own below --workdir, with its own report; grid.html there compares all. All are
checked before the first one runs; with --skip, combinations that cannot be run
are left out. The same command continues what was stopped or failed, and runs
nothing twice; values may be added. Any field of a config can be set for all:
--config.seeds=5.
"""
import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
import sys
import traceback

import jax

from vfljax.commands import (
    axes, compare, given, local_engine, point, ray_engine,
)
from vfljax.commands.axes import Point
from vfljax.commands.tasks import Resources
from vfljax.data.table import counted
from vfljax.runner import run as running
from vfljax.runner.config import blaming
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk, stopping
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import identity

PAGE = 'grid.html'
ENGINES: dict[str, Callable[..., dict[str, str]]] = dict(
    local=local_engine.run, ray=ray_engine.run,
)


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Runs the experiments and writes a page over all.

  Raises:
    UserError: for wrong arguments and experiments that cannot be run; nothing
      is then written. Afterwards for experiments that could not be finished.
  """
  asked, flags = _parsed(argv)
  place = Path(asked.workdir).expanduser().absolute()
  if stop is not None:
    stop.place = str(place)
  if identity.said(place):
    raise UserError(
        f'{place} is the work directory of one experiment.\nChoose another '
        '--workdir for the grid.'
    )
  if asked.engine == 'ray':
    # The machine's accelerator is for the tasks.
    jax.config.update('jax_platforms', 'cpu')
  found, left = _fitting(
      axes.points(asked.config, asked.over, flags, str(place)), asked.skip
  )
  done = len(found) - len(left)
  count = counted(len(found), 'experiment')
  print(f'{count}, {done} of them done.', flush=True)
  try:
    resources = Resources(asked.cpus, asked.gpus)
    failed = ENGINES[asked.engine](left, resources, stop) if left else {}
  except (running.Interrupted, KeyboardInterrupt):
    print(stopping.last_words(str(place)), file=sys.stderr)
    return stopping.CODE
  _report([one for one in found if one.name not in failed], place)
  if failed:
    name, why = next(iter(failed.items()))
    raise UserError(
        f'Of {count}, {len(failed)} could not be finished, for one {name}: '
        f'{why.partition(chr(10))[0]}\nThe same command continues.'
    )
  return 0


def _fitting(
    points: Sequence[Point], skip: bool
) -> tuple[list[Point], list[Point]]:
  """(the experiments that can be run, those of them that are not done).

  Args:
    points: All experiments of the grid.
    skip: Whether others are left out, and named, rather than refused.

  Raises:
    UserError: for the first that cannot be run, unless others can and it may be
      left out.
  """
  found, left, wrong = [], [], {}
  for one in points:
    try:
      done = point.is_done(one.argv)
    except UserError as error:
      wrong[one.name] = str(error)
    except (Exception, SystemExit) as error:  # Of a config's own code.
      traceback.print_exc()
      wrong[one.name] = blaming.said(error)
    else:
      found.append(one)
      left += [] if done else [one]
    if wrong and not skip:
      break
  if wrong and not (skip and found):
    name, why = next(iter(wrong.items()))
    if len(points) > 1 and not skip:
      why += '\n--skip leaves out combinations that cannot be run.'
    raise UserError(f'{name}: {why}')
  for name, why in wrong.items():
    print(f'Left out: {name}: {why.partition(chr(10))[0]}')
  return found, left


def _report(finished: Sequence[Point], place: Path) -> None:
  """Writes a page over all finished experiments, and prints its first table."""
  if len(finished) < 2:  # A single one has its own report.
    for one in finished:
      print(f'\nReport: {Path(one.workdir, "report.html")}')
    return
  runs = compare.read(
      [Path(one.workdir) for one in finished], [one.label for one in finished]
  )
  disk.write_text(place / PAGE, compare.written(runs))
  best = compare.best(runs)
  print('\n' + compare.printed([best] if best.rows else [], runs))
  print(f'\nReport: {place / PAGE}')


def _parsed(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
  """(our arguments, flags for all experiments).

  Raises:
    UserError: for an argument that is neither.
  """
  parser = given.Parser(
      prog='vfljax grid', description=__doc__,
      formatter_class=given.AsWritten,
  )
  parser.add_argument('config', nargs='+', help='config files, with variants')
  parser.add_argument(
      '--over', action='append', default=[], metavar='FIELD=VALUE,VALUE',
      help='a field and its values; those in brackets or quotes are one value',
  )
  parser.add_argument(
      '--skip', action='store_true',
      help='leave out combinations that cannot be run, and say why',
  )
  parser.add_argument('--workdir', default='out/grid', help='out/grid if left')
  parser.add_argument(
      '--engine', default='local', choices=[*ENGINES],
      help='local: here, one after the other; ray: on a cluster of Ray, see '
      'SECURITY.md',
  )
  parser.add_argument(
      '--cpus', type=int, default=0,
      help='with ray: cores of a task; 0: those of the smallest machine',
  )
  parser.add_argument(
      '--gpus', type=int, default=0, help='with ray: GPUs of a task',
  )
  parser.add_argument('--devices', default='')
  parser.add_argument('--cache', default='')
  if flags := [a for a in argv if a.partition('=')[0] == '--config']:
    file = flags[0].partition('=')[2] or 'my.py'
    raise UserError(
        'vfljax grid takes its config files without --config, as there may be '
        f'several.\nType: vfljax grid {file} ...'
    )
  asked, rest = parser.with_config(argv)
  if asked.engine != 'ray' and (asked.cpus or asked.gpus):
    raise UserError('--cpus and --gpus are for --engine=ray.')
  if min(asked.cpus, asked.gpus) < 0:
    raise UserError('--cpus and --gpus must be 0 or more.')
  for flag in ('devices', 'cache'):
    if f'--{flag}' in {a.partition('=')[0] for a in argv}:
      rest.append(f'--{flag}={getattr(asked, flag)}')
  return asked, rest
