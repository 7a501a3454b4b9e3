"""Gives the threads of the TPU compiler more stack.

Their 64 KB are too little for some programs: libtpu 0.0.42.1 ends the process
("SIGSEGV STACK OVERFLOW") when it compiles the training of `coae` for a v5e.
With a megabyte it succeeds. Later versions (0.0.52) know the same flag.
"""
from collections.abc import MutableMapping

from vfljax.runner.machine import flags

ARGUMENTS = 'LIBTPU_INIT_ARGS'
_STACK = '--fibers_default_thread_stack_size'
_ROOM = 2**20


def set_up(environment: MutableMapping[str, str]) -> None:
  """Sets the stack size, unless `environment` sets it already."""
  flags.add(environment, ARGUMENTS, _STACK, str(_ROOM))
