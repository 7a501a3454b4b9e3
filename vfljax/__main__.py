"""`python -m vfljax`, where the command `vfljax` is not on the path."""
import sys

if __name__ == '__main__':
  from vfljax.runner.main import main  # An import alone needs no extra.
  sys.exit(main())
