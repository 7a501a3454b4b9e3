"""What the command line does before JAX starts: devices and a compile cache.

Only the command line does this: importing vfljax changes no global setting.
"""
import os
from pathlib import Path
import sys

import jax



def set_up(devices: int, cache: str) -> None:
  """Makes one device of every core of a CPU, and keeps compiled programs.

  Small matrices do not fill several cores: two trainings side by side finish
  before one training spread over two cores (BUILD.md, Benchmarks).
  Accelerators are not affected.

  Args:
    devices: How many devices to make; 0 makes one of every core.
    cache: Folder for compiled programs; '' keeps none.
  """
  cores = os.cpu_count() or 1
  if hasattr(os, 'sched_getaffinity'):  # Not on a Mac.
    cores = len(os.sched_getaffinity(0))
  wanted = devices or cores
  if getattr(jax.config, 'jax_num_cpu_devices', None) != wanted:
    jax.config.update('jax_num_cpu_devices', wanted)
  if not cache:
    return
  folder = Path(cache).expanduser()
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    print(f'Compiled programs are not kept: {error}', file=sys.stderr)
    return
  jax.config.update('jax_compilation_cache_dir', str(folder))
  jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.1)
