"""`--list`: what there is, with its arguments, read from the registries."""
import importlib
import inspect
from pathlib import Path

from experiments.errors import UserError
from vfljax import algorithms, attacks, data, defenses, models, nets
from vfljax.data import where

HERE = Path(__file__).parent


def text(what: str) -> str:
  """The list of one kind of thing, or of everything ('all').

  Raises:
    UserError: for a kind that there is not.
  """
  kinds = dict(
      experiments=_experiments, data=_data, models=_models,
      defenses=_defenses, attacks=_attacks,
  )
  if what == 'all':
    return '\n\n'.join(make() for make in kinds.values())
  if what not in kinds:
    raise UserError(
        f'There is no list of {what!r}; there are: {", ".join(kinds)}, all.'
    )
  return kinds[what]()


def _table(title: str, rows: list[tuple[str, ...]]) -> str:
  widths = [max(map(len, column)) for column in zip(*rows)]
  lines = [
      '  ' + '  '.join(c.ljust(w) for c, w in zip(row, widths)).rstrip()
      for row in rows
  ]
  return '\n'.join([title, *lines])


def _summary(thing) -> str:
  return (inspect.getdoc(thing) or '').split('\n')[0]


def _experiments() -> str:
  rows = []
  for path in sorted(HERE.rglob('*.py')):
    if 'def get_config' in path.read_text():
      name = '.'.join(path.relative_to(HERE.parent).with_suffix('').parts)
      module = importlib.import_module(name)
      rows.append((str(path.relative_to(HERE.parent)), _summary(module)))
  return _table('Experiments (--config=...)', rows)


def _data() -> str:
  rows = [(
      'name', 'task', 'parties', 'size', 'licence', 'present', 'how to get it',
  )]
  rows += [
      (name, source.task, where.parties(name), source.size, source.licence,
       where.present(name) or '-', source.how)
      for name, source in sorted(data.REGISTRY.items())
  ]
  return _table('Data sets (--config.data.name=...)', rows)


def _models() -> str:
  rows = [
      (f'model.algorithm={name}', _summary(getattr(algorithms, name)))
      for name in ('vlr', 'vhnn', 'vsnn')
  ]
  for name, factory in models.REGISTRY.items():
    own = ', '.join(f'{k}={v!r}' for k, v in models.options_of(name).items())
    rows.append((f'model.name={name}', f'{_summary(factory)} Options: {own}'))
  rows.append(('model.aggregation', ', '.join(algorithms.AGGREGATIONS)))
  rows.append(('model.activation', ', '.join(nets.ACTIVATIONS)))
  return _table('Models (--config....)', rows)


def _defenses() -> str:
  rows = []
  for name, factory in sorted(defenses.REGISTRY.items()):
    strengths = ', '.join(f'{s:g}' for s in defenses.STRENGTHS[name])
    signature = str(inspect.signature(factory)).split(' ->')[0]
    rows.append((name + signature, _summary(factory), strengths))
  title = 'Defenses (--config.defenses=a,b), default strengths last'
  return _table(title, rows)


def _attacks() -> str:
  rows = [
      (name, 'two classes' if name in attacks.BINARY else 'any classes',
       _summary(inspect.getmodule(factory)))
      for name, factory in sorted(attacks.REGISTRY.items())
  ]
  return _table('Attacks (--config.attacks=a,b)', rows)
