"""Programs of an earlier start, found without being traced again.

JAX keeps what XLA made of a program, but looks it up by what was traced and
lowered, which is most of what a second start would wait for. Here a program is
found by all that tracing reads: the configuration with the digest of its
samples, files that it names, vfljax's own code, the packages below, their
settings, and the machine. It is read only if it is what was written, and traced
if anything is different: the same numbers either way, from the same executable.
Programs that are the same to the letter are kept once.

On CPUs and NVIDIA's GPUs: elsewhere nobody has tried it. What was registered
from outside of vfljax has code that is not part of the digest, so such a
process keeps and takes nothing.
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

FOLDER = 'programs'  # In that of the compile cache.
MOST = 2 << 30  # Bytes; what was not used for longest goes first.
_SIZE = hashlib.sha256().digest_size
_READ = '/jax/compilation_cache/cache_hits'
# What a program calls that XLA has not made: this process's Python, or what a
# library has put into it.
_CALLS = re.compile(r'custom_call @([\w.]+)')
# At every later start: SciPy's once they are looked up, NVIDIA's anyway.
_THERE = 'lapack_', 'cusolver_'
_FOUND = threading.local()
_PLACE: ContextVar[Path | None] = ContextVar('programs', default=None)


class Kept(NamedTuple):
  """Where an experiment's programs are kept.

  Attributes:
    folder: For those of all experiments.
    machine: A digest of all that they are compiled for and by.
    experiment: That, and all that this experiment's are traced from.
  """

  folder: Path
  machine: str
  experiment: str

  def read(self, label: str) -> Any | None:
    """What was kept of the experiment; `None` if that is not there."""
    return self._read(f'{self.experiment} {label}')

  def write(self, label: str, content: Any) -> None:
    """Keeps what can be pickled; a disk that is full keeps nothing."""
    self._write(f'{self.experiment} {label}', content)

  def compile(self, lowered: jax.stages.Lowered) -> tuple[Program, str]:
    """A program, and the name by which `load` finds it; '' if it is not kept.

    It is one for all devices of this process.

    A program that JAX's cache knows is as good, but it cannot be kept: what was
    read from a file, XLA does not write whole again. Nor can one that calls
    this process's Python, or else what is not known to be there at a later
    start.
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
    with contextlib.suppress(Exception):  # There may be more that XLA cannot.
      made = serialize_executable.serialize(compiled)
      if self._write(name, dict(program=made, lapack=bool(calls))):
        return compiled, name
    return compiled, ''

  def load(self, name: str) -> Program:
    """A program that was kept.

    Raises:
      Exception: of many kinds, if it is not there or does not fit.
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
    except Exception:  # Of a file that is gone, or of another Python's pickle.
      return None
    with contextlib.suppress(OSError):  # Of a folder that is somebody else's.
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
    except Exception:  # Nothing depends on it.
      return False
    return True


@contextlib.contextmanager
def within(cache: str) -> Iterator[None]:
  """Programs of experiments in the block are kept beside the compile cache.

  Args:
    cache: Its folder; '' keeps none.
  """
  folder = Path(cache).expanduser() / FOLDER if cache else None
  token = _PLACE.set(folder)
  try:
    yield
  finally:
    _PLACE.reset(token)


def of(config: Mapping) -> Kept | None:
  """Where the programs of an experiment are kept; `None` if nowhere.

  Args:
    config: As config.json has it, with the digest of the samples.
  """
  folder = _PLACE.get()
  if folder is None or not origins.are_known():
    return None
  return Kept(folder, *origins.digests(config))


@functools.cache
def _find_lapack() -> None:
  """Has JAX look up SciPy's functions, as it does when it lowers such a call.

  A program that was read calls them by addresses that are 0 until then.
  """
  jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), jnp.float32))


def _found() -> int:
  """How many programs JAX's cache has found in this thread, since the first."""
  _listen()
  return getattr(_FOUND, 'count', 0)


@functools.cache
def _listen() -> None:
  """Once, for all: a list of listeners may not change under who reads it."""

  def count(event: str, **_: Any) -> None:
    if event == _READ:
      _FOUND.count = getattr(_FOUND, 'count', 0) + 1

  jax.monitoring.register_event_listener(count)


def _prune(folder: Path) -> None:
  """Removes what was not used for longest, until there is little enough."""
  files = [(file.stat(), file) for file in folder.iterdir() if file.is_file()]
  whole = sum(about.st_size for about, _ in files)
  for about, file in sorted(files, key=lambda each: each[0].st_mtime):
    if whole <= MOST:
      return
    file.unlink(missing_ok=True)
    whole -= about.st_size
