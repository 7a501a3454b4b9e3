"""A page for each defense and attack: docstring, registry entry, records."""
from collections.abc import Callable
import inspect
import re
import textwrap

from docs import measured
from experiments import evidence
from vfljax import attacks, defenses
from vfljax.attack import TRAINING, Recipe, recipe_of
from vfljax.leakage import DIVERTED, DROP, IMAGES
from vfljax.views import kinds

# A paragraph of a docstring that says what is not as published.
_DIFFERS = re.compile(
    r"(authors'|public)\s+(public\s+)?code|[Oo]ther\s+than\s+in|differs|Here:|"
    r"leaves?\s+open|not\s+say|VFLAIR|SecretFlow|^Ours?\b|\bours\b"
)
_NO_RECORD_OF_ITS_OWN = {
    'none': 'Every table of the other defenses has it as its first row.',
}


def pages() -> dict[str, str]:
  """{page below the site's root: its Markdown}."""
  made = {
      f'defenses/{name}.md': defense(name) for name in defenses.REGISTRY
  }
  made |= {f'attacks/{name}.md': attack(name) for name in attacks.REGISTRY}
  made['defenses/index.md'] = _index('defenses', ('classes', ''), {
      name: (_classes('defenses', name), _first(
          m.factory if name == 'none' else _module_of(m.factory)
      )) for name, m in defenses.REGISTRY.items()
  })
  made['attacks/index.md'] = _index(
      'attacks', ('attacker', 'wants', 'classes', ''),
      {name: _kind(name) for name in attacks.REGISTRY},
  )
  return made


def defense(name: str) -> str:
  """The page of a registered defense."""
  method = defenses.REGISTRY[name]
  module = _module_of(method.factory)
  idea, differs = parts(
      inspect.getdoc(method.factory if name == 'none' else module) or ''
  )
  first = next(iter(inspect.signature(method).parameters), '')
  tried = ', '.join(f'{s:g}' for s in method.strengths)
  typed = tried.replace(' ', '')
  said = [f'# {name}\n\n{idea}']
  facts = []
  if method.binary:
    facts.append('For two classes only.')
  if tried:
    facts.append(
        f'Its strength is `{first}`; a sweep tries {tried} by default. '
        f"On the command line: `--config.defenses='{name}({typed})'`."
    )
  else:
    facts.append(
        'It has no strength to choose. On the command line: '
        f'`--config.defenses={name}`.'
    )
  for paper, values in measured.strengths(name).items():
    facts.append(f'Records of {paper} have {", ".join(values)}.')
  said.append('## Strengths\n\n' + '\n'.join(f'- {f}' for f in facts))
  said.append(_arguments(method.factory))
  said.append(_formulas(module, method.factory))
  if differs:
    said.append(f'## Other than published\n\n{differs}')
  tables = measured.of_defense(name) if name != 'none' else ''
  said.append(
      '## What it costs, and what still leaks\n\n' + _READ + '\n\n' + (
          tables or _NO_RECORD_OF_ITS_OWN.get(name)
          or measured.unknown('defenses', name)
      )
  )
  return '\n\n'.join(filter(None, said)) + '\n'


_READ = (
    'A row is a defense at a strength. "Costs" are points of utility lost to '
    'the undefended federation, under each attack stands what it learns beyond '
    'guessing (of completion: beyond a local model, where one ran) in points; '
    'mean and deviation over seeds.'
)


def attack(name: str) -> str:
  """The page of a registered attack."""
  made = recipe_of(attacks.REGISTRY[name])
  module = _module_of(made.factory)
  own = None if made.is_baseline else inspect.getdoc(module)
  idea, differs = parts(own or inspect.getdoc(made.factory) or '')
  said = [f'# {name}\n\n{idea}', _facts(name, made), _sees(module)]
  said += [_options(made), _arguments(made.factory)]
  said.append(_formulas(module, made.factory, 'Functions'))
  if differs:
    said.append(f'## Other than published\n\n{differs}')
  said.append(
      '## What it learns\n\nBeyond guessing, of completion beyond a local '
      'model where one ran, in points; mean and deviation over seeds.\n\n' + (
          measured.of_attack(name) or measured.unknown('attacks', name)
      )
  )
  return '\n\n'.join(filter(None, said)) + '\n'


def parts(doc: str) -> tuple[str, str]:
  """A docstring as Markdown: what it is, and what is not as published."""
  idea, differs = [], []
  for i, paragraph in enumerate(doc.strip().split('\n\n')):
    if paragraph.lstrip().startswith(('Args:', 'Returns:', 'Raises:')):
      break
    into = differs if i and _DIFFERS.search(paragraph) else idea
    into.append(_markdown(paragraph))
  return '\n\n'.join(idea), '\n\n'.join(differs)


def _markdown(paragraph: str) -> str:
  """Indented lines of a docstring are formulas, or a numbered list."""
  if not all(line.startswith('  ') for line in paragraph.split('\n')):
    return paragraph
  plain = textwrap.dedent(paragraph)
  if re.match(r'\d\. ', plain):
    return plain
  return f'```text\n{plain}\n```'


def _facts(name: str, made: Recipe) -> str:
  lines = [f'Strikes: {made.stage}.']
  two = measured.binary('attacks', name)
  lines.append('For two classes only.' if two else 'For any number of classes.')
  if made.is_baseline:
    lines.append('A baseline: it uses nothing that the federation tells it.')
  else:
    lines.append(f'Its attacker: a {_attacker(made)} party.')
  lines.append(f'Leakage: {made.score.means}.')
  if made.apart:
    lines.append(f'Not in one federation with {", ".join(made.apart)}.')
  lines.append(f'On the command line: `--config.attacks={name}`.')
  return '\n'.join(f'- {line}' for line in lines)


def _kind(name: str) -> tuple[str, ...]:
  """An attack in a table of all: who attacks, for what, and what it is."""
  made = recipe_of(attacks.REGISTRY[name])
  who = 'none: a baseline' if made.is_baseline else _attacker(made)
  wants = _WANTS.get(made.score, 'labels')
  return who, wants, _classes('attacks', name), made.summary


_WANTS = {
    IMAGES: 'features', DIVERTED: 'a backdoor', DROP: 'worse predictions',
}


def _attacker(made: Recipe) -> str:
  """Of which party: what its view says, or that it deviates."""
  if made.stage == TRAINING or made.optimizer:
    return 'malicious passive'
  view, *_ = _views(_module_of(made.factory))
  kind = (inspect.getdoc(view) or '').split()[0].rstrip(',')
  return dict(T1='curious passive', T2='curious active')[kind]


def _classes(kind: str, name: str) -> str:
  return 'two' if measured.binary(kind, name) else 'any'


def _views(module) -> list[type]:
  return [
      value for value in vars(module).values()
      if inspect.isclass(value) and value.__module__ == kinds.__name__
  ]


def _sees(module) -> str:
  """The attacker's views: all that it has."""
  seen = _views(module)
  said = [f'::: vfljax.views.kinds.{v.__name__}\n    options:\n'
          '      heading_level: 3\n' for v in seen]
  return '## What the attacker sees\n\n' + '\n\n'.join(said) if said else ''


def _options(made: Recipe) -> str:
  options = made.options()
  if not options._fields:
    return ''
  comments = _comments(made.options)
  rows = [
      f'| `--config.attack.{made.group}.{k}` | `{v!r}` | '
      f'{comments.get(k, "")} |' for k, v in options._asdict().items()
  ]
  return '\n'.join(['## Options', '', '| flag | default | |', '|---|---|---|',
                    *rows])


def _comments(options) -> dict[str, str]:
  """What stands behind each field of a NamedTuple in its source."""
  found = re.findall(
      r'^  (\w+): [^#\n]*#\s*(.*)$', inspect.getsource(options), re.MULTILINE
  )
  return {name: text.replace('|', '\\|') for name, text in found}


def _arguments(factory: Callable) -> str:
  return f'## Arguments\n\n{_documented(factory, 3)}'


def _formulas(
    module, factory: Callable, title: str = 'Formulas'
) -> str:
  """The module's public functions of arrays, with their source."""
  found = [
      f for name, f in vars(module).items()
      if inspect.isfunction(f) and f.__module__ == module.__name__
      and not name.startswith('_') and f is not factory
      and not name.startswith('check') and inspect.getdoc(f)
  ]
  shown = '\n\n'.join(_documented(f, 3) for f in found)
  return f'## {title}\n\n{shown}' if found else ''


def _documented(thing: Callable, level: int) -> str:
  where = f'{thing.__module__}.{thing.__qualname__}'
  return f'::: {where}\n    options:\n      heading_level: {level}\n'


def _module_of(thing):
  module = inspect.getmodule(thing)
  assert module is not None
  return module


def _first(thing) -> str:
  return (inspect.getdoc(thing) or '').split('\n')[0]


def _index(
    kind: str, head: tuple[str, ...], methods: dict[str, tuple[str, ...]]
) -> str:
  table = evidence.markdown(('name', *head), [
      [f'[{name}]({name}.md)', *said] for name, said in sorted(methods.items())
  ])
  return f'# {kind.capitalize()}\n\n{_ABOUT[kind]}\n\n{table}\n'


_ABOUT = dict(
    defenses='Each is a factory in `vfljax.defenses.REGISTRY` and goes by its '
    'name on the command line. Several at once: `vfljax.defense.chain`.',
    attacks='Each is a factory in `vfljax.attacks.REGISTRY`: a view, which is '
    'all that the attacker sees, and a function of it. '
    '[A round](../round.md#who-attacks-with-what) says what each kind of '
    'attacker does and has.',
)
