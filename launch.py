"""The command line in a clone: `python launch.py --help`."""
import sys

from vfljax.runner.main import main

if __name__ == '__main__':
  sys.exit(main())
