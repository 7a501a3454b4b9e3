"""`python -m vfljax`, where the command `vfljax` is not on the path."""
import sys

from vfljax.runner.main import main

if __name__ == '__main__':
  sys.exit(main())
