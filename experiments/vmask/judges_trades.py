"""What decides VMask's claims against its variants and other defenses."""
from collections.abc import Iterable, Mapping, Sequence

from experiments import evidence, readers
from experiments.claims import Verdict
from experiments.vmask import older, tables_runs
from experiments.vmask.deciding import (
    Found, apart, below, deviating, either, every, finite, remarks, within,
)
from experiments.vmask.judges import COLUMNS, SETTINGS
from experiments.vmask.older import Row, mean, signed
from vfljax.report.reading import Cell

HARDLY = 5.0  # Points that an attack loses where a defense hardly helps.
AS_ACCURATE = 0.5  # Points of main accuracy that a trade as good may lose.
Point = tuple[float, float]  # Main and attack accuracy.


def random_is_worse() -> Verdict:
  """Its attack is clearly higher, in most columns (in the authors' code it
  draws layers with replacement, fewer than VMask hides; here as many, as the
  paper says).
  """
  shown, found = [], {}
  for of, settings in SETTINGS.items():
    for c in COLUMNS:
      rows, name = older.column(c, of), f'{c} ({settings} settings)'
      gap = apart(rows.get('VMask-RS', {}), 'attack', rows.get('VMask', {}))
      found[name] = below([-x for x in gap])
      shown.append(f'{name} {signed(gap)}')
  votes = [*found.values()]
  worse, unknown = votes.count(True), votes.count(None)
  # Decided if what is unknown cannot turn it.
  held = (True if 2 * worse > len(votes)
          else False if 2 * (worse + unknown) <= len(votes) else None)
  return Verdict(held, f'{", ".join(shown)} points{remarks(found)}')


def hardly_help(defenses: Sequence[str]) -> Verdict:
  """The attack is clearly at most 5 points lower than undefended, in all
  columns (the paper names NG and FedPass; its own DG takes 8.2 from FM's).
  """
  shown, found = [], {}
  for defense in defenses:
    texts = []
    for c in COLUMNS:
      rows = older.column(c)
      drop = apart(rows.get('none', {}), 'attack', rows.get(defense, {}))
      found[f'{defense} {c}'] = within(drop, HARDLY)
      texts.append(f'{c} {signed(-x for x in drop)}')
    shown.append(f'{defense} {", ".join(texts)}')
  return Verdict(
      every(found.values()), f'{"; ".join(shown)} points{remarks(found)}'
  )


def best_trade(others: Iterable[str]) -> Verdict:
  """Every other's main is clearly more than half a point below VMask's, or its
  attack clearly above VMask's; as good is whose means are neither.
  """
  found, good, near = {}, [], []
  for c in COLUMNS:
    rows = older.column(c)
    for other in others:
      one, name = rows.get(other, {}), f'{c} {other}'
      found[name], means = beaten(rows.get('VMask', {}), one)
      text = f'{name} {" / ".join(f"{x:+.2f}" for x in means)}'
      if found[name] is False:
        good.append(text)
      elif found[name] is None:
        near.append(text)
  return Verdict(
      every(found.values()), f'as good: {", ".join(good) or "none"}; not told '
      f'from it, main / attack - VMask\'s: {", ".join(near) or "none"} (our '
      "settings, the paper's attacker)",
  )


def beaten(masked: Row, other: Row) -> tuple[Found, Point]:
  """Whether VMask's trade is better than another's, and both differences.

  By the trainings that neither diverged in: a defense that ends a training is
  no better one.

  Returns:
    `True` if main accuracy or attack is clearly worse, `False` if neither is
    worse, in the mean; `None` if one is, by less than trainings deviate.
  """
  main, attack = (apart(other, m, masked) for m in ('main', 'attack'))
  pairs = [
      (-x - AS_ACCURATE, y) for x, y in zip(main, attack)
      if len(finite((x, y))) == 2
  ]
  means = mean(main), mean(attack)
  whole = len(finite(masked.get('main', []))) == len(masked.get('main', []))
  if len(pairs) < 2 or not whole:
    return None, means
  worse = [deviating(values) for values in zip(*pairs)]
  if any(average > 0 and average >= std for average, std in worse):
    return True, means
  return (None if any(average > 0 for average, _ in worse) else False), means


def best_of_strengths(record: str = 'fig6') -> Verdict:
  """Of no other at any strength main is within half a point of one of VMask's
  points or above, its attack not above. With several trainings a point it is
  held if each other one is clearly worse than each of VMask's; with one it can
  only fail.
  """
  found = tables_runs.points(record)
  masked = [p for c, p in found.items() if c[0] == 'VMask']
  if not masked:
    return Verdict(None, 'VMask diverged at every strength')
  rows = older.of_cells(record)
  if len(rows['none', None]['main']) > 1:
    return _best_of_trainings(rows, found)
  good = _reaching(found, masked, 0.0)
  near = [x for x in _reaching(found, masked, AS_ACCURATE) if x not in good]
  return Verdict(
      False if good else None,
      'VMask ' + ', '.join(f'{m:.1f} / {a:.1f}' for m, a in masked)
      + f'; as good: {", ".join(good) or "none"}; by less than half a point '
      f'more not: {", ".join(near) or "none"} (one training a point, our '
      "settings, the paper's attacker)",
  )


def _best_of_trainings(
    rows: Mapping[Cell, Row], found: Mapping[Cell, Point]
) -> Verdict:
  """`best_of_strengths` by how trainings deviate.

  Others that diverged in all trainings are no rivals. Where VMask did, that is
  not decided.
  """
  masked = [c for c in rows if c[0] == 'VMask']
  votes, good, near = [], [], []
  for c, row in rows.items():
    if c[0] in ('none', 'VMask') or c not in found:  # All of it diverged.
      continue
    of = [beaten(rows[m], row)[0] for m in masked]
    votes += of
    text = f'{c[0]} {c[1]:g} {found[c][0]:.2f} / {found[c][1]:.2f}'
    if False in of:
      good.append(text)
    elif None in of:
      near.append(text)
  shown = ', '.join(
      '{:.1f} / {:.1f}'.format(*found[m]) if m in found else 'diverged'
      for m in masked
  )
  return Verdict(
      every(votes), f'VMask {shown}; as good: {", ".join(good) or "none"}; not '
      f'told from it: {", ".join(near) or "none"} (our settings, the '
      "paper's attacker)",
  )


def _reaching(
    found: Mapping[Cell, Point], masked: Sequence[Point], more: float
) -> list[str]:
  """Whose trade is as good as one of VMask's if it had so much more of both."""
  return [
      f'{c[0]} {c[1]:g} {main:.2f} / {attack:.2f}'
      for c, (main, attack) in found.items() if c[0] not in ('none', 'VMask')
      and any(main + more >= m - AS_ACCURATE and attack - more <= a
              for m, a in masked)
  ]


def most_by_completion() -> Verdict:
  """Without a defense the better of two attackers on gradients, who know as
  many labels, does not clearly infer more than completion.
  """
  read, completed = _gradients('none'), older.column('TM')['none']['attack']
  return Verdict(
      within([a - b for a, b in zip(read, completed, strict=True)]),
      f'in gradients {evidence.spread(read)} %, by completion '
      f'{evidence.spread(completed)}',
  )


def gradients_mitigated(names: Sequence[str]) -> Verdict:
  """Under one of these defenses, at the paper's settings, attackers on
  gradients infer clearly at most 15 %, where guessing is right in 10.
  """
  read = {name: _gradients(name) for name in names}
  return Verdict(
      either(*(within(x, readers.AT_GUESSING) for x in read.values())),
      ', '.join(f'{name} {evidence.spread(x)}' for name, x in read.items())
      + f' %; VMask {evidence.spread(_gradients("VMask"))}',
  )


def _gradients(name: str) -> list[float]:
  """What is read in gradients under a defense of the record, by training."""
  results = evidence.load(older.PAPER, 'gradients_tm').results
  cell = evidence.cell(results, name)
  return [*readers.by_seed(results, cell).values()]
