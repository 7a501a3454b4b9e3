"""Runs an experiment of vfljax and reports on it.

  python launch.py --config=experiments/quickstart.py
  python launch.py --config=experiments/quickstart.py \\
      --config.data.name=csv --config.data.path=my.csv \\
      --config.data.label=target --config.seeds=5 --workdir=out/mine
  python launch.py --list [experiments|data|models|defenses|attacks]

The same command continues a run that was stopped.
"""
import sys

from experiments import arguments
from experiments.errors import UserError


def main(argv: list[str]) -> int:
  """Returns the exit code: 0, 2 for what the user can mend, 130 if stopped."""
  try:
    given = arguments.parse(argv)
    if given.help:
      print(__doc__, given.help, sep='\n')
      return 0
    if given.list:
      from experiments import listing
      print(listing.text(given.list))
      return 0
    return _run(given)
  except UserError as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  except KeyboardInterrupt:
    print('Stopped at once. The same command goes on.', file=sys.stderr)
    return 130


def _run(given: arguments.Arguments) -> int:
  # JAX starts with the first array, and must have its devices by then.
  from experiments import device
  device.set_up(given.devices, given.cache)
  from experiments import report, run
  kept = given.cache and f'{given.cache}/data'
  table = arguments.load_data(given.config.data, kept)
  try:
    work = run.run(given.config, table, given.workdir)
  except run.Interrupted:
    again = f'Stopped. The same command continues {given.workdir}.'
    print(again, file=sys.stderr)
    return 130
  report.write(work.path)
  print((work.path / 'summary.md').read_text())
  print(f'Report: {work.path / "report.html"}')
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv))
