"""Begins and writes a benchmark's record: date, machine, commit, results."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
from typing import Any

import jax


def begin() -> dict[str, Any]:
  """The first entries of a record: date, machine and versions."""
  return dict(
      date=datetime.date.today().isoformat(), machine=platform.machine(),
      cores=os.cpu_count(), python=platform.python_version(),
      jax=jax.__version__, devices=str(jax.local_devices()),
  )


def machine() -> dict[str, Any]:
  """The processor, and the units that decide which scheme wins."""
  info = pathlib.Path('/proc/cpuinfo')
  text = info.read_text('utf-8') if info.exists() else ''
  lines = [x for x in text.splitlines() if x.startswith('model name')]
  flags = ('avx512f', 'avx512dq', 'avx512_vnni', 'avx_vnni', 'amx_int8')
  return {
      'cpu': lines[0].split(': ')[1] if lines else platform.processor(),
      'cores': os.cpu_count(),
      'units': [flag for flag in flags if f' {flag} ' in f'{text} '],
      'load': list(os.getloadavg()),
      'backend': jax.default_backend(),
      'flags': os.environ.get('XLA_FLAGS', ''),
  }


def versions() -> dict[str, str]:
  names = ['jax', 'jaxlib', 'numpy', 'torch', 'crypten']
  out = {'python': platform.python_version()}
  for name in names:
    try:
      out[name] = __import__(name).__version__
    except ImportError:
      out[name] = 'not installed'
  return out


def clone(place: str) -> pathlib.Path:
  """The type of an argument that names another clone of the project.

  Raises:
    ArgumentTypeError: if the folder is no clone.
  """
  found = pathlib.Path(place).resolve()
  if not (found / 'launch.py').is_file():
    raise argparse.ArgumentTypeError(
        f'{place} is no clone: it has no launch.py'
    )
  return found


def commits(clones: dict[str, pathlib.Path]) -> dict[str, str]:
  """The commit of each clone; 'unknown' for a folder that is none."""

  def commit(clone: pathlib.Path) -> str:
    asked = subprocess.run(
        ['git', 'rev-parse', '--short', 'HEAD'], cwd=clone,
        capture_output=True, text=True, check=False,
    )
    return asked.stdout.strip() or 'unknown'

  return {name: commit(clone) for name, clone in clones.items()}


def write(
    record: dict[str, Any], out: str | pathlib.Path | None, aloud: bool = True
) -> None:
  """Prints a record and writes it as JSON to `out`, if that is given."""
  text = json.dumps(record, indent=1)
  if aloud:
    print(text)
  if out:
    place = pathlib.Path(out)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + '\n', 'utf-8')
