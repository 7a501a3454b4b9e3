"""The command line in a clone: `python launch.py --help`."""
import os
import signal
import sys


def _stopped(number, frame):
  """Ends the process with a line: JAX takes seconds to import."""
  os.write(2, b'Stopped.\n')
  os._exit(130)


if __name__ == '__main__':
  signal.signal(signal.SIGINT, _stopped)
  signal.signal(signal.SIGTERM, _stopped)

from vfljax.runner.main import main  # noqa: E402

if __name__ == '__main__':
  sys.exit(main())
