"""Defaults are promises: who names none must get the same numbers tomorrow.

golden/defaults.json has every default of a public function's parameter or of a
NamedTuple's field, the numbers that modules name, the strengths that a sweep
tries, and every field of a configuration with its range. Who changes one does
so on purpose, says so in CHANGELOG.md, and writes the file again:

  python -m tests.test_defaults
"""
import dataclasses
import importlib
import inspect
import json
from pathlib import Path
import pkgutil

from flax import linen as nn

import vfljax
from vfljax import defenses
from vfljax.runner import config

GOLDEN = Path(__file__).parent / 'golden' / 'defaults.json'
COMMAND = 'python -m tests.test_defaults'
# Programs of their own, with tests of theirs.
LEFT_OUT = ('commands', 'runner')


def said(value):
  """A default in words that do not depend on where it lies in memory."""
  if inspect.isroutine(value) or inspect.isclass(value):
    return value.__qualname__
  if isinstance(value, tuple) and hasattr(value, '_asdict'):
    fields = ', '.join(f'{k}={said(v)}' for k, v in value._asdict().items())
    return f'{type(value).__name__}({fields})'
  if isinstance(value, tuple):
    return f"({', '.join(map(said, value))})"
  text = repr(value)
  return type(value).__name__ if ' at 0x' in text else text


def modules():
  for found in pkgutil.walk_packages(vfljax.__path__, 'vfljax.'):
    if found.name.split('.')[1] not in LEFT_OUT:
      yield importlib.import_module(found.name)


def defaults():
  """{module.function.parameter: its default}, and what else is promised."""
  rows = {}
  for module in modules():
    for name, thing in vars(module).items():
      if name[0] == '_' or name == 'TYPE_CHECKING':
        continue
      if name.isupper() and isinstance(thing, int | float):
        rows[f'{module.__name__}.{name}'] = said(thing)
      if getattr(thing, '__module__', None) != module.__name__:
        continue
      if not callable(thing):
        continue
      if inspect.isclass(thing) and issubclass(thing, nn.Module):
        continue  # Flax's own fields are not ours to promise.
      try:
        parameters = inspect.signature(thing).parameters.values()
      except (TypeError, ValueError):
        continue
      for p in parameters:
        if p.default is not p.empty:
          rows[f'{module.__name__}.{name}.{p.name}'] = said(p.default)
  for name, method in defenses.REGISTRY.items():
    rows[f'strengths of {name}'] = said(method.strengths)
  return rows | fields()


def fields():
  """{a configuration's field: its default, and its range if it has one}."""
  rows = {}
  for name, kind in vars(config).items():
    if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
      for f in dataclasses.fields(kind):
        limits = f.metadata.get('range')
        rows[f'config.{name}.{f.name}'] = f'{_start(f)} {limits or ""}'.strip()
  return rows


def _start(f):
  """What a field has if nobody sets it."""
  if f.default is not dataclasses.MISSING:
    return said(f.default)
  make = f.default_factory
  return 'needed' if make is dataclasses.MISSING else f'{said(make)}()'


def test_defaults_are_what_they_were():
  golden, found = json.loads(GOLDEN.read_text()), defaults()
  changed = {
      name: (golden.get(name), found.get(name))
      for name in golden | found if golden.get(name) != found.get(name)
  }
  assert not changed, f'On purpose? Then CHANGELOG.md, and {COMMAND}'


def test_functions_fields_and_options_are_among_them():
  found = defaults()
  assert found['vfljax.mpc.fixed_point.encode.bits'] == '24'
  assert found['vfljax.defenses.vmask.vmask.noise'] == '0.01'
  assert found['vfljax.attacks.model_completion.Options.epochs'] == '50'
  assert found['strengths of max_norm'] == '()'
  assert found['vfljax.attacks.inversion_shadow.DRAWS'] == '8'
  assert found['vfljax.he.acml.WIDE'] == '256.0'
  assert found['vfljax.data.frame.csv.categories'] == '100'
  assert found['vfljax.report.advice.NEAR'] == '5.0'
  assert found['config.TrainConfig.batch_size'] == '64 1 or more'
  assert found['config.DataConfig.test'] == '0.3 above 0 to below 1'


if __name__ == '__main__':
  GOLDEN.write_text(json.dumps(defaults(), indent=1, sort_keys=True) + '\n')
