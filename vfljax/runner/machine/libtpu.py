"""What the compiler for TPUs is told before it starts.

It computes in threads of its own with 64 KB of stack, and of some programs that
is too little: libtpu 0.0.42.1, told to compile the training of `coae` for a
v5e, ends the process ("SIGSEGV STACK OVERFLOW"). With a megabyte it compiles
it. Later versions (0.0.52) know the same flag.
"""
from collections.abc import MutableMapping

from vfljax.runner.machine import flags

ARGUMENTS = 'LIBTPU_INIT_ARGS'
_STACK = '--fibers_default_thread_stack_size'
_ROOM = 2**20


def set_up(environment: MutableMapping[str, str]) -> None:
  """Gives its threads room, unless `environment` says how much they have."""
  flags.add(environment, ARGUMENTS, _STACK, str(_ROOM))
