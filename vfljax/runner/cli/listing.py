"""`--list`: all that can be named, with its arguments, from the registries."""
import ast
import importlib
import inspect
from pathlib import Path
import sys
import textwrap

from vfljax import algorithms, attacks, data, defenses, nets
from vfljax.attack import recipe_of
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import auditing
from vfljax.scene import two_classes

# Where experiments are looked for: in this folder, and in a clone of vfljax.
FOLDERS = (Path('experiments'), Path(__file__).parents[3] / 'experiments')


def text(what: str) -> str:
  """The list of one kind of thing, or of everything but the audit ('all').

  Raises:
    UserError: for an unknown kind.
  """
  kinds = dict(
      experiments=_experiments, data=_data, models=_models,
      defenses=_defenses, attacks=_attacks,
  )
  if what == 'all':
    return '\n\n'.join(make() for make in kinds.values())
  kinds |= dict(audit=_audit)  # Not in 'all', as it takes some seconds.
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
  found = []
  for path in sorted(folder.rglob('*.py')):
    text = path.read_text('utf-8')
    if '\ndef get_config' in text:
      tree, name = ast.parse(text), str(path.relative_to(folder.parent))
      summary = (ast.get_docstring(tree) or '').partition('\n')[0]
      more = _variants(path, folder) if 'VARIANTS' in _assigned(tree) else []
      found.append((name, summary, more))
  width = max((len(name) for name, _, _ in found), default=0)
  lines = [title]
  for name, summary, more in found:
    lines.append(f'  {name.ljust(width)}  {summary}'.rstrip())
    lines += [f'    {name}:{variant}' for variant in more]
  return '\n'.join(lines)


def _assigned(tree: ast.Module) -> set[str]:
  """The names that a module's own lines give a value."""
  return {
      node.id for statement in tree.body
      if isinstance(statement, ast.Assign | ast.AnnAssign)
      for node in ast.walk(statement)
      if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
  }


def _variants(path: Path, folder: Path) -> list[str]:
  """The names in a config's VARIANTS, for which the config is imported."""
  module = '.'.join(path.relative_to(folder.parent).with_suffix('').parts)
  root = str(folder.parent.absolute())
  sys.path.insert(0, root)  # It imports its neighbours.
  try:
    return list(importlib.import_module(module).VARIANTS)
  except Exception as error:  # Whatever a person's config file may raise.
    why = str(error).partition('\n')[0]
    return [f'VARIANT  (not to be read: {type(error).__name__}: {why})']
  finally:
    sys.path.remove(root)


def _data() -> str:
  rows = [(
      'name', 'task', 'parties', 'size', 'licence', 'present', 'how to get it',
  )]
  rows += [
      (name, source.task, source.parties, source.size, source.licence,
       source.present() or '-', source.how)
      for name, source in sorted(data.REGISTRY.items())
  ]
  title = "Options of data sets (--config.data.options='name=value;...')"
  own = [
      (name, ', '.join(f'{k}={_short(v)}' for k, v in found.items()))
      for name in data.REGISTRY
      if (found := {
          k: v for k, v in data.options_of(name).items()
          if k not in ('label', 'missing')  # Fields of a config.
      })
  ]
  listed = _table('Data sets (--config.data.name=...)', rows)
  return f'{listed}\n\n{_table(title, own)}'


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
  """Each with its summary below, as columns would be wider than a screen."""
  lines = [
      "Defenses (--config.defenses='marvell(3,6),iso'), default strengths last"
  ]
  for name, method in sorted(defenses.REGISTRY.items()):
    strengths = ','.join(f'{s:g}' for s in method.strengths)  # As typed.
    signature = str(inspect.signature(method)).split(' ->')[0]
    said = _summary(method.factory) + (strengths and f'  {strengths}')
    lines += _folded(name + signature, 2) + _folded(said, 6)
  return '\n'.join(lines)


def _folded(text: str, indent: int) -> list[str]:
  """Text in lines of 80 columns, continuations indented by four more."""
  return textwrap.wrap(
      text, 80, initial_indent=' ' * indent,
      subsequent_indent=' ' * (indent + 4), break_long_words=False,
      break_on_hyphens=False,
  )


def _attacks() -> str:
  rows, groups = [], {}
  for name, factory in sorted(attacks.REGISTRY.items()):
    made = recipe_of(factory)
    classes = 'two' if two_classes in made.needs else 'any'
    rows.append((name, made.stage, classes, made.summary))
    if made.options._fields:
      groups.setdefault(made.group, (made.options(), []))[1].append(name)
  head = ('name', 'strikes', 'classes', '')
  listed = _table('Attacks (--config.attacks=a,b)', [head, *rows])
  title = 'Options of attacks (--config.attack.<name>.<option>=...)'
  own = [
      (f'{group}.{option}={_short(value)}',
       '' if i else 'of ' + ', '.join(names))
      for group, (options, names) in groups.items()
      for i, (option, value) in enumerate(options._asdict().items())
  ]
  return f'{listed}\n\n{_table(title, own)}'


def _audit() -> str:
  return '\n\n'.join(_table(*about) for about in auditing.tables())


def _short(value) -> str:
  """A value as a user would type it."""
  return str(value).replace(' ', '')
