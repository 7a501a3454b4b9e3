"""The report's last tables: the configuration, and time and memory."""
from collections.abc import Mapping, Sequence

from vfljax.report.tables import Table, Text
from vfljax.runner.cli import bars
from vfljax.runner.config.nested import flat


def configuration(config: Mapping) -> Table:
  """The configuration, one field a row."""
  return Table(
      'Configuration', 'All fields of config.json.', ('field', 'value'),
      [[Text(key), Text(_short(value))] for key, value in flat(config).items()],
  )


def timings(units: Sequence[Mapping]) -> Table:
  """For each unit: seconds of compiling and of running, speed and memory."""
  labels = {
      'unit': 'unit', 'compile_seconds': 'compile s', 'run_seconds': 'run s',
      'rounds_per_second': 'rounds/s', 'seeds': 'seeds', 'device': 'device',
      'peak_memory_bytes': 'peak memory',
  }
  keys = list(dict.fromkeys(
      [k for k in labels if any(k in u for u in units)]
      + [k for u in units for k in u if not isinstance(u[k], Mapping)]
  ))
  rows = [[Text(_timing(k, u.get(k))) for k in keys] for u in units]
  return Table(
      'Timings', timing_sentence(units),
      tuple(labels.get(k, k.replace('_', ' ')) for k in keys), rows,
  )


def timing_sentence(units: Sequence[Mapping]) -> str:
  """The sum of all timings in one sentence."""
  total = lambda key: sum(u.get(key) or 0.0 for u in units)
  peak = max([u.get('peak_memory_bytes') or 0 for u in units], default=0)
  devices = dict.fromkeys(str(u['device']) for u in units if u.get('device'))
  words = [
      f"compiling {bars.duration(total('compile_seconds'))}",
      f"running {bars.duration(total('run_seconds'))}",
      ', '.join(devices),
      f'peak memory {peak / 2**20:,.0f} MiB' if peak else '',
  ]
  return 'In total: ' + '; '.join(word for word in words if word) + '.'


def _short(x: object) -> str:
  """A value as a table shows it."""
  if isinstance(x, (list, tuple)):
    return ', '.join(_short(v) for v in x) or 'empty'
  if isinstance(x, Mapping):
    shown = [f'{k}={_short(v)}' for k, v in x.items() if v not in ('', [], {})]
    return '(' + ', '.join(shown) + ')'
  return 'empty' if x == '' else f'{x}'


def _timing(key: str, x: object) -> str:
  if x is None:
    return '–'
  if key == 'peak_memory_bytes' and isinstance(x, (int, float)):
    return f'{x / 2**20:,.0f} MiB'
  return f'{x:,.1f}' if isinstance(x, float) else f'{x}'
