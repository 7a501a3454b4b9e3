"""Counts what programs consist of on a TPU v5e and an H100, without running.

  python -m experiments.bench.accel --out=experiments/bench/accel.json \\
      [--machines=v5e,h100] [--groups=defense,ring,...] [--names=none,...] \\
      [--seeds=64] [--minutes=60] [--check]

Every defense, attack, network and ring scheme is compiled for both machines, if
their wheels are installed (`make accel` does that). For each program the record
has: kernels in a round (in all if there are no rounds), loops whose length the
host must read, calls of the host, bytes that kernels write (with a TPU's
padding), memory besides arguments and results, and on a TPU XLA's own count of
operations, which counts a loop's body once. A loop of unknown length counts as
one round. Programs in the record are not compiled again, so a run that was
stopped continues. --check compiles all of them again, and fails if a program
does not compile, calls the host, or has 20 % more kernels or bytes than the
record.
"""
import argparse
from collections.abc import Iterator
import itertools
import json
import os
import pathlib
import sys
import time
from typing import Any

os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import jax

from experiments.bench import accel_compile, accel_counts, accel_programs

RECORD = pathlib.Path(__file__).with_name('accel.json')
MORE = 1.2  # Times the record's kernels or bytes: a regression.
COMPARED = ('kernels', 'written')
# int64 products of matrices, which XLA has none of for TPUs: not chosen there.
REFUSED = {('v5e', 'ring', 'naive')}


def measured(machine: str, group: str, name: str, seeds: int) -> dict[str, Any]:
  """Compiles one program and counts; {'error'} if it does not compile."""
  began = time.monotonic()
  program = accel_programs.MAKERS[group](name, seeds)
  try:
    done = accel_compile.compiled(
        program.fn, program.arguments, machine, program.donate, program.wide
    )
  except jax.errors.JaxRuntimeError as error:
    return dict(error=str(error).splitlines()[0][:200])
  text = accel_counts.Program(done.as_text() or '')
  whole = text.whole()
  one = (text.round(program.rounds) if program.rounds else None) or whole
  memory: Any = done.memory_analysis()
  costs: Any = done.cost_analysis() or {}
  found = dict(
      kernels=one.kernels, kernels_in_all=whole.kernels, open_loops=whole.open,
      host_calls=whole.host, written=one.written,
      padding=round(one.padded / one.written, 2) if one.written else 1.0,
      temporary=memory.temp_size_in_bytes,
      arguments=memory.argument_size_in_bytes,
      flops=costs.get('flops'), seconds=round(time.monotonic() - began, 1),
  )
  return {k: v for k, v in found.items() if v is not None}


def wanted(args: argparse.Namespace) -> Iterator[tuple[str, str, str, int]]:
  """(machine, group, name, seeds) of programs, the most informative first."""
  asked = lambda text: [x for x in text.split(',') if x]
  machines = asked(args.machines) or accel_compile.MACHINES
  groups, names = asked(args.groups) or accel_programs.NAMES, asked(args.names)
  only = {int(n) for n in asked(args.seeds)}
  for place, machine in itertools.product(range(4), machines):
    for group in groups:
      for name in accel_programs.NAMES[group]:
        counts = accel_programs.seeds_of(group, name)
        if names and name not in names or len(counts) <= place:
          continue
        if not only or counts[place] in only:
          yield machine, group, name, counts[place]


def worse(now: dict[str, Any], before: dict[str, Any]) -> str:
  """What is wrong with a program, compared with its record; '' if nothing."""
  if 'error' in now:
    return '' if 'error' in before else now['error']
  if 'error' in before:
    return ''
  if now['host_calls']:
    return f'{now["host_calls"]} calls of the host'
  more = [
      f'{now[k]} {k} instead of {before[k]}' for k in COMPARED
      if k in before and now[k] > MORE * before[k]
  ]
  return ', '.join(more)


def opened(path: pathlib.Path) -> dict[str, Any]:
  """The record in a file, or a new one."""
  if path.exists():
    return json.loads(path.read_text('utf-8'))
  return dict(
      what='compiled, not run: counts of programs, no times of them',
      jax=jax.__version__, batch=accel_programs.BATCH,
      samples=accel_programs.SAMPLES, programs={},
  )


def keep(record: dict[str, Any], path: pathlib.Path) -> None:
  """Writes one line for each program, so that a diff shows what changed."""
  head = {k: v for k, v in record.items() if k != 'programs'}
  lines = [
      f'  {json.dumps(k)}: {json.dumps(v)}'
      for k, v in sorted(record['programs'].items())
  ]
  text = json.dumps(head, indent=1)[:-2] + ',\n "programs": {\n'
  path.write_text(text + ',\n'.join(lines) + '\n }\n}\n', 'utf-8')


def main() -> int:
  """Returns 1 if --check finds something."""
  parser = argparse.ArgumentParser(description='Compiles for accelerators.')
  parser.add_argument('--out', type=pathlib.Path, default=RECORD)
  for name in ('machines', 'groups', 'names', 'seeds'):
    parser.add_argument(f'--{name}', default='', help='all by default')
  parser.add_argument('--minutes', type=float, default=float('inf'))
  parser.add_argument('--check', action='store_true')
  args = parser.parse_args()
  names = {x for known in accel_programs.NAMES.values() for x in known}
  for what, known in (('machines', accel_compile.MACHINES),
                      ('groups', accel_programs.NAMES), ('names', names)):
    wrong = {x for x in getattr(args, what).split(',') if x} - {*known}
    if wrong:
      parser.error(
          f'--{what}={",".join(sorted(wrong))}: there are '
          + ', '.join(sorted(known))
      )
  record, bad = opened(args.out), []
  there = {m: accel_compile.there_is(m) for m in accel_compile.MACHINES}
  if args.check and not any(there.values()):
    print('No wheels for an accelerator are installed: see make accel.')
    return 1
  end = time.monotonic() + 60 * args.minutes
  for one in wanted(args):
    key = '/'.join(map(str, one))
    old = record['programs'].get(key)
    # To check is to compile again, what the record has and nothing else.
    if not there[one[0]] or one[:3] in REFUSED or args.check != bool(old):
      continue
    if time.monotonic() > end:
      print('Time is up: the same command goes on.')
      break
    now = measured(*one)
    why = worse(now, old or {})
    print(f'{key:36} {why or now}', flush=True)
    bad += [key] if why else []
    if not args.check:
      record['programs'][key] = now
      keep(record, args.out)
  print(f'Not as they should be: {", ".join(bad)}.' if bad else 'Done.')
  return int(bool(bad))


if __name__ == '__main__':
  sys.exit(main())
