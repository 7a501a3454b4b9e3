"""Whether two trees of this project give the same numbers, byte for byte.

  python -m experiments.bench.same BEFORE AFTER --data=FOLDER \\
      [--only=NAME,...] [--keep=FOLDER]

BEFORE and AFTER are clones. Each case of same_cases.py runs with both clones'
launch.py, on a CPU divided into two devices, and the two results.jsonl are
compared. The folder of --data has mnist.npz, fashion_mnist.npz and
spambase.data. --keep stores the results of a clone without uncommitted changes
under its commit, and reads them from there the next time; compiled programs are
kept there too. The last digits depend on the processor and on JAX, so keep
results on one machine only.

Most of the time is spent compiling. So the clones share compiled programs,
which JAX finds by their instructions: a program that is the same in both
compiles once. And LLVM optimizes only the programs of `quickstart`, which runs
as a user runs it.
"""
import argparse
from collections.abc import Sequence
import itertools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from experiments.bench.same_cases import CASES, RENAMED, Case

SECONDS = 1800  # A case that takes longer hangs.
# What lines of earlier versions did not say at their ends.
_SAMPLES = re.compile(
    r', "file": "(?:[^"\\]|\\.)*", "digest": "[^"]*"}$', re.MULTILINE
)


class Tree(NamedTuple):
  """A clone, and where its results and compiled programs are kept."""

  path: pathlib.Path
  older: bool
  data: pathlib.Path
  compiled: pathlib.Path
  kept: pathlib.Path | None


class Outcome(NamedTuple):
  """A case's results, or '' and why there are none; seconds, 0 if kept."""

  text: str
  error: str
  seconds: float


def arguments(case: Case, older: bool) -> list[str]:
  """What launch.py is called with; a field given again replaces the former."""
  flags = f'{case.flags} {case.before if older else case.after}'
  given = dict(flag.split('=', 1) for flag in shlex.split(flags))
  if older:
    given = {RENAMED.get(name, name): value for name, value in given.items()}
  config = case.old if older and case.old else case.config
  return [
      f'--config=experiments/{config}',
      *(f'--config.{name}={value}' for name, value in given.items()),
  ]


def run(case: Case, tree: Tree) -> Outcome:
  """Runs a case in a tree, or finds what the same call gave before."""
  wanted = arguments(case, tree.older)
  asked = '\n'.join(wanted) + '\n'
  if tree.kept:
    results = tree.kept / f'{case.name}.jsonl'
    call = results.with_suffix('.flags')
    if results.exists() and call.exists() and call.read_text('utf-8') == asked:
      return Outcome(results.read_bytes().decode(), '', 0)
  began = time.monotonic()
  with tempfile.TemporaryDirectory() as work:
    error = launch(wanted, tree, work, fast=bool(case.flags))
    file = pathlib.Path(work, 'out', 'results.jsonl')
    text = file.read_bytes().decode() if file.exists() and not error else ''
  text = _SAMPLES.sub('}', text)
  if tree.kept and text:
    tree.kept.mkdir(parents=True, exist_ok=True)
    results.write_bytes(text.encode())
    call.write_text(asked, 'utf-8')
  return Outcome(text, error, time.monotonic() - began)


def launch(wanted: list[str], tree: Tree, work: str, fast: bool) -> str:
  """Runs launch.py; '' or the last line of what went wrong."""
  command = [
      sys.executable, 'launch.py',
      *(flag.replace('{data}', str(tree.data)) for flag in wanted),
      # Its own cache would share loaded data sets, and hide a loader's change.
      '--devices=2', '--cache=', f'--workdir={work}/out',
  ]
  settings = dict(
      JAX_PLATFORMS='cpu', JAX_COMPILATION_CACHE_DIR=str(tree.compiled),
      JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS='0.1',
      XLA_FLAGS='--xla_backend_optimization_level=0' if fast else '',
  )
  try:
    done = subprocess.run(
        command, cwd=tree.path, env=os.environ | settings,
        capture_output=True, text=True, timeout=SECONDS,
    )
  except subprocess.TimeoutExpired:
    return f'not done after {SECONDS} seconds'
  lines = done.stderr.strip().splitlines() or ['no message']
  return f'exit code {done.returncode}: {lines[-1]}' if done.returncode else ''


def verdict(before: Outcome, after: Outcome) -> str:
  """'same', or what differs or failed first."""
  for name, one in (('BEFORE', before), ('AFTER', after)):
    if one.error:
      return f'FAILED in {name}: {one.error}'
    if not one.text:
      return f'FAILED in {name}: no results'
  if before.text == after.text:
    return f'same ({len(before.text.splitlines())} lines)'
  lines = itertools.zip_longest(
      before.text.splitlines(), after.text.splitlines(), fillvalue='(no line)'
  )
  for number, (old, new) in enumerate(lines, 1):
    if old != new:
      return f'DIFFERS in line {number}:\n  - {old}\n  + {new}'
  return 'DIFFERS in how lines end'


def git(path: pathlib.Path, *command: str) -> str:
  return subprocess.run(
      ['git', '-C', str(path), *command], check=True, capture_output=True,
      text=True,
  ).stdout.strip()


def opened(
    path: pathlib.Path, older: bool, data: pathlib.Path, keep: str, work: str
) -> Tree:
  """A tree whose results are kept if --keep is given and it is as committed."""
  path, kept = path.resolve(), None
  if keep and not git(path, 'status', '--porcelain'):
    kept = pathlib.Path(keep).resolve() / git(path, 'rev-parse', 'HEAD')
  compiled = pathlib.Path(keep or work).resolve() / 'compiled'
  return Tree(path, older, data.resolve(), compiled, kept)


def chosen(names: str) -> Sequence[Case]:
  """Raises SystemExit for a name that no case has."""
  wanted = [name for name in names.split(',') if name]
  known = [case.name for case in CASES]
  for name in wanted:
    if name not in known:
      raise SystemExit(f'No case {name!r}. There are: {", ".join(known)}.')
  return [case for case in CASES if not wanted or case.name in wanted]


def main() -> int:
  """Returns 1 if a case differs or fails."""
  parser = argparse.ArgumentParser(description='Compares two trees.')
  parser.add_argument('before', type=pathlib.Path)
  parser.add_argument('after', type=pathlib.Path)
  parser.add_argument('--data', type=pathlib.Path, required=True)
  parser.add_argument('--only', default='', help='names of cases; default: all')
  parser.add_argument('--keep', default='', help='folder of earlier results')
  args = parser.parse_args()
  bad = []
  with tempfile.TemporaryDirectory() as work:
    # What a clone has that has no runner/ yet is under other names there.
    older = not (args.before / 'vfljax' / 'runner').is_dir()
    before = opened(args.before, older, args.data, args.keep, work)
    after = opened(args.after, False, args.data, args.keep, work)
    for case in chosen(args.only):
      old, new = run(case, before), run(case, after)
      said = verdict(old, new)
      took = f'{old.seconds:5.0f} s {new.seconds:5.0f} s'
      print(f'{case.name:20} {took}  {said}', flush=True)
      bad += [] if said.startswith('same') else [case.name]
  print(f'Not the same: {", ".join(bad)}.' if bad else 'All are the same.')
  return 1 if bad else 0


if __name__ == '__main__':
  sys.exit(main())
