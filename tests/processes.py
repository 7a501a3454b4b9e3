"""The command line as one of several processes of a small experiment."""
import os
from pathlib import Path
import subprocess
import sys

import jax

from tests.compiling import QUICK_FLAGS

ROOT = Path(__file__).parents[1]
# Four jobs of one program, two a process.
TINY = (
    '--config=experiments/quickstart.py', '--config.seeds=4',
    '--config.seeds_per_chunk=1', '--config.train.epochs=2',
    '--config.defenses=none', '--config.attacks=norm_scoring',
    '--config.model.algorithm=vlr', '--config.alone=False', '--devices=1',
)


def start(workdir, *more, fault='', patience=300):
  """The command line in a process of its own."""
  code = (
      'import sys, launch; from vfljax.runner import meeting; '
      f'meeting.PATIENCE = {patience}; meeting._LOOK = 0.05; '
      'sys.exit(launch.main())'
  )
  cache = f"--cache={jax.config.jax_compilation_cache_dir or ''}"
  quick = {'JAX_DISABLE_MOST_OPTIMIZATIONS': '1', 'XLA_FLAGS': QUICK_FLAGS}
  return subprocess.Popen(
      [sys.executable, '-c', code, *TINY, f'--workdir={workdir}', cache, *more],
      cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      env=quick | os.environ | {'VFLJAX_FAULT': fault},
  )


def names(place):
  return sorted(p.name for p in (place / 'parts').glob('*.json'))
