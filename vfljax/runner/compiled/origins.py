"""All that a program is traced from, and compiled by and for.

What was registered from outside of vfljax has code of which nothing is known
here, so with it there is no telling: see `are_known`.
"""
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import functools
import hashlib
from importlib import metadata
import json
import os
from pathlib import Path
import platform
import sys
import time
from typing import Any

import jax

import vfljax
from vfljax import algorithms, attacks, data, defenses, nets
from vfljax.runner.config import outside

_PACKAGES = 'jax', 'jaxlib', 'flax', 'optax', 'numpy', 'ml_dtypes'
_PLUGINS = 'jax-', 'nvidia-'  # What a GPU's programs are made with and by.
_SETTINGS = 'JAX_', 'XLA_', 'LIBTPU_'  # The environment's begin so.
_ELSEWHERE = '_dir'  # Ends the name of a setting that says where, not what.
_IMPORTED = time.time()  # Whatever changes later is not what runs here.


def are_known() -> bool:
  """Whether such devices were tried, and all code is what lies on the disk."""
  return _is_tried() and _is_ours() and bool(_code())


def digests(config: Mapping) -> tuple[str, str]:
  """Of the machine, and of that and all that an experiment is traced from.

  Args:
    config: As config.json has it, with the digest of the samples.
  """
  machine = _below()
  own = dict(config=config, files=list(_named(config)), code=_code())
  return _digest(machine), _digest(machine | own)


def _digest(about: Mapping) -> str:
  text = json.dumps(about, sort_keys=True, default=str)
  return hashlib.sha256(text.encode()).hexdigest()


def _below() -> dict[str, Any]:
  """All that compiles, and what for: packages, settings, the machine."""
  settings = {
      name: value for name, value in jax.config.values.items()
      if not name.endswith(_ELSEWHERE)
  }
  environment = {
      name: value for name, value in os.environ.items()
      if name.startswith(_SETTINGS) and not name.lower().endswith(_ELSEWHERE)
  }
  devices = jax.local_devices()
  return dict(
      packages={name: metadata.version(name) for name in _PACKAGES},
      python=sys.version, settings=settings, environment=environment,
      devices=[(str(each), each.device_kind) for each in devices],
      runtime=devices[0].client.platform_version, drivers=_drivers(),
      machine=_machine(),
  )


def _named(config: Mapping) -> Iterator[tuple]:
  """Files that a configuration names, or a folder's: their size and time.

  Of the samples there is a digest, but there may be more to read.
  """
  told = {k: v for k, v in config.items() if k != 'experiment'}
  for text in sorted(set(_texts(told)) - {''}):  # Which would be all here.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
      place = Path(text).expanduser()
      files = sorted(place.iterdir()) if place.is_dir() else [place]
      for file in files:
        about = file.stat()
        yield str(file), about.st_size, about.st_mtime_ns


def _texts(tree: Any) -> Iterator[str]:
  """All words in a tree of mappings and lists, and values of options."""
  if isinstance(tree, str):
    yield from (tree, *(part.partition('=')[2] for part in tree.split(';')))
  elif isinstance(tree, Mapping):
    yield from _texts(list(tree.values()))
  elif isinstance(tree, Sequence):
    for each in tree:
      yield from _texts(each)


@functools.cache
def _code() -> str:
  """A digest of vfljax's own files; '' if they may not be what is imported."""
  digest, root = hashlib.sha256(), Path(vfljax.__file__).parent
  for file in sorted(root.rglob('*.py')):
    if file.stat().st_mtime > _IMPORTED:
      return ''
    digest.update(str(file.relative_to(root)).encode() + b'\0')
    digest.update(file.read_bytes() + b'\0')
  return digest.hexdigest()


@functools.cache
def _machine() -> list[str]:
  """The processor: its kind, and what it can do, for which code is made."""
  found = [platform.machine(), platform.processor()]
  try:
    lines = Path('/proc/cpuinfo').read_text().splitlines()
  except OSError:
    return found
  told = 'model name', 'flags', 'Features'
  return found + [line for line in lines if line.startswith(told)][:len(told)]


def _is_tried() -> bool:
  """Whether such devices have played programs that were kept."""
  return all(
      device.platform == 'cpu' or device.device_kind.startswith('NVIDIA')
      for device in jax.local_devices()
  )


def _drivers() -> dict[str, str]:
  """What stands between JAX and a GPU, which is no package of its own to us."""
  if jax.local_devices()[0].platform == 'cpu':
    return {}
  found = metadata.distributions()
  return {
      name: each.version for each in found
      if (name := str(each.metadata['Name']).lower()).startswith(_PLUGINS)
  }


def _is_ours() -> bool:
  """Whether everything that is registered is vfljax's own."""
  registered = [
      *defenses.REGISTRY.values(), *attacks.REGISTRY.values(),
      *nets.REGISTRY.values(), *data.REGISTRY.values(),
      *algorithms.AGGREGATIONS.values(),
  ]
  return all(map(outside.is_ours, registered))
