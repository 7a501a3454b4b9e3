"""Runs an experiment of vfljax.

  python launch.py --config=experiments/quickstart.py
  python launch.py --config=experiments/quickstart.py \\
      --config.data.name=csv --config.data.path=my.csv \\
      --config.data.label=target --config.seeds=5 --workdir=out/mine
  python launch.py --list

The same command continues a run that was stopped.
"""
import sys

from absl import flags
from ml_collections import config_flags

from experiments import arguments
from experiments.errors import UserError

_CONFIG = config_flags.DEFINE_config_file(
    'config', None, 'A file in experiments/ (or of your own).'
)
_WORKDIR = flags.DEFINE_string(
    'workdir', '', 'Where results go; by default out/<name of the config>.'
)
_LIST = flags.DEFINE_string(
    'list', None, 'Print what there is: experiments, data, models, defenses, '
    'attacks, or all.'
)
_DEVICES = flags.DEFINE_integer(
    'devices', 0, 'Devices to make of a CPU; 0 makes one of every core.', 0
)
_CACHE = flags.DEFINE_string(
    'cache', '~/.cache/vfljax', 'Where compiled programs are kept; "" nowhere.'
)


def main(argv: list[str]) -> int:
  """Returns the exit code: 0, 2 for what the user can mend, 130 if stopped."""
  try:
    rest = arguments.parse(flags.FLAGS, argv)
    if rest:
      raise UserError(f'Unexpected argument: {rest[0]}\nTry --help.')
    if _LIST.value is not None:
      from experiments import listing
      print(listing.text(_LIST.value))
      return 0
    if _CONFIG.value is None:
      raise UserError(
          'Nothing to run: give --config=experiments/quickstart.py, or --list.'
      )
    return _run()
  except UserError as error:
    print(f'error: {error}', file=sys.stderr)
    return 2


def _run() -> int:
  from experiments import device
  device.set_up(_DEVICES.value, _CACHE.value)
  from experiments import report, run
  from vfljax import data
  config = _CONFIG.value
  workdir = _WORKDIR.value or arguments.default_workdir(flags.FLAGS)
  try:
    table = data.load(**arguments.data_options(config.data))
  except (OSError, ValueError) as error:
    raise UserError(str(error)) from None
  try:
    work = run.run(config, table, workdir)
  except run.Interrupted:
    print(f'Stopped. The same command continues {workdir}.', file=sys.stderr)
    return 130
  report.write(work.path)
  print(arguments.closing(work.path))
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv))
