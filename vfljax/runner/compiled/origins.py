"""Digests of everything that a compiled program depends on.

That is what it is traced from, the software that compiles it, and the machine.
Code that is registered from outside vfljax is not known here; `are_known` is
then False.
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
from vfljax.nets import base
from vfljax.runner.config import outside

_PACKAGES = 'jax', 'jaxlib', 'flax', 'optax', 'numpy', 'ml_dtypes'
_PLUGINS = 'jax-', 'nvidia-'  # Prefixes of packages that GPU programs need.
_SETTINGS = 'JAX_', 'XLA_', 'LIBTPU_'  # Prefixes of environment variables.
_ELSEWHERE = '_dir'  # Suffix of settings that are paths; they do not count.
_IMPORTED = time.time()  # Files that change later are not the running code.


def are_known() -> bool:
  """Whether the devices are tested ones, and the code is vfljax's on disk."""
  return _is_tried() and _is_ours() and bool(_code())


def digests(config: Mapping) -> tuple[str, str]:
  """(digest of the machine, digest of machine, experiment and code).

  Args:
    config: The contents of config.json, with the digest of the samples.
  """
  machine = _below()
  own = dict(config=config, files=list(_named(config)), code=_code())
  return _digest(machine), _digest(machine | own)


def _digest(about: Mapping) -> str:
  text = json.dumps(about, sort_keys=True, default=str)
  return hashlib.sha256(text.encode()).hexdigest()


def _below() -> dict[str, Any]:
  """What compiles programs and for what: packages, settings, the machine."""
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
  """(path, size, time) of files that a configuration names.

  Of a named folder, of the files in it. The samples have a digest, but tracing
  may read other files, such as pretrained weights.
  """
  told = {k: v for k, v in config.items() if k != 'experiment'}
  for text in sorted(set(_texts(told)) - {''}):  # '' is the current folder.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
      place = Path(text).expanduser()
      files = sorted(place.iterdir()) if place.is_dir() else [place]
      for file in files:
        about = file.stat()
        yield str(file), about.st_size, about.st_mtime_ns


def _texts(tree: Any) -> Iterator[str]:
  """All strings in a tree, and the values in 'option=value;...' strings."""
  if isinstance(tree, str):
    yield from (tree, *(part.partition('=')[2] for part in tree.split(';')))
  elif isinstance(tree, Mapping):
    yield from _texts(list(tree.values()))
  elif isinstance(tree, Sequence):
    for each in tree:
      yield from _texts(each)


@functools.cache
def _code() -> str:
  """A digest of vfljax's files; '' if one changed after it was imported."""
  digest, root = hashlib.sha256(), Path(vfljax.__file__).parent
  for file in sorted(root.rglob('*.py')):
    if file.stat().st_mtime > _IMPORTED:
      return ''
    digest.update(str(file.relative_to(root)).encode() + b'\0')
    digest.update(file.read_bytes() + b'\0')
  return digest.hexdigest()


@functools.cache
def _machine() -> list[str]:
  """The processor's model and features, for which code is compiled."""
  found = [platform.machine(), platform.processor()]
  try:
    lines = Path('/proc/cpuinfo').read_text('utf-8', 'replace').splitlines()
  except OSError:
    return found
  told = 'model name', 'flags', 'Features'
  return found + [line for line in lines if line.startswith(told)][:len(told)]


def _is_tried() -> bool:
  """Whether kept programs were tested on such devices."""
  return all(
      device.platform == 'cpu' or device.device_kind.startswith('NVIDIA')
      for device in jax.local_devices()
  )


def _drivers() -> dict[str, str]:
  """Versions of the packages that connect JAX with a GPU; {} on a CPU."""
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
  ours = nets.ACTIVATIONS == base.OUR_ACTIVATIONS  # Most are JAX's functions.
  return ours and all(map(outside.is_ours, registered))
