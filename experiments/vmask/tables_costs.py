"""The README's tables of seconds, and of attackers who keep a transcript."""
from experiments import evidence
from experiments.evidence import Table
from experiments.vmask import older, table3

SETS = ('one', 'two', 'all', 'all, last T4')


def seconds() -> str:
  """Table III."""
  found = {m: older.record(f'table3_{m}')['rows'] for m in table3.PAPER}
  lines = []
  for defense in found['mlp3']:
    line = ['vanilla' if defense == 'none' else defense]
    for model, rows in found.items():
      one = rows[defense]
      line += [
          f"{one['epoch']:.2f}", f"{one['epoch'] / rows['none']['epoch']:.2f}",
          f'{theirs(model, defense):.3g}',
          f"{one['after_epoch']:.2f}" if one['after_epoch'] >= 0.005 else '',
      ]
    lines.append(line)
  head = ['']
  for shown in ('MLP3, TM', 'LeNet5, FM'):
    head += [f'{shown}: s', 'ratio', "paper's", 'after the epoch, s']
  return evidence.markdown(head, lines) + older.source(
      'table3_mlp3', 'table3_lenet5'
  )


def theirs(model: str, defense: str) -> float:
  """Table III's seconds an epoch, over vanilla's."""
  return table3.PAPER[model][defense] / table3.PAPER[model]['none']


def shares() -> str:
  """Training in shares against plain training of the same network."""
  lines = []
  for model, shown in (('mlp3', 'MLP3'), ('lenet5', 'LeNet5')):
    for run, also in (('default', ''), ('wide', ', wide')):
      found = older.bench('vmask')['runs'][run]['models'][model]
      rows = found['seconds_an_epoch']
      lines.append([
          shown + also, f"{rows['plain']['compute']:.3g}",
          *(f"{rows[s]['ratio']:.1f}" for s in SETS),
          ' / '.join(f"{rows[s]['lan']:.3g}" for s in SETS[:3]),
          ' / '.join(f"{rows[s]['ratio_with_lan']:.1f}" for s in SETS[:3]),
          ' / '.join(
              f'{theirs(model, v):.1f}' for v in ('VMask', 'VMask-ALLS')
          ),
      ])
  head = ('', 'plain, s/epoch', 'one layer', 'two', 'all', 'all, last T4',
          'LAN, one / two / all, s', 'with LAN, one / two / all',
          "paper's VMask / VMask-ALLS")
  return evidence.markdown(head, lines) + (
      '\n\nFrom [`bench/vmask.json`](../bench/vmask.json).'
  )


def _adaptive(*records: tuple[str, str]) -> str:
  """A row for each attacker, a column for each record and protocol."""
  found = {shown: older.adaptive(name) for shown, name in records}
  first = next(iter(found.values()))
  linear = [n.split()[1] for n in first['T3'] if n.startswith('linear')]
  names = [
      ('full', 'true weights'),
      ('redrawn', "redrawn (the paper's attacker, \"scratch\")"),
      ('tracking', 'tracking: adds up its own updates since the masking'),
      *((f'linear {n}', f'linear: solves for the weights, from batches: {n}')
        for n in (linear if len(found) == 1 else ())),
      ('most', 'linear, most batches'),
  ]
  if len(found) == 1:
    names.pop()
  lines = []
  for name, shown in names:
    line = [shown]
    for record in found.values():
      for mode in ('T3', 'T4'):
        line.append(_best(record[mode], name))
    lines.append(line)
  head = ["the attacker's bottom network"]
  for shown in found:
    head += [f'{shown}T3', f'{shown}last layer T4']
  return evidence.markdown(head, lines) + older.source(
      *(name for _, name in records)
  )


def _best(rows: dict, name: str) -> str:
  found = _named(rows, name)
  return evidence.spread(rows[found]['best']) if found else ''


def _named(rows: dict, name: str) -> str:
  """An attacker's row in T3 or T4; '' if it was not measured there."""
  if name == 'most':
    solving = [n for n in rows if n.startswith('linear')
               and 'redrawn' not in n]
    return solving[-1]
  return next((n for n in (name, f'{name}, old last') if n in rows), '')


def regained(record: str, mode: str, name: str) -> float:
  """Percent of what redrawing takes away that an attacker has."""
  rows = older.adaptive(record)[mode]
  best = lambda n: older.mean(rows[_named(rows, n)]['best'])
  return 100 * (best(name) - best('redrawn')) / (best('full') - best('redrawn'))


TABLES: dict[str, Table] = dict(
    table3=seconds, shares=shares,
    adaptive=lambda: _adaptive(('', 'adaptive')),
    adaptive_later=lambda: _adaptive(
        ('MLP3, ', 'adaptive_mlp3_later'), ('LeNet5, ', 'adaptive_lenet5')
    ),
)
