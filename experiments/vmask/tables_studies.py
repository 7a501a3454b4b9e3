"""The README's tables of what looks inside trainings, and of budgets."""
import numpy as np

from experiments import evidence
from experiments.evidence import Table
from experiments.vmask import fig8, older, table1
from experiments.vmask.older import Row, says

# Table V: main, vanilla's attack, scratch, VMask's attack, by parties.
PARTIES = {
    2: (99.02, 80.72, 41.35, 44.83), 4: (98.97, 36.71, 31.14, 31.79),
    6: (98.96, 32.59, 28.25, 28.30), 8: (98.77, 21.02, 21.63, 20.32),
    10: (98.74, 19.82, 20.52, 20.53),
}
AUXILIARY = ('sizes', 'classes', 'noise', 'outside')


def _sets(model: str, *records: tuple[str, str]) -> str:
  """Table I: a row for each set of hidden layers."""
  found = {shown: older.sets(name) for shown, name in records}
  which = sorted(
      next(iter(found.values())), key=lambda w: (w != 'none', len(w), w)
  )
  theirs = table1.PAPER[model]
  lines = [
      [w, *(evidence.spread(sets[w]) for sets in found.values()),
       f'{theirs[w]:.2f}' if w in theirs else ''] for w in which
  ]
  return evidence.markdown(
      ('layers hidden', *found, "paper's"), lines
  ) + older.source(*(name for _, name in records))


def parties() -> str:
  """Table V."""
  lines = []
  for what, found in older.rows('parties').items():
    vanilla, masked, count = found['vanilla'], found['VMask'], what.split()[0]
    main, *theirs = PARTIES[int(count)]
    lines.append([
        count, says(vanilla, 'main'), says(masked, 'main'),
        says(vanilla, 'attack 1'), says(vanilla, 'scratch 1'),
        says(masked, 'attack 1'), says(masked, 'mask_ratio', 0),
        f'{main}, ' + ' / '.join(f'{x:.2f}' for x in theirs),
    ])
  head = ('parties', 'main: vanilla', 'VMask', 'attack: vanilla', 'scratch',
          'VMask', 'mask ratio, %', "paper's main, vanilla / scratch / VMask")
  return evidence.markdown(head, lines) + older.source('parties')


def attackers() -> str:
  """Table VI's form: all passive parties attack."""
  lines = []
  for what, found in older.rows('attackers').items():
    vanilla, masked, count = found['vanilla'], found['VMask'], what.split()[0]
    lines += [
        [count, f'{k}', says(vanilla, f'attack {k}'),
         says(vanilla, f'scratch {k}'), says(masked, f'attack {k}'),
         says(masked, 'simulated_leakage', 0), says(masked, 'masked', 0)]
        for k in range(1, int(count))
    ]
  head = ('parties', 'attacker', 'vanilla', 'scratch', 'VMask',
          'imagined attack', 'hidden at the end, %')
  return evidence.markdown(head, lines) + older.source('attackers')


def auxiliary(suffix: str = '') -> list[tuple[str, Row]]:
  """VMask's row for every kind of auxiliary samples."""
  return [
      (what, found['VMask']) for name in AUXILIARY
      for what, found in older.rows(name + suffix).items()
  ]


def _auxiliary(suffix: str = '') -> str:
  lines = [
      [what, *(says(row, name, digits) for name, digits in (
          ('main', 1), ('shadow', 0), ('simulated_leakage', 0),
          ('mask_ratio', 0), ('attack 1', 1), ('recovered 1', 1),
      ))] for what, row in auxiliary(suffix)
  ]
  head = ('auxiliary samples', 'main', "shadow's accuracy", 'imagined attack',
          'mask ratio, %', 'attack', 'attack, transcript kept')
  table = evidence.markdown(head, lines)
  if not any(line[-1] for line in lines):  # Older than that attack.
    table = evidence.markdown(head[:-1], [line[:-1] for line in lines])
  return table + older.source(*(name + suffix for name in AUXILIARY))


def budgets(name: str) -> str:
  """Figure 8, both defenders."""
  found = older.budgets(name)
  lines = [
      [f'{budget}', *(
          says(found[f'{who} {budget}'], what, digits)
          for who in ('VMask 50x5', '20 epochs') for what, digits in (
              ('attack', 1), ('simulated_leakage', 0), ('mask_ratio', 0)
          )
      )] for budget in fig8.BUDGETS
  ]
  none = found['none None']
  lines.append(['vanilla', says(none, 'attack'), *[''] * 5])
  lines.append(['scratch', says(none, 'scratch'), *[''] * 5])
  head = ('budget', 'attack, imagined as it is', 'imagined', 'mask ratio, %',
          'attack, imagined for 20 epochs', 'imagined', 'mask ratio, %')
  return evidence.markdown(head, lines) + older.source(name)


def by_epoch() -> str:
  """Figure 5's curves of VMask, means."""
  curves = older.record('fig5_tm')['curves']
  lines = []
  for shown, who, what in (
      ('vanilla', 'none', 'attack'), ('scratch', 'none', 'scratch'),
      ('VMask', 'VMask', 'attack'),
      ('VMask, transcript kept', 'VMask', 'recovered'),
  ):
    attack = 100 * np.asarray(curves[who][what]).mean(-1)
    lines.append([shown, *(evidence.mean(x) for x in attack.T)])
  hidden = np.asarray(curves['VMask']['masked']).sum(-1).astype(int)
  lines.append([
      'layers hidden, by training', *(', '.join(map(str, x)) for x in hidden.T)
  ])
  epochs = map(str, range(1, hidden.shape[1] + 1))
  return evidence.markdown(('after epoch', *epochs), lines) + older.source(
      'fig5_tm'
  )


TABLES: dict[str, Table] = dict(
    table1_mlp3=lambda: _sets(
        'mlp3', ('attack', 'table1_mlp3'),
        ("attack, authors' settings", 'table1_mlp3_authors'),
    ),
    table1_lenet5=lambda: _sets(
        'lenet5', ('attack', 'table1_lenet5'),
        ("attack, authors' settings", 'table1_lenet5_authors'),
    ),
    parties=parties, attackers=attackers, auxiliary=_auxiliary,
    auxiliary_lenet5=lambda: _auxiliary('_lenet5'),
    budgets=lambda: budgets('fig8'),
    budgets_authors=lambda: budgets('fig8_authors'), by_epoch=by_epoch,
)
