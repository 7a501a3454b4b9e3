"""Finds compiled programs of an earlier start without tracing them again.

JAX's own cache keeps executables, but finds them by the traced and lowered
program, and tracing takes most of a second start's time. Here a program is
found by everything that tracing reads: the configuration with the digest of its
samples, files that it names, vfljax's own code, the packages and their
settings, and the machine. If anything differs, or a file is damaged, it is
traced again. The numbers are the same either way, from the same executable.
Identical programs are kept once.

This is done on CPUs and NVIDIA GPUs; other devices are untested. Code that is
registered from outside vfljax is not in the digest, so a process with such code
neither keeps nor reads programs.
"""
from collections.abc import Iterator, Mapping
import contextlib
from contextvars import ContextVar
import functools
import hashlib
import os
from pathlib import Path
import re
import threading
from typing import Any, NamedTuple, TypeAlias

import jax
from jax.experimental import serialize_executable
import jax.numpy as jnp

from vfljax.runner.compiled import alike, origins
from vfljax.runner.machine import disk, tuning

Program: TypeAlias = jax.stages.Compiled

FOLDER = 'programs'  # Inside the compile cache's folder.
MOST = 2 << 30  # Bytes kept; the least recently used files are removed first.
_SIZE = hashlib.sha256().digest_size
_READ = '/jax/compilation_cache/cache_hits'
# Calls of functions that XLA did not compile: Python callbacks, or a library's.
_CALLS = re.compile(r'custom_call @([\w.]+)')
# Calls that work at a later start: SciPy's after a look-up, NVIDIA's always.
_THERE = 'lapack_', 'cusolver_'
_FOUND = threading.local()
_PLACE: ContextVar[Path | None] = ContextVar('programs', default=None)


class Kept(NamedTuple):
  """A store of an experiment's programs.

  Attributes:
    folder: The folder with the programs of all experiments.
    machine: A digest of the machine and of the software that compiles.
    experiment: A digest of that and of everything that tracing reads.
  """

  folder: Path
  machine: str
  experiment: str

  def read(self, label: str) -> Any | None:
    """What `write` kept for this experiment; `None` if nothing is there."""
    return self._read(f'{self.experiment} {label}')

  def write(self, label: str, content: Any) -> None:
    """Keeps content that can be pickled; errors, as of a full disk, pass."""
    self._write(f'{self.experiment} {label}', content)

  def compile(self, lowered: jax.stages.Lowered) -> tuple[Program, str]:
    """Compiles a program, or reads it, and keeps it.

    Three kinds of programs cannot be kept: those that JAX's cache supplied
    (XLA does not write all of a program that was read from a file), those that
    call back into this process's Python, and those that call functions which
    may be missing at a later start.

    Returns:
      (program for all devices of this process, its name for `load`); the name
      is '' if it is not kept.
    """
    calls = set(_CALLS.findall(lowered.as_text()))
    if not all(name.startswith(_THERE) for name in calls):
      return tuning.compiled(lowered), ''
    name = f'{self.machine} {alike.digest(lowered)}'
    with contextlib.suppress(Exception):
      return self.load(name), name
    before = _found()
    compiled = tuning.compiled(lowered)
    if _found() > before:
      with contextlib.suppress(Exception):  # Another thread may have kept it.
        return self.load(name), name
      return compiled, ''
    with contextlib.suppress(Exception):  # XLA may fail to serialize it.
      made = serialize_executable.serialize(compiled)
      if self._write(name, dict(program=made, lapack=bool(calls))):
        return compiled, name
    return compiled, ''

  def load(self, name: str) -> Program:
    """A program that was kept.

    Raises:
      Exception: of many kinds, if it is not there or does not fit this machine.
    """
    content = self._read(name)
    if content is None:
      raise KeyError(name)
    if content['lapack']:
      _find_lapack()
    return serialize_executable.deserialize_and_load(*content['program'])

  def _file(self, name: str) -> Path:
    return self.folder / hashlib.sha256(name.encode()).hexdigest()[:40]

  def _read(self, name: str) -> Any | None:
    import pickle  # As JAX does with the programs, in the same folder.
    file = self._file(name)
    try:
      content = file.read_bytes()
      if hashlib.sha256(content[_SIZE:]).digest() != content[:_SIZE]:
        return None
      found = pickle.loads(content[_SIZE:])
    except Exception:  # The file is gone, or another Python wrote it.
      return None
    with contextlib.suppress(OSError):  # The folder may be another user's.
      os.utime(file)
    return found

  def _write(self, name: str, content: Any) -> bool:
    import pickle
    try:
      pickled = pickle.dumps(content)
      self.folder.mkdir(parents=True, exist_ok=True)
      whole = hashlib.sha256(pickled).digest() + pickled
      disk.replace(self._file(name), whole)
      _prune(self.folder)
    except Exception:  # The run works without the kept program.
      return False
    return True


@contextlib.contextmanager
def within(cache: str) -> Iterator[None]:
  """Keeps programs of experiments in the block in the compile cache's folder.

  Args:
    cache: That folder; '' keeps no programs.
  """
  folder = Path(cache).expanduser() / FOLDER if cache else None
  token = _PLACE.set(folder)
  try:
    yield
  finally:
    _PLACE.reset(token)


def of(config: Mapping) -> Kept | None:
  """The store of an experiment's programs; `None` if none are kept.

  Args:
    config: The contents of config.json, with the digest of the samples.
  """
  folder = _PLACE.get()
  if folder is None or not origins.are_known():
    return None
  return Kept(folder, *origins.digests(config))


@functools.cache
def _find_lapack() -> None:
  """Makes JAX look up SciPy's LAPACK functions.

  JAX does so when it lowers a call of them. A program that was read from a file
  would call address 0 before that.
  """
  jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), jnp.float32))


def _found() -> int:
  """How many programs JAX's cache has supplied to this thread so far."""
  _listen()
  return getattr(_FOUND, 'count', 0)


@functools.cache
def _listen() -> None:
  """Registers the listener once, as JAX may be reading its list of them."""

  def count(event: str, **_: Any) -> None:
    if event == _READ:
      _FOUND.count = getattr(_FOUND, 'count', 0) + 1

  jax.monitoring.register_event_listener(count)


def _prune(folder: Path) -> None:
  """Removes the least recently used files until `MOST` bytes are left."""
  files = [(file.stat(), file) for file in folder.iterdir() if file.is_file()]
  whole = sum(about.st_size for about, _ in files)
  for about, file in sorted(files, key=lambda each: each[0].st_mtime):
    if whole <= MOST:
      return
    file.unlink(missing_ok=True)
    whole -= about.st_size
