"""`--list`: what there is, with its arguments, read from the registries."""
import ast
import inspect
from pathlib import Path

from vfljax.runner.errors import UserError
from vfljax import algorithms, attacks, data, defenses, nets
from vfljax.data import where

# Where experiments are looked for: in this folder, and in a clone of vfljax.
FOLDERS = (Path('experiments'), Path(__file__).parents[2] / 'experiments')


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
  title = 'Experiments (--config=...)'
  folder = next((f for f in FOLDERS if f.is_dir()), None)
  if folder is None:
    return f'{title}\n  none here: they are in a clone of vfljax.'
  rows = []
  for path in sorted(folder.rglob('*.py')):
    text = path.read_text()
    if '\ndef get_config' in text:
      doc = ast.get_docstring(ast.parse(text)) or ''
      name = str(path.relative_to(folder.parent))
      rows.append((name, doc.partition('\n')[0]))
  return _table(title, rows)


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
  for name, factory in nets.REGISTRY.items():
    own = ', '.join(f'{k}={v!r}' for k, v in factory.options.items())
    said = f'{_summary(factory.factory)} Options: {own}'
    rows.append((f'model.name={name}', said))
  rows.append(('model.aggregation', ', '.join(algorithms.AGGREGATIONS)))
  rows.append(('model.activation', ', '.join(nets.ACTIVATIONS)))
  return _table('Models (--config....)', rows)


def _defenses() -> str:
  rows = []
  for name, method in sorted(defenses.REGISTRY.items()):
    strengths = ', '.join(f'{s:g}' for s in method.strengths)
    signature = str(inspect.signature(method)).split(' ->')[0]
    rows.append((name + signature, _summary(method.factory), strengths))
  title = 'Defenses (--config.defenses=a,b), default strengths last'
  return _table(title, rows)


def _attacks() -> str:
  rows = [
      (name, 'two classes' if name in attacks.BINARY else 'any classes',
       _summary(inspect.getmodule(factory)))
      for name, factory in sorted(attacks.REGISTRY.items())
  ]
  return _table('Attacks (--config.attacks=a,b)', rows)
