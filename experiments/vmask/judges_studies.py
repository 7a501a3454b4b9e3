"""What decides VMask's claims of more parties, and of epochs."""
from collections.abc import Sequence

import numpy as np

from experiments.claims import Verdict
from experiments.vmask import numbers, older
from experiments.vmask.deciding import (
    Found, apart, below, every, finite, remarks, trend, within,
)
from experiments.vmask.older import mean, signed

NEAR = 5.0  # Points that count as near scratch.
# Points of main accuracy that more parties lose at most, section V-G.
LOST = dict(parties=0.1, attackers=0.5)


def more_parties(record: str) -> Verdict:
  """Main clearly at most 0.1 points less (all attacking: 0.5), as the paper has
  it, every attack of every training at most 5 points above scratch; attackers
  who get no more than that undefended are left out.
  """
  shown, empty, found = [], [], {}
  for what, rows in older.rows(record).items():
    plain, masked = rows.get('vanilla', {}), rows.get('VMask', {})
    lost = apart(plain, 'main', masked)
    found[f'{what}, main'] = within(lost, LOST[record])
    for name in (n for n in plain if n.startswith('attack')):
      k = name.split()[1]
      who = what + (f', attacker {k}' if record == 'attackers' else '')
      scratch = f'scratch {k}'
      before = apart(plain, name, plain, scratch)
      if finite(before) and mean(before) <= NEAR:
        empty.append(f'{who} ({signed(before)})')
        continue
      gap = apart(masked, name, plain, scratch)
      found[who] = every(map(_near, gap))
      shown.append(f'{who} ' + ', '.join(f'{x:+.1f}' for x in gap))
  return Verdict(
      every(found.values()) if shown else None,
      f'{"; ".join(shown)} points from scratch, by training; left out, with '
      f'what undefended attacks are above it: {", ".join(empty) or "none"}'
      + _again(record) + remarks(found),
  )


def _near(gap: float) -> Found:
  return gap <= NEAR if finite([gap]) else None


def _again(record: str) -> str:
  """What else was measured with the two parties of Table V."""
  if record != 'parties':
    return ''
  gaps = {
      'table2': older.column('TM'), 'other attack runs': older.again()['TM']
  }
  texts = [
      f'{name} ' + signed(apart(
          rows.get('VMask', {}), 'attack', rows.get('none', {}), 'scratch'
      )) for name, rows in gaps.items()
  ]
  return (
      f'; 2 parties were measured three times more: {", ".join(texts)}, '
      f'tm_full {signed(numbers.full_gap())}'
  )


def close_throughout() -> Verdict:
  """After every epoch of every training the attack is at most 5 points above
  scratch, or above what it gets from VMask-ALLS.
  """
  masked, scratch, least = (_curve(*which) for which in (
      ('VMask', 'attack'), ('none', 'scratch'), ('VMask-ALLS', 'attack')
  ))
  if masked.shape != scratch.shape or not np.isfinite(masked - scratch).any():
    return Verdict(None, 'not measured, or diverged')
  floor = np.fmax(scratch, least) if least.shape == scratch.shape else scratch
  over = masked - floor > NEAR
  unknown = ~np.isfinite(masked - scratch)
  held = False if over.any() else None if unknown.any() else True
  worst = int(np.nanargmax(np.nanmean(masked - scratch, axis=0)))
  return Verdict(
      held, f'farther off in {over.sum()} of {over.size} (epochs of '
      f'{len(masked)} trainings); most after epoch {worst + 1}: '
      f'{mean(masked[:, worst]):.1f} against {mean(scratch[:, worst]):.1f}'
      + (f'; {unknown.sum()} not measured' if unknown.any() else ''),
  )


def lowest_throughout() -> Verdict:
  """After every epoch the attack's mean is below that of every other defense
  (VMask's variants aside), clearly below in most epochs.
  """
  masked = _curve('VMask', 'attack')
  curves = {
      name: _curve(name, 'attack') for name in older.record('fig5_tm')['curves']
      if name != 'none' and not name.startswith('VMask')
  }
  shown, found = [], {}
  for name, theirs in curves.items():
    if theirs.shape != masked.shape or not masked.size:
      found[name] = None
      continue
    gaps = (masked - theirs).T
    lower = sum(mean(gap) >= 0 for gap in gaps)
    clear = sum(within(gap) is True for gap in gaps)
    known = np.isfinite(gaps).all()
    found[name] = (False if lower else None if not known
                   else 2 * clear > len(gaps) or None)
    if lower:
      shown.append(f'{name} in {lower}')
  return Verdict(
      every(found.values()), 'attacked no better than VMask: '
      f'{", ".join(shown) or "none"} of {masked.shape[-1]} epochs'
      + remarks(found),
  )


def rises_each_epoch(who: str) -> Verdict:
  """The attack is clearly higher after the last epoch than after the first, and
  its mean falls from no epoch to the next; a fall that is clear decides against
  it, another one decides nothing.
  """
  curve = _curve(who, 'attack').T
  falls = sum(mean(b - a) < 0 for a, b in zip(curve, curve[1:]))
  found = {who: trend(curve.tolist(), up=True)}
  return Verdict(
      found[who], f'{_risen([who])}; the mean falls {falls} times'
  )


def still_rises(names: Sequence[str]) -> Verdict:
  """The attack is clearly higher after the last epoch than after the first,
  under each of them.
  """
  found = {name: below(-x for x in _rise(name)) for name in names}
  return Verdict(every(found.values()), _risen(names) + remarks(found))


def _rise(name: str) -> list[float]:
  curve = _curve(name, 'attack')
  return (curve[:, -1] - curve[:, 0]).tolist() if curve.size else []


def _risen(names: Sequence[str]) -> str:
  return 'from the first to the last: ' + ', '.join(
      f'{"undefended" if name == "none" else name} {signed(_rise(name))}'
      for name in names
  ) + ' points'


def top_two_apart() -> Verdict:
  """The two layers of the largest norms are never neighbours, after every epoch
  of every training; not decided if that is so in some trainings alone.
  """
  norms = _norms()
  if not norms.size or not np.isfinite(norms).all():
    return Verdict(None, 'not measured, or diverged')
  top = np.argsort(norms, -1)[..., -2:]
  kept = (abs(top[..., 0] - top[..., 1]) > 1).all(-1)
  held = True if kept.all() else None if kept.any() else False
  pairs = {tuple(sorted(1 + pair)) for pair in top.reshape(-1, 2)}
  return Verdict(held, 'layers ' + ', or '.join(
      f'{i} and {j}' for i, j in sorted(pairs)
  ) + f' of {norms.shape[-1]}')


def first_is_largest() -> Verdict:
  """After every epoch the first layer's norm is clearly larger than that of
  each other one.
  """
  norms = _norms()
  if not norms.size or not np.isfinite(norms).all():
    return Verdict(None, 'not measured, or diverged')
  first, next_one = norms[..., 0], norms[..., 1:].max(-1)
  found = {
      f'epoch {i}': below(gap)
      for i, gap in enumerate((next_one - first).T.tolist(), start=1)
  }
  times = numbers.span((first / next_one).mean(0), 2)
  return Verdict(
      every(found.values()), f"{times} times the next one's{remarks(found)}"
  )


def _norms() -> np.ndarray:
  """Accumulated gradient norms under VMask, [trainings, epochs, layers]."""
  found = older.record('fig5_tm')['curves'].get('VMask', {}).get('norms', [])
  return np.asarray(found, float)


def _curve(who: str, what: str) -> np.ndarray:
  """Figure 5's attack after each epoch, [trainings, epochs], in percent."""
  found = older.record('fig5_tm')['curves'].get(who, {}).get(what, [])
  return 100 * np.asarray(found, float).mean(-1) if found else np.zeros((0, 0))
